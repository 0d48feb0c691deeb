/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/job_table.h"

#include <assert.h>

#include "base/hash.h"

#define STRANGER_NS (10 * CLOCK_NS_PER_S)

void job_table_init(struct job_table *t)
{
    *t = (struct job_table){0};
    list_init(&t->all);
}

static uint32_t job_table_bucket(uint64_t id)
{
    return (uint32_t)(hash_mix64(id) % JOB_TABLE_HASH);
}

struct channel_job *job_table_find(const struct job_table *t, uint64_t id)
{
    struct channel_job *job = t->hash[job_table_bucket(id)];

    while (job && job->config.job != id)
        job = job->hash_next;
    return job;
}

bool job_table_may_come(struct job_table *t, uint64_t id, uint64_t now_ns)
{
    uint32_t oldest = 0;

    for (uint32_t i = 0; i < JOB_TABLE_ENDED; i++)
        if (t->ended[i] == id)
            return false;
    for (uint32_t i = 0; i < JOB_TABLE_STRANGERS; i++) {
        if (t->strangers[i].job == id && t->strangers[i].first_ns != 0)
            return now_ns - t->strangers[i].first_ns < STRANGER_NS;
        if (t->strangers[i].first_ns < t->strangers[oldest].first_ns)
            oldest = i;
    }
    t->strangers[oldest].job = id;
    t->strangers[oldest].first_ns = now_ns;
    return true;
}

void job_table_add(struct job_table *t, struct channel_job *job)
{
    struct channel_job **bucket = &t->hash[job_table_bucket(job->config.job)];

    assert(!job_table_find(t, job->config.job));
    list_init(&job->node);
    list_append(&t->all, &job->node);
    job->hash_next = *bucket;
    *bucket = job;
    for (uint32_t i = 0; i < JOB_TABLE_STRANGERS; i++)
        if (t->strangers[i].job == job->config.job)
            t->strangers[i].first_ns = 0;
}

void job_table_remove(struct job_table *t, struct channel_job *job)
{
    struct channel_job **at = &t->hash[job_table_bucket(job->config.job)];

    while (*at != job)
        at = &(*at)->hash_next;
    *at = job->hash_next;
    list_remove(&job->node);
    t->ended[t->n_ended++ % JOB_TABLE_ENDED] = job->config.job;
}

bool job_table_may_keep(const struct job_table *t, const struct channel_job *job,
                        enum job_blocks kind, uint32_t max)
{
    uint32_t own = 0, others = 0;

    list_foreach(it, &t->all) {
        const struct channel_job *other = list_entry(it, struct channel_job, node);
        if (other->config.uid == job->config.uid)
            own += other->n_blocks[kind];
        else
            others += other->n_blocks[kind];
    }
    uint32_t left = max > others ? max - others : 0;
    return job->config.uid == 0 || own < left - left / 4;
}

/* ---- connections with other jobs ---- */

/* The two directions differ in the lowest bit. */
static uint32_t job_table_foreign_bucket(uint64_t number)
{
    return job_table_bucket(number | 1);
}

struct channel_foreign *job_table_foreign_in(const struct job_table *t, uint64_t in)
{
    struct channel_foreign *f = t->foreign[job_table_foreign_bucket(in)];

    while (f && f->in != in)
        f = f->hash_next;
    return f;
}

struct channel_foreign *job_table_foreign_out(const struct job_table *t, uint64_t out)
{
    return job_table_foreign_in(t, out ^ 1);
}

struct channel_job *job_table_sender(const struct job_table *t, const struct wire_header *h,
                                     uint32_t *ret_peer)
{
    if (!(h->flags & WIRE_F_FOREIGN)) {
        *ret_peer = h->dst_rank;
        return job_table_find(t, h->job);
    }
    const struct channel_foreign *f = job_table_foreign_out(t, h->job);
    *ret_peer = f ? f->first + h->dst_rank : 0;
    return f ? f->job : NULL;
}

void job_table_add_foreign(struct job_table *t, struct channel_foreign *f)
{
    struct channel_job *job = f->job;
    uint32_t at = f->first - job->layout.shape.n_world, n_nodes = job->layout.shape.n_nodes;

    list_append(&job->foreign, &f->node);
    f->hash_next = t->foreign[job_table_foreign_bucket(f->in)];
    t->foreign[job_table_foreign_bucket(f->in)] = f;
    for (uint32_t i = 0; i < f->n; i++) {
        job->world[f->first + i] = (struct segment_world){.node = n_nodes + at + i, .local = i};
        job->nodes[n_nodes + at + i].node_id = f->places[i].node_id;
        job->nodes[n_nodes + at + i].slot = f->places[i].slot;
        job->foreign_of[at + i] = f;
    }
    for (uint32_t i = 0; i < JOB_TABLE_STRANGERS; i++)
        if (t->strangers[i].job == f->in)
            t->strangers[i].first_ns = 0;
}

void job_table_remove_foreign(struct job_table *t, struct channel_foreign *f)
{
    struct channel_foreign **at = &t->foreign[job_table_foreign_bucket(f->in)];

    while (*at != f)
        at = &(*at)->hash_next;
    *at = f->hash_next;
    list_remove(&f->node);
    for (uint32_t i = 0; i < f->n; i++)
        f->job->foreign_of[f->first - f->job->layout.shape.n_world + i] = NULL;
    t->ended[t->n_ended++ % JOB_TABLE_ENDED] = f->in;
}
