/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job as a whole, on the node of its mpiexec: places ranks, has every node prepare (over the tree
 * of start.h), starts, gathers exits and output, decides when and why it is over. Speaks by mail
 * with the job's part on each node (job.h). Pure state machine: sockets and clock belong to the
 * caller, so tests and simulation run it alone. Control thread.
 *
 *      submit --> LAUNCHING -- all Launched --> RUNNING -- all exited, all output seen --> over
 *                    |                            |
 *                    |                            |  a rank fails, a node is lost, abort,
 *                    |                            |  SIGKILL from mpiexec
 *                    |                            v
 *                    |                         ENDING: SIGTERM; SIGKILL after the grace;
 *                    |                                 gives up after 10 s, and nodes that cannot
 *                    |                                 be reached after 1 s --> over
 *                    `-- refused, time over --> over
 *      mpiexec gone, in any state --> over at once
 *
 * Over: JobEnd goes to every node, which then kills whatever is left, and to mpiexec.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "daemon/jobs/place.h"
#include "daemon/jobs/start.h"
#include "proto/control.pb-c.h"

enum home_state { HOME_LAUNCHING, HOME_RUNNING, HOME_ENDING };

struct home_ops {
    /* Mail. */
    void (*to_node)(void *ctx, uint32_t node_id, uint16_t type, const ProtobufCMessage *msg);
    /* To mpiexec. 0 or negative errno; after a failure the caller reports homes_on_client_gone. */
    int (*to_client)(void *ctx, void *client, uint16_t type, const ProtobufCMessage *msg);
    /* Bytes that mpiexec has not taken yet. */
    size_t (*client_queued)(void *ctx, void *client);
    /* Nothing more is sent to this client; it is forgotten here. */
    void (*client_done)(void *ctx, void *client);
    /* Whether there is a way to the node now. */
    bool (*reachable)(void *ctx, uint32_t node_id);
    /* Nodes that take ranks now, the own one first, the others by name; at most max. Names stay
     * valid during the call of homes_submit. */
    size_t (*nodes)(void *ctx, struct place_node *ret_nodes, size_t max);
};

struct home_rank {
    uint32_t node; /* index of its placement */
    bool exited, entered, finalized;
    uint8_t streams_open; /* stdout and stderr not ended yet: bits 1 and 2 */
    int32_t status;
};

struct home_node {
    uint32_t node_id;
    bool lost;
    uint64_t received, acknowledged; /* bytes of output */
};

struct home {
    UT_hash_handle hh;
    uint64_t id;
    enum home_state state;
    void *client; /* mpiexec's connection */
    uid_t uid;
    char name[64];
    struct place_result placement;
    struct home_node *nodes; /* one per placement */
    struct home_rank *ranks;
    struct start start;
    uint32_t n_ranks, n_exited, n_streams_open;
    uint64_t since_ns, deadline_ns;
    uint64_t give_up_ns; /* valid when killed */
    uint64_t stdin_sent, stdin_consumed;
    bool killed; /* SIGKILL is out */
    bool failed;
    int32_t code; /* of the job */
    char message[512];
};

struct homes;

/* ids: job ids of this daemon start with node_id in the upper half. NULL: no memory. */
struct homes *homes_new(const char *node_name, uint32_t node_id, uint32_t epoch,
                        const struct home_ops *ops, void *ctx);
void homes_free(struct homes *homes);
struct home *homes_find(const struct homes *homes, uint64_t id);
struct home *homes_first(const struct homes *homes);
unsigned homes_count(const struct homes *homes);
/* True if some job has ranks on other nodes. */
bool homes_networked(const struct homes *homes);
/* SIGTERM to SIGKILL. */
void homes_set_grace(struct homes *homes, uint64_t grace_ns);

/* mpiexec of this user submits. Returns the job, or NULL after Submitted{ok: false} was sent. key:
 * 16 random bytes. */
struct home *homes_submit(struct homes *homes, void *client, uid_t uid, gid_t gid,
                          const Motet__Submit *submit, const uint8_t key[16], uint64_t now_ns);
/* From mpiexec. */
void homes_on_client_kill(struct homes *homes, struct home *home, const Motet__Kill *msg,
                          uint64_t now_ns);
/* 0, or -EPROTO: this client broke the window or spoke of another job. */
int homes_on_client_stdin(struct homes *homes, struct home *home, const Motet__Stdio *msg);
/* mpiexec has taken output: its queue is short. */
void homes_on_client_drained(struct homes *homes, struct home *home);
void homes_on_client_gone(struct homes *homes, struct home *home);

/* Mail from nodes. */
void homes_on_launched(struct homes *homes, uint32_t src_node, const Motet__Launched *msg,
                       uint64_t now_ns);
void homes_on_rank_exit(struct homes *homes, uint32_t src_node, const Motet__RankExit *msg,
                        uint64_t now_ns);
void homes_on_stdio(struct homes *homes, uint32_t src_node, const Motet__Stdio *msg,
                    uint64_t now_ns);
void homes_on_stdin_window(struct homes *homes, uint32_t src_node, const Motet__StdioWindow *msg);
void homes_on_abort(struct homes *homes, uint32_t src_node, const Motet__Abort *msg,
                    uint64_t now_ns);
/* A node was given up or restarted. */
void homes_on_node_lost(struct homes *homes, uint32_t node_id, const char *why, uint64_t now_ns);
/* Ends every job (the daemon shuts down). */
void homes_end_all(struct homes *homes, const char *why, uint64_t now_ns);

/* Serves deadlines. */
void homes_run(struct homes *homes, uint64_t now_ns);
/* The next deadline, UINT64_MAX: none. */
uint64_t homes_deadline(const struct homes *homes);
