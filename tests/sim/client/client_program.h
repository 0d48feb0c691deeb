/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the simulated ranks do: MPI programs drawn from the job's seed. All members of a
 * communicator draw the same plan of a round (who sends what to whom, which collectives), each its
 * own way of carrying it out (which calls, in which order, how long it computes in between), and
 * every byte that arrives is compared.
 */
#pragma once

#include "mpi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rand.h"

struct rank;

#define PROGRAM_COMMS 6

/* A communicator and what its members know of it. */
struct meeting {
    MPI_Comm comm; /* MPI_COMM_NULL: this rank is no member */
    uint64_t id;   /* the same at all members */
    int rank, size;
    uint32_t n_rounds;
};

struct program {
    struct rank *rank;
    struct rand own;  /* of this rank alone */
    size_t n_handles; /* that the library has itself */
    struct meeting meetings[PROGRAM_COMMS];
    int n_meetings;
};

/* The program of a rank, from MPI_Init to MPI_Finalize. */
void program_main(struct rank *k);

/* The plan of a new round among the members. */
struct rand program_plan(struct meeting *m);
static inline uint64_t program_draw(struct rand *r, uint64_t n)
{
    return rand_below(r, n);
}
/* Now and then the rank computes for a while. */
void program_dawdle(struct program *p);
/* Any result but MPI_SUCCESS is a failure. */
void program_check(int error, const char *call);
#define CHECK(call) program_check(call, #call)

/* Point-to-point traffic. What is under way between begin and end may be joined by other rounds. */
struct talk;
struct talk *talk_begin(struct program *p, struct meeting *m, bool quiet_around);
void talk_end(struct talk *t);

/* Collectives, blocking and nonblocking. */
void gather_round(struct program *p, struct meeting *m);

/* One-sided: every accumulate exactly once. */
void windows_round(struct program *p, struct meeting *m);

/* Partitioned communication around a ring. */
void parts_round(struct program *p, struct meeting *m);

/* Communicators come and go. */
void meeting_round(struct program *p, struct meeting *of, struct rand *plan);

/* Right after MPI_Init: what is not open, but the library's own. */
void settle_begin(struct program *p);
/* Waits until nothing is open in the library of any rank of the job, and every allowance is at
 * home. */
void settle(struct program *p);
/* What the library of the process that has the turn is about, for the report on a failure. */
void settle_report(void);
