/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "proto/segment.h"

#define JOBS     6u
#define WORLD    16u
#define LOCAL    4u
#define MESSAGES 40000u

enum msg_state { MSG_SENT = 1, MSG_ARRIVED };

struct msg {
    uint8_t state;
    uint8_t job, src, dst;
    uint32_t len;
};

struct rank {
    uint32_t node, local;
    uint32_t to_send;
    uint64_t lazy_ns; /* does not read before */
    uint64_t send_ns; /* does not send before */
    bool evil;
    struct ring_producer up[SIM_CHANNELS];
    struct ring_consumer down[SIM_CHANNELS];
    uint32_t *data_end;
};

/* A job's part on one node. */
struct part {
    bool exists, attached, ending, finished;
    void *segment;
    struct segment_layout layout;
    uint32_t n_local;
    uint32_t waits; /* answers to come */
    struct channel_job *views[SIM_CHANNELS];
};

struct job {
    uint64_t id;
    bool used, dead; /* dead: ended by a fault; its messages may be lost */
    uint32_t n_world;
    struct rank ranks[WORLD];
    struct part parts[SIM_NODES];
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

static void free_part(struct job *j, uint32_t node, struct part *p)
{
    for (uint32_t c = 0; c < SIM_CHANNELS; c++) {
        channel_job_free(p->views[c]);
        p->views[c] = NULL;
    }
    for (uint32_t r = 0; r < j->n_world; r++) {
        if (j->ranks[r].node == node) {
            free(j->ranks[r].data_end);
            j->ranks[r].data_end = NULL;
        }
    }
    if (p->segment)
        munmap(p->segment, p->layout.total);
    *p = (struct part){.finished = true};
}

static void make_part(struct sim *s, struct job *j, uint32_t node)
{
    struct part *p = &j->parts[node];
    struct sim_node *n = &s->nodes[node];
    struct segment_shape shape = {
        .n_world = j->n_world,
        .n_nodes = s->n_nodes,
        .n_local = p->n_local,
        .n_channels = n->n_nics,
        .board_records = 64,
        .n_vcis = 1,
        .local = {4, 4096},
        .up = {8u << sim_draw(s, 3), 16384},
        .down = {8u << sim_draw(s, 3), 16384},
    };

    if (segment_shape_check(&shape) < 0)
        sim_fail(s, "segment shape");
    segment_layout(&shape, &p->layout);
    p->segment = mmap(NULL, p->layout.total, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->segment == MAP_FAILED)
        sim_fail(s, "memory");
    p->exists = true;
    for (uint32_t r = 0; r < j->n_world; r++) {
        struct rank *k = &j->ranks[r];
        if (k->node != node)
            continue;
        k->data_end = calloc((size_t)n->n_nics * shape.up.n_slots, sizeof *k->data_end);
        for (uint32_t c = 0; c < n->n_nics; c++) {
            struct bell_ref bell = {.bell = segment_channel_bell(p->segment, &p->layout, c),
                                    .bit = k->local,
                                    .event_fd = -1};
            ring_producer_init(&k->up[c], segment_up_ring(p->segment, &p->layout, k->local, c),
                               &shape.up, k->data_end + (size_t)c * shape.up.n_slots, &bell);
            ring_consumer_init(&k->down[c], segment_down_ring(p->segment, &p->layout, k->local, c),
                               &shape.down);
        }
    }
}

static void attach(struct sim *s, uint32_t job, uint32_t node)
{
    struct job *j = &s->traffic->jobs[job];
    struct part *p = &j->parts[node];
    struct segment_world world[WORLD];
    struct segment_node nodes[SIM_NODES];

    if (!p->exists || p->attached || p->ending || j->dead)
        return;
    memset(nodes, 0, sizeof nodes);
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        nodes[i].node_id = s->nodes[i].id;
        nodes[i].slot = cluster_slot(node, i);
    }
    for (uint32_t r = 0; r < j->n_world; r++)
        world[r] = (struct segment_world){.node = j->ranks[r].node, .local = j->ranks[r].local};
    for (uint32_t c = 0; c < s->nodes[node].n_nics; c++) {
        struct cmd_job config = {.job = j->id,
                                 .segment = p->segment,
                                 .layout = &p->layout,
                                 .world = world,
                                 .nodes = nodes,
                                 .event_fd = -1,
                                 .backlog_bytes = 200000};
        struct channel *ch = s->nodes[node].nics[c].ch;
        if (channel_job_new(ch, &config, &p->views[c]) < 0)
            sim_fail(s, "channel_job_new");
        struct cmd cmd = {.type = CMD_ATTACH_JOB, .job = p->views[c]};
        cluster_command(s, ch, &cmd);
    }
    p->attached = true;
}

static void make_job(struct sim *s)
{
    struct traffic *t = s->traffic;

    if (t->n_jobs == JOBS)
        return;
    uint32_t job = t->n_jobs++;
    struct job *j = &t->jobs[job];
    j->id = 1 + sim_draw(s, UINT64_MAX - 1);
    j->used = true;
    j->n_world = 2 + (uint32_t)sim_draw(s, WORLD - 2);
    for (uint32_t r = 0; r < j->n_world; r++) {
        struct rank *k = &j->ranks[r];
        do
            k->node = (uint32_t)sim_draw(s, s->n_nodes);
        while (j->parts[k->node].n_local == LOCAL && r < LOCAL * s->n_nodes);
        if (j->parts[k->node].n_local == LOCAL) {
            j->n_world = r;
            break;
        }
        k->local = j->parts[k->node].n_local++;
        k->to_send = t->per_rank;
    }
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        if (j->parts[i].n_local == 0)
            continue;
        if (!s->nodes[i].alive)
            j->dead = true;
        else
            make_part(s, j, i);
    }
    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (j->parts[i].exists)
            cluster_schedule(s, s->now_ns + sim_draw(s, sim_draw(s, 2) ? 100000 : 100000000),
                             j->dead ? SIM_JOB_END : SIM_JOB_ATTACH, i, job);
    sim_say(s, "job %u with %u ranks%s", job, j->n_world, j->dead ? " (a node is down)" : "");
}

/* The job is over because of a fault: every node lets go of it at its own time. */
static void end_job(struct sim *s, uint32_t job, const char *why)
{
    struct traffic *t = s->traffic;
    struct job *j = &t->jobs[job];

    if (j->dead)
        return;
    sim_say(s, "job %u ends: %s", job, why);
    j->dead = true;
    for (uint32_t m = 0; m < t->n_msgs; m++)
        if (t->msgs[m].job == job && t->msgs[m].state == MSG_SENT)
            t->n_missing--;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (j->parts[i].exists)
            cluster_schedule(s, s->now_ns + sim_draw(s, 300000000), SIM_JOB_END, i, job);
}

static void detach(struct sim *s, uint32_t job, uint32_t node)
{
    struct job *j = &s->traffic->jobs[job];
    struct part *p = &j->parts[node];

    if (!p->exists || p->ending)
        return;
    if (!p->attached) {
        free_part(j, node, p);
        return;
    }
    p->ending = true;
    for (uint32_t c = 0; c < s->nodes[node].n_nics; c++) {
        struct cmd cmd = {.type = CMD_DETACH_JOB, .job = p->views[c]};
        cluster_command(s, s->nodes[node].nics[c].ch, &cmd);
        p->waits++;
    }
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
                             (uint32_t)sim_draw(s, t->jobs[i].n_world));
        if (sim_draw(s, 8) == 0)
            cluster_schedule(s, s->now_ns + sim_draw(s, duration_ns), SIM_EVIL, i,
                             (uint32_t)sim_draw(s, t->jobs[i].n_world));
    }
}

void traffic_free(struct sim *s)
{
    for (uint32_t k = 0; k < s->traffic->n_jobs; k++)
        for (uint32_t i = 0; i < s->n_nodes; i++)
            if (s->traffic->jobs[k].parts[i].exists)
                free_part(&s->traffic->jobs[k], i, &s->traffic->jobs[k].parts[i]);
    free(s->traffic->msgs);
    free(s->traffic);
}

/* Writes rubbish where a rank can write. */
static void be_evil(struct sim *s, struct job *j, struct rank *k)
{
    struct part *p = &j->parts[k->node];
    uint32_t c = (uint32_t)sim_draw(s, s->nodes[k->node].n_nics);
    struct ring_producer *up = &k->up[c];
    uint8_t *slots = (uint8_t *)up->slots;
    struct bell *bell = segment_channel_bell(p->segment, &p->layout, c);

    _Atomic uint8_t *closed = segment_closed_at(p->segment, &p->layout, c);

    atomic_store(&closed[sim_draw(s, j->n_world)], (uint8_t)sim_draw(s, 256));
    for (uint32_t i = 0; i < 40; i++)
        slots[sim_draw(s, (up->mask + 1) * sizeof *up->slots)] = (uint8_t)sim_draw(s, 256);
    /* A slot that is published, with fields of every kind of nonsense. */
    struct ring_slot *slot = &up->slots[up->tail & up->mask];
    slot->len = (uint32_t)sim_draw(s, sim_draw(s, 2) ? 8192 : UINT32_MAX);
    slot->data_line = (uint16_t)sim_draw(s, 65536);
    slot->peer = (uint32_t)sim_draw(s, sim_draw(s, 2) ? WORLD : UINT32_MAX);
    atomic_store_explicit(&slot->turn, (up->tail >> up->shift) + 1, memory_order_release);
    for (uint32_t w = 0; w < 4; w++)
        atomic_fetch_or_explicit(&bell->rung[w], sim_draw(s, UINT64_MAX), memory_order_relaxed);
    atomic_store_explicit(&k->down[c].shared->head, (uint32_t)sim_draw(s, UINT64_MAX),
                          memory_order_relaxed);
}

static void receive(struct sim *s, uint32_t job, uint32_t r, const struct ring_slot *slot,
                    const uint8_t *payload)
{
    struct traffic *t = s->traffic;
    uint32_t id;

    if (t->jobs[job].dead && t->jobs[job].ranks[r].evil)
        return;
    if (slot->len < 4)
        sim_fail(s, "job %u rank %u: message of %u bytes", job, r, slot->len);
    memcpy(&id, payload, 4);
    if (id >= t->n_msgs) {
        for (uint32_t k = 0; k < t->jobs[job].n_world; k++)
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
            m->src, t->jobs[job].ranks[m->src].node, m->dst, t->jobs[job].ranks[m->dst].node, job);
    if (slot->len != m->len || !intact(payload, id, m->len) || slot->peer != m->src ||
        slot->tag != (int32_t)pattern(id, 1) || slot->context != pattern(id, 2) ||
        slot->order != pattern(id, 3) || slot->source != (int32_t)(id * 3) ||
        slot->kind != (id & 7) + 1 || slot->flags != (id & 1))
        sim_fail(s, "message %u of job %u arrived damaged", id, job);
    m->state = MSG_ARRIVED;
    t->n_arrived++;
    if (!t->jobs[job].dead)
        t->n_missing--;
}

static bool read_rings(struct sim *s, uint32_t job, uint32_t r)
{
    struct rank *k = &s->traffic->jobs[job].ranks[r];
    bool any = false;

    for (uint32_t c = 0; c < s->nodes[k->node].n_nics; c++) {
        for (int i = 0; i < 4; i++) {
            struct ring_slot *slot = ring_peek(&k->down[c]);
            if (!slot)
                break;
            const void *payload = ring_payload(&k->down[c], slot, slot->len, slot->data_line);
            if (!payload)
                sim_fail(s, "job %u rank %u: payload outside of the down ring", job, r);
            uint32_t len = slot->len;
            receive(s, job, r, slot, payload);
            ring_advance(&k->down[c], len);
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
    struct sim_node *n = &s->nodes[k->node];
    uint32_t dst = (uint32_t)sim_draw(s, j->n_world), c = 0;

    if (j->ranks[dst].node == k->node) {
        c = (uint32_t)sim_draw(s, n->n_nics);
    } else {
        const struct hop_entry *e = &n->hops->entries[cluster_slot(k->node, j->ranks[dst].node)];
        hop_word way = sim_draw(s, 2) ? atomic_load_explicit(&e->quick, memory_order_relaxed)
                                      : atomic_load_explicit(&e->wide[sim_draw(s, HOP_MAX_WIDE)],
                                                             memory_order_relaxed);
        if (way == HOP_NONE)
            return false;
        c = hop_channel(way);
        /* Now and then a rank does not see that its destination is closed, or does not care. */
        const struct part *p = &j->parts[k->node];
        if (atomic_load(&segment_closed_at(p->segment, &p->layout, c)[dst]) != 0 &&
            sim_draw(s, 16) != 0)
            return false;
    }
    static const uint32_t limits[] = {28, 200, 2000, SIM_PACKET - 4};
    uint32_t len = 4 + (uint32_t)sim_draw(s, 1 + limits[sim_draw(s, 4)]);
    void *payload;
    struct ring_slot *slot = ring_claim(&k->up[c], len, &payload);
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
    ring_publish(&k->up[c]);
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
    uint32_t r = (uint32_t)sim_draw(s, j->n_world);
    struct rank *k = &j->ranks[r];
    struct part *p = &j->parts[k->node];
    bool any = false;

    /* Ranks may run before and after their channels know of the job, as long as the segment is
     * there. */
    if (!p->exists)
        return false;
    if (k->evil) {
        if (sim_draw(s, 20) == 0 && p->attached && !p->ending)
            be_evil(s, j, k);
        return false;
    }
    if (s->now_ns >= k->lazy_ns)
        any |= read_rings(s, job, r);
    if (!j->dead && !t->finishing && k->to_send > 0 && s->now_ns >= k->send_ns)
        any |= send(s, job, r);
    return any;
}

uint64_t traffic_next_ns(const struct sim *s)
{
    /* Ranks may have something to do at any time. */
    return s->now_ns + 5 * CLOCK_NS_PER_MS;
}

static void on_event(struct sim *s, uint32_t node, const struct cmd_event *e)
{
    struct traffic *t = s->traffic;

    for (uint32_t k = 0; k < t->n_jobs; k++) {
        struct job *j = &t->jobs[k];
        struct part *p = &j->parts[node];
        switch ((enum event_type)e->type) {
        case EVENT_JOB_DETACHED:
            if (j->id == e->job && p->ending && --p->waits == 0)
                free_part(j, node, p);
            break;
        case EVENT_RANK_DETACHED:
            if (j->id == e->job && --p->waits == 0)
                detach(s, k, node);
            break;
        case EVENT_UNREACHABLE:
            /* As control does: a job that spans both nodes is over. */
            if (j->parts[node].n_local && j->parts[cluster_node_at(node, e->slot)].n_local)
                end_job(s, k, "a node is unreachable");
            break;
        case EVENT_RESTARTED:
            if (j->parts[node].n_local && j->parts[cluster_node_at(node, e->slot)].n_local &&
                !j->dead && e->value > 0)
                sim_say(s, "node %u found node %u restarted", node, cluster_node_at(node, e->slot));
            break;
        case EVENT_POISONED:
            if (j->id == e->job) {
                if (!j->ranks[e->rank].evil)
                    sim_fail(s, "ring of honest rank %u of job %u is said to hold rubbish: %s",
                             e->rank, k, e->text);
                end_job(s, k, e->text);
            }
            break;
        case EVENT_BACKLOG_OVERFLOW:
            if (j->id == e->job)
                sim_say(s, "rank %u of job %u does not drain", e->rank, k);
            break;
        default:
            break;
        }
    }
    if (e->type == EVENT_FAILED)
        sim_fail(s, "node %u: endpoint lost", node);
}

void traffic_control(struct sim *s)
{
    struct cmd_event e;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        for (uint32_t c = 0; s->nodes[i].alive && c < s->nodes[i].n_nics; c++)
            while (channel_next_event(s->nodes[i].nics[c].ch, &e))
                on_event(s, i, &e);
}

void traffic_event(struct sim *s, const struct sim_event *e)
{
    struct traffic *t = s->traffic;

    switch (e->kind) {
    case SIM_JOB_ATTACH:
        attach(s, e->b, e->a);
        break;
    case SIM_JOB_END:
        detach(s, e->b, e->a);
        break;
    case SIM_LAZY:
        sim_say(s, "rank %u of job %u does not read for a while", e->b, e->a);
        t->jobs[e->a].ranks[e->b].lazy_ns = s->now_ns + sim_draw(s, 3000000000ull);
        break;
    case SIM_EVIL:
        if (t->jobs[e->a].dead)
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
        if (j->parts[node].n_local)
            end_job(s, k, "node died");
        /* Its memory goes with the node. The views must be freed before the channels. */
        if (j->parts[node].exists)
            free_part(j, node, &j->parts[node]);
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
        for (uint32_t r = 0; r < t->jobs[k].n_world && !t->jobs[k].dead; r++)
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
            struct part *p = &j->parts[i];
            if (!p->exists || p->ending || !p->attached || j->dead)
                continue;
            for (uint32_t c = 0; c < s->nodes[i].n_nics; c++) {
                for (uint32_t l = 0; l < p->n_local; l++) {
                    struct cmd cmd = {.type = CMD_DETACH_RANK,
                                      .detach_rank = {.job = p->views[c], .local = l}};
                    cluster_command(s, s->nodes[i].nics[c].ch, &cmd);
                    p->waits++;
                }
            }
        }
    }
}

bool traffic_gone(const struct sim *s)
{
    for (uint32_t k = 0; k < s->traffic->n_jobs; k++)
        for (uint32_t i = 0; i < s->n_nodes; i++)
            if (s->traffic->jobs[k].parts[i].exists)
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
        if (x->state != MSG_SENT || t->jobs[x->job].dead)
            continue;
        shown++;
        fprintf(stderr,
                "missing: message %u of job %u, rank %u (node %u) to rank %u (node %u), %u bytes\n",
                m, x->job, x->src, t->jobs[x->job].ranks[x->src].node, x->dst,
                t->jobs[x->job].ranks[x->dst].node, x->len);
    }
    cluster_report(s);
}
