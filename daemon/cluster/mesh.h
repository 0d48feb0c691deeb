/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mesh of control connections: connects to seeds and to every node learnt on the own networks,
 * keeps one connection per neighbour and network, tries again when one ends, and sees by refusals
 * which daemons have died. What travels on the connections is peer.h's (hand-shake, heartbeats),
 * cluster.h's (link states) and mail.h's. State machine, without sockets and clock: mesh_socket.h
 * owns those, and the simulation has its own. Control thread.
 *
 *      target: idle -- due --> connecting -- connected --> hand-shake -- proof --> up
 *                ^                 |                            |               |
 *                `-- pause, longer with each failure -----------'-- pause ------'
 *
 * A link that they opened begins at the hand-shake and has no target.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "daemon/cluster/peer.h"
#include "daemon/config.h"

/* A frame of somebody who has not proved the key yet is at most so long. */
#define MESH_STRANGER_FRAME_BYTES 1024u

struct mesh;
struct mesh_link;
struct mesh_target;
struct topology;

/* Why a connection ends, for mesh_on_closed. */
enum mesh_close {
    MESH_CLOSE_OWN,  /* an error or a deadline here */
    MESH_CLOSE_PEER, /* the other side's kernel said that it is over */
};

/* Conditions of mesh_socket_ops.connect. */
enum { MESH_E_RESOLVING = 1 /* the name is being looked up: ask again */ };

/* What carries the connections. */
struct mesh_socket_ops {
    /* Begins to connect to the link's target; mesh_on_connected says how it went. 0;
     * MESH_E_RESOLVING; negative errno with a reason for the log. */
    int (*connect)(void *ctx, struct mesh_link *link, const char *host, uint32_t port,
                   const char **ret_why);
    /* 0 or negative errno. */
    int (*send)(void *ctx, struct mesh_link *link, uint16_t type, const void *body, uint32_t len);
    /* The other side has proved the key: its frames may be long now. */
    void (*trust)(void *ctx, struct mesh_link *link);
    /* The link is forgotten by the mesh: nothing is reported of it any more. `finish`: what was
     * sent may still leave. */
    void (*close)(void *ctx, struct mesh_link *link, bool finish);
    /* mesh_on_timer is to be called then; replaces what was asked for before. */
    void (*timer)(void *ctx, uint64_t when_ns);
};

/* What uses them. */
struct mesh_ops {
    void (*up)(void *ctx, struct mesh_link *link);
    void (*down)(void *ctx, const struct mesh_link *link);
    /* 0, or -EPROTO: the link is closed. */
    int (*link_state)(void *ctx, struct mesh_link *from, const uint8_t *body, uint32_t len,
                      uint64_t now_ns);
    int (*digest)(void *ctx, struct mesh_link *from, const uint8_t *body, uint32_t len,
                  uint64_t now_ns);
    int (*mail)(void *ctx, const uint8_t *body, uint32_t len, uint64_t now_ns);
    void (*rtt)(void *ctx, const struct mesh_link *link, uint64_t rtt_ns, uint64_t now_ns);
    /* A node that we had been connected to in this incarnation refuses to be connected to again. */
    void (*refused)(void *ctx, uint32_t node_id, uint32_t epoch, uint64_t now_ns);
    /* Whatever else is due now and then: with every timer of the mesh. */
    void (*tick)(void *ctx, uint64_t now_ns);
};

/* Kept by flood.c. */
struct mesh_flood {
    bool wants, wanted; /* link states are to go over it, says this end, the other end */
    bool adjacent;      /* they do */
    bool stale;         /* something could not be sent: a digest has to follow */
    uint32_t covered;   /* stamp of the choice in which another node was seen to flood for it */
    uint64_t since_ns;  /* `wants` should change since then; 0: it should not */
    uint64_t refresh_ns;
};

/* A connection; `up` from the end of the hand-shake on. */
struct mesh_link {
    struct list link;
    struct mesh *mesh;
    struct peer peer;
    void *socket;               /* of what carries it */
    uint32_t channel;           /* own channel on whose address it is */
    struct mesh_target *target; /* what we connected to; NULL: they connected */
    char remote[64];
    uint64_t since_ns;
    uint64_t rtt_ns; /* smoothed, 0 while unknown */
    bool talking;    /* connected: the hand-shake has begun */
    bool up;
    bool unwanted; /* the other side has refused it */
    bool doubted;  /* its life is to be watched, whatever else speaks against it */
    bool used;     /* mail went over it, and it is not watched for that yet */
    uint64_t watched_until_ns;
    struct list same_node; /* while up: in the list of those to this node */
    struct mesh_flood flood;
};

struct mesh_setup {
    const struct config *config; /* read again after mesh_reloaded */
    uint32_t node_id, epoch;
    const char *software;
    const struct auth_key *key;
    const struct topology *topology;
    const struct mesh_socket_ops *socket_ops;
    void *socket_ctx;
    const struct mesh_ops *ops;
    void *ctx;
};

/* Takes in the configured seeds. NULL: no memory. */
struct mesh *mesh_new(const struct mesh_setup *setup);
void mesh_free(struct mesh *mesh);

/* Begins to connect. */
void mesh_start(struct mesh *mesh, uint64_t now_ns);
/* How closely the life of the other side is watched. */
void mesh_set_pulse(struct mesh_link *link, enum peer_pulse pulse, uint64_t now_ns);
/* The configured intervals may have changed. */
void mesh_reloaded(struct mesh *mesh, uint64_t now_ns);
/* A node can be reached at this control address through the given own channel. */
void mesh_learn(struct mesh *mesh, uint32_t channel, uint32_t node_id, const char *host,
                uint32_t port, uint64_t now_ns);

/* The up link to a node on a network; network NULL: on any. NULL if there is none. */
struct mesh_link *mesh_find(const struct mesh *mesh, uint32_t node_id, const char *network);
/* All connections, up or not: a list of struct mesh_link.link. */
const struct list *mesh_links(const struct mesh *mesh);
/* 0 or negative errno. */
int mesh_send(struct mesh_link *link, uint16_t type, const uint8_t *body, uint32_t len);
/* How long ago a stranger's connection was refused; UINT64_MAX: never. */
uint64_t mesh_refused_ago(const struct mesh *mesh, uint64_t now_ns);
/* True where there are seeds, and no connection to anybody; the text names them and what keeps from
 * each. */
bool mesh_is_alone(const struct mesh *mesh, char *ret_text, size_t size);
/* Addresses that are tried or were, for bounds in tests. */
unsigned mesh_n_targets(const struct mesh *mesh);

/* From what carries the connections. */
/* Somebody connected to a channel's address. The link, for which frames may come from now on, or
 * NULL: there is no memory, close it. Another stranger may have to make room. */
struct mesh_link *mesh_on_accept(struct mesh *mesh, uint32_t channel, const char *remote,
                                 void *socket, uint64_t now_ns);
/* A connection that `connect` began is there (error 0) or failed (positive errno): then the link is
 * gone. */
void mesh_on_connected(struct mesh_link *link, int error, uint64_t now_ns);
void mesh_on_frame(struct mesh_link *link, uint16_t type, const uint8_t *body, uint32_t len,
                   uint64_t now_ns);
/* The connection ended: the link is gone. */
void mesh_on_closed(struct mesh_link *link, enum mesh_close how, const char *reason,
                    uint64_t now_ns);
void mesh_on_timer(struct mesh *mesh, uint64_t now_ns);
