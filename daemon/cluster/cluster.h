/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node in its cluster: describes itself, floods what it hears, computes routes and publishes
 * them in the forwarding table, tells the channels their neighbours, notices which nodes are lost,
 * and carries mail. Owns mesh.h (connections), flood.h (what travels over which), topology.h
 * (knowledge) and mail.h; uses graph.h and route.h (computation), publish.h and forwarding.h
 * (publication), neighbours.h (channels). State machine without sockets and clock, so that whole
 * clusters run in the simulation. Control thread.
 *
 * Idea: every change only marks what is out of date; one update, a millisecond later, brings
 * everything into step in a fixed order: links of the channels, own link state, floods, graph,
 * routes, forwarding table, reachability. A burst of changes costs one update, and while changes go
 * on updates become rarer, so that however much happens a daemon is not busy with it alone (as the
 * throttles of OSPF and IS-IS do for link states and route computations).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/cluster/mesh.h"
#include "daemon/cluster/neighbours.h"
#include "daemon/routing/route.h"

struct cluster;
struct forwarding;
struct mail;
struct topology;
struct topology_node;

/* Changes within this time are taken together; it doubles with each update that follows soon, up to
 * so much for each node, and so much in all. */
#define CLUSTER_UPDATE_DELAY_NS 1000000ull
#define CLUSTER_DELAY_NODE_NS   2000000ull
#define CLUSTER_DELAY_LEAST_NS  8000000ull
#define CLUSTER_DELAY_MOST_NS   500000000ull

struct cluster_ops {
    /* cluster_update is to be called so much later. */
    void (*want_update)(void *ctx, uint64_t delay_ns);
    /* mail_run is to be called soon, from the loop. */
    void (*want_mail)(void *ctx);
    /* A message for this node. */
    void (*deliver)(void *ctx, uint32_t src_node, uint16_t type, const uint8_t *body, uint32_t len,
                    uint64_t now_ns);
    /* A daemon that this node knew of is gone, in this incarnation or for good. */
    void (*node_lost)(void *ctx, uint32_t node_id, const char *why, uint64_t now_ns);
    /* A daemon that this node never lost had given it up for a while: what it kept of this node is
     * gone. */
    void (*given_up)(void *ctx, uint32_t node_id, uint64_t now_ns);
    /* Others know an incarnation of this node, or another node of its name, that counts for a later
     * one than this: as long as this daemon is not later than that epoch, they ignore what it says.
     * Not to be freed before this returns. */
    void (*outlived)(void *ctx, uint32_t epoch, uint64_t now_ns);
    /* Whether this node has to do with a job that spans nodes. */
    bool (*busy)(void *ctx);
};

/* Everything stays the caller's and valid. */
struct cluster_setup {
    const struct config *config; /* read again after cluster_reloaded */
    uint32_t node_id, epoch, n_cores;
    const char *software;
    const struct auth_key *key;
    struct forwarding *forwarding;
    const struct mesh_socket_ops *socket_ops;
    void *socket_ctx;
    const struct cluster_channel_ops *channel_ops;
    void *channel_ctx;
    const struct cluster_ops *ops;
    void *ctx;
};

/* NULL: no memory. */
struct cluster *cluster_new(const struct cluster_setup *setup);
/* While what it was set up with still lives. NULL is fine. */
void cluster_free(struct cluster *c);

struct topology *cluster_topology(const struct cluster *c);
struct mesh *cluster_mesh(const struct cluster *c);
struct mail *cluster_mail(const struct cluster *c);

/* The update that want_update asked for. */
void cluster_update(struct cluster *c, uint64_t now_ns);
/* The configuration was read anew. */
void cluster_reloaded(struct cluster *c, uint64_t now_ns);
/* This node takes no new ranks from now on, and says so. */
void cluster_drain(struct cluster *c);
bool cluster_draining(const struct cluster *c);
/* Whether nodes with jobs reach one another through this one alone. */
bool cluster_needed(const struct cluster *c);
/* A job came or went: whether this node has to do with one that spans nodes may have changed. */
void cluster_note_busy(struct cluster *c);

/* From the channels. */
void cluster_on_channel_rtt(struct cluster *c, uint32_t channel, uint32_t slot, uint64_t rtt_ns,
                            uint64_t now_ns);
void cluster_on_channel_error(struct cluster *c, uint32_t channel, uint32_t slot, int error,
                              uint64_t now_ns);
void cluster_on_channel_link(struct cluster *c, const struct neighbour_news *news, uint64_t now_ns);
void cluster_on_channel_failed(struct cluster *c, uint32_t channel);

/* Epoch of a node, 0 if not known or lost. */
uint32_t cluster_epoch(const struct cluster *c, uint32_t node_id);
/* Whether there is a way to a node now; to the own one there is. */
bool cluster_reachable(const struct cluster *c, uint32_t node_id);

/* For status: the route to a node; NULL if there is none. Name of a network in it; node of an index
 * in it. */
const struct route *cluster_route(const struct cluster *c, const struct topology_node *to);
const char *cluster_network(const struct cluster *c, uint32_t network);
const struct topology_node *cluster_node(const struct cluster *c, uint32_t index);
