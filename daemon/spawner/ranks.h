/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks that the spawner has started, by job: who they are and how far they have come. A job's
 * records stay until its end is ordered, so that descendants of dead ranks are still recognized.
 * Used by the spawner's one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

enum ranks_state { RANKS_STARTING, RANKS_RUNNING, RANKS_GONE };

struct ranks_child {
    struct list node;
    uint32_t rank;
    pid_t pid;
    enum ranks_state state;
    int exec_pipe;
    char *argv0, *wdir; /* for the error text; freed once exec has succeeded */
    uint32_t uid, gid;
};

struct ranks_job {
    struct list node;
    uint64_t id;
    struct list children;
    bool ending; /* swept until nothing is left, then forgotten */
    uint64_t sweep_until_ns;
};

/* `jobs` is the list of all of them. NULL: there is none. */
struct ranks_job *ranks_job_find(struct list *jobs, uint64_t id);
/* Makes it if there is none. NULL: no memory. */
struct ranks_job *ranks_job_get(struct list *jobs, uint64_t id);
void ranks_job_free(struct ranks_job *job);
/* True while a rank of it lives. */
bool ranks_living(const struct ranks_job *job);

/* Frees what was kept for the text of a failure. */
void ranks_forget_names(struct ranks_child *child);
/* To the process group of a living rank; to the process itself while it is not yet the leader of
 * one. */
void ranks_signal(const struct ranks_child *child, int signal);
/* A reaper_owner_fn; arg is the list of jobs. */
bool ranks_owner(void *arg, pid_t pid, bool alive, uint64_t *ret_job, uint32_t *ret_rank);
