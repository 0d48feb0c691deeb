/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mesh of control connections: listens on every channel's address, connects to seeds and to
 * every node learnt on the own networks, keeps one connection per neighbour and network. What
 * travels on them is peer.h's (hand-shake, heartbeats), cluster.h's (link states) and mail.h's.
 * Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "daemon/cluster/peer.h"

struct mesh;
struct mesh_target;
struct node;
struct stream;

/* A connection; `up` from the end of the hand-shake on. */
struct mesh_link {
    struct list link;
    struct mesh *mesh;
    struct peer peer;
    struct stream *stream;
    struct event *connecting;   /* while connect(2) is under way */
    int fd;                     /* likewise */
    uint32_t channel;           /* own channel on whose address it is */
    struct mesh_target *target; /* what we connected to; NULL: they connected */
    char remote[64];
    uint64_t since_ns;
    uint64_t rtt_ns; /* smoothed, 0 while unknown */
    bool up;
};

/* Opens the listeners. 0 or negative errno, logged. */
int mesh_new(struct node *node, struct mesh **ret_mesh);
void mesh_free(struct mesh *mesh);

/* Whether some job in the cluster spans nodes: heartbeats are frequent then, else rare. */
void mesh_set_busy(struct mesh *mesh, bool busy);

/* The configured intervals may have changed. */
void mesh_reloaded(struct mesh *mesh);

/* A node can be reached at this control address through the given own channel. */
void mesh_learn(struct mesh *mesh, uint32_t channel, uint32_t node_id, const char *host,
                uint32_t port);

/* The up link to a node on a network; network NULL: on any. NULL if there is none. */
struct mesh_link *mesh_find(const struct mesh *mesh, uint32_t node_id, const char *network);
/* All connections, up or not: a list of struct mesh_link.link. */
const struct list *mesh_links(const struct mesh *mesh);
/* 0 or negative errno. */
int mesh_send(struct mesh_link *link, uint16_t type, const uint8_t *body, uint32_t len);
