/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link: this rank's rings. Below everything else in the library; unit tests replace it.
 *
 * attach.c gets the segments from the daemon, outbox.c finds the ring that leads to a rank, inbox.c looks at the rings that lead
 * here. All on the thread that holds the library lock.
 */
#ifndef MOTET_CLIENT_LINK_LINK_H
#define MOTET_CLIENT_LINK_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/hop.h"
#include "proto/ring.h"
#include "proto/segment.h"

/* A process that is a job of its own (no daemon) has base NULL, one rank, no rings. */
struct link {
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
};
extern struct link link_self;

/* Returns 0, -ENOMEM or -EPROTO (environment, daemon or segment do not fit); link_reason then says why. */
int link_attach(void);
const char *link_reason(void);
/* Waits until the daemon has taken what this rank sent, then leaves. */
void link_detach(void);
/* Tells the daemon to end the job. Returns whether somebody was told. */
bool link_abort(int code, const char *text);
/* False when the daemon has gone: its end of the socket is closed. A system call. */
bool link_alive(void);

static inline const struct segment_world *link_world(uint32_t world_rank)
{
    return segment_world_at(link_self.base, &link_self.layout, world_rank);
}

/* ---- outbox ---- */

int outbox_init(void);
void outbox_deinit(void);
/* The ring to a rank of this node. Never NULL; the pointer stays valid. */
struct ring_producer *outbox_local(uint32_t local_rank);
/* The ring to the channel that leads to another node now, or NULL while there is no way. `large`: traffic that may be spread
 * over several channels in proportion to their speed. */
struct ring_producer *outbox_remote(uint32_t node, bool large);

/* The last message of this rank left through a channel: its thread, perhaps on this very core, has to run before anything can come of it.
 * Set by whoever publishes. */
extern bool outbox_needs_channel;

/* ---- inbox ---- */

/* Called for each message. The slot and payload are valid during the call; header fields must be read once. */
typedef void inbox_handler(uint32_t src_world, const struct ring_slot *slot, uint32_t len, const void *payload);

int inbox_init(inbox_handler *handler);
void inbox_deinit(void);
/* Handles what is there, a bounded number per ring. Returns how many messages. */
int inbox_poll(void);
/*
 * Sleeping, in three steps, because a thread that sleeps must not hold the library lock: announce it and look once more (true: nothing
 * there), sleep until a producer rings or timeout_ns is over, and take the announcement back. First and last with the lock.
 * Threads share one bell; whoever takes news or an announcement away while others sleep must wake them.
 */
bool inbox_sleep_begin(void);
void inbox_sleep(uint64_t timeout_ns);
void inbox_sleep_end(void);
/* Does the announcement still stand? A producer that rings takes it away. */
bool inbox_sleep_announced(void);
/* Ends everybody's sleep; they look again and announce anew. */
void inbox_wake_all(void);

#endif
