/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The algorithms over messages by name, for the files that choose among them (bcast.c, reduce.c,
 * ...) and those built from others. Each has a file in algorithms/ that says what it does, its
 * source and its cost: p ranks, n bytes, alpha the latency of a message, beta the time of a byte,
 * gamma that of reducing one. Arguments as in coll.h, unless said otherwise. Those within a node
 * are in shared.h, those over borders in hierarchy.h.
 */
#ifndef MOTET_CLIENT_COLL_ALGORITHMS_ALGORITHMS_H
#define MOTET_CLIENT_COLL_ALGORITHMS_ALGORITHMS_H

#include "client/coll/family/coll.h"

void barrier_dissemination(struct schedule *s);

void bcast_binomial(struct schedule *s, struct buffer buf, int root);
void bcast_scatter_allgather(struct schedule *s, struct buffer buf, int root);
void bcast_pipeline(struct schedule *s, struct buffer buf, int root);

void gather_binomial(struct schedule *s, struct buffer send, const struct blocks *recv, int root);
void gather_linear(struct schedule *s, struct buffer send, const struct blocks *recv, int root);
void scatter_binomial(struct schedule *s, const struct blocks *send, struct buffer recv, int root);
void scatter_linear(struct schedule *s, const struct blocks *send, struct buffer recv, int root);

/* Reductions keep the order of operands unless the name's comment says that the operation must be
 * commutative. In place is resolved: `send` and `recv` may be the same address. */
void reduce_binomial(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                     int root);
void reduce_rabenseifner(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                         int root);
void allreduce_recursive_doubling(struct schedule *s, const void *send, struct buffer recv,
                                  struct op *op);
void allreduce_rabenseifner(struct schedule *s, const void *send, struct buffer recv,
                            struct op *op);
void allreduce_ring(struct schedule *s, const void *send, struct buffer recv, struct op *op);

/* `recv` holds the own block already. */
void allgather_recursive_doubling(struct schedule *s, const struct blocks *recv);
void allgather_bruck(struct schedule *s, const struct blocks *recv);
void allgather_ring(struct schedule *s, const struct blocks *recv);

void alltoall_bruck(struct schedule *s, const struct blocks *send, const struct blocks *recv);
void alltoall_linear(struct schedule *s, const struct blocks *send, const struct blocks *recv);
void alltoall_pairwise(struct schedule *s, const struct blocks *send, const struct blocks *recv);

void reduce_scatter_halving(struct schedule *s, const void *send, void *recv,
                            const struct blocks *counts, struct op *op);
void reduce_scatter_pairwise(struct schedule *s, const void *send, void *recv,
                             const struct blocks *counts, struct op *op);
void reduce_scatter_by_root(struct schedule *s, const void *send, void *recv,
                            const struct blocks *counts, struct op *op);

void scan_doubling(struct schedule *s, const void *send, struct buffer result, struct op *op,
                   bool inclusive);

#endif
