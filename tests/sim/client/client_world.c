/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/client/client_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "proto/segment.h"
#include "tests/sim/client/client_process.h"
#include "tests/sim/client/client_program.h"

#define WORLD_JOBS 6u
/* By the simulation's clock: faults, and every back-off there is, are over by then. */
#define SETTLE_NS (60 * CLOCK_NS_PER_S)

struct traffic {
    struct world_job jobs[WORLD_JOBS];
    uint32_t n_jobs;
    struct rank *here;
    uint64_t duration_ns;
    uint64_t idle_ns; /* nobody can run before, unless woken */
    bool finishing;
};

/* ---- what the ranks ask ---- */

static struct traffic *world;

struct rank *world_here(void)
{
    return world->here;
}

void world_fail(const char *fmt, ...)
{
    const struct rank *k = world->here;
    char text[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    sim_fail(k->in->sim, "job %u rank %u: %s", k->in->idx, k->world, text);
}

void world_say(const char *fmt, ...)
{
    struct rank *k = world->here;
    va_list args;

    va_start(args, fmt);
    vsnprintf(k->doing, sizeof k->doing, fmt, args);
    va_end(args);
}

void world_leave(struct rank *k)
{
    k->n_detaching = world_node(k)->n_nics;
    sim_job_detach_rank(k->in->sim, &k->in->job, k->world, false);
    while (k->n_detaching > 0)
        process_pause(10000 + sim_draw(k->in->sim, 100000));
}

bool world_is_settled(struct rank *k)
{
    struct world_job *w = k->in;
    const char *why = NULL;
    uint32_t at = 0, with = 0;

    for (uint32_t a = 0; a < w->job.n_world && !w->settled; a++) {
        const struct rank_balance *x = &w->ranks[a].balance;
        if (!x->settled)
            return false;
        if (x->open)
            why = x->open, at = a;
        for (uint32_t b = 0; b < w->job.n_world; b++)
            if (x->out[b] != w->ranks[b].balance.owed[a])
                why = "allowance", at = a, with = b;
    }
    if (w->settle_ns == 0)
        w->settle_ns = w->sim->now_ns;
    if (why && w->sim->now_ns - w->settle_ns > SETTLE_NS)
        sim_fail(w->sim, "job %u does not settle: rank %u (with %u): %s; out %llu, owed %llu",
                 w->idx, at, with, why, (unsigned long long)w->ranks[at].balance.out[with],
                 (unsigned long long)w->ranks[with].balance.owed[at]);
    w->settled |= why == NULL;
    return w->settled;
}

/* ---- life of a job ---- */

static void run_program(void *arg)
{
    struct rank *k = arg;

    program_main(k);
    process_end_thread();
    k->finished = true;
    k->in->n_running--;
}

static void draw_shape(struct sim *s, struct segment_shape *shape)
{
    *shape = (struct segment_shape){
        .board_records = 64u << sim_draw(s, 4),
        .n_vcis = 1 + (uint32_t)sim_draw(s, 2),
        .local = {8u << sim_draw(s, 5), 4096u << sim_draw(s, 6)},
        .up = {8u << sim_draw(s, 5), 16384u << sim_draw(s, 5)},
        .down = {16u << sim_draw(s, 6), 65536u << sim_draw(s, 6)},
        .cell_bytes = sim_draw(s, 3) ? 4096u << sim_draw(s, 5) : 0,
    };
}

static void start_ranks(struct sim *s, struct world_job *w, uint32_t node)
{
    for (uint32_t r = 0; r < w->job.n_world; r++) {
        struct rank *k = &w->ranks[r];
        if (w->job.places[r].node != node)
            continue;
        k->process = process_new(s, (w->idx + 1) * 100 + r, run_program, k);
        k->process->may_read = w->may_read;
        k->process->until_ns = s->now_ns + sim_draw(s, sim_draw(s, 2) ? 100000 : 50000000);
        atomic_store_explicit(&segment_rank_at(w->job.parts[node].segment,
                                               &w->job.parts[node].layout, w->job.places[r].local)
                                   ->pid,
                              (int32_t)k->process->pid, memory_order_relaxed);
    }
}

static void make_job(struct sim *s)
{
    struct traffic *t = s->traffic;

    if (t->n_jobs == WORLD_JOBS)
        return;
    struct world_job *w = &t->jobs[t->n_jobs];
    struct sim_job *j = &w->job;
    struct segment_shape shape;
    w->idx = t->n_jobs++;
    w->sim = s;
    j->id = 1 + sim_draw(s, UINT64_MAX - 1);
    w->seed = sim_draw(s, UINT64_MAX);
    w->n_rounds = 1 + (uint32_t)sim_draw(s, 8);
    w->may_read = sim_draw(s, 2);
    sim_job_place(s, j);
    w->n_running = j->n_world;
    for (uint32_t r = 0; r < j->n_world; r++)
        w->ranks[r] = (struct rank){.in = w, .world = r};
    /* Ring sizes are the node's, the exchange is everybody's. */
    draw_shape(s, &shape);
    uint32_t wait_mode = sim_draw(s, 2) ? WAIT_ADAPTIVE : WAIT_EVENT;
    for (uint32_t k = 0; k < j->n_nodes; k++)
        j->dead |= !s->nodes[j->nodes[k]].alive;
    for (uint32_t k = 0; k < j->n_nodes && !j->dead; k++) {
        sim_job_part_make(s, j, j->nodes[k], &shape);
        struct segment_header *h = j->parts[j->nodes[k]].segment;
        atomic_store_explicit(&h->wait_mode, wait_mode, memory_order_relaxed);
        cluster_schedule(s, s->now_ns + sim_draw(s, sim_draw(s, 2) ? 100000 : 100000000),
                         SIM_JOB_ATTACH, j->nodes[k], w->idx);
    }
    w->over = j->dead;
    sim_say(s, "job %u with %u ranks on %u nodes, %u rounds, %s, memory %s%s", w->idx, j->n_world,
            j->n_nodes, w->n_rounds, wait_mode == WAIT_EVENT ? "event" : "adaptive",
            w->may_read ? "readable" : "private", j->dead ? " (a node is down)" : "");
}

/* The ranks of a node die, all of them or one. */
static void kill_ranks(struct world_job *w, uint32_t node)
{
    for (uint32_t r = 0; r < w->job.n_world; r++) {
        if (w->job.places[r].node != node)
            continue;
        process_free(w->ranks[r].process);
        w->ranks[r].process = NULL;
    }
}

/* The job is over because of a fault: every node lets go of it at its own time. */
static void end_job(struct sim *s, struct world_job *w, const char *why)
{
    struct sim_job *j = &w->job;

    if (j->dead || w->over)
        return;
    sim_say(s, "job %u ends: %s", w->idx, why);
    j->dead = w->over = true;
    for (uint32_t k = 0; k < j->n_nodes; k++)
        if (j->parts[j->nodes[k]].exists)
            cluster_schedule(s, s->now_ns + sim_draw(s, 300000000), SIM_JOB_END, j->nodes[k],
                             w->idx);
}

static void end_part(struct sim *s, struct world_job *w, uint32_t node)
{
    struct sim_part *p = &w->job.parts[node];

    if (!p->exists || p->ending)
        return;
    kill_ranks(w, node);
    if (p->attached)
        sim_job_detach(s, &w->job, node);
    else
        sim_job_part_free(p);
}

/* ---- traffic.h ---- */

void traffic_build(struct sim *s, uint64_t duration_ns)
{
    struct traffic *t = calloc(1, sizeof *t);
    uint32_t n = 1 + (uint32_t)sim_draw(s, 3);

    s->traffic = world = t;
    if (!t)
        sim_fail(s, "memory");
    process_use_clock(s);
    t->duration_ns = duration_ns;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        atomic_store_explicit(&s->nodes[i].hops->crowded, (uint32_t)sim_draw(s, 2),
                              memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++)
        make_job(s);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_world = t->jobs[i].job.n_world;
        for (uint64_t k = sim_draw(s, 3); k > 0; k--)
            cluster_schedule(s, s->now_ns + sim_draw(s, duration_ns), SIM_LAZY, i,
                             (uint32_t)sim_draw(s, n_world));
        if (sim_draw(s, 12) == 0)
            cluster_schedule(s, s->now_ns + sim_draw(s, 2 * duration_ns), SIM_EVIL, i,
                             (uint32_t)sim_draw(s, n_world));
    }
}

void traffic_free(struct sim *s)
{
    struct traffic *t = s->traffic;

    for (uint32_t k = 0; k < t->n_jobs; k++) {
        for (uint32_t r = 0; r < t->jobs[k].job.n_world; r++)
            process_free(t->jobs[k].ranks[r].process);
        for (uint32_t i = 0; i < s->n_nodes; i++)
            if (t->jobs[k].job.parts[i].exists)
                sim_job_part_free(&t->jobs[k].job.parts[i]);
    }
    free(t);
}

static void finish_job(struct sim *s, struct world_job *w)
{
    w->over = true;
    sim_say(s, "job %u is done", w->idx);
    for (uint32_t k = 0; k < w->job.n_nodes; k++)
        cluster_schedule(s, s->now_ns + sim_draw(s, 10000000), SIM_JOB_END, w->job.nodes[k],
                         w->idx);
}

uint64_t traffic_next_ns(const struct sim *s)
{
    const struct traffic *t = s->traffic;
    uint64_t due = UINT64_MAX;

    for (uint32_t i = 0; i < t->n_jobs; i++) {
        for (uint32_t r = 0; r < t->jobs[i].job.n_world; r++) {
            const struct process *p = t->jobs[i].ranks[r].process;
            uint64_t at = p ? process_next_ns(p) : UINT64_MAX;
            if (at < due)
                due = at;
        }
    }
    return due;
}

/* Most turns find everybody asleep. */
static bool is_idle(struct sim *s)
{
    struct traffic *t = s->traffic;

    if (process_news || s->now_ns >= t->idle_ns) {
        process_news = false;
        t->idle_ns = traffic_next_ns(s);
    }
    return s->now_ns < t->idle_ns;
}

bool traffic_step(struct sim *s)
{
    struct traffic *t = s->traffic;

    if (is_idle(s))
        return false;
    struct world_job *w = &t->jobs[sim_draw(s, t->n_jobs)];
    uint32_t first = (uint32_t)sim_draw(s, w->job.n_world);

    /* The next one that can run, from a random one on. */
    for (uint32_t i = 0; i < w->job.n_world; i++) {
        struct rank *k = &w->ranks[(first + i) % w->job.n_world];
        if (!k->process || !process_can_run(k->process, s->now_ns))
            continue;
        t->here = k;
        t->idle_ns = 0;
        bool ended = process_run(k->process);
        t->here = NULL;
        if (ended) {
            process_free(k->process);
            k->process = NULL;
            if (w->n_running == 0 && !w->over)
                finish_job(s, w);
        }
        return ended;
    }
    return false;
}

void traffic_on_event(struct sim *s, uint32_t node, const struct cmd_event *e)
{
    struct traffic *t = s->traffic;

    for (uint32_t i = 0; i < t->n_jobs; i++) {
        struct world_job *w = &t->jobs[i];
        struct sim_job *j = &w->job;
        switch ((enum event_type)e->type) {
        case EVENT_JOB_DETACHED:
            if (j->id == e->job)
                sim_job_on_detached(j, node);
            break;
        case EVENT_RANK_DETACHED:
            for (uint32_t r = 0; r < j->n_world && j->id == e->job; r++)
                if (j->places[r].node == node && j->places[r].local == e->rank &&
                    w->ranks[r].n_detaching > 0)
                    w->ranks[r].n_detaching--;
            break;
        case EVENT_UNREACHABLE:
            /* As control does: a job that spans both nodes is over. */
            if (j->parts[node].n_local && j->parts[cluster_node_at(node, e->slot)].n_local)
                end_job(s, w, "a node is unreachable");
            break;
        case EVENT_POISONED:
            if (j->id == e->job)
                sim_fail(s, "the ring of rank %u of job %u is said to hold rubbish: %s", e->rank, i,
                         e->text);
            break;
        case EVENT_BACKLOG_OVERFLOW:
            if (j->id == e->job)
                sim_say(s, "rank %u of job %u does not drain", e->rank, i);
            break;
        default:
            break;
        }
    }
    if (e->type == EVENT_FAILED)
        sim_fail(s, "node %u: endpoint lost", node);
}

static void rank_dies(struct sim *s, struct world_job *w, uint32_t rank)
{
    struct rank *k = &w->ranks[rank];

    if (!k->process || w->over)
        return;
    sim_say(s, "rank %u of job %u dies", rank, w->idx);
    process_free(k->process);
    k->process = NULL;
    k->n_detaching = 0;
    sim_job_detach_rank(s, &w->job, rank, true);
    end_job(s, w, "a rank died");
}

void traffic_event(struct sim *s, const struct sim_event *e)
{
    struct traffic *t = s->traffic;
    struct sim_part *p;

    switch (e->kind) {
    case SIM_JOB_ATTACH:
        p = &t->jobs[e->b].job.parts[e->a];
        if (!p->exists || p->ending || t->jobs[e->b].over)
            break;
        sim_job_attach(s, &t->jobs[e->b].job, e->a);
        start_ranks(s, &t->jobs[e->b], e->a);
        break;
    case SIM_JOB_END:
        end_part(s, &t->jobs[e->b], e->a);
        break;
    case SIM_LAZY:
        if (t->jobs[e->a].ranks[e->b].process) {
            struct process *lazy = t->jobs[e->a].ranks[e->b].process;
            sim_say(s, "rank %u of job %u does nothing for a while", e->b, e->a);
            lazy->stopped_ns = s->now_ns + sim_draw(s, 2 * CLOCK_NS_PER_S);
        }
        break;
    case SIM_EVIL:
        rank_dies(s, &t->jobs[e->a], e->b);
        break;
    default:
        break;
    }
}

void traffic_node_died(struct sim *s, uint32_t node)
{
    struct traffic *t = s->traffic;

    for (uint32_t i = 0; i < t->n_jobs; i++) {
        struct world_job *w = &t->jobs[i];
        struct sim_part *p = &w->job.parts[node];
        if (p->n_local)
            end_job(s, w, "a node died");
        /* Its memory goes with the node. The views must be freed before the channels. */
        if (p->exists) {
            kill_ranks(w, node);
            sim_job_part_free(p);
        }
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
    for (uint32_t i = 0; i < s->traffic->n_jobs; i++)
        if (!s->traffic->jobs[i].over)
            return false;
    return true;
}

void traffic_finish(struct sim *s)
{
    s->traffic->finishing = true;
}

bool traffic_gone(const struct sim *s)
{
    for (uint32_t k = 0; k < s->traffic->n_jobs; k++)
        for (uint32_t i = 0; i < s->n_nodes; i++)
            if (s->traffic->jobs[k].job.parts[i].exists)
                return false;
    return true;
}

static void report_board(const struct world_job *w, uint32_t r)
{
    const struct sim_place *at = &w->job.places[r];
    const struct sim_part *part = &w->job.parts[at->node];
    static const char *const states[] = {"free",    "posted",         "unexpected",
                                         "pending", "rendezvous out", "rendezvous in"};

    for (uint32_t i = 0; part->exists && i < part->layout.shape.board_records; i++) {
        const struct queue_record *q =
            segment_board_at(part->segment, &part->layout, at->local) + i;
        uint32_t state = atomic_load(&q->state);
        if (state != QUEUE_FREE && state < QUEUE_N_STATES)
            fprintf(stderr, "  %s: rank %d (world %d), tag %d, context %u, %llu of %llu bytes\n",
                    states[state], q->peer, q->peer_world, q->tag, q->context,
                    (unsigned long long)q->done_bytes, (unsigned long long)q->bytes);
    }
}

static void report_rank(const struct world_job *w, uint32_t r)
{
    const struct rank *k = &w->ranks[r];

    fprintf(stderr, "job %u rank %u (node %u): %s%s\n", w->idx, r, w->job.places[r].node,
            k->finished  ? "left"
            : k->process ? k->doing
                         : "not started",
            k->process && k->process->word ? ", sleeps" : "");
    report_board(w, r);
    if (k->process) {
        struct client *before = client_enter(k->process->client);
        settle_report();
        client_enter(before);
    }
}

void traffic_report(const struct sim *s)
{
    const struct traffic *t = s->traffic;

    for (uint32_t i = 0; i < t->n_jobs; i++)
        for (uint32_t r = 0; r < t->jobs[i].job.n_world && !t->jobs[i].over; r++)
            report_rank(&t->jobs[i], r);
    cluster_report(s);
}
