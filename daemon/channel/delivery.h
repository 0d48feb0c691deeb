/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delivery into a rank's down ring, and the rank's backlog when the ring is full: messages that
 * wait, charged to the rank, until there is room. A rank over its limit is refused: its messages
 * stay with their senders, which are told, and it is named to control when that lasts. Belongs to
 * the channel's thread.
 */
#pragma once

#include "daemon/channel/ack.h"
#include "daemon/channel/job_table.h"
#include "daemon/port/record_queue.h"
#include "proto/ring.h"

#define DELIVERY_TOLD 16u

/* One rank's ring from this channel, and its backlog. */
struct down {
    struct ring_producer ring;
    struct list node; /* in delivery.waiting while there is a backlog */
    struct channel_job *job;
    uint32_t local, world;
    bool gone;
    struct record_queue backlog;
    uint64_t refused_ns; /* since when packets are refused without any being drained; 0: not */
    uint64_t reported_ns;
    struct {
        struct flow_in *in;
        uint64_t job;      /* by which the source knows the rank's job */
    } told[DELIVERY_TOLD]; /* flows whose sources were told to stop; more than fit find out by
                              themselves */
    uint32_t n_told;
};

struct delivery {
    struct port *port;
    struct acks *acks;
    const struct job_table *jobs;
    uint32_t blocks_max; /* of all backlogs */
    uint64_t stall_ns;   /* a rank over its limit for so long is named to control */
    struct list waiting;
    uint32_t n_blocks; /* in all backlogs */
};

void delivery_init(struct delivery *d, struct acks *acks, const struct job_table *jobs,
                   uint32_t blocks_max, uint64_t stall_ns);

enum { DELIVERY_E_REFUSED = 1 };
/* Delivers a message to a local rank now, or adds it to its backlog. `block`: the received block in
 * which the message lies, or BLOCK_NONE; *ret_kept says that the block was kept. 0, or
 * DELIVERY_E_REFUSED. */
int delivery_put(struct delivery *d, struct down *down, const struct wire_header *h,
                 const void *payload, uint32_t block, bool *ret_kept);
/* Tells the source of this flow, which knows the rank's job by this number, to stop if the rank's
 * backlog is high. */
void delivery_check_high(struct delivery *d, struct down *down, struct flow_in *in, uint64_t job);
/* Delivers from the backlogs, as far as there is room. Returns how many messages. */
uint32_t delivery_poll(struct delivery *d);
/* Would delivery_poll do anything? */
bool delivery_has_work(const struct delivery *d);
/* Throws the rank's backlog away. */
void delivery_release(struct delivery *d, struct down *down);
