/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node in its cluster: describes itself, floods what it hears, computes routes and publishes
 * them in the hop table, tells the channels their neighbours, notices which nodes are lost. Between
 * mesh.h (connections), topology.h (knowledge), route.h (computation), forwarding.h (publication)
 * and channels.h (channels). Control thread.
 *
 * Idea: every change only marks what is out of date; one update, a millisecond later, brings
 * everything into step in a fixed order: links of the channels, own link state, graph, routes, hop
 * table, reachability. A burst of changes costs one update.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/cluster/route.h"
#include "daemon/jobs/placement.h"

struct cluster;
struct mesh_link;
struct node;
struct topology_node;

/* NULL: no memory. */
struct cluster *cluster_new(struct node *node);
void cluster_free(struct cluster *c);

/* From mesh. */
void cluster_on_link_up(struct cluster *c, struct mesh_link *link);
void cluster_on_link_down(struct cluster *c, const struct mesh_link *link);
/* 0, or -EPROTO. */
int cluster_on_link_state(struct cluster *c, struct mesh_link *from, const uint8_t *body,
                          uint32_t len);
/* A node that we had been connected to in this incarnation refuses to be connected to again. */
void cluster_on_refused(struct cluster *c, uint32_t node_id, uint32_t epoch);
void cluster_on_rtt(struct cluster *c, uint32_t node_id, const char *network, uint64_t rtt_ns);
void cluster_tick(struct cluster *c, uint64_t now_ns);

/* From the channels. */
void cluster_on_channel_rtt(struct cluster *c, uint32_t channel, uint32_t slot, uint64_t rtt_ns);
void cluster_on_channel_error(struct cluster *c, uint32_t channel, uint32_t slot, int error);
void cluster_on_channel_failed(struct cluster *c, uint32_t channel);

/* A job came or went: whether this node has to do with one that spans nodes may have changed. */
void cluster_note_busy(struct cluster *c);
/* The node drains, or something else in its own description changed. */
void cluster_touch(struct cluster *c);

/* Hands a mail frame to the neighbour on the way. 0 or negative errno. */
int cluster_forward(struct cluster *c, uint32_t dst_node, const uint8_t *frame, uint32_t len);
/* Epoch of a node, 0 if not known or lost. */
uint32_t cluster_epoch(const struct cluster *c, uint32_t node_id);
/* Whether there is a way to a node now; to the own one there is. */
bool cluster_reachable(const struct cluster *c, uint32_t node_id);
/* Nodes that take ranks, the own one first, the others by name. Their number. */
size_t cluster_place_nodes(const struct cluster *c, struct placement_node *ret_nodes, size_t max);

/* For status: the route to a node; NULL if there is none. Name of a network in it; node of an index
 * in it. */
const struct route *cluster_route(const struct cluster *c, const struct topology_node *to);
const char *cluster_network(const struct cluster *c, uint32_t network);
const struct topology_node *cluster_node(const struct cluster *c, uint32_t index);
