/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs as a channel sees them: a ring from and to each rank of the node, and the tables that say
 * where the other ranks are. Built and freed by the control thread, attached to and detached from
 * the channel by commands in between.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "daemon/channel/state.h"

#define HOLD_DEFAULT_BYTES (16u << 20)
/* A packet may arrive before the message that announces its job. */
#define STRANGER_NS (10 * CLOCK_NS_PER_S)

static int check_tables(const struct cmd_job *c)
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

int cmd_job_new(struct channel *ch, const struct cmd_job *config, struct channel_job **ret_job)
{
    const struct segment_shape *s = &config->layout->shape;

    if (config->job == 0 || segment_shape_check(s) < 0 || ch->idx >= s->n_channels ||
        ring_max_payload(&s->down) < ch->packet_bytes || check_tables(config) < 0)
        return -EINVAL;

    struct channel_job *job = calloc(1, sizeof *job);
    if (!job)
        return -ENOMEM;
    job->config = *config;
    job->layout = *config->layout;
    job->n_local = s->n_local;
    job->n_words = (s->n_local + 63) / 64;
    job->world = malloc(sizeof *job->world * s->n_world);
    job->nodes = malloc(sizeof *job->nodes * s->n_nodes);
    job->ups = calloc(s->n_local, sizeof *job->ups);
    job->downs = calloc(s->n_local, sizeof *job->downs);
    job->data_end = calloc((size_t)s->n_local * s->down.n_slots, sizeof *job->data_end);
    if (!job->world || !job->nodes || !job->ups || !job->downs || !job->data_end) {
        cmd_job_free(job);
        return -ENOMEM;
    }
    memcpy(job->world, config->world, sizeof *job->world * s->n_world);
    memcpy(job->nodes, config->nodes, sizeof *job->nodes * s->n_nodes);
    job->config.layout = &job->layout;
    job->config.world = job->world;
    job->config.nodes = job->nodes;
    uint32_t hold_bytes = config->hold_bytes ? config->hold_bytes : HOLD_DEFAULT_BYTES;
    job->hold_max = (uint32_t)(hold_bytes / ch->hub->arena.stride);
    if (job->hold_max == 0)
        job->hold_max = 1;
    job->bell = segment_channel_bell(config->segment, &job->layout, ch->idx);
    job->closed = segment_closed_at(config->segment, &job->layout, ch->idx);
    for (uint32_t r = 0; r < s->n_local; r++) {
        struct up *up = &job->ups[r];
        struct down *down = &job->downs[r];
        ring_consumer_init(&up->ring, segment_up_ring(config->segment, &job->layout, r, ch->idx),
                           &s->up);
        list_init(&up->node);
        up->job = job;
        up->local = r;
        struct bell_ref bell = {.bell = &segment_rank_at(config->segment, &job->layout, r)->bell,
                                .bit = s->n_local + ch->idx,
                                .event_fd = -1,
                                .fenced = config->fenced};
        ring_producer_init(&down->ring,
                           segment_down_ring(config->segment, &job->layout, r, ch->idx), &s->down,
                           job->data_end + (size_t)r * s->down.n_slots, &bell);
        list_init(&down->node);
        down->job = job;
        down->local = r;
    }
    for (uint32_t r = 0; r < s->n_world; r++)
        if (job->nodes[job->world[r].node].slot == 0)
            job->ups[job->world[r].local].world = r;
    *ret_job = job;
    return 0;
}

void cmd_job_free(struct channel_job *job)
{
    if (!job)
        return;
    free(job->data_end);
    free(job->downs);
    free(job->ups);
    free(job->nodes);
    free(job->world);
    free(job);
}

uint64_t cmd_job_id(const struct channel_job *job)
{
    return job->config.job;
}

static struct channel_job **bucket(struct channel *ch, uint64_t id)
{
    return &ch->job_hash[hash_mix64(id) % JOB_HASH];
}

struct channel_job *job_find(struct channel *ch, uint64_t id)
{
    struct channel_job *job = *bucket(ch, id);

    while (job && job->config.job != id)
        job = job->hash_next;
    return job;
}

bool job_may_come(struct channel *ch, uint64_t id)
{
    uint32_t oldest = 0;

    for (uint32_t i = 0; i < ENDED_JOBS; i++)
        if (ch->ended[i] == id)
            return false;
    for (uint32_t i = 0; i < STRANGER_JOBS; i++) {
        if (ch->strangers[i].job == id && ch->strangers[i].first_ns != 0)
            return ch->now_ns - ch->strangers[i].first_ns < STRANGER_NS;
        if (ch->strangers[i].first_ns < ch->strangers[oldest].first_ns)
            oldest = i;
    }
    ch->strangers[oldest].job = id;
    ch->strangers[oldest].first_ns = ch->now_ns;
    return true;
}

void job_attach(struct channel *ch, struct channel_job *job)
{
    if (job->attached)
        return;
    job->attached = true;
    list_init(&job->node);
    list_append(&ch->jobs, &job->node);
    job->hash_next = *bucket(ch, job->config.job);
    *bucket(ch, job->config.job) = job;
    for (uint32_t i = 0; i < STRANGER_JOBS; i++)
        if (ch->strangers[i].job == job->config.job)
            ch->strangers[i].first_ns = 0;
    if (job->config.event_fd >= 0)
        loop_add_fd(ch, job->config.event_fd);
    count_set(&ch->count, COUNT_JOBS, count_get(&ch->count, COUNT_JOBS) + 1);
    link_probe_soon(ch);
}

static void forget_up(struct channel *ch, struct up *up)
{
    if (up->draining)
        ch->n_detaching--;
    up->draining = false;
    if (up->known)
        list_remove(&up->node);
    up->known = false;
    up->gone = true;
}

void job_detach(struct channel *ch, struct channel_job *job)
{
    if (job->detached)
        return;
    job->detached = true;
    if (job->attached) {
        for (uint32_t r = 0; r < job->n_local; r++) {
            forget_up(ch, &job->ups[r]);
            hold_release(ch, &job->downs[r]);
        }
        aside_release(ch, job);
        struct channel_job **at = bucket(ch, job->config.job);
        while (*at != job)
            at = &(*at)->hash_next;
        *at = job->hash_next;
        list_remove(&job->node);
        if (job->config.event_fd >= 0)
            loop_remove_fd(ch, job->config.event_fd);
        ch->ended[ch->n_ended++ % ENDED_JOBS] = job->config.job;
        count_set(&ch->count, COUNT_JOBS, count_get(&ch->count, COUNT_JOBS) - 1);
    } else {
        list_init(&job->node);
    }
    list_append(&ch->jobs_gone, &job->node);
}

void job_detach_rank(struct channel *ch, struct channel_job *job, uint32_t local, bool dead)
{
    if (!job->attached || job->detached || local >= job->n_local)
        return;
    struct up *up = &job->ups[local];
    struct down *down = &job->downs[local];
    down->gone = true;
    hold_release(ch, down);
    if (dead) {
        bool asked = up->draining;
        forget_up(ch, up);
        if (asked)
            return;
        up->draining = true; /* to be answered */
        ch->n_detaching++;
        return;
    }
    if (up->draining)
        return;
    up->draining = true;
    ch->n_detaching++;
    if (!up->gone)
        tx_activate_up(ch, up);
}

void job_answers(struct channel *ch)
{
    list_foreach_safe(it, &ch->jobs_gone) {
        struct channel_job *job = list_entry(it, struct channel_job, node);
        struct cmd_event event = {.type = EVENT_JOB_DETACHED, .job = job->config.job};
        list_remove(&job->node);
        /* After this the control thread may free the job. */
        if (!cmd_event(ch, &event)) {
            list_prepend(&ch->jobs_gone, &job->node);
            return;
        }
    }
    if (ch->n_detaching == 0)
        return;
    list_foreach(it, &ch->jobs) {
        struct channel_job *job = list_entry(it, struct channel_job, node);
        for (uint32_t r = 0; r < job->n_local; r++) {
            struct up *up = &job->ups[r];
            if (!up->draining ||
                (!up->gone && !up->poisoned && (up->n_aside > 0 || ring_peek(&up->ring))))
                continue;
            struct cmd_event event = {
                .type = EVENT_RANK_DETACHED, .job = job->config.job, .rank = r};
            if (!cmd_event(ch, &event))
                return;
            forget_up(ch, up);
        }
    }
}
