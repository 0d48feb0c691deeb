/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue records (proto/queue.h): what this rank shows of its queues to the daemon. Nonblocking
 * receives, unexpected messages, sends that wait and large transfers have one at once; a blocking
 * receive takes one when it has waited for long (transfer_show_late), so that the short path pays
 * nothing. Knows nothing of messages: whoever has one to show says what stands in its record.
 *
 * All engines of a rank take from one row; each keeps those that it has given back for itself.
 */
#ifndef MOTET_CLIENT_P2P_RECORD_H
#define MOTET_CLIENT_P2P_RECORD_H

#include <stdint.h>

#include "base/clock.h"
#include "mpi.h"
#include "proto/queue.h"

/* What one engine has of the rank's records. */
struct record_set {
    struct queue_record *records; /* of the rank; NULL: no job segment, nothing is shown */
    uint32_t n_records;
    uint32_t n_returned, max_returned;
    uint32_t *returned; /* indices of those that were used and given back */
};

void record_init(struct record_set *set);
void record_deinit(struct record_set *set);

struct queue_record *record_take(struct record_set *set);
/* To show something in *record, which takes one if it is NULL: the record, whose fields the caller
 * fills in before record_publish, or NULL when all are in use: it stays unseen. */
static inline struct queue_record *record_begin(struct record_set *set,
                                                struct queue_record **record)
{
    if (!*record && !(*record = record_take(set)))
        return NULL;
    atomic_store_explicit(&(*record)->state, QUEUE_FREE, memory_order_relaxed);
    return *record;
}
static inline void record_publish(struct queue_record *r, enum queue_state state)
{
    r->since_ns = clock_coarse_ns();
    /* release: pairs with the acquire of the daemon's scan; from here on it may copy the fields. */
    atomic_store_explicit(&r->state, state, memory_order_release);
}
/* How a record has the wildcards. */
static inline int32_t record_peer(int rank)
{
    return rank == MPI_ANY_SOURCE ? QUEUE_ANY_SOURCE : rank;
}
static inline int32_t record_tag(int tag)
{
    return tag == MPI_ANY_TAG ? QUEUE_ANY_TAG : tag;
}

/* Shows, as a receive that nothing has come for, that a probe waits for a message, or a collective
 * for what a rank puts into shared memory. Called again for the next one. */
void record_show_wait(struct record_set *set, struct queue_record **record, uint32_t context,
                      int peer, int32_t peer_world, int tag);
/* Takes it off; *record may be NULL and is NULL afterwards. */
void record_hide(struct record_set *set, struct queue_record **record);

/* The record's index + 1, by which the other ranks of the node find it; 0: none. */
uint32_t record_index(const struct record_set *set, const struct queue_record *record);
/* The record of another rank of this node by that number, or NULL. */
struct queue_record *record_of(const struct record_set *set, uint32_t local_rank, uint32_t index);

#endif
