/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections of a job with other jobs, on this node: which of its ranks use one, and as which
 * peers they know the other job's ranks. What the connection is, and whether there is one, the
 * home says (connections.h); ranks name it by number and get peers, and nothing that they write
 * reaches a job that the home has not connected with theirs.
 *
 *      (none) -- a rank claims: Claim --> ASKED -- Connect --> OPEN -- over, or the other job's
 *                                           |                   |      end, and no rank uses it
 *      a rank spawns: Connect --------------|-------------------'               |
 *                                      refused --> (none)                       v
 *                                                     (none) <-- channels -- LEAVING
 *
 * OPEN goes on while no rank uses it, as long as ranks elsewhere do: those here may be brought in
 * again, and what they know of their peers still counts. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "proto/attach.h"
#include "proto/control.pb-c.h"
#include "proto/hop.h"

struct channel_foreign;
struct job;
struct jobs;

/* One job's at a time: more than a program has use for, and a bound for what it can make a daemon
 * keep. */
#define FOREIGN_MAX_CONNECTIONS 1024u

enum foreign_state { FOREIGN_ASKED, FOREIGN_OPEN, FOREIGN_LEAVING };

struct foreign {
    struct list link; /* in job.foreign */
    enum foreign_state state;
    uint64_t number, peer_job;
    uint32_t first, n; /* peers */
    bool over;         /* the other job is over, or nobody uses the connection any more */
    uint64_t users[SEGMENT_MAX_LOCAL / 64], waiting[SEGMENT_MAX_LOCAL / 64]; /* by local rank */
    uint32_t spawner, request; /* of ATTACH_SPAWN or ATTACH_ASK, not done yet; request 0: it is */
    struct channel_foreign *channels[HOP_MAX_CHANNELS];
    uint32_t channels_left;
};

/* From ranks. */
void foreign_on_spawn(struct job *job, uint32_t local, const uint8_t *body, uint32_t len,
                      uint64_t now_ns);
void foreign_on_ask(struct job *job, uint32_t local, const struct attach_ask *ask, uint64_t now_ns);
void foreign_on_spawn_done(struct job *job, uint32_t local, uint32_t request, uint64_t now_ns);
void foreign_on_claim(struct job *job, uint32_t local, uint64_t number, uint64_t now_ns);
void foreign_on_release(struct job *job, uint32_t local, uint64_t number, uint64_t now_ns);
/* The rank is gone. */
void foreign_forget_rank(struct job *job, uint32_t local, uint64_t now_ns);

/* Mail from the home. */
void foreign_on_connect(struct jobs *jobs, uint32_t src_node, const Motet__Connect *msg,
                        uint64_t now_ns);
void foreign_on_answered(struct jobs *jobs, uint32_t src_node, const Motet__Answered *msg);
void foreign_on_peer_over(struct jobs *jobs, uint32_t src_node, const Motet__PeerOver *msg,
                          uint64_t now_ns);

/* One channel has let go of it. */
void foreign_on_removed(struct jobs *jobs, uint64_t job, uint64_t number, uint32_t channel);

/* With the job; the channels' part goes with theirs. */
void foreign_free_all(struct job *job);
