/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job's part on this node: the segment, the ranks' processes, their connections and their output.
 * The other half, the job as a whole, is manager.h on the node of its mpiexec; the two speak by
 * mail only, also when they are in one daemon. Control thread.
 *
 * Launch and Start come from the parent in the tree of start.h and go on to the children, whose
 * answers are gathered; all else comes from the home itself and may overtake them.
 *
 *      (none) -- Launch: segment, channels --> READY -- Start --> RUNNING
 *                                                |                 |
 *                                              JobEnd      JobEnd, or home lost
 *                                                v                 v
 *                                                `---> CLOSING <---' --> (none)
 *
 * CLOSING lasts until every channel has let go of the segment. A rank:
 *
 *      PLANNED -- Start --> STARTING -- Spawned --> RUNNING -- Exited --> EXITED
 *                               `------ not started ----------------------^
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "base/list.h"
#include "daemon/jobs/start.h"
#include "proto/attach.h"
#include "proto/control.pb-c.h"
#include "proto/segment.h"

struct channel_foreign;
struct channel_job;
struct client;
struct config;
struct foreign;
struct job;
struct pipes;
struct quota;

/* More are not kept. */
#define JOB_EARLY_SIGNALS 8

enum job_state { JOB_READY, JOB_RUNNING, JOB_CLOSING };
enum job_rank_state { JOB_RANK_PLANNED, JOB_RANK_STARTING, JOB_RANK_RUNNING, JOB_RANK_EXITED };

struct job_rank {
    uint32_t world;
    uint32_t app;
    enum job_rank_state state;
    pid_t pid; /* the spawned process, which may be a wrapper around the one that attaches */
    pid_t attached_pid;
    bool entered;             /* attached once */
    bool detached;            /* finalized, channels have drained its rings */
    uint64_t disconnected_ns; /* when its connection ended without a detach; 0: it did not */
    bool let_go;              /* the channels were told to drop its rings */
    uint32_t detaching;       /* channels whose answer is awaited */
    struct client *client;
};

/* What a job needs of its node. */
struct job_ops {
    /* Mail: a message; an order that goes on as it came. 0 or negative errno. */
    int (*send)(void *ctx, uint32_t node_id, uint16_t type, const ProtobufCMessage *msg,
                uint64_t now_ns);
    int (*pass_on)(void *ctx, uint32_t node_id, uint16_t type, const uint8_t *body, uint32_t len,
                   uint64_t now_ns);
    /* Whether there is a way to the node now. */
    bool (*reachable)(void *ctx, uint32_t node_id);
    /* Incarnation of a node's daemon, the own one too, as far as is known; 0: not known. */
    uint32_t (*epoch)(void *ctx, uint32_t node_id);
    /* A job or a rank came or went: what depends on jobs_networked and jobs_n_running may be out of
     * date. */
    void (*changed)(void *ctx);

    /* Makes everything that the job holds here (memory, pipes, its part of the channels) and sets
     * channels_left. 0, or negative errno and a reason for the user; then release is called. */
    int (*prepare)(void *ctx, struct job *job, char *error, size_t error_size);
    /* Frees what prepare made, the pipes included. */
    void (*release)(void *ctx, struct job *job);
    /* Bytes of memory that its segment fills now. */
    uint64_t (*segment_bytes)(void *ctx, const struct job *job);
    /* The channels drain the rings of a rank that finalized, or drop those of a dead one:
     * jobs_on_rank_detached. */
    void (*detach_rank)(void *ctx, struct job *job, uint32_t local, bool dead);
    /* They let go of the job: jobs_on_job_detached. */
    void (*detach_job)(void *ctx, struct job *job);

    /* Ranks may see in their memory that the job is being ended; that a rank has died. */
    void (*show_aborting)(void *ctx, struct job *job);
    void (*show_dead)(void *ctx, struct job *job, uint32_t local);
    /* A process has become a rank: descriptors for it (to be closed by who asked), and its id in
     * their memory. 0, or negative errno with nothing done. */
    int (*admit)(void *ctx, struct job *job, uint32_t local, pid_t pid, int *ret_fds,
                 int *ret_n_fds);

    /* Starts a rank's process with its pipes: jobs_on_spawned and jobs_on_exited. 0 or negative
     * errno. */
    int (*start_rank)(void *ctx, struct job *job, uint32_t local);
    /* A signal for all processes of the job here. */
    void (*signal)(void *ctx, const struct job *job, int signal);
    /* The group of a process whose spawner died. */
    void (*kill_orphan)(void *ctx, const struct job *job, const struct job_rank *rank);

    /* The rank has ended: its output ends soon. Nobody wants output any more. */
    void (*end_output)(void *ctx, struct job *job, uint32_t local);
    void (*close_output)(void *ctx, struct job *job);
    /* Input for rank 0, empty: its end. 0 or -ENOBUFS. So much output has been consumed. */
    int (*input)(void *ctx, struct job *job, const void *data, uint32_t len);
    void (*consumed)(void *ctx, struct job *job, uint64_t total);

    /* Another job's ranks, of which the message says where they run, become the peers of `foreign`:
     * in the ranks' memory and at the channels; sets channels_left. 0, or negative errno with
     * nothing done and a reason for the user. */
    int (*connect)(void *ctx, struct job *job, struct foreign *foreign, const Motet__Connect *msg,
                   char *error, size_t error_size);
    /* The channels let go of them: foreign_on_removed. */
    void (*disconnect)(void *ctx, struct job *job, struct foreign *foreign);
    void (*foreign_free)(void *ctx, struct channel_foreign *foreign);
    /* A frame for a rank. */
    void (*to_rank)(void *ctx, struct client *client, uint16_t type, const void *body,
                    uint32_t len);

    /* A rank's connection: answers its detach; closes it. */
    void (*client_detached)(void *ctx, struct client *client);
    void (*client_end)(void *ctx, struct client *client);
};

struct job {
    UT_hash_handle hh;
    struct jobs *jobs;
    const char *node_name; /* of this node */
    uint64_t id;
    uint8_t key[16];
    uint32_t home_node;
    uid_t uid;
    gid_t gid;
    char name[SEGMENT_JOB_NAME];
    enum job_state state;
    uint64_t since_ns;
    uint32_t n_asked; /* times the home was asked about a job that is not started */
    struct start start;
    /* Signals for the ranks that came before Start did. */
    int early_signals[JOB_EARLY_SIGNALS];
    uint32_t n_early_signals;
    Motet__Launch *launch;
    /* Made by job_ops.prepare; of these the machine reads channels_left only. */
    int segment_fd;
    void *segment;
    struct segment_layout layout;
    struct segment_world *world; /* own copies of the tables: ranks can write the segment's */
    struct segment_node *nodes;
    int event_fds[HOP_MAX_CHANNELS];
    struct channel_job *channel_jobs[HOP_MAX_CHANNELS];
    uint32_t channels_left; /* that have not let go yet */
    bool fenced;
    bool any_attached;
    /* Ranks. */
    uint32_t n_local;
    struct job_rank *ranks;
    struct pipes *pipes;
    uint32_t bind_first;
    bool charged;           /* to its user: a job and n_local ranks */
    uint64_t charged_bytes; /* and so much memory */
    struct list foreign;    /* connections with other jobs: dynamic/foreign.h */
    uint32_t n_foreign;
    uint8_t stamps[SEGMENT_MAX_FOREIGN]; /* of the last use of each number */
};

struct jobs;

struct jobs_setup {
    const struct config *config; /* name */
    struct quota *quota;
    uint32_t node_id;
    const struct job_ops *ops;
    void *ctx;
};

const struct jobs_setup *jobs_setup_of(const struct jobs *jobs);
/* Mail to the job's home. */
void job_to_home(struct job *job, uint16_t type, const ProtobufCMessage *msg, uint64_t now_ns);

/* NULL: no memory. */
struct jobs *jobs_new(const struct jobs_setup *setup);
/* Ends every job at once. */
void jobs_free(struct jobs *jobs);
struct job *jobs_find(const struct jobs *jobs, uint64_t id);
/* First of the jobs in creation order; the next is job->hh.next. */
struct job *jobs_first(const struct jobs *jobs);
unsigned jobs_count(const struct jobs *jobs);
/* True if some job has ranks here and on other nodes. */
bool jobs_networked(const struct jobs *jobs);
/* Ranks here that run or are being started; networked: of some job whose channels work. */
uint32_t jobs_n_running(const struct jobs *jobs, bool *ret_networked);
/* No new jobs from now on. */
void jobs_drain(struct jobs *jobs);

/* A child's answer to Launch. */
void jobs_on_launched(struct jobs *jobs, uint32_t src_node, const Motet__Launched *msg,
                      uint64_t now_ns);
/* Mail from the parent (Launch, Start) and from the home node. */
void jobs_on_launch(struct jobs *jobs, uint32_t src_node, const uint8_t *body, uint32_t len,
                    uint64_t now_ns);
void jobs_on_start(struct jobs *jobs, uint32_t src_node, const uint8_t *body, uint32_t len,
                   uint64_t now_ns);
void jobs_on_kill(struct jobs *jobs, uint32_t src_node, const uint8_t *body, uint32_t len,
                  uint64_t now_ns);
void jobs_on_job_end(struct jobs *jobs, uint32_t src_node, const uint8_t *body, uint32_t len);
void jobs_on_stdin(struct jobs *jobs, uint32_t src_node, const Motet__Stdio *msg);
void jobs_on_window(struct jobs *jobs, uint32_t src_node, const Motet__StdioWindow *msg);
/* A node was given up, or came back as another incarnation: jobs whose home it was end, and those
 * with ranks on it whose home cannot be reached. */
void jobs_on_node_lost(struct jobs *jobs, uint32_t node_id);
/* That node had given this one up: homes there are asked whether their jobs still count on it. */
void jobs_on_given_up(struct jobs *jobs, uint32_t node_id, uint64_t now_ns);

/* From the spawner. */
void jobs_on_spawned(struct jobs *jobs, uint64_t job, uint32_t rank, int32_t pid, const char *error,
                     uint64_t now_ns);
void jobs_on_exited(struct jobs *jobs, uint64_t job, uint32_t rank, int32_t status,
                    uint64_t now_ns);
void jobs_on_spawner_lost(struct jobs *jobs, uint64_t now_ns);

/* From ranks. */
/* Checks the request of a process with these credentials. Fills the reply and the descriptors
 * (n_channels + 2, to be closed by the caller). 0, or a positive errno that is in the reply with
 * its reason. */
int jobs_attach(struct jobs *jobs, struct client *client, const struct attach_request *req,
                uid_t uid, pid_t pid, struct attach_reply *ret_reply, int *ret_fds, int *ret_n_fds,
                struct job **ret_job, uint32_t *ret_local);
/* The rank finalized; client_detached is called when all channels have drained its rings. */
void job_on_detach(struct job *job, uint32_t local);
void job_on_abort(struct job *job, uint32_t local, int32_t code, const char *text, uint64_t now_ns);
/* The rank's connection is freed with all others, since the daemon ends. */
void job_forget_client(struct job *job, uint32_t local);
/* The rank's connection is gone. */
void job_on_disconnect(struct job *job, uint32_t local, uint64_t now_ns);

/* From the channels. */
void jobs_on_rank_detached(struct jobs *jobs, uint64_t job, uint32_t local);
/* One channel has let go of it. */
void jobs_on_job_detached(struct jobs *jobs, uint64_t job);
/* A rank broke a rule that protects others (ring poisoned, does not drain): ends its job. */
void jobs_on_offence(struct jobs *jobs, uint64_t job, uint32_t world_rank, const char *text,
                     uint64_t now_ns);

/* Asks the homes of all jobs here to end them, for this reason. May be repeated. */
void jobs_end_all(struct jobs *jobs, const char *why, uint64_t now_ns);

/* Looks after ranks that vanished without ending. Once a second. */
void jobs_tick(struct jobs *jobs, uint64_t now_ns);

/* Output of a rank, len 0: end of this stream; input that its pipe has taken in all. */
void job_on_output(struct job *job, uint32_t world_rank, uint32_t stream, const void *data,
                   uint32_t len, uint64_t now_ns);
void job_on_input_taken(struct job *job, uint64_t total, uint64_t now_ns);

/* Local index of a world rank, or -1. */
int64_t job_local_of(const struct job *job, uint32_t world_rank);
