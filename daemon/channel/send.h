/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending side of flows: what is in them, which of it goes when and by which way, and what
 * comes back (acknowledgements, failures, news of routes and incarnations). Belongs to the
 * channel's thread.
 */
#pragma once

#include "base/list.h"
#include "daemon/channel/job_table.h"
#include "daemon/flow/flow.h"
#include "daemon/port/way.h"

/* The sending end of the flow of one class to one node. */
struct flow {
    struct flow_tx tx;
    struct list active; /* in sender.active while something is unacknowledged */
    struct list dirty;  /* in sender.dirty: may be able to send */
    struct list shown;  /* in sender.shown: its row says that something is unacknowledged */
    bool ready;
    uint16_t slot;
    uint8_t cls; /* enum wire_class */
    uint32_t dst_epoch;
    uint32_t pick;        /* counter for choosing among ways */
    uint64_t no_route_ns; /* since when there is none; 0: there is */
    uint64_t last_word;
    uint64_t packets, bytes;
};

struct sender {
    struct port *port;
    struct links *links;
    const struct job_table *jobs;
    struct flow_limits limits;
    uint64_t unreachable_after_ns;
    struct flow *table; /* [slot * WIRE_CLASSES + cls] */
    struct list active, shown;
    struct list dirty[WIRE_CLASSES];
    uint32_t n_active;
    uint32_t n_pending[WIRE_CLASSES]; /* packets in flows: each keeps a block */
    uint64_t due_ns;                  /* no flow times out before */
    struct count_row *rows;           /* as the table; read by control */
    uint32_t scratch[FLOW_WINDOW];
};

struct send_config {
    struct flow_limits limits;
    uint64_t unreachable_after_ns; /* without a way for so long, packets are given up */
};

/* 0 or -ENOMEM; send_deinit in any case. */
int send_init(struct sender *s, struct links *links, const struct job_table *jobs,
              const struct send_config *config);
void send_deinit(struct sender *s);

/* The flow of this class to the node of this slot, for its present incarnation. */
struct flow *send_flow(struct sender *s, uint32_t slot, enum wire_class cls);
/* Puts a packet into a flow with room: header complete but for its number, payload in place. */
void send_add(struct sender *s, struct flow *f, uint32_t block);
/* Is the window of this flow open, and are there blocks for it? */
bool send_has_room(const struct sender *s, const struct flow *f);
/* Lets go what can. */
void send_pump(struct sender *s);
/* Would send_pump do anything? */
bool send_has_work(const struct sender *s);

/* An acknowledgement. False: it is not one for this incarnation. */
bool send_on_ack(struct sender *s, uint32_t src_slot, const struct wire_header *h);
void send_on_reset(struct sender *s, uint32_t src_slot);
/* The message that this note says was refused, if it is in its flow still and can be taken back
 * now; else NULL. */
const struct wire_header *send_refused(struct sender *s, uint32_t src_slot,
                                       const struct wire_header *h);
/* Takes it back, after send_refused has named it; its number goes on empty. The caller's block from
 * now on, or BLOCK_NONE if there is none to go in its place. */
uint32_t send_take_back(struct sender *s, uint32_t src_slot, const struct wire_header *h);
/* Routes have changed. */
void send_on_routes(struct sender *s);
/* Looks at time-outs. */
void send_timers(struct sender *s);
/* Looks again at flows without a way, and gives up what waited too long. */
void send_no_route(struct sender *s);
/* Brings the rows up to date. */
void send_snapshot(struct sender *s);
