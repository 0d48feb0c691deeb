/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What jobs hold on a host: their part (memory, pipes, channels), their processes, the processes'
 * connections. A process does what its job's command line says and dies of signals, with its
 * daemon, and with its host.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/cluster.h"
#include "daemon/cluster/mail.h"
#include "daemon/jobs/job.h"
#include "tests/simcontrol/world.h"

#define WINDOW_BYTES (1u << 20)
#define CHUNK_BYTES  65536u

/* A job's part on this host; the daemon keeps a pointer to it as the job's pipes. */
struct pipes {
    struct list link;
    struct host *host;
    uint32_t incarnation;
    uint64_t job;
    bool released, output_closed;
    uint64_t sent, consumed, input;
};

/* A process; its connection is what the daemon knows of it as a client. */
struct client {
    struct list link;
    struct pipes *part;
    uint32_t local, world_rank;
    enum script script;
    bool alive, connected, culprit, ignores_term, spawned;
    uint64_t run_ns;
    uint32_t output, written;
};

static struct list *ranks_list(struct host *host, bool parts)
{
    return parts ? &host->parts : &host->processes;
}

/* The process's job, while it and its daemon live. */
static struct job *process_job(const struct client *p)
{
    const struct pipes *part = p->part;

    if (part->released || !part->host->daemon || part->host->incarnation != part->incarnation)
        return NULL;
    return jobs_find(daemon_jobs(part->host->daemon), part->job);
}

static struct jobs *process_jobs(const struct client *p)
{
    return daemon_jobs(p->part->host->daemon);
}

unsigned ranks_n_processes(const struct host *host)
{
    unsigned n = 0;

    list_foreach(it, &host->processes)
        n += list_entry(it, struct client, link)->alive;
    return n;
}

unsigned ranks_n_parts(const struct host *host)
{
    unsigned n = 0;

    list_foreach(it, &host->parts)
        n += !list_entry(it, struct pipes, link)->released;
    return n;
}

/* ---- the life of a process ---- */

static void process_report_exit(struct world *w, void *object, uint64_t status)
{
    struct client *p = object;

    /* The spawner says so also of jobs that are forgotten. */
    jobs_on_exited(process_jobs(p), p->part->job, p->world_rank, (int32_t)status, w->now_ns);
    daemon_wake(p->part->host->daemon);
}

static void process_disconnect(struct world *w, void *object, uint64_t value)
{
    struct client *p = object;
    struct job *job = process_job(p);

    (void)value;
    if (!p->connected)
        return;
    p->connected = false;
    if (job)
        job_on_disconnect(job, p->local, w->now_ns);
}

static void process_exit(struct world *w, struct client *p, int status)
{
    if (!p->alive)
        return;
    p->alive = false;
    /* The kernel closes its connection; the spawner says how it ended; in any order. */
    world_after(w, world_draw(w, 5 * CLOCK_NS_PER_MS), p->part->host, process_disconnect, p, 0);
    world_after(w, world_draw(w, 5 * CLOCK_NS_PER_MS), p->part->host, process_report_exit, p,
                (uint64_t)(uint32_t)status);
}

static void process_on_signal(struct world *w, void *object, uint64_t signal)
{
    struct client *p = object;

    if (signal == SIGKILL || !p->ignores_term)
        process_exit(w, p, (int)signal);
}

static void process_finish(struct world *w, void *object, uint64_t value)
{
    struct client *p = object;
    struct job *job = process_job(p);

    (void)value;
    if (!p->alive || !job)
        return;
    if (p->connected)
        job_on_detach(job, p->local);
    else
        process_exit(w, p, 0);
}

/* Writes, as far as its pipe takes it, then does what it came for. */
static void process_write(struct world *w, void *object, uint64_t value)
{
    static uint8_t data[CHUNK_BYTES];
    struct client *p = object;
    struct pipes *part = p->part;
    struct job *job = process_job(p);

    (void)value;
    if (!p->alive || !job || part->output_closed)
        return;
    if (p->written < p->output && part->sent - part->consumed < WINDOW_BYTES) {
        uint32_t left = p->output - p->written;
        uint32_t len = left < 2 * sizeof(uint64_t)
                           ? left
                           : (uint32_t)(sizeof(uint64_t) + world_draw(w, left - 15));
        uint64_t at = p->written;
        len = len < CHUNK_BYTES ? len : CHUNK_BYTES;
        if (left - len < sizeof at && left > len)
            len = left - (uint32_t)sizeof at < CHUNK_BYTES ? left - (uint32_t)sizeof at : len;
        memcpy(data, &at, sizeof at);
        p->written += len;
        part->sent += len;
        job_on_output(job, p->world_rank, 1, data, len, w->now_ns);
        daemon_wake(part->host->daemon);
    }
    if (p->written < p->output)
        world_after(w, world_draw(w, 10 * CLOCK_NS_PER_MS), part->host, process_write, p, 0);
    else if (p->script != SCRIPT_HANG)
        world_after(w, p->run_ns, part->host, process_finish, p, 0);
}

/* The one rank that spoils it. */
static void process_misbehave(struct world *w, void *object, uint64_t value)
{
    struct client *p = object;
    struct job *job = process_job(p);

    (void)value;
    if (!p->alive || !job)
        return;
    if (p->script == SCRIPT_CRASH)
        process_exit(w, p, SIGSEGV);
    else if (p->script == SCRIPT_ABORT && p->connected)
        job_on_abort(job, p->local, 3, "told to", w->now_ns);
    else if (p->script == SCRIPT_VANISH)
        process_disconnect(w, p, 0);
    daemon_wake(p->part->host->daemon);
}

static void process_attach(struct world *w, void *object, uint64_t value)
{
    struct client *p = object;
    struct job *job = process_job(p), *attached;
    struct attach_request req = {.version = ATTACH_VERSION, .world_rank = p->world_rank};
    struct attach_reply reply;
    uint32_t local;
    int fds[HOP_MAX_CHANNELS + 2], n_fds = 0;

    (void)value;
    if (!p->alive)
        return;
    if (!job) {
        process_exit(w, p, 1 << 8);
        return;
    }
    req.job = job->id;
    memcpy(req.key, job->key, sizeof req.key);
    if (jobs_attach(process_jobs(p), p, &req, job->uid, (pid_t)(1000 + p->world_rank), &reply, fds,
                    &n_fds, &attached, &local) != 0) {
        process_exit(w, p, 1 << 8);
        return;
    }
    if (local != p->local)
        world_fail(w, "rank %u attached as local %u, not %u", p->world_rank, local, p->local);
    p->connected = true;
}

static void process_on_spawned(struct world *w, void *object, uint64_t value)
{
    struct client *p = object;
    struct host *host = p->part->host;

    (void)value;
    if (!p->alive)
        return;
    if (world_chance(w, 1) && world_chance(w, 20)) {
        p->alive = false;
        jobs_on_spawned(process_jobs(p), p->part->job, p->world_rank, 0, "no such file", w->now_ns);
        daemon_wake(host->daemon);
        return;
    }
    jobs_on_spawned(process_jobs(p), p->part->job, p->world_rank, (int)(1000 + p->world_rank), NULL,
                    w->now_ns);
    p->spawned = true;
    if (p->script != SCRIPT_PLAIN)
        world_after(w, world_draw(w, 20 * CLOCK_NS_PER_MS), host, process_attach, p, 0);
    world_after(w, 30 * CLOCK_NS_PER_MS, host, process_write, p, 0);
    if (p->culprit)
        world_after(w, 20 * CLOCK_NS_PER_MS + p->run_ns / 2, host, process_misbehave, p, 0);
}

/* ---- what the jobs of a node ask for ---- */

static int ranks_send(void *ctx, uint32_t node_id, uint16_t type, const ProtobufCMessage *msg,
                      uint64_t now_ns)
{
    return mail_send_msg(cluster_mail(daemon_cluster(ctx)), node_id, type, msg, now_ns);
}

static int ranks_pass_on(void *ctx, uint32_t node_id, uint16_t type, const uint8_t *body,
                         uint32_t len, uint64_t now_ns)
{
    return mail_send(cluster_mail(daemon_cluster(ctx)), node_id, type, body, len, now_ns);
}

static uint32_t ranks_epoch(void *ctx, uint32_t node_id)
{
    return cluster_epoch(daemon_cluster(ctx), node_id);
}

static bool ranks_reachable(void *ctx, uint32_t node_id)
{
    return cluster_reachable(daemon_cluster(ctx), node_id);
}

static void ranks_changed(void *ctx)
{
    cluster_note_busy(daemon_cluster(ctx));
}

static int ranks_prepare(void *ctx, struct job *job, char *error, size_t error_size)
{
    struct daemon *d = ctx;
    struct world *w = daemon_world(d);
    struct host *host = daemon_host(d);

    if (world_chance(w, 1)) {
        snprintf(error, error_size, "node %s has no memory left", host->name);
        return -ENOMEM;
    }
    struct pipes *part = calloc(1, sizeof *part);
    if (!part)
        abort();
    part->host = host;
    part->incarnation = host->incarnation;
    part->job = job->id;
    list_init(&part->link);
    list_append(ranks_list(host, true), &part->link);
    job->pipes = part;
    job->layout.shape.n_channels = host->n_channels;
    job->layout.shape.n_local = job->n_local;
    job->channels_left = host->n_channels;
    return 0;
}

static void ranks_release(void *ctx, struct job *job)
{
    (void)ctx;
    if (job->pipes)
        job->pipes->released = job->pipes->output_closed = true;
}

static void ranks_on_rank_detached(struct world *w, void *object, uint64_t local)
{
    struct pipes *part = object;

    (void)w;
    jobs_on_rank_detached(daemon_jobs(part->host->daemon), part->job, (uint32_t)local);
}

static uint64_t ranks_segment_bytes(void *ctx, const struct job *job)
{
    (void)ctx, (void)job;
    return 0;
}

static void ranks_detach_rank(void *ctx, struct job *job, uint32_t local, bool dead)
{
    struct world *w = daemon_world(ctx);

    (void)dead;
    for (uint32_t ch = 0; ch < job->layout.shape.n_channels; ch++)
        world_after(w, world_draw(w, 20 * CLOCK_NS_PER_MS), job->pipes->host,
                    ranks_on_rank_detached, job->pipes, local);
}

static void ranks_on_job_detached(struct world *w, void *object, uint64_t value)
{
    struct pipes *part = object;

    (void)w, (void)value;
    jobs_on_job_detached(daemon_jobs(part->host->daemon), part->job);
}

static void ranks_detach_job(void *ctx, struct job *job)
{
    struct world *w = daemon_world(ctx);

    for (uint32_t ch = 0; ch < job->layout.shape.n_channels; ch++)
        world_after(w, 20 * CLOCK_NS_PER_MS + world_draw(w, 20 * CLOCK_NS_PER_MS), job->pipes->host,
                    ranks_on_job_detached, job->pipes, 0);
}

static void ranks_show_aborting(void *ctx, struct job *job)
{
    (void)ctx, (void)job;
}

static void ranks_show_dead(void *ctx, struct job *job, uint32_t local)
{
    (void)ctx, (void)job, (void)local;
}

static int ranks_admit(void *ctx, struct job *job, uint32_t local, pid_t pid, int *ret_fds,
                       int *ret_n_fds)
{
    (void)ctx, (void)job, (void)local, (void)pid, (void)ret_fds;
    *ret_n_fds = 0;
    return 0;
}

static int ranks_start(void *ctx, struct job *job, uint32_t local)
{
    struct world *w = daemon_world(ctx);
    struct host *host = daemon_host(ctx);
    uint32_t culprit;

    if (world_chance(w, 1) && world_chance(w, 20))
        return -EAGAIN;
    struct client *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    p->part = job->pipes;
    p->local = local;
    p->world_rank = job->ranks[local].world;
    mpiexec_read_script(job->launch->apps[0]->argv[0], &p->script, &culprit, &p->run_ns,
                        &p->output);
    p->culprit = culprit == p->world_rank;
    p->ignores_term = p->script == SCRIPT_HANG && p->culprit;
    p->alive = true;
    list_init(&p->link);
    list_append(ranks_list(host, false), &p->link);
    world_after(w, world_draw(w, 20 * CLOCK_NS_PER_MS), host, process_on_spawned, p, 0);
    return 0;
}

static void ranks_signal(void *ctx, const struct job *job, int signal)
{
    struct world *w = daemon_world(ctx);
    struct host *host = daemon_host(ctx);

    list_foreach(it, &host->processes) {
        struct client *p = list_entry(it, struct client, link);
        if (p->alive && p->part == job->pipes)
            world_after(w, 20 * CLOCK_NS_PER_MS + world_draw(w, 10 * CLOCK_NS_PER_MS), host,
                        process_on_signal, p, (uint64_t)signal);
    }
}

static void ranks_kill_orphan(void *ctx, const struct job *job, const struct job_rank *rank)
{
    struct host *host = daemon_host(ctx);

    list_foreach(it, &host->processes) {
        struct client *p = list_entry(it, struct client, link);
        if (p->part == job->pipes && p->world_rank == rank->world)
            p->alive = false;
    }
}

/* The pipes of a rank that has ended are empty. */
static void ranks_on_output_end(struct world *w, void *object, uint64_t rank)
{
    struct pipes *part = object;
    struct job *job = part->released ? NULL : jobs_find(daemon_jobs(part->host->daemon), part->job);

    if (!job || part->output_closed)
        return;
    job_on_output(job, (uint32_t)rank, 1, NULL, 0, w->now_ns);
    job_on_output(job, (uint32_t)rank, 2, NULL, 0, w->now_ns);
    daemon_wake(part->host->daemon);
}

static void ranks_end_output(void *ctx, struct job *job, uint32_t local)
{
    struct world *w = daemon_world(ctx);

    world_after(w, world_draw(w, 10 * CLOCK_NS_PER_MS), job->pipes->host, ranks_on_output_end,
                job->pipes, job->ranks[local].world);
}

static void ranks_close_output(void *ctx, struct job *job)
{
    (void)ctx;
    job->pipes->output_closed = true;
}

static void ranks_on_input_taken(struct world *w, void *object, uint64_t total)
{
    struct pipes *part = object;
    struct job *job = part->released ? NULL : jobs_find(daemon_jobs(part->host->daemon), part->job);

    if (!job || part->output_closed)
        return;
    job_on_input_taken(job, total, w->now_ns);
    daemon_wake(part->host->daemon);
}

static int ranks_input(void *ctx, struct job *job, const void *data, uint32_t len)
{
    struct world *w = daemon_world(ctx);

    (void)data;
    job->pipes->input += len;
    world_after(w, world_draw(w, 50 * CLOCK_NS_PER_MS), job->pipes->host, ranks_on_input_taken,
                job->pipes, job->pipes->input);
    return 0;
}

static void ranks_consumed(void *ctx, struct job *job, uint64_t total)
{
    if (total > job->pipes->sent)
        world_fail(daemon_world(ctx), "more output was consumed than sent");
    if (total > job->pipes->consumed)
        job->pipes->consumed = total;
}

static void ranks_client_detached(void *ctx, struct client *p)
{
    p->connected = false;
    process_exit(daemon_world(ctx), p, 0);
}

static void ranks_client_end(void *ctx, struct client *p)
{
    (void)ctx;
    p->connected = false;
}

const struct job_ops ranks_ops = {.send = ranks_send,
                                  .pass_on = ranks_pass_on,
                                  .reachable = ranks_reachable,
                                  .epoch = ranks_epoch,
                                  .changed = ranks_changed,
                                  .prepare = ranks_prepare,
                                  .release = ranks_release,
                                  .segment_bytes = ranks_segment_bytes,
                                  .detach_rank = ranks_detach_rank,
                                  .detach_job = ranks_detach_job,
                                  .show_aborting = ranks_show_aborting,
                                  .show_dead = ranks_show_dead,
                                  .admit = ranks_admit,
                                  .start_rank = ranks_start,
                                  .signal = ranks_signal,
                                  .kill_orphan = ranks_kill_orphan,
                                  .end_output = ranks_end_output,
                                  .close_output = ranks_close_output,
                                  .input = ranks_input,
                                  .consumed = ranks_consumed,
                                  .client_detached = ranks_client_detached,
                                  .client_end = ranks_client_end};

/* ---- deaths of others ---- */

void ranks_daemon_ended(struct world *w, struct host *host)
{
    (void)w;
    list_foreach(it, &host->processes) {
        struct client *p = list_entry(it, struct client, link);
        p->alive = p->connected = false;
    }
}

void ranks_spawner_dies(struct world *w, struct host *host)
{
    world_say(w, "%s: its spawner dies", host->name);
    jobs_on_spawner_lost(daemon_jobs(host->daemon), w->now_ns);
    /* A new one kills what the old one left behind. */
    list_foreach(it, &host->processes)
        list_entry(it, struct client, link)->alive = false;
    daemon_wake(host->daemon);
}

void ranks_deinit(struct host *host)
{
    list_foreach_safe(it, &host->processes)
        free(list_entry(it, struct client, link));
    list_foreach_safe(it, &host->parts)
        free(list_entry(it, struct pipes, link));
}
