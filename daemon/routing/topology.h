/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cluster as this node knows it: the newest link state of every node. Pure; filled by cluster.c
 * from the neighbours' floods, read by routes, jobs and status. Control thread.
 *
 * Idea: link-state flooding as in OSPF (RFC 2328), without areas and ageing timers: each node
 * describes itself (endpoints, links to neighbours), newest (epoch, sequence) wins, and a link
 * counts only when both ends name it. Who sends what to whom is cluster/flood.h's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "base/list.h"
#include "proto/control.pb-c.h"

/* Deaths that one node tells of. */
#define TOPOLOGY_MAX_DEATHS 64u

#define TOPOLOGY_FLOOD_HEARD 4u

/* Kept by cluster/flood.c: how far its newest state has been passed on. */
struct topology_flood {
    struct list pending;                  /* in the list of those to be sent */
    uint32_t heard[TOPOLOGY_FLOOD_HEARD]; /* neighbours that have it, since they sent it */
    uint32_t n_heard;
    uint32_t stamp; /* of the digest that named it last */
};

struct topology_node {
    UT_hash_handle hh;
    uint32_t node_id;
    Motet__LinkState *state;
    uint32_t index; /* dense, in the order of first hearing; for route computations */
    /* Kept by cluster.c from the routes: */
    bool reachable;
    bool lost;                     /* given up */
    bool told_lost;                /* ... and whoever has to do with it was told */
    uint64_t unreachable_since_ns; /* valid while not reachable */
    struct topology_flood flood;
};

struct topology;

/* NULL: no memory. */
struct topology *topology_new(uint32_t own_id, uint32_t own_epoch, uint32_t max_nodes);
void topology_free(struct topology *t);

/* Conditions of topology_apply. */
enum {
    TOPOLOGY_E_KNOWN = 1, /* nothing new */
    TOPOLOGY_E_OLDER = 2, /* ours is newer: send it back */
    TOPOLOGY_E_OURSELVES =
        3, /* an incarnation of this node that counts for a later one: our own past, with a number
              that a clock or somebody else gave it, or another node of our name */
    TOPOLOGY_E_FULL = 4,
};
/* What a new link state brings. */
struct topology_change {
    bool restarted; /* the node has another epoch than before */
    uint32_t epoch; /* of the incarnation that it is about, also where a condition is returned */
    bool graph; /* routes may change: its links, or whether it forwards; else only what it says of
                   itself */
    bool costs; /* what it says of round trips is new */
    bool rest;  /* anything else may be */
};
/* Takes a link state from a neighbour. 0: new, flood it on; one of the conditions; -EINVAL: not
 * valid. The message is taken over in every case. */
int topology_apply(struct topology *t, Motet__LinkState *state, struct topology_change *ret_change);
/* Stores the own link state (taken over). 0 or -ENOMEM. */
int topology_set_own(struct topology *t, Motet__LinkState *state,
                     struct topology_change *ret_change);

/* Negative, 0, positive: the state is older than, the same as, newer than that of these numbers. */
int topology_order(const Motet__LinkState *a, uint32_t epoch, uint64_t sequence);

struct topology_node *topology_find(const struct topology *t, uint32_t node_id);
struct topology_node *topology_find_name(const struct topology *t, const char *name);
/* The own node is among them. The next is node->hh.next. */
struct topology_node *topology_first(const struct topology *t);
unsigned topology_count(const struct topology *t);
/* What `from` says of its link to `to` on this network; NULL if it names none. */
const Motet__Adjacency *topology_adjacency(const struct topology_node *from, uint32_t to,
                                           const char *network);
/* The n-th (counted from 0, wrapping round) endpoint of a node on a network, or NULL. */
const Motet__Endpoint *topology_endpoint(const struct topology_node *node, const char *network,
                                         uint32_t n);
