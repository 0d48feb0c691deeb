/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/cluster/channels.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/forwarding.h"
#include "daemon/cluster/mail.h"
#include "daemon/control/node.h"
#include "daemon/jobs/client.h"
#include "daemon/jobs/job_build.h"
#include "daemon/jobs/pipes.h"
#include "daemon/jobs/spawner.h"

/* A rank whose connection ended must be seen to exit within this time. */
#define DISCONNECT_GRACE_NS (CLOCK_NS_PER_S / 2)
/* Longer than a home waits for all nodes: then nothing will be started here any more. */
#define READY_LIMIT_NS (60 * CLOCK_NS_PER_S)

struct jobs {
    struct node *node;
    struct job *table;
    struct start_over over;
};

struct jobs *jobs_new(struct node *node)
{
    struct jobs *jobs = calloc(1, sizeof *jobs);

    if (jobs)
        jobs->node = node;
    return jobs;
}

struct job *jobs_find(const struct jobs *jobs, uint64_t id)
{
    struct job *job;
    HASH_FIND(hh, jobs->table, &id, sizeof id, job);
    return job;
}

struct job *jobs_first(const struct jobs *jobs)
{
    return jobs->table;
}

unsigned jobs_count(const struct jobs *jobs)
{
    return HASH_COUNT(jobs->table);
}

bool jobs_networked(const struct jobs *jobs)
{
    for (const struct job *job = jobs->table; job; job = job->hh.next)
        if (job->state != JOB_CLOSING &&
            (job->layout.shape.n_nodes > 1 || job->home_node != jobs->node->id))
            return true;
    return false;
}

int64_t job_local_of(const struct job *job, uint32_t world_rank)
{
    if (world_rank >= job->layout.shape.n_world)
        return -1;
    const struct segment_world *w = &job->world[world_rank];
    return job->nodes[w->node].node_id == job->node->id ? (int64_t)w->local : -1;
}

static void to_home(struct job *job, uint16_t type, const ProtobufCMessage *msg)
{
    int rc = mail_send_msg(job->node->mail, job->home_node, type, msg, clock_now_ns());

    if (rc < 0)
        log_error("job %016llx: a message to its home is lost: %s", (unsigned long long)job->id,
                  strerror(-rc));
}

/* Tells ranks and channels whether spinning helps: more runnable threads than cores means no.
 * Channel threads count while some job here has ranks elsewhere; otherwise they sleep. */
static void update_crowded(struct jobs *jobs)
{
    uint32_t n_busy = 0;
    bool networked = false;

    for (struct job *job = jobs->table; job; job = job->hh.next) {
        networked |= job->state != JOB_CLOSING && job->layout.shape.n_nodes > 1;
        for (uint32_t i = 0; i < job->n_local; i++) {
            const struct job_rank *r = &job->ranks[i];
            n_busy +=
                (r->state == JOB_RANK_STARTING || r->state == JOB_RANK_RUNNING) && !r->detached;
        }
    }
    if (networked)
        n_busy += channels_n_channels(jobs->node->channels);
    forwarding_set_crowded(jobs->node->forwarding, n_busy > (uint32_t)thread_n_cores());
    if (jobs->node->cluster)
        cluster_note_busy(jobs->node->cluster);
}

static void job_free(struct job *job)
{
    struct jobs *jobs = job->node->jobs;

    HASH_DEL(jobs->table, job);
    pipes_free(job->pipes);
    for (uint32_t ch = 0; ch < HOP_MAX_CHANNELS; ch++)
        channels_job_free(job->channel_jobs[ch]);
    job_build_free(job);
    free(job);
    update_crowded(jobs);
}

/* Everything of the job on this node ends now: processes, connections, memory. */
static void job_close(struct job *job)
{
    if (job->state == JOB_CLOSING)
        return;
    bool started = job->state == JOB_RUNNING;
    job->state = JOB_CLOSING;
    atomic_store_explicit(&((struct segment_header *)job->segment)->aborting, 1,
                          memory_order_relaxed);
    if (started)
        spawner_kill(job->node->spawner, job->id, -1, SIGKILL);
    for (uint32_t i = 0; i < job->n_local; i++) {
        if (job->ranks[i].client)
            client_end_rank(job->ranks[i].client);
        job->ranks[i].client = NULL;
    }
    pipes_free(job->pipes);
    job->pipes = NULL;
    log_info("job %016llx: over on this node", (unsigned long long)job->id);
    if (job->channels_left == 0)
        job_free(job);
    else
        channels_detach_job(job->node->channels, job);
}

void jobs_free(struct jobs *jobs)
{
    struct job *job, *next;

    if (!jobs)
        return;
    HASH_ITER(hh, jobs->table, job, next) {
        if (job->state == JOB_RUNNING)
            spawner_kill(jobs->node->spawner, job->id, -1, SIGKILL);
        for (uint32_t i = 0; i < job->n_local; i++)
            if (job->ranks[i].client)
                client_end_rank(job->ranks[i].client);
        job_free(job);
    }
    free(jobs);
}

static void on_output(void *ctx, uint32_t world_rank, uint32_t stream, const void *data,
                      uint32_t len)
{
    struct job *job = ctx;
    Motet__Stdio msg = MOTET__STDIO__INIT;

    msg.job = job->id;
    msg.rank = world_rank;
    msg.stream = stream;
    msg.data.data = (uint8_t *)data;
    msg.data.len = len;
    to_home(job, MOTET__FRAME_TYPE__STDIO, &msg.base);
}

static void on_taken(void *ctx, uint64_t total)
{
    struct job *job = ctx;
    Motet__StdioWindow msg = MOTET__STDIO_WINDOW__INIT;

    msg.job = job->id;
    msg.consumed = total;
    msg.has_stream = true;
    msg.stream = 0;
    to_home(job, MOTET__FRAME_TYPE__STDIO_WINDOW, &msg.base);
}

static const struct pipes_ops pipes_ops = {.output = on_output, .taken = on_taken};

static void answer_launch(struct node *node, uint32_t parent, uint64_t job, const char *error)
{
    Motet__Launched msg = MOTET__LAUNCHED__INIT;

    msg.job = job;
    msg.ok = error == NULL;
    msg.error = (char *)error;
    mail_send_msg(node->mail, parent, MOTET__FRAME_TYPE__LAUNCHED, &msg.base, clock_now_ns());
}

/* An order goes on as it came. */
static void to_children(struct node *node, const struct start *start, uint16_t type,
                        const uint8_t *body, uint32_t len)
{
    for (uint32_t i = 0; i < start->n_children; i++) {
        int rc = mail_send(node->mail, start->children[i], type, body, len, clock_now_ns());
        if (rc < 0)
            log_error("an order of type %u for node %08x is lost: %s", type, start->children[i],
                      strerror(-rc));
    }
}

/* Makes the job's part on this node. 0 or negative errno with the reason; then nothing is left but
 * the launch message. */
static int prepare(struct jobs *jobs, struct job *job, char *error, size_t size)
{
    struct node *node = jobs->node;
    int rc = job_build(job, error, size);

    if (rc == 0 && node->draining) {
        snprintf(error, size, "node %s is being shut down", node->config.name);
        rc = -EINVAL;
    }
    if (rc == 0 && HASH_COUNT(jobs->table) >= node->config.max_jobs) {
        snprintf(error, size, "node %s already runs %u jobs (max_jobs)", node->config.name,
                 HASH_COUNT(jobs->table));
        rc = -EINVAL;
    }
    if (rc == 0) {
        job->pipes = pipes_new(node->base, job->n_local, &pipes_ops, job);
        rc = job->pipes ? channels_attach_job(node->channels, job) : -ENOMEM;
        if (rc < 0)
            snprintf(error, size, "node %s: %s", node->config.name, strerror(-rc));
    }
    if (rc < 0)
        pipes_free(job->pipes);
    return rc;
}

void jobs_on_launch(struct jobs *jobs, uint32_t src_node, const uint8_t *body, uint32_t len)
{
    Motet__Launch *launch = motet__launch__unpack(NULL, len, body);
    struct node *node = jobs->node;
    struct start start;
    char error[512] = "";

    if (!launch || jobs_find(jobs, launch->job) ||
        start_init(&start, node->id, launch->home_node, launch->placements, launch->n_placements) <
            0 ||
        start.parent != src_node) {
        log_warn("launch message from node %08x is not valid, ignoring", src_node);
        if (launch)
            motet__launch__free_unpacked(launch, NULL);
        return;
    }
    uint64_t id = launch->job;
    struct job *job = start_over_has(&jobs->over, id) ? NULL : calloc(1, sizeof *job);
    if (!job) {
        bool over = start_over_has(&jobs->over, id);
        motet__launch__free_unpacked(launch, NULL);
        if (over)
            log_info("job %016llx ended before it was to be started here", (unsigned long long)id);
        else
            answer_launch(node, src_node, id, "out of memory");
        return;
    }
    /* First, so that all nodes prepare at the same time. */
    to_children(node, &start, MOTET__FRAME_TYPE__LAUNCH, body, len);
    job->node = node;
    job->launch = launch;
    job->start = start;
    job->since_ns = clock_now_ns();
    int rc = prepare(jobs, job, error, sizeof error);
    if (rc < 0) {
        log_notice("job %016llx refused: %s", (unsigned long long)id, error);
        job_build_free(job);
        free(job);
        answer_launch(node, src_node, id, error);
        return;
    }
    for (struct job *other = jobs->table; other; other = other->hh.next)
        if (other->launch->bind && other->state != JOB_CLOSING)
            job->bind_first += other->n_local;
    HASH_ADD(hh, jobs->table, id, sizeof job->id, job);
    cluster_note_busy(node->cluster);
    log_info("job %016llx: %u of %u ranks here, for user %u", (unsigned long long)id, job->n_local,
             job->layout.shape.n_world, (unsigned)job->uid);
    if (start_on_own_ready(&job->start) == START_READY)
        answer_launch(node, src_node, id, NULL);
}

void jobs_on_launched(struct jobs *jobs, uint32_t src_node, const Motet__Launched *msg)
{
    struct job *job = jobs_find(jobs, msg->job);

    if (!job || job->state != JOB_READY)
        return;
    enum start_next next = start_on_answer(&job->start, src_node, msg->ok);
    if (next == START_READY)
        answer_launch(jobs->node, job->start.parent, job->id, NULL);
    else if (next == START_FAILED)
        answer_launch(jobs->node, job->start.parent, job->id,
                      msg->error ? msg->error : "a node refused the job");
}

/* Tells home that a rank is over. */
static void report_exit(struct job *job, struct job_rank *r, int32_t status, const char *reason)
{
    Motet__RankExit msg = MOTET__RANK_EXIT__INIT;

    msg.job = job->id;
    msg.rank = r->world;
    msg.node = job->node->config.name;
    msg.status = status;
    msg.finalized = r->detached || !r->entered;
    msg.has_entered = true;
    msg.entered = r->entered;
    msg.reason = (char *)reason;
    to_home(job, MOTET__FRAME_TYPE__RANK_EXIT, &msg.base);
}

/* The rank died: nobody empties or fills its rings any more. */
static void drop_rings(struct job *job, struct job_rank *r)
{
    uint32_t local = (uint32_t)(r - job->ranks);

    if (r->let_go || r->detaching > 0)
        return;
    r->let_go = true;
    channels_detach_rank(job->node->channels, job, local, true);
}

/* The rank's process is gone: its rings belong to nobody, its output ends. */
static void rank_over(struct job *job, struct job_rank *r, int32_t status, const char *reason)
{
    uint32_t local = (uint32_t)(r - job->ranks);

    if (r->state == JOB_RANK_EXITED)
        return;
    r->state = JOB_RANK_EXITED;
    if (r->entered && !r->detached) {
        atomic_store_explicit(&segment_rank_at(job->segment, &job->layout, local)->state, RANK_DEAD,
                              memory_order_relaxed);
        drop_rings(job, r);
    }
    report_exit(job, r, status, reason);
    pipes_exited(job->pipes, local);
    update_crowded(job->node->jobs);
}

static int spawn_rank(struct job *job, uint32_t local)
{
    struct job_rank *r = &job->ranks[local];
    const Motet__App *app = job->launch->apps[r->app];
    Motet__Spawn msg = MOTET__SPAWN__INIT;
    int fds[3];
    size_t n_env;

    r->state = JOB_RANK_STARTING;
    int rc =
        pipes_open(job->pipes, local, r->world, r->world == 0 && job->launch->stdin_to_rank0, fds);
    if (rc < 0)
        return rc;
    char **env = job_env_new(job, local, &n_env);
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
    msg.has_bind_core = job->launch->bind != 0;
    msg.bind_core = job->bind_first + local;
    rc = spawner_spawn(job->node->spawner, &msg, fds);
    job_env_free(env);
    return rc;
}

/* The job that a message of its home speaks of; NULL if there is none or it came from elsewhere. */
static struct job *job_from_home(struct jobs *jobs, uint32_t src_node, uint64_t id)
{
    struct job *job = jobs_find(jobs, id);

    return job && job->home_node == src_node && job->state != JOB_CLOSING ? job : NULL;
}

void jobs_on_start(struct jobs *jobs, uint32_t src_node, const uint8_t *body, uint32_t len)
{
    Motet__Start *msg = motet__start__unpack(NULL, len, body);
    struct job *job = msg ? jobs_find(jobs, msg->job) : NULL;

    if (job && job->start.parent == src_node && job->state == JOB_READY) {
        to_children(jobs->node, &job->start, MOTET__FRAME_TYPE__START, body, len);
        job->state = JOB_RUNNING;
        for (uint32_t i = 0; i < job->n_local; i++) {
            int rc = spawn_rank(job, i);
            if (rc < 0) {
                char reason[128];
                snprintf(reason, sizeof reason, "cannot be started: %s", strerror(-rc));
                rank_over(job, &job->ranks[i], 127 << 8, reason);
            }
        }
        for (uint32_t i = 0; i < job->n_early_signals; i++)
            spawner_kill(jobs->node->spawner, job->id, -1, job->early_signals[i]);
        update_crowded(jobs);
    }
    if (msg)
        motet__start__free_unpacked(msg, NULL);
}

/* The job is ended before Start came, which may never come now: its ranks are over without having
 * begun. */
static void end_unstarted(struct job *job, int signal)
{
    job->state = JOB_RUNNING;
    for (uint32_t i = 0; i < job->n_local; i++) {
        job->ranks[i].state = JOB_RANK_EXITED;
        on_output(job, job->ranks[i].world, 1, NULL, 0);
        on_output(job, job->ranks[i].world, 2, NULL, 0);
        report_exit(job, &job->ranks[i], signal, NULL);
    }
}

void jobs_on_kill(struct jobs *jobs, uint32_t src_node, const uint8_t *body, uint32_t len)
{
    Motet__Kill *msg = motet__kill__unpack(NULL, len, body);
    struct job *job = msg ? job_from_home(jobs, src_node, msg->job) : NULL;

    if (job && msg->signal > 0 && msg->signal < NSIG) {
        if (msg->reason)
            atomic_store_explicit(&((struct segment_header *)job->segment)->aborting, 1,
                                  memory_order_relaxed);
        if (job->state == JOB_RUNNING)
            spawner_kill(jobs->node->spawner, job->id, -1, msg->signal);
        else if (msg->reason || msg->signal == SIGKILL)
            end_unstarted(job, msg->signal);
        else if (job->n_early_signals < JOB_EARLY_SIGNALS)
            job->early_signals[job->n_early_signals++] = msg->signal;
    }
    if (msg)
        motet__kill__free_unpacked(msg, NULL);
}

void jobs_on_job_end(struct jobs *jobs, uint32_t src_node, const uint8_t *body, uint32_t len)
{
    Motet__JobEnd *msg = motet__job_end__unpack(NULL, len, body);
    struct job *job = msg ? job_from_home(jobs, src_node, msg->job) : NULL;

    if (job)
        job_close(job);
    else if (msg && !jobs_find(jobs, msg->job))
        start_over_note(&jobs->over, msg->job);
    if (msg)
        motet__job_end__free_unpacked(msg, NULL);
}

void jobs_on_stdin(struct jobs *jobs, uint32_t src_node, const Motet__Stdio *msg)
{
    struct job *job = job_from_home(jobs, src_node, msg->job);

    if (!job || job_local_of(job, 0) < 0)
        return;
    if (pipes_input(job->pipes, msg->data.data, (uint32_t)msg->data.len) < 0)
        log_warn("job %016llx: more input than its window allows, ignoring",
                 (unsigned long long)job->id);
}

void jobs_on_window(struct jobs *jobs, uint32_t src_node, const Motet__StdioWindow *msg)
{
    struct job *job = job_from_home(jobs, src_node, msg->job);

    if (job)
        pipes_consumed(job->pipes, msg->consumed);
}

/* Whether the job has ranks on this node. */
static bool job_on_node(const struct job *job, uint32_t node_id)
{
    for (uint32_t n = 0; n < job->layout.shape.n_nodes; n++)
        if (job->nodes[n].node_id == node_id)
            return true;
    return false;
}

void jobs_on_node_lost(struct jobs *jobs, uint32_t node_id)
{
    struct job *job, *next;

    HASH_ITER(hh, jobs->table, job, next) {
        if (job->state == JOB_CLOSING)
            continue;
        if (job->home_node == node_id) {
            log_warn("job %016llx: its home node %08x is gone, ending its ranks here",
                     (unsigned long long)job->id, node_id);
            job_close(job);
        } else if (job_on_node(job, node_id) &&
                   !cluster_reachable(jobs->node->cluster, job->home_node)) {
            /* The job is over, and whoever has to say so cannot. */
            log_warn("job %016llx: node %08x is gone with ranks of it, and its home cannot be "
                     "reached, ending its ranks here",
                     (unsigned long long)job->id, node_id);
            job_close(job);
        }
    }
}

void jobs_on_spawned(struct jobs *jobs, uint64_t id, uint32_t rank, int32_t pid, const char *error)
{
    struct job *job = jobs_find(jobs, id);
    int64_t local = job && job->state == JOB_RUNNING ? job_local_of(job, rank) : -1;

    if (local < 0)
        return;
    struct job_rank *r = &job->ranks[local];
    if (pid > 0) {
        r->pid = pid;
        if (r->state == JOB_RANK_STARTING)
            r->state = JOB_RANK_RUNNING;
    } else {
        rank_over(job, r, 127 << 8, error ? error : "cannot be started");
    }
}

void jobs_on_exited(struct jobs *jobs, uint64_t id, uint32_t rank, int32_t status)
{
    struct job *job = jobs_find(jobs, id);
    int64_t local = job && job->state == JOB_RUNNING ? job_local_of(job, rank) : -1;

    if (local >= 0)
        rank_over(job, &job->ranks[local], status, NULL);
}

void jobs_on_spawner_lost(struct jobs *jobs)
{
    struct job *job, *next;

    HASH_ITER(hh, jobs->table, job, next) {
        if (job->state != JOB_RUNNING)
            continue;
        for (uint32_t i = 0; i < job->n_local; i++) {
            struct job_rank *r = &job->ranks[i];
            if (r->state == JOB_RANK_EXITED)
                continue;
            /* Each rank leads a process group; the spawner is not there any more to end it. */
            if (r->pid > 0 && kill(-r->pid, SIGKILL) < 0 && errno != ESRCH)
                log_warn("job %016llx: cannot kill rank %u: %s", (unsigned long long)job->id,
                         r->world, strerror(errno));
            rank_over(job, r, SIGKILL, "the spawner of its node died");
        }
    }
}

static int attach_error(struct attach_reply *reply, int error, const char *text)
{
    reply->error = error;
    snprintf(reply->text, sizeof reply->text, "%s", text);
    return error;
}

/* Keys are compared in full, whatever differs first, so that time tells nothing about them. */
static bool key_equal(const uint8_t *a, const uint8_t *b, size_t n)
{
    uint8_t diff = 0;

    for (size_t i = 0; i < n; i++)
        diff |= a[i] ^ b[i];
    return diff == 0;
}

int jobs_attach(struct jobs *jobs, struct client *client, const struct attach_request *req,
                uid_t uid, pid_t pid, struct attach_reply *reply, int *ret_fds, int *ret_n_fds,
                struct job **ret_job, uint32_t *ret_local)
{
    memset(reply, 0, sizeof *reply);
    reply->version = ATTACH_VERSION;
    if (req->version != ATTACH_VERSION)
        return attach_error(reply, EPROTO,
                            "the MPI library and the daemon speak different versions");
    struct job *job = jobs_find(jobs, req->job);
    /* One answer for a wrong job, user or key: nothing to learn by trying. */
    if (!job || (uid != job->uid && uid != 0) || !key_equal(req->key, job->key, sizeof job->key))
        return attach_error(reply, EACCES, "no such job of this user with this key on this node");
    if (job->state != JOB_RUNNING)
        return attach_error(reply, ESRCH, "the job is being ended");
    int64_t local = job_local_of(job, req->world_rank);
    if (local < 0)
        return attach_error(reply, EINVAL, "this rank does not belong to this node");
    struct job_rank *r = &job->ranks[local];
    if (r->entered)
        return attach_error(
            reply, EALREADY,
            r->client ? "another process has attached as this rank"
                      : "this rank has used MPI before; once per rank and job is possible");
    if (r->state == JOB_RANK_EXITED)
        return attach_error(reply, ESRCH, "this rank has ended");
    if (req->fenced && !job->fenced) {
        if (job->any_attached || job->layout.shape.n_channels > 0)
            return attach_error(
                reply, ENOSYS,
                "membarrier(2) is forbidden here but works elsewhere on the node: set fenced = yes "
                "in [node] of the daemon's configuration");
        job->fenced = true;
    }
    int n_fds = 0;
    int source[HOP_MAX_CHANNELS + 2] = {job->segment_fd, forwarding_fd(jobs->node->forwarding)};
    int n_source = 2;
    for (uint32_t ch = 0; ch < job->layout.shape.n_channels; ch++)
        source[n_source++] = job->event_fds[ch];
    while (n_fds < n_source) {
        ret_fds[n_fds] = fcntl(source[n_fds], F_DUPFD_CLOEXEC, 3);
        if (ret_fds[n_fds] < 0) {
            while (n_fds > 0)
                close(ret_fds[--n_fds]);
            return attach_error(reply, EMFILE, "the daemon has no descriptors left");
        }
        n_fds++;
    }
    r->entered = true;
    r->client = client;
    r->attached_pid = pid;
    job->any_attached = true;
    struct segment_rank *shared = segment_rank_at(job->segment, &job->layout, (uint32_t)local);
    atomic_store_explicit(&shared->pid, pid, memory_order_relaxed);
    reply->local_rank = (uint32_t)local;
    reply->fenced = job->fenced;
    reply->shape = job->layout.shape;
    *ret_n_fds = n_fds;
    *ret_job = job;
    *ret_local = (uint32_t)local;
    return 0;
}

static void rank_detached(struct job *job, uint32_t local)
{
    struct job_rank *r = &job->ranks[local];

    if (r->client && !r->detached)
        client_detached(r->client);
    r->detached = true;
    update_crowded(job->node->jobs);
}

void job_on_detach(struct job *job, uint32_t local)
{
    struct job_rank *r = &job->ranks[local];

    if (r->detached || r->detaching > 0 || job->state != JOB_RUNNING)
        return;
    r->detaching = job->layout.shape.n_channels;
    if (r->detaching == 0)
        rank_detached(job, local);
    else
        channels_detach_rank(job->node->channels, job, local, false);
}

void jobs_on_rank_detached(struct jobs *jobs, uint64_t id, uint32_t local)
{
    struct job *job = jobs_find(jobs, id);

    if (!job || local >= job->n_local || job->ranks[local].detaching == 0)
        return;
    if (--job->ranks[local].detaching == 0 && job->state == JOB_RUNNING)
        rank_detached(job, local);
}

void jobs_on_job_detached(struct jobs *jobs, uint64_t id, uint32_t channel)
{
    struct job *job = jobs_find(jobs, id);

    if (!job || channel >= HOP_MAX_CHANNELS || !job->channel_jobs[channel] ||
        job->channels_left == 0)
        return;
    channels_job_free(job->channel_jobs[channel]);
    job->channel_jobs[channel] = NULL;
    if (--job->channels_left == 0 && job->state == JOB_CLOSING)
        job_free(job);
}

void job_on_abort(struct job *job, uint32_t local, int32_t code, const char *text)
{
    Motet__Abort msg = MOTET__ABORT__INIT;

    msg.job = job->id;
    msg.rank = job->ranks[local].world;
    msg.code = code;
    msg.text = (char *)text;
    to_home(job, MOTET__FRAME_TYPE__ABORT, &msg.base);
}

void jobs_end_all(struct jobs *jobs, const char *why)
{
    for (struct job *job = jobs->table; job; job = job->hh.next)
        if (job->state != JOB_CLOSING)
            job_on_abort(job, 0, 128 + SIGTERM, why);
}

void jobs_on_offence(struct jobs *jobs, uint64_t id, uint32_t world_rank, const char *text)
{
    struct job *job = jobs_find(jobs, id);
    int64_t local = job && job->state == JOB_RUNNING ? job_local_of(job, world_rank) : -1;

    if (local < 0)
        return;
    log_warn("job %016llx rank %u: %s, ending the job", (unsigned long long)id, world_rank, text);
    job_on_abort(job, (uint32_t)local, 1, text);
}

void job_forget_client(struct job *job, uint32_t local)
{
    job->ranks[local].client = NULL;
}

void job_on_disconnect(struct job *job, uint32_t local)
{
    struct job_rank *r = &job->ranks[local];

    r->client = NULL;
    if (r->detached || r->state == JOB_RANK_EXITED)
        return;
    atomic_store_explicit(&segment_rank_at(job->segment, &job->layout, local)->state, RANK_DEAD,
                          memory_order_relaxed);
    if (job->state != JOB_RUNNING)
        return;
    drop_rings(job, r);
    /* Normally the process has ended, and the spawner says how in a moment; see jobs_tick. */
    r->disconnected_ns = clock_now_ns();
}

void jobs_tick(struct jobs *jobs, uint64_t now_ns)
{
    struct job *job, *next;

    HASH_ITER(hh, jobs->table, job, next) {
        if (job->state == JOB_READY && now_ns - job->since_ns > READY_LIMIT_NS) {
            log_warn("job %016llx was prepared here and is never started, forgetting it",
                     (unsigned long long)job->id);
            job_close(job);
            continue;
        }
        for (uint32_t i = 0; job->state == JOB_RUNNING && i < job->n_local; i++) {
            struct job_rank *r = &job->ranks[i];
            if (r->disconnected_ns == 0 || r->state == JOB_RANK_EXITED ||
                now_ns - r->disconnected_ns < DISCONNECT_GRACE_NS)
                continue;
            r->disconnected_ns = 0;
            /* Its MPI process died under a wrapper that goes on, or it broke the rules of the
             * connection. Either way the others would wait for it for ever. */
            job_on_abort(job, i, 1, "its MPI process left without calling MPI_Finalize");
        }
    }
}

void job_set_wait(struct job *job, enum wait_mode mode)
{
    if (job->state != JOB_CLOSING)
        atomic_store_explicit(&((struct segment_header *)job->segment)->wait_mode, (uint32_t)mode,
                              memory_order_relaxed);
}
