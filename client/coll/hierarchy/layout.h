/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the blocks of all ranks lie while they travel along a tree of groups.
 *
 * Packed, in the order in which a walk over the tree meets the ranks: group by group, node by node,
 * and behind each node the groups that it speaks with. So everything that one rank passes on, for
 * its node, its group or the subtree of its group, lies in one piece, and every rank knows the size
 * of each piece.
 */
#ifndef MOTET_CLIENT_COLL_HIERARCHY_LAYOUT_H
#define MOTET_CLIENT_COLL_HIERARCHY_LAYOUT_H

#include "client/coll/hierarchy/chain.h"
#include "client/coll/hierarchy/place.h"
#include "client/coll/schedule/blocks.h"

struct layout {
    int *order;                 /* [size] ranks as the walk meets them */
    int *node_first, *node_n;   /* [n_nodes] where a node and what hangs on it lies in `order` */
    int *group_first, *group_n; /* [n_groups] the same of groups */
    MPI_Count *at; /* [size + 1] where the block of each place begins, in bytes or elements */
    bool identity; /* the walk meets the ranks in their order */
};

/* The places; `at` is the caller's to fill. False: no memory. */
bool layout_find(struct schedule *s, const struct place *p, struct layout *ret_layout);
/* Bytes of blocks. */
void layout_measure(struct layout *t, const struct blocks *b, int size);

/* Node at place i of the own group. */
static inline int layout_node(const struct place *p, int i)
{
    return p->groups->nodes[p->groups->first[p->my_group] + i];
}

/* A piece of the layout in a buffer of bytes that begins with place `base`. */
struct piece {
    unsigned char *start;
    MPI_Count n;
};

struct piece layout_piece(const struct layout *t, unsigned char *packed, int base, int first,
                          int n);
void layout_isend(struct schedule *s, struct piece piece, int to);
void layout_irecv(struct schedule *s, struct piece piece, int from);

/* Are the blocks of so many bytes better passed on one by one (chain.h)? */
bool layout_is_long(const struct place *p, MPI_Count n_bytes);
/* Where the blocks of each node's ranks lie. False: no memory. */
bool layout_node_blocks(struct schedule *s, const struct place *p, const struct layout *t,
                        struct chain_blocks *ret_blocks);

#endif
