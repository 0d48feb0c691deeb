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
    ATTACH_ABORT = 0x104, /* rank to daemon: struct attach_abort: end the job */
};

#define ATTACH_VERSION 2u

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
static_assert(sizeof(struct attach_reply) == 200, "attach reply");

struct attach_abort {
    int32_t code;
    char text[252];
};
static_assert(sizeof(struct attach_abort) == 256, "attach abort");
