/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mail: reliable, ordered messages between any two daemons of the cluster, carried from neighbour
 * to neighbour over the control connections. Jobs and status queries travel in it. Pure state
 * machine: no socket, no clock; used by cluster.c, which gives it its links.
 *
 * Idea: numbered per pair of nodes, acknowledged cumulatively, everything unacknowledged sent again
 * when routes change or a timer runs out (go back n). The connections below are TCP, so losses
 * happen only when a link dies; simple beats clever here. Mail to the own node takes the same path
 * through a local inbox, so that no sender is ever called back from inside its own call.
 *
 * A peer that restarts has another epoch: what was under way to the old one is dropped, since its
 * state died with it.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mail;

struct mail_ops {
    /* Sends a packed Mail frame to the neighbour on the way to dst. 0, or negative errno when there
     * is no way now. */
    int (*forward)(void *ctx, uint32_t dst_node, const uint8_t *frame, uint32_t len);
    /* A message arrived for this node. */
    void (*deliver)(void *ctx, uint32_t src_node, uint16_t type, const uint8_t *body, uint32_t len,
                    uint64_t now_ns);
    /* Known epoch of a node, 0 if never heard of. */
    uint32_t (*epoch_of)(void *ctx, uint32_t node);
    /* Asks that mail_run be called soon, from the loop. */
    void (*wake)(void *ctx);
};

/* max_bytes: most bytes waiting for one node. NULL: no memory. */
struct mail *mail_new(uint32_t node, uint32_t epoch, size_t max_bytes, const struct mail_ops *ops,
                      void *ctx);
void mail_free(struct mail *m);

/* Takes effect for what is sent from now on. */
void mail_set_max_bytes(struct mail *m, size_t max_bytes);

/* Queues a message. 0; -ENOBUFS when too much waits for that node; -ENOMEM. */
int mail_send(struct mail *m, uint32_t dst_node, uint16_t type, const void *body, uint32_t len,
              uint64_t now_ns);
int mail_send_msg(struct mail *m, uint32_t dst_node, uint16_t type, const ProtobufCMessage *msg,
                  uint64_t now_ns);

/* A Mail frame came from a neighbour: delivers, acknowledges or forwards it. 0, or -EPROTO when it
 * is no valid frame. */
int mail_on_frame(struct mail *m, const uint8_t *frame, uint32_t len, uint64_t now_ns);
/* Routes changed: sends everything unacknowledged again at once. */
void mail_on_routes(struct mail *m, uint64_t now_ns);
/* The node was given up: drops what waits for it. */
void mail_on_lost(struct mail *m, uint32_t node);

/* Delivers local mail and serves timers. Returns when it wants to be called again, UINT64_MAX: not
 * by time. */
uint64_t mail_run(struct mail *m, uint64_t now_ns);

/* Bytes waiting for a node. */
size_t mail_queued(const struct mail *m, uint32_t node);
