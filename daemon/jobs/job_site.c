/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/job_site.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/cluster/channels.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/mail.h"
#include "daemon/jobs/client.h"
#include "daemon/jobs/dynamic/foreign.h"
#include "daemon/jobs/job_env.h"
#include "daemon/jobs/job_segment.h"
#include "daemon/jobs/pipes.h"
#include "daemon/jobs/spawner.h"
#include "daemon/port/cmd.h"
#include "daemon/routing/forwarding.h"
#include "daemon/routing/node_name.h"

struct job_site {
    struct job_site_setup setup;
    struct jobs *jobs;
};

struct job_site *job_site_new(const struct job_site_setup *setup)
{
    struct job_site *site = calloc(1, sizeof *site);

    if (site)
        site->setup = *setup;
    return site;
}

void job_site_free(struct job_site *site)
{
    free(site);
}

void job_site_set_jobs(struct job_site *site, struct jobs *jobs)
{
    site->jobs = jobs;
}

/* ---- to other nodes ---- */

static int site_send(void *ctx, uint32_t node_id, uint16_t type, const ProtobufCMessage *msg,
                     uint64_t now_ns)
{
    struct job_site *site = ctx;
    return mail_send_msg(cluster_mail(site->setup.cluster), node_id, type, msg, now_ns);
}

static int site_pass_on(void *ctx, uint32_t node_id, uint16_t type, const uint8_t *body,
                        uint32_t len, uint64_t now_ns)
{
    struct job_site *site = ctx;
    return mail_send(cluster_mail(site->setup.cluster), node_id, type, body, len, now_ns);
}

static uint32_t site_epoch(void *ctx, uint32_t node_id)
{
    const struct job_site *site = ctx;
    return cluster_epoch(site->setup.cluster, node_id);
}

static bool site_reachable(void *ctx, uint32_t node_id)
{
    struct job_site *site = ctx;
    return cluster_reachable(site->setup.cluster, node_id);
}

/* Tells ranks and channels whether spinning helps: more runnable threads than cores means no.
 * Channel threads count while some job here has ranks elsewhere; otherwise they sleep. */
static void site_changed(void *ctx)
{
    struct job_site *site = ctx;
    bool networked = false;
    uint32_t n_busy = site->jobs ? jobs_n_running(site->jobs, &networked) : 0;

    if (networked)
        n_busy += channels_count(site->setup.channels);
    forwarding_set_crowded(site->setup.forwarding, n_busy > (uint32_t)thread_n_cores());
    cluster_note_busy(site->setup.cluster);
}

/* ---- memory, pipes and channels ---- */

static void site_on_output(void *ctx, uint32_t world_rank, uint32_t stream, const void *data,
                           uint32_t len)
{
    job_on_output(ctx, world_rank, stream, data, len, clock_now_ns());
}

static void site_on_taken(void *ctx, uint64_t total)
{
    job_on_input_taken(ctx, total, clock_now_ns());
}

static const struct pipes_ops site_pipes_ops = {.output = site_on_output, .taken = site_on_taken};

static int site_attach_channels(struct job_site *site, struct job *job)
{
    struct cmd_job config = {.job = job->id,
                             .segment = job->segment,
                             .layout = &job->layout,
                             .world = job->world,
                             .nodes = job->nodes,
                             .uid = (uint32_t)job->uid,
                             .fenced = job->fenced || channels_count(site->setup.channels) == 0};
    int rc = channels_attach_job(site->setup.channels, &config, job->event_fds, job->channel_jobs);

    if (rc == 0)
        job->channels_left = channels_serving(site->setup.channels);
    return rc;
}

/* The slots of the job's nodes in the forwarding table. */
static int site_find_slots(struct job_site *site, struct job *job, char *error, size_t size)
{
    for (uint32_t n = 0; n < job->layout.shape.n_nodes; n++) {
        int slot = forwarding_slot(site->setup.forwarding, job->nodes[n].node_id);
        if (slot < 0) {
            snprintf(error, size, "the node table of node %s is full", site->setup.config->name);
            return -EINVAL;
        }
        job->nodes[n].slot = (uint32_t)slot;
    }
    return 0;
}

static int site_prepare(void *ctx, struct job *job, char *error, size_t size)
{
    struct job_site *site = ctx;
    const Motet__Launch *l = job->launch;
    const char *here = site->setup.config->name;

    job->segment_fd = -1;
    for (int i = 0; i < (int)HOP_MAX_CHANNELS; i++)
        job->event_fds[i] = -1;
    if (geteuid() != 0 && (l->uid != geteuid() || l->gid != getegid())) {
        snprintf(error, size,
                 "the daemon on node %s runs as user %u and group %u and cannot start ranks "
                 "for user %u, group %u",
                 here, (unsigned)geteuid(), (unsigned)getegid(), l->uid, l->gid);
        return -EINVAL;
    }
    job->fenced = site->setup.fenced;
    int rc = site_find_slots(site, job, error, size);
    if (rc == 0)
        rc = job_segment_make(job, channels_serving(site->setup.channels), here, error, size);
    if (rc < 0)
        return rc;
    job->pipes = pipes_new(site->setup.base, job->n_local, &site_pipes_ops, job);
    rc = job->pipes ? site_attach_channels(site, job) : -ENOMEM;
    if (rc < 0)
        snprintf(error, size, "node %s: %s", here, strerror(-rc));
    return rc;
}

static void site_close_output(void *ctx, struct job *job)
{
    (void)ctx;
    pipes_free(job->pipes);
    job->pipes = NULL;
}

static void site_release(void *ctx, struct job *job)
{
    site_close_output(ctx, job);
    for (uint32_t ch = 0; ch < HOP_MAX_CHANNELS; ch++)
        channels_job_free(job->channel_jobs[ch]);
    job_segment_free(job);
}

static uint64_t site_segment_bytes(void *ctx, const struct job *job)
{
    struct stat st;

    (void)ctx;
    return fstat(job->segment_fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static void site_detach_rank(void *ctx, struct job *job, uint32_t local, bool dead)
{
    struct job_site *site = ctx;
    channels_detach_rank(site->setup.channels, job->channel_jobs, local, dead);
}

static void site_detach_job(void *ctx, struct job *job)
{
    struct job_site *site = ctx;
    channels_detach_job(site->setup.channels, job->channel_jobs);
}

void job_site_on_job_detached(struct job_site *site, uint64_t id, uint32_t channel)
{
    struct job *job = jobs_find(site->jobs, id);

    if (!job || channel >= HOP_MAX_CHANNELS || !job->channel_jobs[channel])
        return;
    channels_job_free(job->channel_jobs[channel]);
    job->channel_jobs[channel] = NULL;
    jobs_on_job_detached(site->jobs, id);
}

/* ---- what ranks see ---- */

static void site_show_aborting(void *ctx, struct job *job)
{
    (void)ctx;
    atomic_store_explicit(&((struct segment_header *)job->segment)->aborting, 1,
                          memory_order_relaxed);
}

static void site_show_dead(void *ctx, struct job *job, uint32_t local)
{
    (void)ctx;
    atomic_store_explicit(&segment_rank_at(job->segment, &job->layout, local)->state, RANK_DEAD,
                          memory_order_relaxed);
}

static int site_admit(void *ctx, struct job *job, uint32_t local, pid_t pid, int *ret_fds,
                      int *ret_n_fds)
{
    struct job_site *site = ctx;
    int source[HOP_MAX_CHANNELS + 2] = {job->segment_fd, forwarding_fd(site->setup.forwarding)};
    int n_source = 2, n_fds = 0;

    for (uint32_t ch = 0; ch < job->layout.shape.n_channels; ch++)
        source[n_source++] = job->event_fds[ch];
    while (n_fds < n_source) {
        ret_fds[n_fds] = fcntl(source[n_fds], F_DUPFD_CLOEXEC, 3);
        if (ret_fds[n_fds] < 0) {
            int rc = -errno;
            while (n_fds > 0)
                close(ret_fds[--n_fds]);
            return rc;
        }
        n_fds++;
    }
    struct segment_rank *shared = segment_rank_at(job->segment, &job->layout, local);
    atomic_store_explicit(&shared->pid, pid, memory_order_relaxed);
    *ret_n_fds = n_fds;
    return 0;
}

void job_site_set_wait(struct job *job, enum wait_mode mode)
{
    if (job->state != JOB_CLOSING)
        atomic_store_explicit(&((struct segment_header *)job->segment)->wait_mode, (uint32_t)mode,
                              memory_order_relaxed);
}

/* ---- processes ---- */

static int site_start_rank(void *ctx, struct job *job, uint32_t local)
{
    struct job_site *site = ctx;
    const struct job_rank *r = &job->ranks[local];
    const Motet__App *app = job->launch->apps[r->app];
    Motet__Spawn msg = MOTET__SPAWN__INIT;
    int fds[3];
    size_t n_env;

    int rc =
        pipes_open(job->pipes, local, r->world, r->world == 0 && job->launch->stdin_to_rank0, fds);
    if (rc < 0)
        return rc;
    char **env = job_env_new(job, local, site->setup.config, &n_env);
    if (!env) {
        for (int i = 0; i < 3; i++)
            close(fds[i]);
        return -ENOMEM;
    }
    msg.job = job->id;
    msg.rank = r->world;
    msg.n_argv = app->n_argv;
    msg.argv = app->argv;
    msg.n_env = n_env;
    msg.env = env;
    msg.wdir = app->wdir ? app->wdir : job->launch->wdir;
    msg.uid = job->uid;
    msg.gid = job->gid;
    msg.has_umask = job->launch->has_umask;
    msg.umask = job->launch->umask;
    msg.binding = job->launch->binding;
    msg.has_bind_index = true;
    msg.bind_index = job->bind_first + local;
    msg.path = app->path;
    rc = spawner_spawn(site->setup.spawner, &msg, fds);
    job_env_free(env);
    return rc;
}

static void site_signal(void *ctx, const struct job *job, int signal)
{
    struct job_site *site = ctx;
    spawner_kill(site->setup.spawner, job->id, -1, signal);
}

static void site_kill_orphan(void *ctx, const struct job *job, const struct job_rank *rank)
{
    (void)ctx;
    if (kill(-rank->pid, SIGKILL) < 0 && errno != ESRCH)
        log_warn("job %016llx: cannot kill rank %u: %s", (unsigned long long)job->id, rank->world,
                 strerror(errno));
}

/* ---- connections with other jobs ---- */

/* Where the message says that the ranks of the other job are, by rank. */
static int site_foreign_places(struct job_site *site, const struct foreign *f,
                               const Motet__Connect *msg, struct channel_place *places,
                               const char **names, char *error, size_t size)
{
    for (size_t i = 0; i < msg->n_placements; i++) {
        const Motet__Placement *pl = msg->placements[i];
        int slot = pl->has_node_id && node_name_id(pl->node) == pl->node_id
                       ? forwarding_slot(site->setup.forwarding, pl->node_id)
                       : -EINVAL;
        if (slot < 0) {
            snprintf(error, size, "node %s cannot name the nodes of the other job",
                     site->setup.config->name);
            return -EINVAL;
        }
        for (size_t k = 0; k < pl->n_ranks; k++) {
            if (pl->ranks[k] >= f->n || names[pl->ranks[k]]) {
                snprintf(error, size, "the other job's ranks are placed wrongly");
                return -EINVAL;
            }
            places[pl->ranks[k]] =
                (struct channel_place){.node_id = pl->node_id, .slot = (uint32_t)slot};
            names[pl->ranks[k]] = pl->node;
        }
    }
    return 0;
}

static void site_show_foreign(struct job *job, const struct foreign *f,
                              const struct channel_place *places, const char *const *names)
{
    uint32_t node = job->layout.shape.n_nodes + f->first - job->layout.shape.n_world;

    for (uint32_t i = 0; i < f->n; i++) {
        struct segment_node *n = segment_node_at(job->segment, &job->layout, node + i);
        *segment_world_at(job->segment, &job->layout, f->first + i) = (struct segment_world){
            .node = node + i, .local = places[i].stamp >> SEGMENT_STAMP_SHIFT};
        n->node_id = places[i].node_id;
        n->slot = places[i].slot;
        snprintf(n->name, sizeof n->name, "%s", names[i]);
    }
}

static int site_connect(void *ctx, struct job *job, struct foreign *f, const Motet__Connect *msg,
                        char *error, size_t size)
{
    struct job_site *site = ctx;
    struct channel_place *places = calloc(f->n, sizeof *places);
    const char **names = calloc(f->n, sizeof *names);
    int rc = -ENOMEM;

    if (places && names)
        rc = site_foreign_places(site, f, msg, places, names, error, size);
    else
        snprintf(error, size, "out of memory on node %s", job->node_name);
    if (rc == 0) {
        uint8_t *stamps = &job->stamps[f->first - job->layout.shape.n_world];
        for (uint32_t i = 0; i < f->n; i++)
            places[i].stamp = (uint32_t)++stamps[i] << SEGMENT_STAMP_SHIFT;
        site_show_foreign(job, f, places, names);
        rc = channels_add_foreign(site->setup.channels, job->channel_jobs, f->number ^ 1, f->number,
                                  f->first, f->n, places, f->channels);
        if (rc < 0)
            snprintf(error, size, "node %s: %s", job->node_name, strerror(-rc));
        else
            f->channels_left = channels_serving(site->setup.channels);
    }
    free(places);
    free(names);
    return rc;
}

static void site_disconnect(void *ctx, struct job *job, struct foreign *f)
{
    struct job_site *site = ctx;

    (void)job;
    channels_remove_foreign(site->setup.channels, f->channels);
}

static void site_foreign_free(void *ctx, struct channel_foreign *foreign)
{
    (void)ctx;
    channels_foreign_free(foreign);
}

static void site_to_rank(void *ctx, struct client *client, uint16_t type, const void *body,
                         uint32_t len)
{
    (void)ctx;
    client_to_rank(client, type, body, len);
}

/* ---- output, input, connections ---- */

static void site_end_output(void *ctx, struct job *job, uint32_t local)
{
    (void)ctx;
    pipes_exited(job->pipes, local);
}

static int site_input(void *ctx, struct job *job, const void *data, uint32_t len)
{
    (void)ctx;
    return pipes_input(job->pipes, data, len);
}

static void site_consumed(void *ctx, struct job *job, uint64_t total)
{
    (void)ctx;
    pipes_consumed(job->pipes, total);
}

static void site_client_detached(void *ctx, struct client *client)
{
    (void)ctx;
    client_detached(client);
}

static void site_client_end(void *ctx, struct client *client)
{
    (void)ctx;
    client_end_rank(client);
}

const struct job_ops job_site_ops = {.send = site_send,
                                     .pass_on = site_pass_on,
                                     .reachable = site_reachable,
                                     .epoch = site_epoch,
                                     .changed = site_changed,
                                     .prepare = site_prepare,
                                     .release = site_release,
                                     .segment_bytes = site_segment_bytes,
                                     .detach_rank = site_detach_rank,
                                     .detach_job = site_detach_job,
                                     .show_aborting = site_show_aborting,
                                     .show_dead = site_show_dead,
                                     .admit = site_admit,
                                     .start_rank = site_start_rank,
                                     .signal = site_signal,
                                     .kill_orphan = site_kill_orphan,
                                     .end_output = site_end_output,
                                     .close_output = site_close_output,
                                     .input = site_input,
                                     .consumed = site_consumed,
                                     .connect = site_connect,
                                     .disconnect = site_disconnect,
                                     .foreign_free = site_foreign_free,
                                     .to_rank = site_to_rank,
                                     .client_detached = site_client_detached,
                                     .client_end = site_client_end};
