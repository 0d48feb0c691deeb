/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What waits for one rank that does not drain, at most. */
#define BACKLOG_DEFAULT_BYTES (16u << 20)

static int attach_check(const struct cmd_job *c)
{
    const struct segment_shape *s = &c->layout->shape;

    for (uint32_t n = 0; n < s->n_nodes; n++)
        if (c->nodes[n].slot >= HOP_MAX_NODES)
            return -EINVAL;
    for (uint32_t r = 0; r < s->n_world; r++) {
        if (c->world[r].node >= s->n_nodes)
            return -EINVAL;
        if (c->nodes[c->world[r].node].slot == 0 && c->world[r].local >= s->n_local)
            return -EINVAL;
    }
    return 0;
}

int attach_job_new(const struct port *port, const struct cmd_job *config,
                   struct channel_job **ret_job)
{
    const struct segment_shape *s = &config->layout->shape;

    if (config->job == 0 || segment_shape_check(s) < 0 || port->idx >= s->n_channels ||
        ring_max_payload(&s->down) < port->packet_bytes || attach_check(config) < 0)
        return -EINVAL;

    struct channel_job *job = calloc(1, sizeof *job);
    if (!job)
        return -ENOMEM;
    job->config = *config;
    job->layout = *config->layout;
    job->n_local = s->n_local;
    job->n_words = (s->n_local + 63) / 64;
    list_init(&job->foreign);
    list_init(&job->foreign_gone);
    /* Those of foreign processes are filled when there are any; until then they are address
     * space. */
    job->world = malloc(sizeof *job->world * ((size_t)s->n_world + s->n_foreign));
    job->nodes = malloc(sizeof *job->nodes * ((size_t)s->n_nodes + s->n_foreign));
    job->foreign_of = calloc((size_t)s->n_foreign + 1, sizeof *job->foreign_of);
    job->ups = calloc(s->n_local, sizeof *job->ups);
    job->downs = calloc(s->n_local, sizeof *job->downs);
    job->n_waiting = calloc(s->n_local, sizeof *job->n_waiting);
    job->data_end = calloc((size_t)s->n_local * s->down.n_slots, sizeof *job->data_end);
    if (!job->world || !job->nodes || !job->foreign_of || !job->ups || !job->downs ||
        !job->n_waiting || !job->data_end) {
        attach_job_free(job);
        return -ENOMEM;
    }
    memcpy(job->world, config->world, sizeof *job->world * s->n_world);
    memcpy(job->nodes, config->nodes, sizeof *job->nodes * s->n_nodes);
    job->config.layout = &job->layout;
    job->config.world = job->world;
    job->config.nodes = job->nodes;
    uint32_t backlog_bytes = config->backlog_bytes ? config->backlog_bytes : BACKLOG_DEFAULT_BYTES;
    job->backlog_max = (uint32_t)(backlog_bytes / port->arena->stride);
    if (job->backlog_max == 0)
        job->backlog_max = 1;
    job->bell = segment_channel_bell(config->segment, &job->layout, port->idx);
    job->closed = segment_closed_at(config->segment, &job->layout, port->idx);
    for (uint32_t r = 0; r < s->n_local; r++) {
        struct up *up = &job->ups[r];
        struct down *down = &job->downs[r];
        ring_consumer_init(&up->ring, segment_up_ring(config->segment, &job->layout, r, port->idx),
                           &s->up);
        list_init(&up->node);
        up->job = job;
        up->local = r;
        struct bell_ref bell = {.bell = &segment_rank_at(config->segment, &job->layout, r)->bell,
                                .bit = s->n_local + port->idx,
                                .event_fd = -1,
                                .fenced = config->fenced};
        ring_producer_init(&down->ring,
                           segment_down_ring(config->segment, &job->layout, r, port->idx), &s->down,
                           job->data_end + (size_t)r * s->down.n_slots, &bell);
        list_init(&down->node);
        down->job = job;
        down->local = r;
    }
    for (uint32_t r = 0; r < s->n_world; r++)
        if (job->nodes[job->world[r].node].slot == 0)
            job->ups[job->world[r].local].world = job->downs[job->world[r].local].world = r;
    *ret_job = job;
    return 0;
}

void attach_foreign_free(struct channel_foreign *f)
{
    if (!f)
        return;
    free(f->places);
    free(f->read_from);
    free(f->read);
    free(f);
}

void attach_job_free(struct channel_job *job)
{
    if (!job)
        return;
    free(job->data_end);
    free(job->n_waiting);
    free(job->downs);
    free(job->ups);
    free(job->nodes);
    free(job->world);
    free(job->foreign_of);
    list_foreach_safe(it, &job->foreign)
        attach_foreign_free(list_entry(it, struct channel_foreign, node));
    list_foreach_safe(it, &job->foreign_gone)
        attach_foreign_free(list_entry(it, struct channel_foreign, node));
    free(job);
}

int attach_foreign_new(struct channel_job *job, uint64_t out, uint64_t in, uint32_t first,
                       uint32_t n, const struct channel_place *places,
                       struct channel_foreign **ret_foreign)
{
    const struct segment_shape *s = &job->layout.shape;

    if (n == 0 || first < s->n_world || first - s->n_world > s->n_foreign ||
        n > s->n_foreign - (first - s->n_world) || in == 0 || out != (in ^ 1))
        return -EINVAL;
    for (uint32_t i = 0; i < n; i++)
        if (places[i].slot >= HOP_MAX_NODES)
            return -EINVAL;
    struct channel_foreign *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    *f = (struct channel_foreign){.job = job, .out = out, .in = in, .first = first, .n = n};
    list_init(&f->node);
    f->places = malloc(n * sizeof *f->places);
    f->read_from = calloc(job->n_local, sizeof *f->read_from);
    f->read = calloc(job->n_local, sizeof *f->read);
    if (!f->places || !f->read_from || !f->read) {
        attach_foreign_free(f);
        return -ENOMEM;
    }
    memcpy(f->places, places, n * sizeof *f->places);
    *ret_foreign = f;
    return 0;
}

void attach_init(struct attach *a, struct tx *tx, struct job_table *jobs)
{
    *a = (struct attach){
        .port = tx->port,
        .jobs = jobs,
        .tx = tx,
        .delivery = tx->delivery,
        .backlog = tx->backlog,
    };
    list_init(&a->gone);
    a->n_removing = 0;
}

void attach_add_foreign(struct attach *a, struct channel_foreign *f)
{
    if (f->job->attached && !f->job->detached)
        job_table_add_foreign(a->jobs, f);
    else
        list_append(&f->job->foreign_gone, &f->node);
}

void attach_remove_foreign(struct attach *a, struct channel_foreign *f)
{
    f->removing = true;
    a->n_removing++;
    for (uint32_t r = 0; r < f->job->n_local; r++)
        f->read_from[r] = f->job->ups[r].ring.next;
}

/* Has everything been taken that the job's ranks may have for these peers? Each ring was empty
 * once, or has moved on by all that it can hold. */
static bool attach_foreign_is_read(struct attach *a, struct channel_foreign *f)
{
    bool all = true;

    for (uint32_t r = 0; r < f->job->n_local; r++) {
        struct up *up = &f->job->ups[r];
        if (!f->read[r])
            f->read[r] = up->gone || up->poisoned || !ring_peek(&up->ring) ||
                         up->ring.next - f->read_from[r] >= f->job->layout.shape.up.n_slots;
        all &= f->read[r];
    }
    return all && !backlog_has_any(a->backlog, f->job, f->first, f->n);
}

/* Answers for those of a job that can go. False: control's ring is full. */
static bool attach_answer_foreign(struct attach *a, struct channel_job *job)
{
    list_foreach_safe(it, &job->foreign) {
        struct channel_foreign *f = list_entry(it, struct channel_foreign, node);
        struct cmd_event event = {
            .type = EVENT_FOREIGN_REMOVED, .job = job->config.job, .value = f->in};
        if (!f->removing || !attach_foreign_is_read(a, f))
            continue;
        backlog_forget_peers(a->backlog, job, f->first, f->n);
        /* After the event the control thread may free it. */
        job_table_remove_foreign(a->jobs, f);
        if (!port_event(a->port, &event)) {
            job_table_add_foreign(a->jobs, f);
            return false;
        }
        a->n_removing--;
    }
    return true;
}

bool attach_job(struct attach *a, struct channel_job *job)
{
    if (job->attached)
        return false;
    job->attached = true;
    job_table_add(a->jobs, job);
    count_set(&a->port->count, COUNT_JOBS, count_get(&a->port->count, COUNT_JOBS) + 1);
    return true;
}

static void attach_forget_up(struct attach *a, struct up *up)
{
    if (up->draining)
        a->n_detaching--;
    up->draining = false;
    tx_forget(up);
}

bool attach_detach_job(struct attach *a, struct channel_job *job)
{
    if (job->detached)
        return false;
    job->detached = true;
    if (job->attached) {
        for (uint32_t r = 0; r < job->n_local; r++) {
            attach_forget_up(a, &job->ups[r]);
            delivery_release(a->delivery, &job->downs[r]);
        }
        backlog_release(a->backlog, job);
        list_foreach_safe(it, &job->foreign) {
            struct channel_foreign *f = list_entry(it, struct channel_foreign, node);
            a->n_removing -= f->removing;
            job_table_remove_foreign(a->jobs, f);
            /* Freed with the job. */
            list_append(&job->foreign_gone, &f->node);
        }
        job_table_remove(a->jobs, job);
        count_set(&a->port->count, COUNT_JOBS, count_get(&a->port->count, COUNT_JOBS) - 1);
    } else {
        list_init(&job->node);
    }
    list_append(&a->gone, &job->node);
    return job->attached;
}

void attach_detach_rank(struct attach *a, struct channel_job *job, uint32_t local, bool dead)
{
    if (!job->attached || job->detached || local >= job->n_local)
        return;
    struct up *up = &job->ups[local];
    struct down *down = &job->downs[local];
    down->gone = true;
    delivery_release(a->delivery, down);
    if (dead) {
        bool asked = up->draining;
        attach_forget_up(a, up);
        if (asked)
            return;
        up->draining = true; /* to be answered */
        a->n_detaching++;
        return;
    }
    if (up->draining)
        return;
    up->draining = true;
    a->n_detaching++;
    if (!up->gone)
        tx_activate(a->tx, up);
}

void attach_answer(struct attach *a)
{
    list_foreach_safe(it, &a->gone) {
        struct channel_job *job = list_entry(it, struct channel_job, node);
        struct cmd_event event = {.type = EVENT_JOB_DETACHED, .job = job->config.job};
        list_remove(&job->node);
        /* After this the control thread may free the job. */
        if (!port_event(a->port, &event)) {
            list_prepend(&a->gone, &job->node);
            return;
        }
    }
    if (a->n_removing > 0)
        list_foreach(it, &a->jobs->all)
            if (!attach_answer_foreign(a, list_entry(it, struct channel_job, node)))
                return;
    if (a->n_detaching == 0)
        return;
    list_foreach(it, &a->jobs->all) {
        struct channel_job *job = list_entry(it, struct channel_job, node);
        for (uint32_t r = 0; r < job->n_local; r++) {
            struct up *up = &job->ups[r];
            if (!up->draining || !tx_is_drained(up))
                continue;
            struct cmd_event event = {
                .type = EVENT_RANK_DETACHED, .job = job->config.job, .rank = r};
            if (!port_event(a->port, &event))
                return;
            attach_forget_up(a, up);
        }
    }
}
