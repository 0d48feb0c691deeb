/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collective operations as programs: what the MPI functions of chapter 6 do, once for the
 * blocking, nonblocking and persistent forms and for any set of ranks.
 *
 * Each coll_xxx() does what is the same for all algorithms of its family and lets one of them write
 * the steps of this rank into a schedule (schedule.h), over the ranks of the schedule's view: the
 * one that choice/select.c picks. An algorithm may call these functions again, over a part of the
 * ranks. Arguments are those of the MPI function, MPI_IN_PLACE included where it says so here;
 * roots are ranks of the view. Called with the library lock held.
 */
#ifndef MOTET_CLIENT_COLL_FAMILY_COLL_H
#define MOTET_CLIENT_COLL_FAMILY_COLL_H

#include "client/coll/family/algorithm.h"
#include "client/coll/schedule/coll_comm.h"

void coll_barrier(struct schedule *s);
void coll_bcast(struct schedule *s, struct buffer buf, int root);

/* send: MPI_IN_PLACE at the root means that its block is in recv already. `recv` counts at the root
 * only, but for its member `uniform` (blocks.h). */
void coll_gather(struct schedule *s, struct buffer send, const struct blocks *recv, int root);
void coll_scatter(struct schedule *s, const struct blocks *send, struct buffer recv, int root);

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

/* ---- the choice ---- */

/* n_bytes: what the family's rules go by (message, block, or total for allgather and
 * reduce_scatter). regular: the operation commutes (reductions), or all blocks are of one size
 * (allgather, alltoall). */
typedef const struct algorithm *coll_chooser(enum coll_family family, const struct schedule *s,
                                             MPI_Count n_bytes, bool regular);

/* The algorithm through the memory of the node that the rules give to calls of up to `most` bytes
 * (-1: the rules are to be asked) among all ranks of a communicator. */
struct coll_quick {
    const struct algorithm *algorithm;
    MPI_Count most;
};

/* Once, before the first collective; further calls do nothing. The choice lies above the
 * algorithms, which call the functions here. */
void coll_init(coll_chooser *choose);

#endif
