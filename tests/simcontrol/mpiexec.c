/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Those who submit jobs. Each one must hear of the end of its job exactly once, with a reason if it
 * went wrong; it may be impatient, interrupt, kill, or die itself. Its connection ends with the
 * daemon that it speaks to.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/cluster/cluster.h"
#include "daemon/cluster/mail.h"
#include "daemon/jobs/manager.h"
#include "daemon/routing/node_name.h"
#include "daemon/routing/topology.h"
#include "proto/control.pb-c.h"
#include "tests/simcontrol/world.h"

#define MAX_RANKS      64u
#define STDIN_WINDOW   (256u << 10)
#define LONGEST_RUN_NS (4 * CLOCK_NS_PER_S)

struct mpiexec {
    struct list link;
    struct world *world;
    struct host *host;
    uint32_t incarnation;
    uint64_t job; /* 0: not told */
    enum script script;
    uint32_t n_ranks, output;
    bool connected, submitted, refused, ended, killed_it, orphaned, left;
    int32_t code;
    bool has_message;
    bool exited[MAX_RANKS];
    uint32_t n_exited, n_streams_ended;
    uint64_t received[MAX_RANKS][2]; /* bytes of output */
    bool stream_ended[MAX_RANKS][2];
    uint64_t stdin_sent, stdin_taken;
    size_t queued; /* what it has not read yet */
};

void mpiexec_read_script(const char *argv0, enum script *ret_script, uint32_t *ret_culprit,
                         uint64_t *ret_run_ns, uint32_t *ret_output)
{
    unsigned script, culprit, output;
    unsigned long long run_ns;

    if (sscanf(argv0, "%u-%u-%llu-%u", &script, &culprit, &run_ns, &output) != 4)
        abort();
    *ret_script = script;
    *ret_culprit = culprit;
    *ret_run_ns = run_ns;
    *ret_output = output;
}

static struct manager_job *mpiexec_job(const struct mpiexec *m)
{
    return m->connected && m->job ? manager_find(daemon_manager(m->host->daemon), m->job) : NULL;
}

/* ---- what the daemon says ---- */

static void mpiexec_on_output(struct mpiexec *m, const Motet__Stdio *msg)
{
    uint32_t s = msg->stream - 1;

    if (msg->rank >= m->n_ranks || s > 1 || m->stream_ended[msg->rank][s])
        world_fail(m->world, "job %llx: output of rank %u after its end",
                   (unsigned long long)m->job, msg->rank);
    if (msg->data.len == 0) {
        m->stream_ended[msg->rank][s] = true;
        m->n_streams_ended++;
        return;
    }
    /* Each chunk says where in the stream it belongs. */
    uint64_t at;
    if (msg->data.len < sizeof at)
        world_fail(m->world, "a chunk of output is too short");
    memcpy(&at, msg->data.data, sizeof at);
    if (at != m->received[msg->rank][s])
        world_fail(m->world, "job %llx rank %u: output at %llu, expected %llu",
                   (unsigned long long)m->job, msg->rank, (unsigned long long)at,
                   (unsigned long long)m->received[msg->rank][s]);
    m->received[msg->rank][s] += msg->data.len;
    m->queued += msg->data.len;
}

static void mpiexec_on_end(struct mpiexec *m, const Motet__JobEnd *msg)
{
    if (!m->submitted || m->ended || msg->job != m->job)
        world_fail(m->world, "job %llx ended twice, or before it began",
                   (unsigned long long)m->job);
    m->ended = true;
    m->code = msg->code;
    m->has_message = msg->message && msg->message[0];
    world_say(m->world, "job %llx over: code %d, %s", (unsigned long long)m->job, msg->code,
              msg->message ? msg->message : "good");
    if (msg->code != 0 && !m->has_message)
        world_fail(m->world, "job %llx failed without a reason", (unsigned long long)m->job);
    if (msg->code != 0)
        return;
    if (m->n_exited != m->n_ranks || m->n_streams_ended != 2 * m->n_ranks)
        world_fail(m->world, "job %llx was good with %u of %u ranks", (unsigned long long)m->job,
                   m->n_exited, m->n_ranks);
    for (uint32_t r = 0; r < m->n_ranks; r++)
        if (m->received[r][0] < m->output)
            world_fail(m->world, "job %llx rank %u: %llu of %u bytes of output",
                       (unsigned long long)m->job, r, (unsigned long long)m->received[r][0],
                       m->output);
}

static int mpiexec_to_client(void *ctx, void *client, uint16_t type, const ProtobufCMessage *msg)
{
    struct mpiexec *m = client;
    struct world *w = m->world;

    (void)ctx;
    if (!m->connected)
        world_fail(w, "a message of type %u for an mpiexec that is gone", type);
    if (type == MOTET__FRAME_TYPE__SUBMITTED) {
        const Motet__Submitted *s = (const Motet__Submitted *)(const void *)msg;
        if (m->submitted || m->refused)
            world_fail(w, "a submit was answered twice");
        m->submitted = s->ok;
        m->refused = !s->ok;
        if (!s->ok && (!s->error || !s->error[0]))
            world_fail(w, "a submit was refused without a reason");
        if (!s->ok)
            world_say(w, "%s: submit refused: %s", m->host->name, s->error);
    } else if (type == MOTET__FRAME_TYPE__RANK_EXIT) {
        const Motet__RankExit *e = (const Motet__RankExit *)(const void *)msg;
        if (e->rank >= m->n_ranks || m->exited[e->rank])
            world_fail(w, "rank %u of job %llx ended twice", e->rank, (unsigned long long)m->job);
        m->exited[e->rank] = true;
        m->n_exited++;
    } else if (type == MOTET__FRAME_TYPE__STDIO) {
        mpiexec_on_output(m, (const Motet__Stdio *)(const void *)msg);
    } else if (type == MOTET__FRAME_TYPE__STDIO_WINDOW) {
        const Motet__StdioWindow *window = (const Motet__StdioWindow *)(const void *)msg;
        if (window->consumed < m->stdin_taken || window->consumed > m->stdin_sent)
            world_fail(w, "more input was taken than was sent");
        m->stdin_taken = window->consumed;
    } else if (type == MOTET__FRAME_TYPE__JOB_END) {
        mpiexec_on_end(m, (const Motet__JobEnd *)(const void *)msg);
    }
    return 0;
}

static size_t mpiexec_queued(void *ctx, void *client)
{
    (void)ctx;
    return ((struct mpiexec *)client)->queued;
}

static void mpiexec_done(void *ctx, void *client)
{
    struct mpiexec *m = client;

    (void)ctx;
    if (!m->connected || !(m->ended || m->refused))
        world_fail(m->world, "an mpiexec was let go without an answer");
    m->connected = false;
}

static void mpiexec_to_node(void *ctx, uint32_t node_id, uint16_t type, const ProtobufCMessage *msg)
{
    struct daemon *d = ctx;
    struct world *w = daemon_world(d);
    int rc = mail_send_msg(cluster_mail(daemon_cluster(d)), node_id, type, msg, w->now_ns);

    if (rc < 0)
        world_fail(w, "a message of type %u is lost: %s", type, strerror(-rc));
}

static bool mpiexec_reachable(void *ctx, uint32_t node_id)
{
    return cluster_reachable(daemon_cluster(ctx), node_id);
}

static size_t mpiexec_nodes(void *ctx, struct placement_node *ret_nodes, size_t max)
{
    struct daemon *d = ctx;

    if (cluster_draining(daemon_cluster(d)))
        return 0;
    return placement_nodes(cluster_topology(daemon_cluster(d)), node_name_id(daemon_host(d)->name),
                           daemon_host(d)->name, ret_nodes, max);
}

const struct manager_ops mpiexec_ops = {.to_node = mpiexec_to_node,
                                        .to_client = mpiexec_to_client,
                                        .client_queued = mpiexec_queued,
                                        .client_done = mpiexec_done,
                                        .reachable = mpiexec_reachable,
                                        .nodes = mpiexec_nodes};

/* ---- what it does ---- */

/* Reads its output, sometimes late. */
static void mpiexec_on_read(struct world *w, void *object, uint64_t value)
{
    struct mpiexec *m = object;
    struct manager_job *job = mpiexec_job(m);

    (void)value;
    if (!job)
        return;
    if (m->queued > 0) {
        m->queued = 0;
        manager_on_client_drained(daemon_manager(m->host->daemon), job);
    }
    world_after(w, CLOCK_NS_PER_MS * (1 + world_draw(w, 200)), m->host, mpiexec_on_read, m, 0);
}

static void mpiexec_on_input(struct world *w, void *object, uint64_t value)
{
    static uint8_t data[32768];
    struct mpiexec *m = object;
    struct manager_job *job = mpiexec_job(m);
    Motet__Stdio msg = MOTET__STDIO__INIT;

    if (!job || value == 0)
        return;
    if (m->submitted) {
        size_t room = STDIN_WINDOW - (size_t)(m->stdin_sent - m->stdin_taken);
        msg.job = m->job;
        msg.stream = 0;
        msg.data.data = data;
        msg.data.len = room < sizeof data ? room : sizeof data;
        if (job->state != MANAGER_LAUNCHING && !job->ranks[0].exited)
            m->stdin_sent += msg.data.len;
        if (msg.data.len > 0 &&
            manager_on_client_stdin(daemon_manager(m->host->daemon), job, &msg) < 0)
            world_fail(w, "input within the window was refused");
        m->stdin_sent = job->stdin_sent;
    }
    world_after(w, CLOCK_NS_PER_MS * (1 + world_draw(w, 100)), m->host, mpiexec_on_input, m,
                value - 1);
}

static void mpiexec_on_signal(struct world *w, void *object, uint64_t signal)
{
    struct mpiexec *m = object;
    struct manager_job *job = mpiexec_job(m);
    Motet__Kill msg = MOTET__KILL__INIT;

    if (!job)
        return;
    world_say(w, "job %llx: mpiexec sends signal %d", (unsigned long long)m->job, (int)signal);
    msg.job = m->job;
    msg.signal = (int32_t)signal;
    m->killed_it = true;
    manager_on_client_kill(daemon_manager(m->host->daemon), job, &msg, w->now_ns);
    if (m->connected)
        daemon_wake(m->host->daemon);
}

static void mpiexec_on_leave(struct world *w, void *object, uint64_t value)
{
    struct mpiexec *m = object;
    struct manager_job *job = mpiexec_job(m);

    (void)value;
    if (!job)
        return;
    world_say(w, "job %llx: mpiexec dies", (unsigned long long)m->job);
    m->left = true;
    m->connected = false;
    manager_on_client_gone(daemon_manager(m->host->daemon), job);
}

/* When somebody loses patience: at any time, or while the job is being started. */
static uint64_t mpiexec_moment(struct world *w)
{
    return world_draw(w, world_chance(w, 40) ? 30 * CLOCK_NS_PER_MS : LONGEST_RUN_NS);
}

static void mpiexec_plan(struct world *w, struct mpiexec *m)
{
    world_after(w, CLOCK_NS_PER_MS, m->host, mpiexec_on_read, m, 0);
    if (world_chance(w, 20))
        world_after(w, CLOCK_NS_PER_MS, m->host, mpiexec_on_input, m, 1 + world_draw(w, 30));
    if (world_chance(w, 15))
        world_after(w, mpiexec_moment(w), m->host, mpiexec_on_signal, m,
                    world_chance(w, 50) ? SIGKILL : SIGTERM);
    if (world_chance(w, 10))
        world_after(w, mpiexec_moment(w), m->host, mpiexec_on_leave, m, 0);
    /* Nobody waits for a job that hangs. */
    world_after(w, 2 * LONGEST_RUN_NS, m->host, mpiexec_on_signal, m, SIGTERM);
    world_after(w, 3 * LONGEST_RUN_NS, m->host, mpiexec_on_signal, m, SIGKILL);
}

void mpiexec_submit(struct world *w, struct host *host)
{
    struct mpiexec *m = calloc(1, sizeof *m);
    Motet__Submit submit = MOTET__SUBMIT__INIT;
    Motet__App app = MOTET__APP__INIT, *apps[] = {&app};
    char argv0[80], *argv[] = {argv0};
    static const uint8_t key[16] = "sixteen bytes...";

    if (!m)
        abort();
    m->world = w;
    m->host = host;
    m->incarnation = host->incarnation;
    m->connected = true;
    m->n_ranks = 1 + (uint32_t)world_draw(w, world_chance(w, 50) ? MAX_RANKS : 8);
    m->output = world_chance(w, 40) ? 8 + (uint32_t)world_draw(w, 100000) : 100;
    m->script = world_chance(w, 60) ? SCRIPT_MPI : (enum script)world_draw(w, SCRIPT_N);
    list_init(&m->link);
    list_append(&w->jobs, &m->link);
    w->n_submitted++;
    snprintf(argv0, sizeof argv0, "%u-%u-%llu-%u", (unsigned)m->script,
             (unsigned)world_draw(w, m->n_ranks),
             (unsigned long long)world_draw(w, world_chance(w, 50) ? LONGEST_RUN_NS
                                                                   : 50 * CLOCK_NS_PER_MS),
             m->output);
    app.n_argv = 1;
    app.argv = argv;
    app.n_ranks = m->n_ranks;
    submit.n_apps = 1;
    submit.apps = apps;
    submit.wdir = (char *)"/";
    submit.has_ranks_per_node = world_chance(w, 80);
    submit.ranks_per_node = 1 + (uint32_t)world_draw(w, 4);
    submit.stdin_to_rank0 = true;
    struct manager_job *job = manager_submit(daemon_manager(host->daemon), m, getuid(), getgid(),
                                             &submit, key, w->now_ns);
    if (!job) {
        /* As the daemon does with a client whose submit was refused at once. */
        m->connected = false;
        if (!m->refused)
            world_fail(w, "a submit was neither taken nor refused");
        return;
    }
    m->job = job->id;
    world_say(w, "%s: job %llx, %u ranks on %zu nodes, script %u", host->name,
              (unsigned long long)m->job, m->n_ranks, job->placement.n_placements, m->script);
    cluster_note_busy(daemon_cluster(host->daemon));
    daemon_wake(host->daemon);
    mpiexec_plan(w, m);
}

void mpiexec_daemon_ended(struct world *w, struct host *host)
{
    list_foreach(it, &w->jobs) {
        struct mpiexec *m = list_entry(it, struct mpiexec, link);
        if (m->host == host && m->connected) {
            m->connected = false;
            m->orphaned = true;
        }
    }
}

void mpiexec_deinit(struct world *w)
{
    list_foreach_safe(it, &w->jobs) {
        struct mpiexec *m = list_entry(it, struct mpiexec, link);
        if (m->connected)
            world_fail(w, "the mpiexec of job %llx on %s waits for ever",
                       (unsigned long long)m->job, m->host->name);
        w->n_refused += m->refused;
        w->n_orphaned += m->orphaned || m->left;
        w->n_good += m->ended && m->code == 0;
        w->n_failed += m->ended && m->code != 0;
        if (!m->refused && !m->orphaned && !m->left && !m->ended)
            world_fail(w, "job %llx has no end", (unsigned long long)m->job);
        list_remove(it);
        free(m);
    }
}
