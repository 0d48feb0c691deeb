/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/spawner/ranks.h"

#include <signal.h>
#include <stdlib.h>

#include "base/fd.h"

struct ranks_job *ranks_job_find(struct list *jobs, uint64_t id)
{
    list_foreach(it, jobs) {
        struct ranks_job *job = list_entry(it, struct ranks_job, node);
        if (job->id == id)
            return job;
    }
    return NULL;
}

struct ranks_job *ranks_job_get(struct list *jobs, uint64_t id)
{
    struct ranks_job *job = ranks_job_find(jobs, id);

    if (!job && (job = calloc(1, sizeof *job)) != NULL) {
        job->id = id;
        list_init(&job->node);
        list_init(&job->children);
        list_append(jobs, &job->node);
    }
    return job;
}

void ranks_forget_names(struct ranks_child *child)
{
    free(child->argv0);
    free(child->wdir);
    child->argv0 = child->wdir = NULL;
}

void ranks_job_free(struct ranks_job *job)
{
    list_foreach_safe(it, &job->children) {
        struct ranks_child *child = list_entry(it, struct ranks_child, node);
        fd_closep(&child->exec_pipe);
        ranks_forget_names(child);
        free(child);
    }
    list_remove(&job->node);
    free(job);
}

bool ranks_owner(void *arg, pid_t pid, bool alive, uint64_t *ret_job, uint32_t *ret_rank)
{
    struct list *jobs = arg;

    list_foreach(it, jobs) {
        struct ranks_job *job = list_entry(it, struct ranks_job, node);
        list_foreach(c, &job->children) {
            struct ranks_child *child = list_entry(c, struct ranks_child, node);
            if (child->pid == pid && (child->state != RANKS_GONE) == alive) {
                *ret_job = job->id;
                *ret_rank = child->rank;
                return true;
            }
        }
    }
    return false;
}

void ranks_signal(const struct ranks_child *child, int signal)
{
    if (child->state == RANKS_GONE)
        return;
    if (kill(-child->pid, signal) < 0)
        kill(child->pid, signal);
}

bool ranks_living(const struct ranks_job *job)
{
    list_foreach(it, &job->children) {
        if (list_entry(it, struct ranks_child, node)->state != RANKS_GONE)
            return true;
    }
    return false;
}
