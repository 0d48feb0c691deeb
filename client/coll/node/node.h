/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives through the shared memory of a node: which communicator has a slot of the cells
 * (client/transport/cells.h), waiting for its steps, and the algorithms over it.
 *
 * The members of a communicator agree on a slot along with the context id (client/comm/context.c
 * offers and settles); those that find none free send messages. Blocking and nonblocking operations
 * have a row of steps each, since programs are seen that mix their order; persistent ones send
 * messages, because they may be started in any order. All with the library lock held.
 */
#ifndef MOTET_CLIENT_COLL_NODE_NODE_H
#define MOTET_CLIENT_COLL_NODE_NODE_H

#include "client/coll/family/coll.h"

/* ---- slots ---- */

/* What a member offers for a new communicator: its free slots (a bit each, none of them on offer
 * elsewhere until shared_withdraw), and a step number that it never used. */
uint64_t shared_offer(uint64_t *ret_above);
void shared_withdraw(uint64_t offered);
/* The slot for a context id: the first one that all members offered (none if there is none), its
 * steps beginning behind `above`. */
void shared_settle(uint64_t common, uint64_t above, uint32_t context_id);
void shared_give_back(uint32_t context_id);
void shared_init(void);
/* Of a communicator that goes away. */
void shared_close(struct coll_comm *c);

/* ---- steps ---- */

/* Have the ranks of the view cells? The same answer on all of them. */
bool shared_available(const struct schedule *s);
/* The next step of the view's cells. */
struct shared shared_begin(const struct schedule *s);
/* Hides the latency of looking at all members' publications one after the other: for the step after
 * this one. */
void shared_look_ahead(const struct schedule *s, const struct shared *sh);
/* Largest publication. */
MPI_Count shared_max_bytes(void);
/* Wait (blocking calls). */
const void *shared_wait_for(const struct shared *sh, int member, uint32_t *ret_len);
void *shared_wait_room(const struct shared *sh, uint32_t n_bytes);
/* Shows on the board that a step waits for a member. */
void shared_show(const struct shared *sh, int member, struct queue_record **record);
/* Of blocking waits, for progress_on_sleep: whoever goes to sleep is shown on the board. */
enum progress_news shared_news(void);

/* ---- algorithms; arguments as in algorithms.h ---- */

void shared_barrier(struct schedule *s);
void shared_bcast(struct schedule *s, struct buffer buf, int root);
void shared_gather(struct schedule *s, struct buffer send, const struct blocks *recv, bool uniform,
                   int root);
void shared_scatter(struct schedule *s, const struct blocks *send, bool uniform, struct buffer recv,
                    int root);
void shared_allgather(struct schedule *s, const struct blocks *recv);
void shared_alltoall(struct schedule *s, const struct blocks *send, const struct blocks *recv);
void shared_reduce(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                   int root);
void shared_allreduce(struct schedule *s, const void *send, struct buffer recv, struct op *op);
void shared_reduce_scatter(struct schedule *s, const void *send, void *recv,
                           const struct blocks *counts, struct op *op);
void shared_scan(struct schedule *s, const void *send, struct buffer recv, struct op *op);
void shared_exscan(struct schedule *s, const void *send, struct buffer recv, struct op *op);

#endif
