/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collective operations as programs: what the MPI functions of chapter 6 do, once for the
 * blocking, nonblocking and persistent forms and for any set of ranks.
 *
 * Each coll_xxx() writes the steps of this rank into a schedule (schedule.h), over the ranks of the
 * schedule's view, by the algorithm that select.c picks. Arguments are those of the MPI function
 * after the entries (entry_*.c) have resolved MPI_IN_PLACE where it says so here; roots are ranks
 * of the view. Called with the library lock held.
 */
#ifndef MOTET_CLIENT_COLL_FAMILY_COLL_H
#define MOTET_CLIENT_COLL_FAMILY_COLL_H

#include "client/coll/choice/select.h"
#include "client/coll/schedule/blocks.h"
#include "client/coll/schedule/schedule.h"

/* The forms of a call. */
enum coll_form { COLL_BLOCKING, COLL_NONBLOCKING, COLL_PERSISTENT, COLL_FORMS };

/* What the engine keeps per communicator. */
struct coll_comm {
    uint32_t next_tag[COLL_FORMS]; /* of the next call of each form */
    uint32_t next_check;           /* of the next call of any form, in the checking mode */

    /* The shape, from where the ranks run; equal on all members. */
    bool shaped;
    int n_nodes;  /* nodes with at least one member */
    int *leaders; /* [n_nodes] lowest rank on each node, nodes in the order of their leaders */
    int *node_of; /* [size] index of each rank's node in leaders */
    int *members; /* [n_members] ranks on my node, ascending */
    int n_members;
    int my_member; /* my place in members */
    bool in_order; /* every node holds an unbroken row of ranks */
    struct levels *nodes,
        *networks; /* all nodes in one group, and a group for each network; NULL with one node */
    struct coll_comm *remote; /* of an intercommunicator: the shape of its remote group, without
                                 members; made on first use */

    /* The cells of the members on this node (shared.h); NULL without a slot or another
     * member. */
    bool cells_tried;
    struct cells *rows[2]; /* of blocking and of nonblocking operations */

    MPI_Count short_block; /* shared_moves.c; 0: not known yet */

    /* select.c: the algorithm over the cells that the rules give up to quick_most bytes (-1:
     * they are to be read). */
    bool quick_known;
    uint8_t quick_name[SELECT_FAMILIES]; /* enum select_name */
    MPI_Count quick_most[SELECT_FAMILIES];
};

/* The data of comm, made on first use; NULL when memory is missing. */
struct coll_comm *coll_comm_of(struct comm *comm);
/* The same with the shape filled in. */
struct coll_comm *coll_shape_of(struct comm *comm);
/* The shape of an intercommunicator's remote group, as its members see it. */
const struct coll_comm *coll_remote_shape_of(struct comm *comm);

/* Tags of the collective context. Every collective call takes the next one of its form on all
 * members alike. The forms count apart, so that a program that starts a nonblocking operation here
 * before and there behind a blocking one (not allowed, but seen) still meets its partners. */
int coll_next_tag(struct comm *comm);
int coll_next_nonblocking_tag(struct comm *comm);
int coll_next_persistent_tag(struct comm *comm);
int coll_next_check_tag(struct comm *comm);
/* The form of a call by its tag; COLL_FORMS for the tags below. */
enum coll_form coll_form_of(int tag);
/* Its number among the calls of that form. */
uint32_t coll_sequence_of(int tag);
/* For creation among some members of a communicator under a tag of the user: a range of its own. */
static inline int coll_group_tag(int user_tag)
{
    return 1 << 29 | (user_tag & ((1 << 29) - 1));
}

void coll_init(void);

void coll_barrier(struct schedule *s);
void coll_bcast(struct schedule *s, struct buffer buf, int root);

/* send: MPI_IN_PLACE at the root means that its block is in recv already. `recv` counts at the root
 * only. `uniform` (gather, scatter): every rank's block has the same number of bytes and so every
 * rank knows all sizes. */
void coll_gather(struct schedule *s, struct buffer send, const struct blocks *recv, bool uniform,
                 int root);
void coll_scatter(struct schedule *s, const struct blocks *send, bool uniform, struct buffer recv,
                  int root);

/* MPI_IN_PLACE: the own block is in recv already. */
void coll_allgather(struct schedule *s, struct buffer send, const struct blocks *recv);

/* In place: send == NULL, data is taken from recv. */
void coll_alltoall(struct schedule *s, const struct blocks *send, const struct blocks *recv);

/* send MPI_IN_PLACE: (at the root of reduce) the operand is in recv. recv counts at the root
 * only. */
void coll_reduce(struct schedule *s, const void *send, struct buffer recv, struct op *op, int root);
void coll_allreduce(struct schedule *s, const void *send, struct buffer recv, struct op *op);
/* counts: elements for each rank. MPI_IN_PLACE: all operands are in recv, the result at its
 * start. */
void coll_reduce_scatter(struct schedule *s, const void *send, void *recv,
                         const struct blocks *counts, struct op *op);
void coll_scan(struct schedule *s, const void *send, struct buffer recv, struct op *op);
void coll_exscan(struct schedule *s, const void *send, struct buffer recv, struct op *op);

/* Helpers for the algorithms. */

static inline int coll_pof2(int size) /* largest power of two <= size */
{
    int pof2 = 1;
    while (pof2 <= size / 2)
        pof2 *= 2;
    return pof2;
}

#endif
