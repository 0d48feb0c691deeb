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

#include "daemon/jobs/placement.h"
#include "daemon/jobs/start.h"
#include "proto/control.pb-c.h"

enum manager_state { MANAGER_LAUNCHING, MANAGER_RUNNING, MANAGER_ENDING };

struct manager_ops {
    /* Mail. */
    void (*to_node)(void *ctx, uint32_t node_id, uint16_t type, const ProtobufCMessage *msg);
    /* To mpiexec. 0 or negative errno; after a failure the caller reports manager_on_client_gone.
     */
    int (*to_client)(void *ctx, void *client, uint16_t type, const ProtobufCMessage *msg);
    /* Bytes that mpiexec has not taken yet. */
    size_t (*client_queued)(void *ctx, void *client);
    /* Nothing more is sent to this client; it is forgotten here. */
    void (*client_done)(void *ctx, void *client);
    /* Whether there is a way to the node now. */
    bool (*reachable)(void *ctx, uint32_t node_id);
    /* Nodes that take ranks now, the own one first, the others by name; at most max. Names stay
     * valid during the call of manager_submit. */
    size_t (*nodes)(void *ctx, struct placement_node *ret_nodes, size_t max);
};

struct manager_rank {
    uint32_t node; /* index of its placement */
    bool exited, entered, finalized;
    uint8_t streams_open; /* stdout and stderr not ended yet: bits 1 and 2 */
    int32_t status;
};

struct manager_node {
    uint32_t node_id;
    bool lost;
    uint64_t received, acknowledged; /* bytes of output */
};

struct manager_job {
    UT_hash_handle hh;
    uint64_t id;
    /* Of a job that a rank has spawned: its parent, the root's node and rank, and the request,
     * which is answered when the job is ready to start; it starts when that node holds the
     * connection. All jobs that came of one submit are a family, named by its id, and have its
     * mpiexec. */
    uint64_t parent, family, connection;
    uint32_t spawn_node, spawn_rank, spawn_request;
    gid_t gid;
    bool ready, announced; /* to start; mpiexec knows of it */
    bool begun;            /* parent and child have met */
    bool abandoned;        /* the parent is over or failed before that */
    bool ordered;          /* to end, by mpiexec */
    enum manager_state state;
    void *client; /* mpiexec's connection */
    uid_t uid;
    char name[64];
    struct placement placement;
    struct manager_node *nodes; /* one per placement */
    struct manager_rank *ranks;
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

struct manager;

/* ids: job ids of this daemon start with node_id in the upper half. NULL: no memory. */
struct manager *manager_new(const char *node_name, uint32_t node_id, uint32_t epoch,
                            const struct manager_ops *ops, void *ctx);
void manager_free(struct manager *manager);
struct manager_job *manager_find(const struct manager *manager, uint64_t id);
struct manager_job *manager_first(const struct manager *manager);
unsigned manager_count(const struct manager *manager);
/* True if some job has ranks on other nodes. */
bool manager_networked(const struct manager *manager);
/* SIGTERM to SIGKILL. */
void manager_set_grace(struct manager *manager, uint64_t grace_ns);

/* mpiexec of this user submits. Returns the job, or NULL after Submitted{ok: false} was sent. key:
 * 16 random bytes. */
struct manager_job *manager_submit(struct manager *manager, void *client, uid_t uid, gid_t gid,
                                   const Motet__Submit *submit, const uint8_t key[16],
                                   uint64_t now_ns);
/* Some job of a family, NULL: none is left. */
struct manager_job *manager_of_family(const struct manager *manager, uint64_t family);

/* A rank of a job here spawns another one. */
void manager_on_spawn_job(struct manager *manager, uint32_t src_node, const Motet__SpawnJob *msg,
                          uint64_t now_ns);
/* A rank of a job here asks about ports and names. */
void manager_on_ask(struct manager *manager, uint32_t src_node, const Motet__Ask *msg,
                    uint64_t now_ns);
/* Nodes of jobs here, about connections. */
void manager_on_claim(struct manager *manager, uint32_t src_node, const Motet__Claim *msg,
                      uint64_t now_ns);

/* From mpiexec. */
void manager_on_client_kill(struct manager *manager, struct manager_job *home,
                            const Motet__Kill *msg, uint64_t now_ns);
/* 0, or -EPROTO: this client broke the window or spoke of another job. */
int manager_on_client_stdin(struct manager *manager, struct manager_job *home,
                            const Motet__Stdio *msg);
/* mpiexec has taken output: its queue is short; it is gone. Of all jobs of this one's family. */
void manager_on_client_drained(struct manager *manager, struct manager_job *home);
void manager_on_client_gone(struct manager *manager, struct manager_job *home);

/* Mail from nodes. */
void manager_on_launched(struct manager *manager, uint32_t src_node, const Motet__Launched *msg,
                         uint64_t now_ns);
void manager_on_rank_exit(struct manager *manager, uint32_t src_node, const Motet__RankExit *msg,
                          uint64_t now_ns);
void manager_on_stdio(struct manager *manager, uint32_t src_node, const Motet__Stdio *msg,
                      uint64_t now_ns);
void manager_on_stdin_window(struct manager *manager, uint32_t src_node,
                             const Motet__StdioWindow *msg);
void manager_on_abort(struct manager *manager, uint32_t src_node, const Motet__Abort *msg,
                      uint64_t now_ns);
/* A node was given up or restarted. */
void manager_on_node_lost(struct manager *manager, uint32_t node_id, const char *why,
                          uint64_t now_ns);
/* Ends every job (the daemon shuts down). */
void manager_end_all(struct manager *manager, const char *why, uint64_t now_ns);

/* Serves deadlines. */
void manager_run(struct manager *manager, uint64_t now_ns);
/* The next deadline, UINT64_MAX: none. */
uint64_t manager_deadline(const struct manager *manager);
