/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "proto/segment.h"
#include "tests/sim/sim_job.h"

#define JOBS          6u
#define MESSAGES      40000u
#define BACKLOG_BYTES 200000u

enum msg_state { MSG_SENT = 1, MSG_ARRIVED };

struct msg {
    uint8_t state;
    uint8_t job, src, dst;
    uint32_t len;
};

struct rank {
    uint32_t to_send;
    uint64_t lazy_ns; /* does not read before */
    uint64_t send_ns; /* does not send before */
    bool evil;
    struct sim_rings rings;
};

struct job {
    struct sim_job job; /* ended by a fault: its messages may be lost */
    struct rank ranks[JOB_WORLD];
    uint32_t n_detaching[SIM_NODES]; /* ranks of a node that leave: answers of channels to come */
};

struct traffic {
    struct job jobs[JOBS];
    uint32_t n_jobs;
    struct msg *msgs;
    uint32_t n_msgs, n_missing; /* missing: of jobs that live */
    uint64_t n_arrived;
    uint32_t per_rank;
    uint64_t gap_ns; /* longest time between two messages of a rank */
    bool finishing;
};

static uint32_t pattern(uint32_t id, uint32_t i)
{
    return (uint32_t)hash_mix64((uint64_t)id << 32 | i);
}

static void fill(uint8_t *p, uint32_t id, uint32_t len)
{
    memcpy(p, &id, 4);
    for (uint32_t i = 4; i < len; i += 4) {
        uint32_t w = pattern(id, i);
        memcpy(p + i, &w, len - i < 4 ? len - i : 4);
    }
}

static bool intact(const uint8_t *p, uint32_t id, uint32_t len)
{
    for (uint32_t i = 4; i < len; i += 4) {
        uint32_t w = pattern(id, i);
        if (memcmp(p + i, &w, len - i < 4 ? len - i : 4) != 0)
            return false;
    }
    return true;
}

static uint32_t node_of(const struct job *j, uint32_t rank)
{
    return j->job.places[rank].node;
}

static void close_rings(struct job *j, uint32_t node)
{
    for (uint32_t r = 0; r < j->job.n_world; r++)
        if (node_of(j, r) == node)
            sim_job_rings_close(&j->ranks[r].rings);
    j->n_detaching[node] = 0;
}

static void free_part(struct job *j, uint32_t node)
{
    close_rings(j, node);
    sim_job_part_free(&j->job.parts[node]);
}

static void make_part(struct sim *s, struct job *j, uint32_t node)
{
    struct segment_shape shape = {
        .board_records = 64,
        .n_vcis = 1,
        .local = {4, 4096},
        .up = {8u << sim_draw(s, 3), 16384},
        .down = {8u << sim_draw(s, 3), 16384},
    };

    sim_job_part_make(s, &j->job, node, &shape);
    for (uint32_t r = 0; r < j->job.n_world; r++)
        if (node_of(j, r) == node)
            sim_job_rings_open(s, &j->job, r, &j->ranks[r].rings);
}

static void attach(struct sim *s, struct job *j, uint32_t node)
{
    const struct sim_part *p = &j->job.parts[node];

    if (p->exists && !p->attached && !p->ending && !j->job.dead)
        sim_job_attach(s, &j->job, node);
}

static void make_job(struct sim *s)
{
    struct traffic *t = s->traffic;

    if (t->n_jobs == JOBS)
        return;
    uint32_t idx = t->n_jobs++;
    struct job *j = &t->jobs[idx];
    j->job.id = 1 + sim_draw(s, UINT64_MAX - 1);
    j->job.backlog_bytes = BACKLOG_BYTES;
    sim_job_place(s, &j->job);
    for (uint32_t r = 0; r < j->job.n_world; r++)
        j->ranks[r].to_send = t->per_rank;
    for (uint32_t k = 0; k < j->job.n_nodes; k++) {
        if (!s->nodes[j->job.nodes[k]].alive)
            j->job.dead = true;
        else
            make_part(s, j, j->job.nodes[k]);
    }
    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (j->job.parts[i].exists)
            cluster_schedule(s, s->now_ns + sim_draw(s, sim_draw(s, 2) ? 100000 : 100000000),
                             j->job.dead ? SIM_JOB_END : SIM_JOB_ATTACH, i, idx);
    sim_say(s, "job %u with %u ranks%s", idx, j->job.n_world,
            j->job.dead ? " (a node is down)" : "");
}

/* The job is over because of a fault: every node lets go of it at its own time. */
static void end_job(struct sim *s, uint32_t job, const char *why)
{
    struct traffic *t = s->traffic;
    struct job *j = &t->jobs[job];

    if (j->job.dead)
        return;
    sim_say(s, "job %u ends: %s", job, why);
    j->job.dead = true;
    for (uint32_t m = 0; m < t->n_msgs; m++)
        if (t->msgs[m].job == job && t->msgs[m].state == MSG_SENT)
            t->n_missing--;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (j->job.parts[i].exists)
            cluster_schedule(s, s->now_ns + sim_draw(s, 300000000), SIM_JOB_END, i, job);
}

static void detach(struct sim *s, struct job *j, uint32_t node)
{
    const struct sim_part *p = &j->job.parts[node];

    if (!p->exists || p->ending)
        return;
    if (p->attached)
        sim_job_detach(s, &j->job, node);
    else
        free_part(j, node);
}

void traffic_build(struct sim *s, uint64_t duration_ns)
{
    struct traffic *t = calloc(1, sizeof *t);

    s->traffic = t;
    if (!t)
        sim_fail(s, "memory");
    t->msgs = calloc(MESSAGES, sizeof *t->msgs);
    t->per_rank = 20 + (uint32_t)sim_draw(s, 200);
    t->gap_ns = sim_draw(s, 3) ? 2 * duration_ns / t->per_rank : 1;
    uint32_t n = 1 + (uint32_t)sim_draw(s, 3);
    for (uint32_t i = 0; i < n; i++)
        make_job(s);
    for (uint32_t i = 0; i < n; i++) {
        if (sim_draw(s, 2))
            cluster_schedule(s, s->now_ns + sim_draw(s, duration_ns), SIM_LAZY, i,
                             (uint32_t)sim_draw(s, t->jobs[i].job.n_world));
        if (sim_draw(s, 8) == 0)
            cluster_schedule(s, s->now_ns + sim_draw(s, duration_ns), SIM_EVIL, i,
                             (uint32_t)sim_draw(s, t->jobs[i].job.n_world));
    }
}

void traffic_free(struct sim *s)
{
    for (uint32_t k = 0; k < s->traffic->n_jobs; k++)
        for (uint32_t i = 0; i < s->n_nodes; i++)
            if (s->traffic->jobs[k].job.parts[i].exists)
                free_part(&s->traffic->jobs[k], i);
    free(s->traffic->msgs);
    free(s->traffic);
}

/* Writes rubbish where a rank can write. */
static void be_evil(struct sim *s, struct job *j, uint32_t r)
{
    struct rank *k = &j->ranks[r];
    struct sim_part *p = &j->job.parts[node_of(j, r)];
    uint32_t c = (uint32_t)sim_draw(s, s->nodes[node_of(j, r)].n_nics);
    struct ring_producer *up = &k->rings.up[c];
    uint8_t *slots = (uint8_t *)up->slots;
    struct bell *bell = segment_channel_bell(p->segment, &p->layout, c);

    _Atomic uint8_t *closed = segment_closed_at(p->segment, &p->layout, c);

    atomic_store(&closed[sim_draw(s, j->job.n_world)], (uint8_t)sim_draw(s, 256));
    for (uint32_t i = 0; i < 40; i++)
        slots[sim_draw(s, (up->mask + 1) * sizeof *up->slots)] = (uint8_t)sim_draw(s, 256);
    /* A slot that is published, with fields of every kind of nonsense. */
    struct ring_slot *slot = &up->slots[up->tail & up->mask];
    slot->len = (uint32_t)sim_draw(s, sim_draw(s, 2) ? 8192 : UINT32_MAX);
    slot->data_line = (uint16_t)sim_draw(s, 65536);
    slot->peer = (uint32_t)sim_draw(s, sim_draw(s, 2) ? JOB_WORLD : UINT32_MAX);
    atomic_store_explicit(&slot->turn, (up->tail >> up->shift) + 1, memory_order_release);
    for (uint32_t w = 0; w < 4; w++)
        atomic_fetch_or_explicit(&bell->rung[w], sim_draw(s, UINT64_MAX), memory_order_relaxed);
    atomic_store_explicit(&k->rings.down[c].shared->head, (uint32_t)sim_draw(s, UINT64_MAX),
                          memory_order_relaxed);
}

static void receive(struct sim *s, uint32_t job, uint32_t r, const struct ring_slot *slot,
                    const uint8_t *payload)
{
    struct traffic *t = s->traffic;
    uint32_t id;

    if (t->jobs[job].job.dead && t->jobs[job].ranks[r].evil)
        return;
    if (slot->len < 4)
        sim_fail(s, "job %u rank %u: message of %u bytes", job, r, slot->len);
    memcpy(&id, payload, 4);
    if (id >= t->n_msgs) {
        for (uint32_t k = 0; k < t->jobs[job].job.n_world; k++)
            if (t->jobs[job].ranks[k].evil)
                return; /* what an evil rank of the same job sent */
        sim_fail(s, "job %u rank %u: message %u was never sent", job, r, id);
    }
    struct msg *m = &t->msgs[id];
    if (t->jobs[job].ranks[m->src].evil)
        return;
    if (m->job != job || m->dst != r)
        sim_fail(s, "message %u for job %u rank %u arrived at job %u rank %u", id, m->job, m->dst,
                 job, r);
    if (m->state != MSG_SENT)
        sim_fail(
            s, "message %u from rank %u (node %u) to rank %u (node %u) of job %u arrived twice", id,
            m->src, node_of(&t->jobs[job], m->src), m->dst, node_of(&t->jobs[job], m->dst), job);
    if (slot->len != m->len || !intact(payload, id, m->len) || slot->peer != m->src ||
        slot->tag != (int32_t)pattern(id, 1) || slot->context != pattern(id, 2) ||
        slot->order != pattern(id, 3) || slot->source != (int32_t)(id * 3) ||
        slot->kind != (id & 7) + 1 || slot->flags != (id & 1))
        sim_fail(s, "message %u of job %u arrived damaged", id, job);
    m->state = MSG_ARRIVED;
    t->n_arrived++;
    if (!t->jobs[job].job.dead)
        t->n_missing--;
}

static bool read_rings(struct sim *s, uint32_t job, uint32_t r)
{
    struct job *j = &s->traffic->jobs[job];
    struct rank *k = &j->ranks[r];
    bool any = false;

    for (uint32_t c = 0; c < s->nodes[node_of(j, r)].n_nics; c++) {
        for (int i = 0; i < 4; i++) {
            struct ring_slot *slot = ring_peek(&k->rings.down[c]);
            if (!slot)
                break;
            const void *payload = ring_payload(&k->rings.down[c], slot, slot->len, slot->data_line);
            if (!payload)
                sim_fail(s, "job %u rank %u: payload outside of the down ring", job, r);
            uint32_t len = slot->len;
            receive(s, job, r, slot, payload);
            ring_advance(&k->rings.down[c], len);
            any = true;
        }
    }
    return any;
}

static bool send(struct sim *s, uint32_t job, uint32_t r)
{
    struct traffic *t = s->traffic;
    struct job *j = &t->jobs[job];
    struct rank *k = &j->ranks[r];
    uint32_t node = node_of(j, r);
    struct sim_node *n = &s->nodes[node];
    uint32_t dst = (uint32_t)sim_draw(s, j->job.n_world), c = 0;

    if (node_of(j, dst) == node) {
        c = (uint32_t)sim_draw(s, n->n_nics);
    } else {
        const struct hop_entry *e = &n->hops->entries[cluster_slot(node, node_of(j, dst))];
        hop_word way = sim_draw(s, 2) ? atomic_load_explicit(&e->quick, memory_order_relaxed)
                                      : atomic_load_explicit(&e->wide[sim_draw(s, HOP_MAX_WIDE)],
                                                             memory_order_relaxed);
        if (way == HOP_NONE)
            return false;
        c = hop_channel(way);
        /* Now and then a rank does not see that its destination is closed, or does not care. */
        const struct sim_part *p = &j->job.parts[node];
        if (atomic_load(&segment_closed_at(p->segment, &p->layout, c)[dst]) != 0 &&
            sim_draw(s, 16) != 0)
            return false;
    }
    static const uint32_t limits[] = {28, 200, 2000, SIM_PACKET - 4};
    uint32_t len = 4 + (uint32_t)sim_draw(s, 1 + limits[sim_draw(s, 4)]);
    void *payload;
    struct ring_slot *slot = ring_claim(&k->rings.up[c], len, &payload);
    if (!slot)
        return false;
    uint32_t id = t->n_msgs;
    if (id == MESSAGES)
        sim_fail(s, "too many messages");
    fill(payload, id, len);
    slot->kind = (uint8_t)((id & 7) + 1);
    slot->flags = (uint8_t)(id & 1);
    slot->context = pattern(id, 2);
    slot->source = (int32_t)(id * 3);
    slot->tag = (int32_t)pattern(id, 1);
    slot->peer = dst;
    slot->order = pattern(id, 3);
    ring_publish(&k->rings.up[c]);
    t->msgs[t->n_msgs++] = (struct msg){
        .state = MSG_SENT, .job = (uint8_t)job, .src = (uint8_t)r, .dst = (uint8_t)dst, .len = len};
    t->n_missing++;
    k->to_send--;
    k->send_ns = s->now_ns + sim_draw(s, t->gap_ns);
    return true;
}

bool traffic_step(struct sim *s)
{
    struct traffic *t = s->traffic;
    uint32_t job = (uint32_t)sim_draw(s, t->n_jobs);
    struct job *j = &t->jobs[job];
    uint32_t r = (uint32_t)sim_draw(s, j->job.n_world);
    struct rank *k = &j->ranks[r];
    struct sim_part *p = &j->job.parts[node_of(j, r)];
    bool any = false;

    /* Ranks may run before and after their channels know of the job, as long as the segment is
     * there. */
    if (!p->exists)
        return false;
    if (k->evil) {
        if (sim_draw(s, 20) == 0 && p->attached && !p->ending)
            be_evil(s, j, r);
        return false;
    }
    if (s->now_ns >= k->lazy_ns)
        any |= read_rings(s, job, r);
    if (!j->job.dead && !t->finishing && k->to_send > 0 && s->now_ns >= k->send_ns)
        any |= send(s, job, r);
    return any;
}

uint64_t traffic_next_ns(const struct sim *s)
{
    /* Ranks may have something to do at any time. */
    return s->now_ns + 5 * CLOCK_NS_PER_MS;
}

void traffic_on_event(struct sim *s, uint32_t node, const struct cmd_event *e)
{
    struct traffic *t = s->traffic;

    for (uint32_t k = 0; k < t->n_jobs; k++) {
        struct job *j = &t->jobs[k];
        switch ((enum event_type)e->type) {
        case EVENT_JOB_DETACHED:
            if (j->job.id == e->job && sim_job_on_detached(&j->job, node))
                close_rings(j, node);
            break;
        case EVENT_RANK_DETACHED:
            if (j->job.id == e->job && j->n_detaching[node] > 0 && --j->n_detaching[node] == 0)
                detach(s, j, node);
            break;
        case EVENT_UNREACHABLE:
            /* As control does: a job that spans both nodes is over. */
            if (j->job.parts[node].n_local && j->job.parts[cluster_node_at(node, e->slot)].n_local)
                end_job(s, k, "a node is unreachable");
            break;
        case EVENT_RESTARTED:
            if (j->job.parts[node].n_local &&
                j->job.parts[cluster_node_at(node, e->slot)].n_local && !j->job.dead &&
                e->value > 0)
                sim_say(s, "node %u found node %u restarted", node, cluster_node_at(node, e->slot));
            break;
        case EVENT_POISONED:
            if (j->job.id == e->job) {
                if (!j->ranks[e->rank].evil)
                    sim_fail(s, "ring of honest rank %u of job %u is said to hold rubbish: %s",
                             e->rank, k, e->text);
                end_job(s, k, e->text);
            }
            break;
        case EVENT_BACKLOG_OVERFLOW:
            if (j->job.id == e->job)
                sim_say(s, "rank %u of job %u does not drain", e->rank, k);
            break;
        default:
            break;
        }
    }
    if (e->type == EVENT_FAILED)
        sim_fail(s, "node %u: endpoint lost", node);
}

void traffic_event(struct sim *s, const struct sim_event *e)
{
    struct traffic *t = s->traffic;

    switch (e->kind) {
    case SIM_JOB_ATTACH:
        attach(s, &t->jobs[e->b], e->a);
        break;
    case SIM_JOB_END:
        detach(s, &t->jobs[e->b], e->a);
        break;
    case SIM_LAZY:
        sim_say(s, "rank %u of job %u does not read for a while", e->b, e->a);
        t->jobs[e->a].ranks[e->b].lazy_ns = s->now_ns + sim_draw(s, 3000000000ull);
        break;
    case SIM_EVIL:
        if (t->jobs[e->a].job.dead)
            break;
        sim_say(s, "rank %u of job %u turns evil", e->b, e->a);
        t->jobs[e->a].ranks[e->b].evil = true;
        end_job(s, e->a, "evil rank");
        break;
    default:
        break;
    }
}

void traffic_node_died(struct sim *s, uint32_t node)
{
    struct traffic *t = s->traffic;

    for (uint32_t k = 0; k < t->n_jobs; k++) {
        struct job *j = &t->jobs[k];
        if (j->job.parts[node].n_local)
            end_job(s, k, "node died");
        /* Its memory goes with the node. The views must be freed before the channels. */
        if (j->job.parts[node].exists)
            free_part(j, node);
    }
}

void traffic_node_started(struct sim *s, uint32_t node)
{
    (void)node;
    if (!s->traffic->finishing)
        make_job(s);
}

bool traffic_done(const struct sim *s)
{
    const struct traffic *t = s->traffic;

    if (t->n_missing > 0)
        return false;
    for (uint32_t k = 0; k < t->n_jobs; k++)
        for (uint32_t r = 0; r < t->jobs[k].job.n_world && !t->jobs[k].job.dead; r++)
            if (t->jobs[k].ranks[r].to_send > 0)
                return false;
    return true;
}

void traffic_finish(struct sim *s)
{
    struct traffic *t = s->traffic;

    t->finishing = true;
    for (uint32_t k = 0; k < t->n_jobs; k++) {
        struct job *j = &t->jobs[k];
        for (uint32_t i = 0; i < s->n_nodes; i++) {
            struct sim_part *p = &j->job.parts[i];
            if (!p->exists || p->ending || !p->attached || j->job.dead)
                continue;
            j->n_detaching[i] = p->n_local * s->nodes[i].n_nics;
            for (uint32_t r = 0; r < j->job.n_world; r++)
                if (node_of(j, r) == i)
                    sim_job_detach_rank(s, &j->job, r, false);
        }
    }
}

bool traffic_gone(const struct sim *s)
{
    for (uint32_t k = 0; k < s->traffic->n_jobs; k++)
        for (uint32_t i = 0; i < s->n_nodes; i++)
            if (s->traffic->jobs[k].job.parts[i].exists)
                return false;
    return true;
}

void traffic_report(const struct sim *s)
{
    const struct traffic *t = s->traffic;
    uint32_t shown = 0;

    fprintf(stderr, "%u messages sent, %llu arrived, %u missing\n", t->n_msgs,
            (unsigned long long)t->n_arrived, t->n_missing);
    for (uint32_t m = 0; m < t->n_msgs && shown < 10; m++) {
        const struct msg *x = &t->msgs[m];
        if (x->state != MSG_SENT || t->jobs[x->job].job.dead)
            continue;
        shown++;
        fprintf(stderr,
                "missing: message %u of job %u, rank %u (node %u) to rank %u (node %u), %u bytes\n",
                m, x->job, x->src, node_of(&t->jobs[x->job], x->src), x->dst,
                node_of(&t->jobs[x->job], x->dst), x->len);
    }
    cluster_report(s);
}
