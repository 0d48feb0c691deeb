/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared memory of a node, as collectives use it: which communicator has a slot of it
 * (client/transport/cells.h), and waiting for its steps.
 *
 * The members of a communicator agree on a slot along with the context id (client/comm/context.c
 * offers and settles); those that find none free send messages. Blocking and nonblocking operations
 * have a row of steps each, since programs are seen that mix their order; persistent ones send
 * messages, because they may be started in any order. All with the library lock held.
 */
#ifndef MOTET_CLIENT_COLL_NODE_NODE_H
#define MOTET_CLIENT_COLL_NODE_NODE_H

#include "client/coll/topology/shape.h"
#include "client/object/comm.h"
#include "client/progress/progress.h"
#include "client/transport/cells.h"

/* ---- slots ---- */

/* What a member offers for a new communicator: its free slots (a bit each, none of them on offer
 * elsewhere until node_withdraw), and a step number that it never used. */
uint64_t node_offer(uint64_t *ret_above);
void node_withdraw(uint64_t offered);
/* The slot for a context id: the first one that all members offered (none if there is none), its
 * steps beginning behind `above`. */
void node_settle(uint64_t common, uint64_t above, uint32_t context_id);
void node_give_back(uint32_t context_id);
void node_init(void);

/* A communicator's rows of steps with its members on this node. */
struct node_rows {
    bool tried;
    struct cells *row[CELLS_ROWS]; /* of blocking and of nonblocking operations; NULL without
                                            a slot or another member */
    const int *members;            /* [n_members] those of the shape */
    int n_members;
    bool whole; /* all members of the communicator */
};

void node_open_rows(struct node_rows *rows, const struct comm *comm, const struct shape *shape);
void node_close_rows(struct node_rows *rows);

/* ---- steps ---- */

/* One step of a row, taken by one collective. */
struct node_step {
    struct cells *cells;
    uint64_t number;
    const int *members; /* communicator ranks */
    struct comm *comm;
    int tag;
};

/* Largest publication. */
MPI_Count node_max_bytes(void);
/* Wait (blocking calls). */
const void *node_wait_for(const struct node_step *step, int member, uint32_t *ret_len);
void *node_wait_room(const struct node_step *step, uint32_t n_bytes);
/* Shows on the board that a step waits for a member. */
void node_show(const struct node_step *step, int member, struct queue_record **record);
/* Of blocking waits, for progress_on_sleep: whoever goes to sleep is shown on the board. */
enum progress_news node_news(void);

#endif
