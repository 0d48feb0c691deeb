/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of the simulated jobs when they run the real client library: each is a process
 * (client_process.h) with an MPI program. This is traffic.h for them, and what the library's
 * transport and the programs ask of the world.
 */
#pragma once

#include "tests/sim/sim_job.h"
#include "tests/sim/traffic.h"

struct process;
struct world_job;

/* What a rank has open or owes when it has nothing more to do; see client_check.c. */
struct rank_balance {
    bool settled;             /* the program is over but for MPI_Finalize */
    uint64_t out[JOB_WORLD];  /* allowance in use at each other rank */
    uint64_t owed[JOB_WORLD]; /* of each other rank's allowance, to be given back */
    const char *open;         /* what is still open in the library; NULL: nothing */
};

struct rank {
    struct world_job *in;
    uint32_t world; /* rank */
    struct process *process;
    bool finished;        /* left in order */
    uint32_t n_detaching; /* channels that have not answered yet */
    struct rank_balance balance;
    char doing[160]; /* for the report on a failure */
};

struct world_job {
    struct sim_job job;
    struct sim *sim;
    uint32_t idx;
    uint64_t seed;
    uint32_t n_rounds;
    bool may_read;      /* ranks read each other's memory */
    bool settled;       /* all ranks are, and what they owe one another is what they have */
    bool over;          /* all ranks have left */
    uint32_t n_running; /* ranks that have not left */
    uint64_t settle_ns; /* since when all ranks wait to be settled */
    struct rank ranks[JOB_WORLD];
};

/* The rank whose turn it is. */
struct rank *world_here(void);
static inline struct sim_part *world_part(const struct rank *k)
{
    struct sim_job *j = &k->in->job;
    return &j->parts[j->places[k->world].node];
}
/* Node of the simulation. */
static inline struct sim_node *world_node(const struct rank *k)
{
    return &k->in->sim->nodes[k->in->job.places[k->world].node];
}
/* The rank leaves: waits until the channels have taken what it sent. */
void world_leave(struct rank *k);
/* What the running rank does, for the report on a failure. */
void world_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Says what is wrong with the running rank and ends the simulation. */
void world_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The running rank's balance is new: are all of its job settled? Fails when they do not settle. */
bool world_is_settled(struct rank *k);
