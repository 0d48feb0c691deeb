/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport: this rank's way into the segments, and its rings in them. Below everything else in
 * the library. A process without a daemon, and a test of what lies above, has none of it: base
 * NULL.
 *
 * attach.c gets the segments from the daemon, outbox.c finds the ring that leads to a rank, inbox.c
 * looks at the rings that lead here. Every vci (client/progress/vci.h) has an outbox and an inbox
 * of its own, used by the thread that holds its lock; that of vci 0 is the library lock, and vci 0
 * alone has the rings of the channels. Attaching, leaving and sleeping: with the library lock.
 */
#ifndef MOTET_CLIENT_TRANSPORT_TRANSPORT_H
#define MOTET_CLIENT_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/hop.h"
#include "proto/ring.h"
#include "proto/segment.h"

/* A process that is a job of its own (no daemon) has base NULL, one rank, no rings. */
struct transport {
    void *base; /* job segment */
    struct segment_layout layout;
    const struct hop_table *hops; /* node segment, read-only */
    struct segment_rank *me;
    int sock;
    int event_fds[HOP_MAX_CHANNELS];
    uint32_t world_rank, local_rank, n_world, n_local, n_nodes, n_channels, node;
    uint32_t packet_bytes; /* largest payload to another node */
    uint64_t job;
    bool fenced;
    uint32_t *local_to_world; /* [n_local] */
    /* The last message of this rank left through a channel: its thread, perhaps on this very core,
     * has to run before anything can come of it. Set by whoever publishes in vci 0. */
    bool needs_channel;
    char reason[256]; /* transport_reason */
};
extern struct transport *transport_here;

/* Returns 0, -ENOMEM or -EPROTO (environment, daemon or segment do not fit); transport_reason then
 * says why. */
int transport_attach(void);
const char *transport_reason(void);
/* Waits until the daemon has taken what this rank sent, then leaves. */
void transport_detach(void);
/* Tells the daemon to end the job. Returns whether somebody was told. */
bool transport_abort(int code, const char *text);
/* False when the daemon has gone: its end of the socket is closed. A system call. */
bool transport_alive(void);

static inline const struct segment_world *transport_world(uint32_t world_rank)
{
    return segment_world_at(transport_here->base, &transport_here->layout, world_rank);
}

/* ---- outbox ---- */

struct outbox {
    struct ring_producer *producers; /* [n_local, vci 0: + n_channels] */
    bool *ready;
    uint32_t vci, n;
    uint32_t spread; /* position in the cycle that shares large traffic among channels */
};

/* 0, or -1: no memory. */
int outbox_init(struct outbox *box, uint32_t vci);
void outbox_deinit(struct outbox *box);
/* The ring to a rank of this node. Never NULL; the pointer stays valid. */
struct ring_producer *outbox_local(struct outbox *box, uint32_t local_rank);
/* The ring to the channel that leads to a rank of another node now, or NULL while there is no way
 * or the channel has closed the rank. `large`: traffic that may be spread over several channels in
 * proportion to their speed. VCI 0 only. */
struct ring_producer *outbox_remote(struct outbox *box, uint32_t world_rank, uint32_t node,
                                    bool large);

/* ---- inbox ---- */

/* Called for each message. The slot and payload are valid during the call; header fields must be
 * read once. */
typedef void inbox_handler(void *arg, uint32_t src_world, const struct ring_slot *slot,
                           uint32_t len, const void *payload);

struct inbox_ring;

struct inbox {
    inbox_handler *handle;
    void *arg;
    struct inbox_ring *rings; /* local ranks, then, in vci 0, channels */
    uint32_t vci, n_rings;
    uint32_t first_bit;       /* of these rings in the bell */
    uint32_t *active, *quiet; /* indices of known rings, by state */
    uint32_t n_active, n_quiet, quiet_at;
};

/* 0, or -1: no memory. */
int inbox_init(struct inbox *box, uint32_t vci, inbox_handler *handler, void *arg);
void inbox_deinit(struct inbox *box);
/* Handles what is there, a bounded number per ring. Returns how many messages. */
int inbox_poll(struct inbox *box);
/* Is something there? To be asked between inbox_sleep_begin and inbox_sleep. */
bool inbox_has_news(struct inbox *box);

/*
 * Sleeping, in three steps, because a thread that sleeps must not hold the library lock: announce
 * it and look at every inbox once more, sleep until a producer rings or timeout_ns is over, and
 * take the announcement back. First and last with the lock. Threads share one bell; whoever takes
 * news or an announcement away while others sleep must wake them.
 */
void inbox_sleep_begin(void);
void inbox_sleep(uint64_t timeout_ns);
void inbox_sleep_end(void);
/* Does the announcement still stand? A producer that rings takes it away. */
bool inbox_sleep_announced(void);
/* Ends everybody's sleep; they look again and announce anew. */
void inbox_wake_all(void);

#endif
