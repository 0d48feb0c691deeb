/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How link states travel from node to node: over which connections, when, and what two daemons that
 * begin to exchange them tell each other. Used by cluster.c; uses topology.h (what is known) and
 * mesh.h (connections). State machine without clock and socket. Control thread.
 *
 * Idea: on a network of n nodes all n (n - 1) / 2 connections could carry a link state, and 2 n are
 * enough: as with the designated routers of OSPF (RFC 2328, section 9.4), two nodes of a network
 * flood for all, and as with its adjacencies (section 10) link states travel over the connections
 * to them alone. Nobody is elected by vote. Each node wants the connections
 *
 *   - to the two nodes with the smallest ids on the network, itself counted, that it has a
 *     connection to;
 *   - to every node that is not covered: that no such node d, smaller than itself, names as its
 *     neighbour on this network. A node is given some time to be covered.
 *
 * A connection that either end wants is an adjacency: link states go over it, both ways, except to
 * where they came from. So the smallest node of a network wants all its connections, all others
 * want two, and when one of the two dies the other one floods on while a third is taken in.
 *
 * The adjacencies join whatever the connections join, whoever sees whom: let a and b be connected,
 * and neither want it. Then some d < a has an adjacency with a, and a connection with b; d + b is
 * less than a + b, so by induction over that sum adjacencies join d with b, and so a with b. What d
 * says of its neighbours is as new as can be at a, since it comes over their adjacency; when it
 * changes, a thinks again.
 *
 * When a connection becomes an adjacency both ends send a digest: number, incarnation and sequence
 * of every link state that they have. Each sends what the other one lacks, and its own digest when
 * it sees that it lacks something itself. After that nothing can get lost: the connection is TCP.
 * A digest's sum alone is sent now and then; if sums differed the full digests would follow.
 *
 * What is to be flooded gathers until flood_run, and goes in one frame.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct mesh;
struct mesh_link;
struct topology;
struct topology_node;

/* A neighbour that nobody floods for gets its link states from here after this time; a connection
 * that is not wanted any more is an adjacency for that time longer. */
#define FLOOD_UNCOVERED_NS 1000000000ull
#define FLOOD_LINGER_NS    3000000000ull
/* The sum of a digest is sent over each adjacency this often, at times that are spread. */
#define FLOOD_REFRESH_NS 600000000000ull

struct flood {
    uint32_t node_id;
    struct topology *topology;
    struct mesh *mesh;
    struct list pending; /* nodes whose states are to be sent */
    uint32_t stamp;      /* of digests and of choices */
    bool undecided;      /* some connection waits for its time to be over */
};

void flood_init(struct flood *f, uint32_t node_id, struct topology *topology, struct mesh *mesh);

/* The state of a node is new: it goes to all adjacencies with the next flood_run. from: the
 * connection that it came by; NULL: it is the own one. */
void flood_add(struct flood *f, struct topology_node *n, const struct mesh_link *from);
/* The state of a node came from there, too. */
void flood_heard(struct topology_node *n, const struct mesh_link *from);
/* The other side has an older state of this node. */
void flood_correct(struct mesh_link *to, const struct topology_node *n);
/* A digest came. 0, or -EPROTO when it is not valid. */
int flood_on_digest(struct flood *f, struct mesh_link *from, const uint8_t *body, uint32_t len,
                    uint64_t now_ns);
/* Decides which connections are adjacencies, and sends what has gathered. */
void flood_run(struct flood *f, uint64_t now_ns);
/* Now and then. True: flood_run has something to do. */
bool flood_tick(struct flood *f, uint64_t now_ns);
