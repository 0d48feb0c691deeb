/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/job.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/config.h"
#include "daemon/jobs/dynamic/foreign.h"
#include "daemon/jobs/job_tables.h"
#include "daemon/jobs/quota.h"
#include "daemon/routing/epoch.h"
#include "proto/binding.h"

/* A rank whose connection ended must be seen to exit within this time. */
#define DISCONNECT_GRACE_NS (CLOCK_NS_PER_S / 2)
/* Longer than a home waits for all nodes: then nothing will be started here any more. */
#define READY_LIMIT_NS (60 * CLOCK_NS_PER_S)
/* It asks its home so often whether that is still to come. */
#define READY_ASK_NS (5 * CLOCK_NS_PER_S)

struct jobs {
    struct jobs_setup setup;
    bool draining;
    struct job *table;
    struct start_over over;
};

struct jobs *jobs_new(const struct jobs_setup *setup)
{
    struct jobs *jobs = calloc(1, sizeof *jobs);

    if (jobs)
        jobs->setup = *setup;
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
            (job->layout.shape.n_nodes > 1 || job->home_node != jobs->setup.node_id))
            return true;
    return false;
}

int64_t job_local_of(const struct job *job, uint32_t world_rank)
{
    if (world_rank >= job->layout.shape.n_world)
        return -1;
    const struct segment_world *w = &job->world[world_rank];
    return job->nodes[w->node].node_id == job->jobs->setup.node_id ? (int64_t)w->local : -1;
}

const struct jobs_setup *jobs_setup_of(const struct jobs *jobs)
{
    return &jobs->setup;
}

void job_to_home(struct job *job, uint16_t type, const ProtobufCMessage *msg, uint64_t now_ns)
{
    const struct jobs_setup *setup = &job->jobs->setup;
    int rc = setup->ops->send(setup->ctx, job->home_node, type, msg, now_ns);

    if (rc < 0)
        log_error("job %016llx: a message to its home is lost: %s", (unsigned long long)job->id,
                  strerror(-rc));
}

uint32_t jobs_n_running(const struct jobs *jobs, bool *ret_networked)
{
    uint32_t n = 0;

    *ret_networked = false;
    for (const struct job *job = jobs->table; job; job = job->hh.next) {
        *ret_networked |= job->state != JOB_CLOSING && job->layout.shape.n_nodes > 1;
        for (uint32_t i = 0; i < job->n_local; i++) {
            const struct job_rank *r = &job->ranks[i];
            n += (r->state == JOB_RANK_STARTING || r->state == JOB_RANK_RUNNING) && !r->detached;
        }
    }
    return n;
}

void jobs_drain(struct jobs *jobs)
{
    jobs->draining = true;
}

static void jobs_changed(struct jobs *jobs)
{
    jobs->setup.ops->changed(jobs->setup.ctx);
}

/* A job, its ranks and its memory are its user's as long as anything of it is here. */
static int job_charge(struct jobs *jobs, struct job *job, uint64_t now_ns,
                      char why[QUOTA_WHY_BYTES])
{
    struct quota *quota = jobs->setup.quota;

    if (quota_take(quota, QUOTA_JOBS, job->uid, 1, now_ns, why) != 0)
        return -EUSERS;
    if (quota_take(quota, QUOTA_RANKS, job->uid, job->n_local, now_ns, why) != 0) {
        quota_give(quota, QUOTA_JOBS, job->uid, 1);
        return -EUSERS;
    }
    job->charged = true;
    return 0;
}

static void job_discharge(struct jobs *jobs, struct job *job)
{
    struct quota *quota = jobs->setup.quota;

    if (!job->charged)
        return;
    quota_give(quota, QUOTA_JOBS, job->uid, 1);
    quota_give(quota, QUOTA_RANKS, job->uid, job->n_local);
    quota_give(quota, QUOTA_SEGMENT, job->uid, job->charged_bytes);
    job->charged = false;
    job->charged_bytes = 0;
}

static void job_free(struct job *job)
{
    struct jobs *jobs = job->jobs;

    HASH_DEL(jobs->table, job);
    foreign_free_all(job);
    jobs->setup.ops->release(jobs->setup.ctx, job);
    job_discharge(jobs, job);
    job_tables_free(job);
    free(job);
    jobs_changed(jobs);
}

/* Everything of the job on this node ends now: processes, connections, memory. */
static void job_close(struct job *job)
{
    const struct job_ops *ops = job->jobs->setup.ops;
    void *ctx = job->jobs->setup.ctx;

    if (job->state == JOB_CLOSING)
        return;
    bool started = job->state == JOB_RUNNING;
    job->state = JOB_CLOSING;
    ops->show_aborting(ctx, job);
    if (started)
        ops->signal(ctx, job, SIGKILL);
    for (uint32_t i = 0; i < job->n_local; i++) {
        if (job->ranks[i].client)
            ops->client_end(ctx, job->ranks[i].client);
        job->ranks[i].client = NULL;
    }
    ops->close_output(ctx, job);
    log_info("job %016llx: over on this node", (unsigned long long)job->id);
    if (job->channels_left == 0)
        job_free(job);
    else
        ops->detach_job(ctx, job);
}

void jobs_free(struct jobs *jobs)
{
    struct job *job, *next;

    if (!jobs)
        return;
    const struct job_ops *ops = jobs->setup.ops;
    HASH_ITER(hh, jobs->table, job, next) {
        if (job->state == JOB_RUNNING)
            ops->signal(jobs->setup.ctx, job, SIGKILL);
        for (uint32_t i = 0; i < job->n_local; i++)
            if (job->ranks[i].client)
                ops->client_end(jobs->setup.ctx, job->ranks[i].client);
        job_free(job);
    }
    free(jobs);
}

void job_on_output(struct job *job, uint32_t world_rank, uint32_t stream, const void *data,
                   uint32_t len, uint64_t now_ns)
{
    Motet__Stdio msg = MOTET__STDIO__INIT;

    msg.job = job->id;
    msg.rank = world_rank;
    msg.stream = stream;
    msg.data.data = (uint8_t *)data;
    msg.data.len = len;
    job_to_home(job, MOTET__FRAME_TYPE__STDIO, &msg.base, now_ns);
}

void job_on_input_taken(struct job *job, uint64_t total, uint64_t now_ns)
{
    Motet__StdioWindow msg = MOTET__STDIO_WINDOW__INIT;

    msg.job = job->id;
    msg.consumed = total;
    msg.has_stream = true;
    msg.stream = 0;
    job_to_home(job, MOTET__FRAME_TYPE__STDIO_WINDOW, &msg.base, now_ns);
}

static void jobs_answer_launch(struct jobs *jobs, uint32_t parent, uint64_t job, const char *error,
                               uint64_t now_ns)
{
    Motet__Launched msg = MOTET__LAUNCHED__INIT;

    msg.job = job;
    msg.ok = error == NULL;
    msg.error = (char *)error;
    int rc = jobs->setup.ops->send(jobs->setup.ctx, parent, MOTET__FRAME_TYPE__LAUNCHED, &msg.base,
                                   now_ns);
    if (rc < 0)
        log_error("job %016llx: the answer to its launch is lost: %s", (unsigned long long)job,
                  strerror(-rc));
}

/* An order goes on as it came. */
static void jobs_to_children(struct jobs *jobs, const struct start *start, uint16_t type,
                             const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    for (uint32_t i = 0; i < start->n_children; i++) {
        int rc =
            jobs->setup.ops->pass_on(jobs->setup.ctx, start->children[i], type, body, len, now_ns);
        if (rc < 0)
            log_error("an order of type %u for node %08x is lost: %s", type, start->children[i],
                      strerror(-rc));
    }
}

/* Makes the job's part on this node. 0 or negative errno with the reason; then nothing is left but
 * the launch message. */
static int job_prepare(struct jobs *jobs, struct job *job, uint64_t now_ns, char *error,
                       size_t size)
{
    const char *here = jobs->setup.config->name;
    char why[QUOTA_WHY_BYTES];
    int rc = job_tables_build(job, jobs->setup.node_id, here, error, size);

    if (rc == 0 && jobs->draining) {
        snprintf(error, size, "node %s is being shut down", here);
        rc = -EINVAL;
    }
    if (rc == 0) {
        rc = job_charge(jobs, job, now_ns, why);
        if (rc < 0)
            snprintf(error, size, "node %s: %s", here, why);
    }
    if (rc < 0)
        return rc;
    rc = jobs->setup.ops->prepare(jobs->setup.ctx, job, error, size);
    if (rc < 0) {
        jobs->setup.ops->release(jobs->setup.ctx, job);
        job_discharge(jobs, job);
    }
    return rc;
}

/* Is the order from a home that has ended, or for a daemon that has? It may have waited long for
 * its way, with a node in between that still lives; nobody will start or end here what it is about.
 */
static bool jobs_launch_is_void(const struct jobs *jobs, const Motet__Launch *launch)
{
    const struct job_ops *ops = jobs->setup.ops;

    if (!ops->epoch)
        return false;
    uint32_t home = ops->epoch(jobs->setup.ctx, launch->home_node),
             own = ops->epoch(jobs->setup.ctx, jobs->setup.node_id);
    if (launch->has_home_epoch && home != 0 && epoch_newer(home, launch->home_epoch))
        return true;
    for (size_t i = 0; i < launch->n_placements; i++) {
        const Motet__Placement *pl = launch->placements[i];
        if (pl->has_node_id && pl->node_id == jobs->setup.node_id && pl->has_epoch && own != 0 &&
            pl->epoch != own)
            return true;
    }
    return false;
}

void jobs_on_launch(struct jobs *jobs, uint32_t src_node, const uint8_t *body, uint32_t len,
                    uint64_t now_ns)
{
    Motet__Launch *launch = motet__launch__unpack(NULL, len, body);
    struct start start;
    char error[512] = "";

    if (!launch || jobs_find(jobs, launch->job) ||
        start_init(&start, jobs->setup.node_id, launch->home_node, launch->placements,
                   launch->n_placements) < 0 ||
        start.parent != src_node) {
        log_warn("launch message from node %08x is not valid, ignoring", src_node);
        if (launch)
            motet__launch__free_unpacked(launch, NULL);
        return;
    }
    uint64_t id = launch->job;
    if (jobs_launch_is_void(jobs, launch)) {
        log_info("job %016llx was to be started here by a daemon, or on one, that has ended since",
                 (unsigned long long)id);
        motet__launch__free_unpacked(launch, NULL);
        return;
    }
    struct job *job = start_over_has(&jobs->over, id) ? NULL : calloc(1, sizeof *job);
    if (!job) {
        bool over = start_over_has(&jobs->over, id);
        motet__launch__free_unpacked(launch, NULL);
        if (over)
            log_info("job %016llx ended before it was to be started here", (unsigned long long)id);
        else
            jobs_answer_launch(jobs, src_node, id, "out of memory", now_ns);
        return;
    }
    /* First, so that all nodes prepare at the same time. */
    jobs_to_children(jobs, &start, MOTET__FRAME_TYPE__LAUNCH, body, len, now_ns);
    list_init(&job->foreign);
    job->jobs = jobs;
    job->node_name = jobs->setup.config->name;
    job->launch = launch;
    job->start = start;
    job->since_ns = now_ns;
    int rc = job_prepare(jobs, job, now_ns, error, sizeof error);
    if (rc < 0) {
        log_notice("job %016llx refused: %s", (unsigned long long)id, error);
        job_tables_free(job);
        free(job);
        jobs_answer_launch(jobs, src_node, id, error, now_ns);
        return;
    }
    for (struct job *other = jobs->table; other; other = other->hh.next)
        if (other->launch->binding && other->launch->binding->to != BINDING_NONE &&
            other->state != JOB_CLOSING)
            job->bind_first += other->n_local;
    HASH_ADD(hh, jobs->table, id, sizeof job->id, job);
    jobs_changed(jobs);
    log_info("job %016llx: %u of %u ranks here, for user %u", (unsigned long long)id, job->n_local,
             job->layout.shape.n_world, (unsigned)job->uid);
    if (start_on_own_ready(&job->start) == START_READY)
        jobs_answer_launch(jobs, src_node, id, NULL, now_ns);
}

void jobs_on_launched(struct jobs *jobs, uint32_t src_node, const Motet__Launched *msg,
                      uint64_t now_ns)
{
    struct job *job = jobs_find(jobs, msg->job);

    if (!job || job->state != JOB_READY || msg->asks)
        return;
    enum start_next next = start_on_answer(&job->start, src_node, msg->ok);
    if (next == START_READY)
        jobs_answer_launch(jobs, job->start.parent, job->id, NULL, now_ns);
    else if (next == START_FAILED)
        jobs_answer_launch(jobs, job->start.parent, job->id,
                           msg->error ? msg->error : "a node refused the job", now_ns);
}

/* Tells home that a rank is over. */
static void job_report_exit(struct job *job, struct job_rank *r, int32_t status, const char *reason,
                            uint64_t now_ns)
{
    Motet__RankExit msg = MOTET__RANK_EXIT__INIT;

    msg.job = job->id;
    msg.rank = r->world;
    msg.node = (char *)job->node_name;
    msg.status = status;
    msg.finalized = r->detached || !r->entered;
    msg.has_entered = true;
    msg.entered = r->entered;
    msg.reason = (char *)reason;
    job_to_home(job, MOTET__FRAME_TYPE__RANK_EXIT, &msg.base, now_ns);
}

/* The rank died: nobody empties or fills its rings any more. */
static void job_drop_rings(struct job *job, struct job_rank *r)
{
    uint32_t local = (uint32_t)(r - job->ranks);

    if (r->let_go || r->detaching > 0)
        return;
    r->let_go = true;
    job->jobs->setup.ops->detach_rank(job->jobs->setup.ctx, job, local, true);
}

/* The rank's process is gone: its rings belong to nobody, its output ends. */
static void job_rank_over(struct job *job, struct job_rank *r, int32_t status, const char *reason,
                          uint64_t now_ns)
{
    const struct jobs_setup *setup = &job->jobs->setup;
    uint32_t local = (uint32_t)(r - job->ranks);

    if (r->state == JOB_RANK_EXITED)
        return;
    r->state = JOB_RANK_EXITED;
    if (r->entered && !r->detached) {
        setup->ops->show_dead(setup->ctx, job, local);
        job_drop_rings(job, r);
    }
    foreign_forget_rank(job, local, now_ns);
    job_report_exit(job, r, status, reason, now_ns);
    setup->ops->end_output(setup->ctx, job, local);
    jobs_changed(job->jobs);
}

/* The job that a message of its home speaks of; NULL if there is none or it came from elsewhere. */
static struct job *jobs_from_home(struct jobs *jobs, uint32_t src_node, uint64_t id)
{
    struct job *job = jobs_find(jobs, id);

    return job && job->home_node == src_node && job->state != JOB_CLOSING ? job : NULL;
}

void jobs_on_start(struct jobs *jobs, uint32_t src_node, const uint8_t *body, uint32_t len,
                   uint64_t now_ns)
{
    Motet__Start *msg = motet__start__unpack(NULL, len, body);
    struct job *job = msg ? jobs_find(jobs, msg->job) : NULL;

    if (job && job->start.parent == src_node && job->state == JOB_READY) {
        jobs_to_children(jobs, &job->start, MOTET__FRAME_TYPE__START, body, len, now_ns);
        job->state = JOB_RUNNING;
        for (uint32_t i = 0; i < job->n_local; i++) {
            job->ranks[i].state = JOB_RANK_STARTING;
            int rc = jobs->setup.ops->start_rank(jobs->setup.ctx, job, i);
            if (rc < 0) {
                char reason[128];
                snprintf(reason, sizeof reason, "cannot be started: %s", strerror(-rc));
                job_rank_over(job, &job->ranks[i], 127 << 8, reason, now_ns);
            }
        }
        for (uint32_t i = 0; i < job->n_early_signals; i++)
            jobs->setup.ops->signal(jobs->setup.ctx, job, job->early_signals[i]);
        jobs_changed(jobs);
    }
    if (msg)
        motet__start__free_unpacked(msg, NULL);
}

/* The job is ended before Start came, which may never come now: its ranks are over without having
 * begun. */
static void job_end_unstarted(struct job *job, int signal, uint64_t now_ns)
{
    job->state = JOB_RUNNING;
    for (uint32_t i = 0; i < job->n_local; i++) {
        job->ranks[i].state = JOB_RANK_EXITED;
        job_on_output(job, job->ranks[i].world, 1, NULL, 0, now_ns);
        job_on_output(job, job->ranks[i].world, 2, NULL, 0, now_ns);
        job_report_exit(job, &job->ranks[i], signal, NULL, now_ns);
    }
}

void jobs_on_kill(struct jobs *jobs, uint32_t src_node, const uint8_t *body, uint32_t len,
                  uint64_t now_ns)
{
    Motet__Kill *msg = motet__kill__unpack(NULL, len, body);
    struct job *job = msg ? jobs_from_home(jobs, src_node, msg->job) : NULL;

    if (job && msg->signal > 0 && msg->signal < NSIG) {
        if (msg->reason)
            jobs->setup.ops->show_aborting(jobs->setup.ctx, job);
        if (job->state == JOB_RUNNING)
            jobs->setup.ops->signal(jobs->setup.ctx, job, msg->signal);
        else if (msg->reason || msg->signal == SIGKILL)
            job_end_unstarted(job, msg->signal, now_ns);
        else if (job->n_early_signals < JOB_EARLY_SIGNALS)
            job->early_signals[job->n_early_signals++] = msg->signal;
    }
    if (msg)
        motet__kill__free_unpacked(msg, NULL);
}

void jobs_on_job_end(struct jobs *jobs, uint32_t src_node, const uint8_t *body, uint32_t len)
{
    Motet__JobEnd *msg = motet__job_end__unpack(NULL, len, body);
    struct job *job = msg ? jobs_from_home(jobs, src_node, msg->job) : NULL;

    if (job)
        job_close(job);
    else if (msg && !jobs_find(jobs, msg->job))
        start_over_note(&jobs->over, msg->job);
    if (msg)
        motet__job_end__free_unpacked(msg, NULL);
}

void jobs_on_stdin(struct jobs *jobs, uint32_t src_node, const Motet__Stdio *msg)
{
    struct job *job = jobs_from_home(jobs, src_node, msg->job);

    if (!job || job_local_of(job, 0) < 0)
        return;
    if (jobs->setup.ops->input(jobs->setup.ctx, job, msg->data.data, (uint32_t)msg->data.len) < 0)
        log_warn("job %016llx: more input than its window allows, ignoring",
                 (unsigned long long)job->id);
}

void jobs_on_window(struct jobs *jobs, uint32_t src_node, const Motet__StdioWindow *msg)
{
    struct job *job = jobs_from_home(jobs, src_node, msg->job);

    if (job)
        jobs->setup.ops->consumed(jobs->setup.ctx, job, msg->consumed);
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
                   !jobs->setup.ops->reachable(jobs->setup.ctx, job->home_node)) {
            /* The job is over, and whoever has to say so cannot. */
            log_warn("job %016llx: node %08x is gone with ranks of it, and its home cannot be "
                     "reached, ending its ranks here",
                     (unsigned long long)job->id, node_id);
            job_close(job);
        }
    }
}

/* Asks the home whether the job still counts on this node: what ended it may have been lost on the
 * way while nodes could not reach each other, and the launch not. */
static void job_ask(struct job *job, uint64_t now_ns)
{
    Motet__Launched msg = MOTET__LAUNCHED__INIT;

    msg.job = job->id;
    msg.has_asks = msg.asks = true;
    job_to_home(job, MOTET__FRAME_TYPE__LAUNCHED, &msg.base, now_ns);
}

void jobs_on_given_up(struct jobs *jobs, uint32_t node_id, uint64_t now_ns)
{
    struct job *job, *next;

    HASH_ITER(hh, jobs->table, job, next) {
        if (job->state != JOB_CLOSING && job->home_node == node_id)
            job_ask(job, now_ns);
    }
}

void jobs_on_spawned(struct jobs *jobs, uint64_t id, uint32_t rank, int32_t pid, const char *error,
                     uint64_t now_ns)
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
        job_rank_over(job, r, 127 << 8, error ? error : "cannot be started", now_ns);
    }
}

void jobs_on_exited(struct jobs *jobs, uint64_t id, uint32_t rank, int32_t status, uint64_t now_ns)
{
    struct job *job = jobs_find(jobs, id);
    int64_t local = job && job->state == JOB_RUNNING ? job_local_of(job, rank) : -1;

    if (local >= 0)
        job_rank_over(job, &job->ranks[local], status, NULL, now_ns);
}

void jobs_on_spawner_lost(struct jobs *jobs, uint64_t now_ns)
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
            if (r->pid > 0)
                jobs->setup.ops->kill_orphan(jobs->setup.ctx, job, r);
            job_rank_over(job, r, SIGKILL, "the spawner of its node died", now_ns);
        }
    }
}

static int jobs_attach_error(struct attach_reply *reply, int error, const char *text)
{
    reply->error = error;
    snprintf(reply->text, sizeof reply->text, "%s", text);
    return error;
}

/* Keys are compared in full, whatever differs first, so that time tells nothing about them. */
static bool jobs_key_equal(const uint8_t *a, const uint8_t *b, size_t n)
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
        return jobs_attach_error(reply, EPROTO,
                                 "the MPI library and the daemon speak different versions");
    struct job *job = jobs_find(jobs, req->job);
    /* One answer for a wrong job, user or key: nothing to learn by trying. */
    if (!job || (uid != job->uid && uid != 0) ||
        !jobs_key_equal(req->key, job->key, sizeof job->key))
        return jobs_attach_error(reply, EACCES,
                                 "no such job of this user with this key on this node");
    if (job->state != JOB_RUNNING)
        return jobs_attach_error(reply, ESRCH, "the job is being ended");
    int64_t local = job_local_of(job, req->world_rank);
    if (local < 0)
        return jobs_attach_error(reply, EINVAL, "this rank does not belong to this node");
    struct job_rank *r = &job->ranks[local];
    if (r->entered)
        return jobs_attach_error(
            reply, EALREADY,
            r->client ? "another process has attached as this rank"
                      : "this rank has used MPI before; once per rank and job is possible");
    if (r->state == JOB_RANK_EXITED)
        return jobs_attach_error(reply, ESRCH, "this rank has ended");
    if (req->fenced && !job->fenced) {
        if (job->any_attached || jobs->setup.config->n_channels > 0)
            return jobs_attach_error(
                reply, ENOSYS,
                "membarrier(2) is forbidden here but works elsewhere on the node: set fenced = yes "
                "in [node] of the daemon's configuration");
        job->fenced = true;
    }
    if (jobs->setup.ops->admit(jobs->setup.ctx, job, (uint32_t)local, pid, ret_fds, ret_n_fds) < 0)
        return jobs_attach_error(reply, EMFILE, "the daemon has no descriptors left");
    r->entered = true;
    r->client = client;
    r->attached_pid = pid;
    job->any_attached = true;
    reply->local_rank = (uint32_t)local;
    reply->fenced = job->fenced;
    reply->shape = job->layout.shape;
    *ret_job = job;
    *ret_local = (uint32_t)local;
    return 0;
}

static void job_rank_detached(struct job *job, uint32_t local)
{
    struct job_rank *r = &job->ranks[local];

    if (r->client && !r->detached)
        job->jobs->setup.ops->client_detached(job->jobs->setup.ctx, r->client);
    r->detached = true;
    jobs_changed(job->jobs);
}

void job_on_detach(struct job *job, uint32_t local)
{
    struct job_rank *r = &job->ranks[local];

    if (r->detached || r->detaching > 0 || job->state != JOB_RUNNING)
        return;
    r->detaching = job->layout.shape.n_channels;
    if (r->detaching == 0)
        job_rank_detached(job, local);
    else
        job->jobs->setup.ops->detach_rank(job->jobs->setup.ctx, job, local, false);
}

void jobs_on_rank_detached(struct jobs *jobs, uint64_t id, uint32_t local)
{
    struct job *job = jobs_find(jobs, id);

    if (!job || local >= job->n_local || job->ranks[local].detaching == 0)
        return;
    if (--job->ranks[local].detaching == 0 && job->state == JOB_RUNNING)
        job_rank_detached(job, local);
}

void jobs_on_job_detached(struct jobs *jobs, uint64_t id)
{
    struct job *job = jobs_find(jobs, id);

    if (!job || job->channels_left == 0)
        return;
    if (--job->channels_left == 0 && job->state == JOB_CLOSING)
        job_free(job);
}

void job_on_abort(struct job *job, uint32_t local, int32_t code, const char *text, uint64_t now_ns)
{
    Motet__Abort msg = MOTET__ABORT__INIT;

    msg.job = job->id;
    msg.rank = job->ranks[local].world;
    msg.code = code;
    msg.text = (char *)text;
    job_to_home(job, MOTET__FRAME_TYPE__ABORT, &msg.base, now_ns);
}

void jobs_end_all(struct jobs *jobs, const char *why, uint64_t now_ns)
{
    for (struct job *job = jobs->table; job; job = job->hh.next)
        if (job->state != JOB_CLOSING)
            job_on_abort(job, 0, 128 + SIGTERM, why, now_ns);
}

void jobs_on_offence(struct jobs *jobs, uint64_t id, uint32_t world_rank, const char *text,
                     uint64_t now_ns)
{
    struct job *job = jobs_find(jobs, id);
    int64_t local = job && job->state == JOB_RUNNING ? job_local_of(job, world_rank) : -1;

    if (local < 0)
        return;
    log_warn("job %016llx rank %u: %s, ending the job", (unsigned long long)id, world_rank, text);
    job_on_abort(job, (uint32_t)local, 1, text, now_ns);
}

void job_forget_client(struct job *job, uint32_t local)
{
    job->ranks[local].client = NULL;
}

void job_on_disconnect(struct job *job, uint32_t local, uint64_t now_ns)
{
    struct job_rank *r = &job->ranks[local];

    r->client = NULL;
    foreign_forget_rank(job, local, now_ns);
    if (r->detached || r->state == JOB_RANK_EXITED)
        return;
    job->jobs->setup.ops->show_dead(job->jobs->setup.ctx, job, local);
    if (job->state != JOB_RUNNING)
        return;
    job_drop_rings(job, r);
    /* Normally the process has ended, and the spawner says how in a moment; see jobs_tick. */
    r->disconnected_ns = now_ns;
}

/* Memory is taken by writing to it, so it is seen afterwards: the job that fills more than its user
 * may have ends. */
static void job_weigh(struct job *job, uint64_t now_ns)
{
    const struct jobs_setup *setup = &job->jobs->setup;
    uint64_t bytes = setup->ops->segment_bytes(setup->ctx, job);
    char why[QUOTA_WHY_BYTES], text[QUOTA_WHY_BYTES + 64];

    int rc =
        quota_change(setup->quota, QUOTA_SEGMENT, job->uid, job->charged_bytes, bytes, now_ns, why);
    bool grows = bytes > job->charged_bytes;
    job->charged_bytes = rc == -ENOMEM ? 0 : bytes;
    if (rc != QUOTA_E_OVER || !grows || job->state != JOB_RUNNING)
        return;
    snprintf(text, sizeof text, "its messages on node %s fill too much memory: %s", job->node_name,
             why);
    job_on_abort(job, 0, 1, text, now_ns);
}

void jobs_tick(struct jobs *jobs, uint64_t now_ns)
{
    struct job *job, *next;

    HASH_ITER(hh, jobs->table, job, next) {
        job_weigh(job, now_ns);
        if (job->state == JOB_READY && now_ns - job->since_ns > READY_LIMIT_NS) {
            log_warn("job %016llx was prepared here and is never started, forgetting it",
                     (unsigned long long)job->id);
            job_close(job);
            continue;
        }
        if (job->state == JOB_READY && now_ns - job->since_ns > (1 + job->n_asked) * READY_ASK_NS) {
            job->n_asked++;
            job_ask(job, now_ns);
        }
        for (uint32_t i = 0; job->state == JOB_RUNNING && i < job->n_local; i++) {
            struct job_rank *r = &job->ranks[i];
            if (r->disconnected_ns == 0 || r->state == JOB_RANK_EXITED ||
                now_ns - r->disconnected_ns < DISCONNECT_GRACE_NS)
                continue;
            r->disconnected_ns = 0;
            /* Its MPI process died under a wrapper that goes on, or it broke the rules of the
             * connection. Either way the others would wait for it for ever. */
            job_on_abort(job, i, 1, "its MPI process left without calling MPI_Finalize", now_ns);
        }
    }
}
