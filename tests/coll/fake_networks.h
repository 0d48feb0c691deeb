/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The networks of the fake (fake.c), and what crosses the borders between them.
 *
 * "0,1,7/7,2/2,3": three networks with their nodes. Nodes from the number of the job's nodes on
 * hold no ranks: gateways (7 here). A message between nodes without common network is forwarded
 * along the shortest way; every border that it passes counts its bytes. What a rank on a gateway
 * takes from one network and sends into another one is not forwarded.
 */
#ifndef MOTET_TESTS_COLL_FAKE_NETWORKS_H
#define MOTET_TESTS_COLL_FAKE_NETWORKS_H

#include <stdbool.h>

#define FAKE_MAX_NETWORKS 8
#define FAKE_MAX_NODES    64

/* False: not such a list, or a node of the job is on none. Without a call, there are no networks.
 * Before ranks are forked. */
bool fake_networks_set(const char *list, int n_job_nodes);
int fake_networks_n(void);
bool fake_networks_has(int network, int node);
/* Gateways between two networks, JOB_APART: none joins them. */
int fake_networks_distance(int from, int to);

/* Of all ranks together. */
void fake_networks_count(int from_node, int to_node, long n_bytes);
void fake_networks_reset(void);
/* Forwarded from one network into its neighbour. */
long fake_networks_bytes(int from, int to);
long fake_networks_messages(int from, int to);

#endif
