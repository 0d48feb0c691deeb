/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs of the simulated cluster as the daemons' control threads handle them: a segment on each node
 * with ranks, channels that attach and let go, the end of a job by a fault. Who is in the ranks is
 * somebody else's business.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/ring.h"
#include "tests/sim/cluster.h"

#define JOB_WORLD 16u /* ranks of a job */
#define JOB_LOCAL 4u  /* ranks of a job on a node */

struct sim_place {
    uint32_t node; /* of the simulation */
    uint32_t local;
};

/* A job's part on one node. */
struct sim_part {
    bool exists, attached, ending;
    void *segment;
    struct segment_layout layout;
    uint32_t n_local;
    uint32_t n_waits; /* answers of channels to come */
    struct channel_job *views[SIM_CHANNELS];
};

struct sim_job {
    uint64_t id;
    bool dead;              /* ended by a fault */
    uint32_t backlog_bytes; /* kept for a rank that does not drain; 0: as channels have it */
    uint32_t n_world, n_nodes;
    struct sim_place places[JOB_WORLD];
    uint32_t nodes[SIM_NODES];        /* of the simulation, by the job's number of a node */
    uint32_t node_of[SIM_NODES];      /* the other way round */
    struct sim_part parts[SIM_NODES]; /* by the simulation's number */
};

/* A rank's ends of its rings to and from the channels of its node. */
struct sim_rings {
    struct ring_producer up[SIM_CHANNELS];
    struct ring_consumer down[SIM_CHANNELS];
    uint32_t *data_end;
};

/* Draws places for the ranks. */
void sim_job_place(struct sim *s, struct sim_job *j);
/* Numbers the job's nodes where a test has set `places` and `n_local` itself. */
void sim_job_number_nodes(const struct sim *s, struct sim_job *j);
/* Makes the segment of a node. The ring shapes, board, exchange and vcis of `shape` are used. */
void sim_job_part_make(struct sim *s, struct sim_job *j, uint32_t node,
                       const struct segment_shape *shape);
void sim_job_part_free(struct sim_part *p);
/* The rings of a rank whose node's segment exists; closed before that is freed. */
void sim_job_rings_open(struct sim *s, struct sim_job *j, uint32_t rank, struct sim_rings *r);
void sim_job_rings_close(struct sim_rings *r); /* of a rank that never had any: fine */
/* The channels of a node learn of the job. */
void sim_job_attach(struct sim *s, struct sim_job *j, uint32_t node);
/* A rank left in order, or died: one answer of each channel comes (EVENT_RANK_DETACHED). */
void sim_job_detach_rank(struct sim *s, struct sim_job *j, uint32_t rank, bool dead);
/* The channels of a node are to let go of the job; its part is freed when they have
 * (EVENT_JOB_DETACHED). */
void sim_job_detach(struct sim *s, struct sim_job *j, uint32_t node);
/* A channel has let go. True: it was the last one, and the part is no more. */
bool sim_job_on_detached(struct sim_job *j, uint32_t node);
