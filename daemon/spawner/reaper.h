/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep: finds what ranks have started, wherever it hides. A rank's descendants may leave its
 * process group and session, and lose their parent; since the spawner is their subreaper they stay
 * below it in the process tree. Called by the spawner.
 *
 * A process belongs to the first of: the rank that is its ancestor; the rank whose session or
 * process group it is still in (ids of dead ranks stay valid while a member lives); the job named
 * in its environment. What none of these tells belongs to nobody and is found only by a sweep for
 * everything.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Which rank has this process id (`alive`), or had it (else: the id lives on as that of a group or
 * session only). Sets job and rank and returns true. */
typedef bool reaper_owner_fn(void *arg, pid_t pid, bool alive, uint64_t *ret_job,
                             uint32_t *ret_rank);

struct reaper_filter {
    bool everything; /* all descendants of the caller */
    uint64_t job;    /* otherwise those of this job ... */
    int64_t rank;    /* ... and this rank; -1: all of the job's */
};

/* Kills everything below the caller's parent but the caller: what another child of the parent, dead
 * by now, had started. The parent must be a subreaper without other children. Repeats until nothing
 * is left, 2 seconds at most. `parent` is the parent's own word for who it is: if it died
 * meanwhile, the caller has another parent, perhaps init, and nothing below that is ours to
 * kill. */
void reaper_kill_siblings(pid_t parent);

/* Sends `signal` to every living descendant that the filter covers. Returns how many there were; 0
 * also where /proc is not readable. Costs one pass over /proc. */
int reaper_kill(const struct reaper_filter *filter, reaper_owner_fn *owner, void *arg, int signal);
