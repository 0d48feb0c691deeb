/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job's rings at a channel: made by the control thread, attached to and detached from the channel
 * by commands in between. Detaching takes two steps: control asks, the channel lets go and answers.
 */
#pragma once

#include "daemon/channel/rx.h"
#include "daemon/channel/tx.h"

/* The channel's thread's. */
struct attach {
    struct port *port;
    struct job_table *jobs;
    struct tx *tx;
    struct delivery *delivery;
    struct backlog *backlog;
    struct list gone;     /* jobs let go of, answer not sent yet */
    uint32_t n_detaching; /* ranks to be answered */
    uint32_t n_removing;  /* connections to be answered */
};

/* Control thread: a channel's view of a job. 0 or negative errno. */
int attach_job_new(const struct port *port, const struct cmd_job *config,
                   struct channel_job **ret_job);
/* NULL is fine. */
void attach_job_free(struct channel_job *job);

/* Control thread: the end of a connection with another job, for CMD_ADD_FOREIGN: n processes at
 * these places are the job's peers `first` and up; `out` and `in` differ in the lowest bit. It is
 * freed after EVENT_FOREIGN_REMOVED, or with the job. 0 or negative errno. */
int attach_foreign_new(struct channel_job *job, uint64_t out, uint64_t in, uint32_t first,
                       uint32_t n, const struct channel_place *places,
                       struct channel_foreign **ret_foreign);
/* NULL is fine. */
void attach_foreign_free(struct channel_foreign *foreign);

void attach_init(struct attach *a, struct tx *tx, struct job_table *jobs);
/* False: it was attached before. */
bool attach_job(struct attach *a, struct channel_job *job);
/* Lets go of all of the job. False: that was done before, or it was never attached; control gets
 * its answer in any case. */
bool attach_detach_job(struct attach *a, struct channel_job *job);
void attach_detach_rank(struct attach *a, struct channel_job *job, uint32_t local, bool dead);
void attach_add_foreign(struct attach *a, struct channel_foreign *foreign);
/* Control gets its answer when nothing for these peers is left here. */
void attach_remove_foreign(struct attach *a, struct channel_foreign *foreign);
/* Is an answer owed? */
static inline bool attach_owes(const struct attach *a)
{
    return a->n_detaching > 0 || a->n_removing > 0 || !list_empty(&a->gone);
}
/* Sends the answers that are ready, as far as control takes them. */
void attach_answer(struct attach *a);
