/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a rank attaches to its daemon: frames (proto/frame.h) of fixed structures over the client
 * socket, since the MPI library links no message library. The connection stays open for the rank's
 * life: its end tells the daemon that the rank is gone, and the daemon's end tells the rank.
 *
 * Environment of a rank: MOTET_SOCKET (path of the client socket, '@' = abstract), MOTET_JOB (16
 * hex digits), MOTET_RANK, MOTET_SIZE, MOTET_KEY (32 hex digits, drawn per job: another user of the
 * node cannot attach), and for scripts MOTET_NODE, MOTET_LOCAL_RANK, MOTET_LOCAL_SIZE.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

#include "proto/segment.h"

/* Frame types of the rank's part of the client socket (others belong to proto/control.proto). */
enum attach_frame {
    ATTACH_REQUEST = 0x100,
    ATTACH_REPLY = 0x101, /* carries descriptors: job segment, node segment, one eventfd per
                             channel; to whoever connects beyond a limit it comes unasked, with the
                             error and without descriptors */
    ATTACH_DETACH =
        0x102, /* rank to daemon: finalized, nothing follows; the daemon answers ATTACH_DETACHED
                  when its channels have taken everything from the rank's rings */
    ATTACH_DETACHED = 0x103,
    ATTACH_ABORT = 0x104,   /* rank to daemon: struct attach_abort: end the job */
    ATTACH_SPAWN = 0x105,   /* rank to daemon: struct attach_spawn and what follows it: start a job.
                               Answered by ATTACH_SPAWNED, with `error` again if the job ends before
                               ATTACH_SPAWN_DONE */
    ATTACH_SPAWNED = 0x106, /* struct attach_spawned */
    ATTACH_SPAWN_DONE = 0x107, /* rank to daemon: uint32_t request: the new job has answered */
    ATTACH_CLAIM = 0x108,      /* rank to daemon: struct attach_claim: it will use this connection
                                  with another job. Answered by ATTACH_CLAIMED */
    ATTACH_CLAIMED = 0x109,    /* struct attach_claimed */
    ATTACH_RELEASE = 0x10a,    /* rank to daemon: struct attach_claim: it uses it no longer */
    ATTACH_ASK = 0x10b, /* rank to daemon: struct attach_ask: about ports and names. Answered by
                           ATTACH_SPAWNED */
};

#define ATTACH_VERSION 3u

struct attach_request {
    uint32_t version; /* ATTACH_VERSION */
    uint32_t world_rank;
    uint64_t job;
    uint8_t key[16];
    int32_t pid;     /* as the rank sees itself; the daemon uses SO_PEERCRED's */
    uint32_t fenced; /* 1: membarrier is missing here */
};
static_assert(sizeof(struct attach_request) == 40, "attach request");

struct attach_reply {
    uint32_t version;
    int32_t error;       /* 0, or a positive errno; text says why */
    uint32_t local_rank; /* index of this rank in the segment */
    uint32_t fenced;     /* 1: someone lacks membarrier, all must use seq_cst */
    struct segment_shape shape;
    char text[128];
};
static_assert(sizeof(struct attach_reply) == 204, "attach reply");

struct attach_abort {
    int32_t code;
    char text[252];
};
static_assert(sizeof(struct attach_abort) == 256, "attach abort");

/* ---- connections with other jobs ---- */

#define ATTACH_SPAWN_APPS  1024u
#define ATTACH_SPAWN_BYTES (1u << 20)

/* A job to be started: `n_apps` parts follow. */
struct attach_spawn {
    uint32_t request; /* the rank's own number for it, not 0 */
    uint32_t n_apps;  /* 1 to ATTACH_SPAWN_APPS */
};
static_assert(sizeof(struct attach_spawn) == 8, "attach spawn");

/* One part; `n_bytes` of strings follow, each ended by 0: folder to start in, folders in which the
 * program is looked for, hosts ("name" or "name:count", with commas), all three may be empty;
 * n_env variables, n_argv words of the command line. */
struct attach_spawn_app {
    uint32_t n_ranks, n_env, n_argv, n_bytes;
};
static_assert(sizeof(struct attach_spawn_app) == 16, "attach spawn app");

enum attach_wish {
    ATTACH_OPEN_PORT = 1, /* the answer has its name */
    ATTACH_CLOSE_PORT,
    ATTACH_ACCEPT,  /* at a port of the job */
    ATTACH_CONNECT, /* to a port of any job */
    ATTACH_PUBLISH,
    ATTACH_UNPUBLISH,
    ATTACH_LOOKUP, /* the answer has the port */
    ATTACH_N_WISHES
};
enum attach_refusal { ATTACH_E_OTHER = 1, ATTACH_E_PORT, ATTACH_E_NAME, ATTACH_E_SERVICE };

#define ATTACH_PORT_BYTES 128u
#define ATTACH_NAME_BYTES 256u

struct attach_ask {
    uint32_t request;    /* the rank's own number for it, not 0 */
    uint32_t wish;       /* enum attach_wish */
    uint32_t timeout_ms; /* of CONNECT; 0: none */
    char port[ATTACH_PORT_BYTES];
    char name[ATTACH_NAME_BYTES];
};
static_assert(sizeof(struct attach_ask) == 396, "attach ask");

struct attach_spawned {
    uint32_t request;
    int32_t error;       /* 0: the job is being started, or what was asked for is done; else enum
                            attach_refusal: it is not, or has ended; text says why */
    uint64_t connection; /* with it, which the rank has claimed by asking */
    uint64_t job;        /* at the other end */
    uint32_t first, n;   /* that job's rank i is peer first + i; n 0: it is the rank's own job */
    uint32_t peer_rank;  /* in that job, of the one who accepts or connects */
    uint32_t reserved;
    char port[ATTACH_PORT_BYTES];
    char text[472];
};
static_assert(sizeof(struct attach_spawned) == 640, "attach spawned");

/* A connection by the number that the job's ranks know it by: it is no secret, as only the job's
 * home says who is at its other end. */
struct attach_claim {
    uint64_t connection;
};
static_assert(sizeof(struct attach_claim) == 8, "attach claim");

struct attach_claimed {
    uint64_t connection;
    uint64_t job;      /* at the other end */
    int32_t error;     /* 0, or 1: text says why */
    uint32_t first, n; /* that job's rank i is peer first + i */
    char text[228];
};
static_assert(sizeof(struct attach_claimed) == 256, "attach claimed");
