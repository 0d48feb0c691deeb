/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's part on a node: what its home, the spawner, the ranks' connections and the channels say,
 * in every order that they may, and what the node says to the home of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/config.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/quota.h"
#include "daemon/routing/node_name.h"
#include "proto/frame.h"

#define JOB        0x1234u
#define N_LOCAL    2u
#define N_CHANNELS 2u
#define FAR_RANK   2u /* of the job's other node */

static const uint8_t key[16] = {1, 2, 3};

/* What the node was asked to do, and what it told. */
struct seen {
    uint32_t n_exits[N_LOCAL], n_ends[N_LOCAL], n_detached[N_LOCAL], n_dropped[N_LOCAL];
    int32_t status[N_LOCAL];
    bool finalized[N_LOCAL];
    uint32_t n_ok, n_refused, n_asked, n_aborts, abort_rank, n_streams_ended;
    int32_t abort_code;
    char text[200]; /* of the last refusal, exit or abort */
    uint32_t n_started, n_released, n_detach_job, n_aborting, n_dead, n_orphans;
    int signals[16];
    uint32_t n_signals;
    uint32_t n_connections_ended;
};

struct node {
    struct config config;
    struct jobs *jobs;
    struct quota *quota;
    uint64_t segment_bytes;
    struct seen seen;
    uint32_t here, there, home;
    bool home_reachable;
    int prepare_error, start_error, admit_error;
    uint64_t now_ns;
};

static void keep_text(struct seen *seen, const char *text)
{
    snprintf(seen->text, sizeof seen->text, "%s", text ? text : "");
}

static int send_mail(void *ctx, uint32_t node_id, uint16_t type, const ProtobufCMessage *msg,
                     uint64_t now_ns)
{
    struct node *n = ctx;
    struct seen *seen = &n->seen;

    (void)now_ns;
    assert_int_equal(node_id, n->home);
    if (type == MOTET__FRAME_TYPE__LAUNCHED) {
        const Motet__Launched *m = (const Motet__Launched *)msg;
        if (m->asks)
            seen->n_asked++;
        else
            m->ok ? seen->n_ok++ : seen->n_refused++;
        if (!m->asks && !m->ok)
            keep_text(seen, m->error);
    } else if (type == MOTET__FRAME_TYPE__RANK_EXIT) {
        const Motet__RankExit *m = (const Motet__RankExit *)msg;
        assert_true(m->rank < N_LOCAL);
        seen->n_exits[m->rank]++;
        seen->status[m->rank] = m->status;
        seen->finalized[m->rank] = m->finalized;
        keep_text(seen, m->reason);
    } else if (type == MOTET__FRAME_TYPE__ABORT) {
        const Motet__Abort *m = (const Motet__Abort *)msg;
        seen->n_aborts++;
        seen->abort_rank = m->rank;
        seen->abort_code = m->code;
        keep_text(seen, m->text);
    } else if (type == MOTET__FRAME_TYPE__STDIO) {
        seen->n_streams_ended += ((const Motet__Stdio *)msg)->data.len == 0;
    }
    return 0;
}

static int pass_on(void *ctx, uint32_t node_id, uint16_t type, const uint8_t *body, uint32_t len,
                   uint64_t now_ns)
{
    (void)ctx, (void)node_id, (void)type, (void)body, (void)len, (void)now_ns;
    fail_msg("the node is a leaf of the tree");
    return 0;
}

static bool reachable(void *ctx, uint32_t node_id)
{
    struct node *n = ctx;

    return node_id != n->home || n->home_reachable;
}

static void changed(void *ctx)
{
    (void)ctx;
}

static int prepare(void *ctx, struct job *job, char *error, size_t size)
{
    struct node *n = ctx;

    job->layout.shape.n_channels = N_CHANNELS;
    if (n->prepare_error)
        snprintf(error, size, "no memory here");
    else
        job->channels_left = N_CHANNELS;
    return n->prepare_error;
}

static void release(void *ctx, struct job *job)
{
    (void)job;
    ((struct node *)ctx)->seen.n_released++;
}

static uint64_t segment_bytes(void *ctx, const struct job *job)
{
    (void)job;
    return ((const struct node *)ctx)->segment_bytes;
}

static void detach_rank(void *ctx, struct job *job, uint32_t local, bool dead)
{
    struct seen *seen = &((struct node *)ctx)->seen;

    (void)job;
    seen->n_dropped[local] += dead;
}

static void detach_job(void *ctx, struct job *job)
{
    (void)job;
    ((struct node *)ctx)->seen.n_detach_job++;
}

static void show_aborting(void *ctx, struct job *job)
{
    (void)job;
    ((struct node *)ctx)->seen.n_aborting++;
}

static void show_dead(void *ctx, struct job *job, uint32_t local)
{
    (void)job, (void)local;
    ((struct node *)ctx)->seen.n_dead++;
}

static int admit(void *ctx, struct job *job, uint32_t local, pid_t pid, int *ret_fds,
                 int *ret_n_fds)
{
    (void)job, (void)local, (void)pid, (void)ret_fds;
    *ret_n_fds = 0;
    return ((struct node *)ctx)->admit_error;
}

static int start_rank(void *ctx, struct job *job, uint32_t local)
{
    struct node *n = ctx;

    (void)job, (void)local;
    n->seen.n_started++;
    return n->start_error;
}

static void send_signal(void *ctx, const struct job *job, int signal)
{
    struct seen *seen = &((struct node *)ctx)->seen;

    (void)job;
    assert_true(seen->n_signals < 16);
    seen->signals[seen->n_signals++] = signal;
}

static void kill_orphan(void *ctx, const struct job *job, const struct job_rank *rank)
{
    (void)job;
    assert_true(rank->pid > 0);
    ((struct node *)ctx)->seen.n_orphans++;
}

static void end_output(void *ctx, struct job *job, uint32_t local)
{
    (void)job;
    ((struct node *)ctx)->seen.n_ends[local]++;
}

static void close_output(void *ctx, struct job *job)
{
    (void)ctx, (void)job;
}

static int input(void *ctx, struct job *job, const void *data, uint32_t len)
{
    (void)ctx, (void)job, (void)data, (void)len;
    return 0;
}

static void consumed(void *ctx, struct job *job, uint64_t total)
{
    (void)ctx, (void)job, (void)total;
}

static void client_detached(void *ctx, struct client *client)
{
    struct seen *seen = &((struct node *)ctx)->seen;

    seen->n_detached[(uintptr_t)client - 1]++;
}

static void client_end(void *ctx, struct client *client)
{
    (void)client;
    ((struct node *)ctx)->seen.n_connections_ended++;
}

static const struct job_ops ops = {.send = send_mail,
                                   .pass_on = pass_on,
                                   .reachable = reachable,
                                   .changed = changed,
                                   .prepare = prepare,
                                   .release = release,
                                   .segment_bytes = segment_bytes,
                                   .detach_rank = detach_rank,
                                   .detach_job = detach_job,
                                   .show_aborting = show_aborting,
                                   .show_dead = show_dead,
                                   .admit = admit,
                                   .start_rank = start_rank,
                                   .signal = send_signal,
                                   .kill_orphan = kill_orphan,
                                   .end_output = end_output,
                                   .close_output = close_output,
                                   .input = input,
                                   .consumed = consumed,
                                   .client_detached = client_detached,
                                   .client_end = client_end};

/* ---- what the home says ---- */

typedef void order(struct jobs *jobs, uint32_t src, const uint8_t *body, uint32_t len,
                   uint64_t now_ns);

static void give(struct node *n, order *fn, uint32_t src, const ProtobufCMessage *msg)
{
    uint8_t body[2048];

    assert_true(protobuf_c_message_get_packed_size(msg) <= sizeof body);
    fn(n->jobs, src, body, (uint32_t)protobuf_c_message_pack(msg, body), n->now_ns);
}

static void launch_from(struct node *n, uint32_t src)
{
    Motet__Launch msg = MOTET__LAUNCH__INIT;
    Motet__App app = MOTET__APP__INIT;
    Motet__Placement placements[2] = {MOTET__PLACEMENT__INIT, MOTET__PLACEMENT__INIT};
    uint32_t ranks[] = {0, 1, 2, 3};

    app.n_ranks = 4;
    app.n_argv = 1;
    app.argv = (char *[]){(char *)"/bin/prog"};
    placements[0].node = (char *)"here";
    placements[0].node_id = n->here;
    placements[1].node = (char *)"there";
    placements[1].node_id = n->there;
    for (int i = 0; i < 2; i++) {
        placements[i].has_node_id = true;
        placements[i].n_ranks = 2;
        placements[i].ranks = &ranks[2 * i];
    }
    msg.job = JOB;
    msg.key.data = (uint8_t *)key;
    msg.key.len = sizeof key;
    msg.home_node = n->home;
    msg.n_apps = 1;
    msg.apps = (Motet__App *[]){&app};
    msg.n_placements = 2;
    msg.placements = (Motet__Placement *[]){&placements[0], &placements[1]};
    msg.wdir = msg.name = (char *)"/";
    msg.uid = 1000;
    give(n, jobs_on_launch, src, &msg.base);
}

static void start(struct node *n)
{
    Motet__Start msg = MOTET__START__INIT;

    msg.job = JOB;
    give(n, jobs_on_start, n->home, &msg.base);
}

static void kill_from(struct node *n, uint32_t src, int signal, const char *reason)
{
    Motet__Kill msg = MOTET__KILL__INIT;

    msg.job = JOB;
    msg.signal = signal;
    msg.reason = (char *)reason;
    give(n, jobs_on_kill, src, &msg.base);
}

static void end_from(struct node *n, uint32_t src)
{
    Motet__JobEnd msg = MOTET__JOB_END__INIT;
    uint8_t body[100];

    msg.job = JOB;
    jobs_on_job_end(n->jobs, src, body, (uint32_t)protobuf_c_message_pack(&msg.base, body));
}

static struct client *client_of(uint32_t rank)
{
    return (struct client *)(uintptr_t)(rank + 1);
}

static int attach(struct node *n, uint32_t rank, uid_t uid, struct attach_reply *reply)
{
    struct attach_request request = {.version = ATTACH_VERSION, .job = JOB, .world_rank = rank};
    int fds[HOP_MAX_CHANNELS + 2], n_fds;
    struct job *job;
    uint32_t local;

    memcpy(request.key, key, sizeof key);
    return jobs_attach(n->jobs, client_of(rank), &request, uid, 77, reply, fds, &n_fds, &job,
                       &local);
}

/* ---- life ---- */

static int set_up(void **state)
{
    struct node *n = calloc(1, sizeof *n);

    assert_non_null(n);
    config_defaults(&n->config);
    snprintf(n->config.name, sizeof n->config.name, "here");
    n->here = node_name_id("here");
    n->there = node_name_id("there");
    n->home = node_name_id("home");
    n->home_reachable = true;
    n->now_ns = CLOCK_NS_PER_S;
    const struct quota_host host = {.n_files = 10000, .memory_bytes = 1 << 30, .own = 1};
    n->quota = quota_new(&n->config, &host);
    assert_non_null(n->quota);
    struct jobs_setup setup = {
        .config = &n->config, .quota = n->quota, .node_id = n->here, .ops = &ops, .ctx = n};
    n->jobs = jobs_new(&setup);
    assert_non_null(n->jobs);
    *state = n;
    return 0;
}

static int tear_down(void **state)
{
    struct node *n = *state;

    jobs_free(n->jobs);
    /* Whatever happened: nothing stays charged. */
    for (int kind = 0; kind < QUOTA_KINDS; kind++)
        assert_int_equal(quota_used(n->quota, (enum quota_kind)kind, 1000), 0);
    quota_free(n->quota);
    free(n);
    return 0;
}

static void run(struct node *n)
{
    launch_from(n, n->home);
    assert_int_equal(n->seen.n_ok, 1);
    start(n);
    assert_int_equal(n->seen.n_started, N_LOCAL);
    for (uint32_t r = 0; r < N_LOCAL; r++)
        jobs_on_spawned(n->jobs, JOB, r, 100 + (int)r, NULL, n->now_ns);
}

/* Every channel lets go of the job. */
static void let_go(struct node *n)
{
    assert_int_equal(n->seen.n_detach_job, 1);
    for (uint32_t c = 0; c < N_CHANNELS; c++)
        jobs_on_job_detached(n->jobs, JOB);
    assert_null(jobs_find(n->jobs, JOB));
    assert_int_equal(n->seen.n_released, 1);
}

/* ---- tests ---- */

static void test_a_whole_life(void **state)
{
    struct node *n = *state;
    struct attach_reply reply;
    bool networked;

    run(n);
    assert_int_equal(jobs_n_running(n->jobs, &networked), N_LOCAL);
    assert_true(networked);
    for (uint32_t r = 0; r < N_LOCAL; r++) {
        assert_int_equal(attach(n, r, 1000, &reply), 0);
        assert_int_equal(reply.local_rank, r);
    }
    for (uint32_t r = 0; r < N_LOCAL; r++) {
        struct job *job = jobs_find(n->jobs, JOB);
        job_on_detach(job, r);
        job_on_detach(job, r); /* said twice: once is enough */
        jobs_on_rank_detached(n->jobs, JOB, r);
        assert_int_equal(n->seen.n_detached[r], 0);
        jobs_on_rank_detached(n->jobs, JOB, r);
        assert_int_equal(n->seen.n_detached[r], 1);
        job_on_disconnect(job, r, n->now_ns);
        jobs_on_exited(n->jobs, JOB, r, 0, n->now_ns);
        assert_int_equal(n->seen.n_exits[r], 1);
        assert_true(n->seen.finalized[r]);
        assert_int_equal(n->seen.n_dropped[r], 0);
    }
    assert_int_equal(jobs_n_running(n->jobs, &networked), 0);
    end_from(n, n->there); /* not its home: a stranger ends nothing */
    assert_int_equal(n->seen.n_detach_job, 0);
    end_from(n, n->home);
    let_go(n);
}

/* A rank that is said to have ended once more, or that could not be started and yet ends, is
 * reported once, and its output ends once. */
static void test_a_rank_ends_once(void **state)
{
    struct node *n = *state;

    launch_from(n, n->home);
    start(n);
    jobs_on_spawned(n->jobs, JOB, 0, -1, "no such program", n->now_ns);
    assert_int_equal(n->seen.status[0], 127 << 8);
    assert_string_equal(n->seen.text, "no such program");
    jobs_on_exited(n->jobs, JOB, 0, 9, n->now_ns);
    jobs_on_spawned(n->jobs, JOB, 1, 101, NULL, n->now_ns);
    jobs_on_exited(n->jobs, JOB, 1, SIGSEGV, n->now_ns);
    jobs_on_exited(n->jobs, JOB, 1, 0, n->now_ns);
    jobs_on_spawner_lost(n->jobs, n->now_ns);
    assert_int_equal(n->seen.n_orphans, 0);
    for (uint32_t r = 0; r < N_LOCAL; r++) {
        assert_int_equal(n->seen.n_exits[r], 1);
        assert_int_equal(n->seen.n_ends[r], 1);
    }
    assert_int_equal(n->seen.status[0], 127 << 8);
    assert_int_equal(n->seen.status[1], SIGSEGV);
    jobs_on_exited(n->jobs, JOB, FAR_RANK, 0, n->now_ns); /* of another node: nothing */
    jobs_on_exited(n->jobs, JOB + 1, 0, 0, n->now_ns);
}

/* SIGKILL before Start: the ranks are over without having begun, and their streams with them. Start
 * comes too late then. */
static void test_killed_before_start(void **state)
{
    struct node *n = *state;

    launch_from(n, n->home);
    kill_from(n, n->there, SIGKILL, NULL); /* a stranger kills nothing */
    assert_int_equal(n->seen.n_exits[0], 0);
    kill_from(n, n->home, SIGKILL, NULL);
    for (uint32_t r = 0; r < N_LOCAL; r++) {
        assert_int_equal(n->seen.n_exits[r], 1);
        assert_int_equal(n->seen.status[r], SIGKILL);
    }
    assert_int_equal(n->seen.n_streams_ended, 2 * N_LOCAL);
    start(n);
    assert_int_equal(n->seen.n_started, 0);
    end_from(n, n->home);
    let_go(n);
}

/* Other signals wait for the ranks, as many as are kept; numbers that are none are passed over. */
static void test_signals_before_start(void **state)
{
    struct node *n = *state;

    launch_from(n, n->home);
    kill_from(n, n->home, 0, NULL);
    kill_from(n, n->home, NSIG, NULL);
    kill_from(n, n->home, -1, NULL);
    for (int i = 0; i < JOB_EARLY_SIGNALS + 3; i++)
        kill_from(n, n->home, i == 0 ? SIGUSR2 : SIGUSR1, NULL);
    assert_int_equal(n->seen.n_signals, 0);
    start(n);
    assert_int_equal(n->seen.n_signals, JOB_EARLY_SIGNALS);
    assert_int_equal(n->seen.signals[0], SIGUSR2);
    assert_int_equal(n->seen.signals[1], SIGUSR1);
    kill_from(n, n->home, SIGTERM, "because");
    assert_int_equal(n->seen.signals[JOB_EARLY_SIGNALS], SIGTERM);
    assert_int_equal(n->seen.n_aborting, 1);
}

/* The end may overtake the order to prepare, which then prepares nothing. */
static void test_end_before_launch(void **state)
{
    struct node *n = *state;

    end_from(n, n->home);
    launch_from(n, n->home);
    assert_null(jobs_find(n->jobs, JOB));
    assert_int_equal(n->seen.n_ok + n->seen.n_refused, 0);
}

static void test_refused(void **state)
{
    struct node *n = *state;

    launch_from(n, n->there); /* not the parent in the tree */
    assert_null(jobs_find(n->jobs, JOB));
    assert_int_equal(n->seen.n_refused, 0);
    n->prepare_error = -ENOMEM;
    launch_from(n, n->home);
    assert_int_equal(n->seen.n_refused, 1);
    assert_string_equal(n->seen.text, "no memory here");
    assert_int_equal(n->seen.n_released, 1);
    n->prepare_error = 0;
    n->config.max_jobs = 0;
    launch_from(n, n->home);
    assert_int_equal(n->seen.n_refused, 2);
    assert_non_null(strstr(n->seen.text, "max_jobs"));
    n->config.max_jobs = 10;
    jobs_drain(n->jobs);
    launch_from(n, n->home);
    assert_int_equal(n->seen.n_refused, 3);
    assert_non_null(strstr(n->seen.text, "shut down"));
    assert_null(jobs_find(n->jobs, JOB));
}

/* A user's ranks and memory are counted; a job that fills more than its user may have ends. */
static void test_quota(void **state)
{
    struct node *n = *state;

    n->config.user_ranks = N_LOCAL - 1;
    launch_from(n, n->home);
    assert_int_equal(n->seen.n_refused, 1);
    assert_string_equal(n->seen.text, "node here: user 1000 has 0 ranks, 2 more are too many: "
                                      "user_ranks = 1");
    n->config.user_ranks = N_LOCAL;
    n->config.user_segment_bytes = 1 << 20;
    launch_from(n, n->home);
    start(n);
    assert_int_equal(quota_used(n->quota, QUOTA_RANKS, 1000), N_LOCAL);
    assert_int_equal(quota_used(n->quota, QUOTA_JOBS, 1000), 1);
    n->segment_bytes = 1 << 20;
    jobs_tick(n->jobs, n->now_ns);
    assert_int_equal(n->seen.n_aborts, 0);
    n->segment_bytes++;
    jobs_tick(n->jobs, n->now_ns);
    assert_int_equal(n->seen.n_aborts, 1);
    assert_non_null(strstr(n->seen.text, "user_segment_bytes = 1048576"));
    assert_int_equal(quota_used(n->quota, QUOTA_SEGMENT, 1000), (1 << 20) + 1);
}

/* Who may be a rank: a process of the job's user or root with its key, once for each rank that is
 * here and lives. */
static void test_attach(void **state)
{
    struct attach_request request = {.version = ATTACH_VERSION, .job = JOB};
    struct node *n = *state;
    struct attach_reply reply;
    int fds[HOP_MAX_CHANNELS + 2], n_fds;
    struct job *job;
    uint32_t local;

    launch_from(n, n->home);
    assert_int_equal(attach(n, 0, 1000, &reply), ESRCH); /* not started */
    start(n);
    assert_int_equal(attach(n, 0, 1001, &reply), EACCES);
    for (size_t i = 0; i < sizeof key; i++) {
        memcpy(request.key, key, sizeof key);
        request.key[i] ^= 1;
        assert_int_equal(jobs_attach(n->jobs, client_of(0), &request, 1000, 77, &reply, fds, &n_fds,
                                     &job, &local),
                         EACCES);
    }
    request.version++;
    assert_int_equal(
        jobs_attach(n->jobs, client_of(0), &request, 1000, 77, &reply, fds, &n_fds, &job, &local),
        EPROTO);
    assert_int_equal(attach(n, FAR_RANK, 1000, &reply), EINVAL);
    assert_int_equal(attach(n, 4, 1000, &reply), EINVAL);
    n->admit_error = -EMFILE;
    assert_int_equal(attach(n, 0, 1000, &reply), EMFILE);
    n->admit_error = 0;
    assert_int_equal(attach(n, 0, 1000, &reply), 0);
    assert_int_equal(attach(n, 0, 1000, &reply), EALREADY);
    assert_non_null(strstr(reply.text, "another process"));
    job_on_disconnect(jobs_find(n->jobs, JOB), 0, n->now_ns);
    assert_int_equal(attach(n, 0, 0, &reply), EALREADY);
    assert_non_null(strstr(reply.text, "before"));
    jobs_on_exited(n->jobs, JOB, 1, 0, n->now_ns);
    assert_int_equal(attach(n, 1, 0, &reply), ESRCH); /* over */
}

/* A connection that ends is a rank that died, or one whose MPI process left a wrapper behind. */
static void test_a_rank_vanishes(void **state)
{
    struct node *n = *state;
    struct attach_reply reply;

    run(n);
    for (uint32_t r = 0; r < N_LOCAL; r++)
        assert_int_equal(attach(n, r, 1000, &reply), 0);
    job_on_disconnect(jobs_find(n->jobs, JOB), 0, n->now_ns);
    assert_int_equal(n->seen.n_dropped[0], 1);
    assert_int_equal(n->seen.n_dead, 1);
    jobs_on_exited(n->jobs, JOB, 0, SIGKILL, n->now_ns);
    assert_int_equal(n->seen.n_dropped[0], 1); /* once */
    assert_false(n->seen.finalized[0]);
    job_on_disconnect(jobs_find(n->jobs, JOB), 1, n->now_ns);
    jobs_tick(n->jobs, n->now_ns);
    assert_int_equal(n->seen.n_aborts, 0);
    for (int i = 0; i < 60; i++)
        jobs_tick(n->jobs, n->now_ns += CLOCK_NS_PER_S);
    assert_int_equal(n->seen.n_aborts, 1);
    assert_int_equal(n->seen.abort_rank, 1);
    assert_non_null(strstr(n->seen.text, "without calling MPI_Finalize"));
}

static void test_offences_and_aborts(void **state)
{
    struct node *n = *state;

    run(n);
    jobs_on_offence(n->jobs, JOB, 1, "its ring holds rubbish", n->now_ns);
    assert_int_equal(n->seen.n_aborts, 1);
    assert_int_equal(n->seen.abort_rank, 1);
    assert_string_equal(n->seen.text, "its ring holds rubbish");
    jobs_on_offence(n->jobs, JOB, FAR_RANK, "rubbish", n->now_ns);
    jobs_on_offence(n->jobs, JOB + 1, 0, "rubbish", n->now_ns);
    assert_int_equal(n->seen.n_aborts, 1);
    job_on_abort(jobs_find(n->jobs, JOB), 0, 42, NULL, n->now_ns);
    assert_int_equal(n->seen.abort_code, 42);
    jobs_end_all(n->jobs, "its node is being shut down", n->now_ns);
    assert_int_equal(n->seen.n_aborts, 3);
    assert_int_equal(n->seen.abort_code, 128 + SIGTERM);
    end_from(n, n->home);
    jobs_end_all(n->jobs, "its node is being shut down", n->now_ns);
    assert_int_equal(n->seen.n_aborts, 3); /* it is over already */
    let_go(n);
}

/* The spawner dies: processes that ran are ended, ranks are over with that reason. */
static void test_spawner_lost(void **state)
{
    struct node *n = *state;

    run(n);
    jobs_on_spawner_lost(n->jobs, n->now_ns);
    assert_int_equal(n->seen.n_orphans, N_LOCAL);
    for (uint32_t r = 0; r < N_LOCAL; r++) {
        assert_int_equal(n->seen.n_exits[r], 1);
        assert_int_equal(n->seen.status[r], SIGKILL);
    }
    assert_non_null(strstr(n->seen.text, "spawner"));
}

static void test_start_fails(void **state)
{
    struct node *n = *state;

    n->start_error = -ENOMEM;
    launch_from(n, n->home);
    start(n);
    for (uint32_t r = 0; r < N_LOCAL; r++) {
        assert_int_equal(n->seen.n_exits[r], 1);
        assert_int_equal(n->seen.status[r], 127 << 8);
    }
}

/* Of a home that is gone nobody will hear an end; of another node's loss it will, while it can be
 * reached. */
static void test_nodes_lost(void **state)
{
    struct node *n = *state;

    run(n);
    jobs_on_node_lost(n->jobs, n->there);
    jobs_on_node_lost(n->jobs, node_name_id("elsewhere"));
    assert_int_equal(n->seen.n_detach_job, 0);
    n->home_reachable = false;
    jobs_on_node_lost(n->jobs, node_name_id("elsewhere"));
    assert_int_equal(n->seen.n_detach_job, 0);
    jobs_on_node_lost(n->jobs, n->there);
    assert_int_equal(n->seen.signals[0], SIGKILL);
    jobs_on_node_lost(n->jobs, n->home); /* closing already */
    let_go(n);
}

static void test_home_lost(void **state)
{
    struct node *n = *state;

    run(n);
    jobs_on_node_lost(n->jobs, n->home);
    assert_int_equal(n->seen.n_signals, 1);
    let_go(n);
}

/* A home that had lost this node is asked whether the job still counts on it; others are not. */
static void test_given_up(void **state)
{
    struct node *n = *state;

    run(n);
    jobs_on_given_up(n->jobs, n->there, n->now_ns);
    assert_int_equal(n->seen.n_asked, 0);
    jobs_on_given_up(n->jobs, n->home, n->now_ns);
    assert_int_equal(n->seen.n_asked, 1);
    assert_int_equal(n->seen.n_signals, 0);
    end_from(n, n->home);
    jobs_on_given_up(n->jobs, n->home, n->now_ns);
    assert_int_equal(n->seen.n_asked, 1);
    let_go(n);
}

/* What was prepared and is never started is forgotten. */
static void test_never_started(void **state)
{
    struct node *n = *state;

    launch_from(n, n->home);
    for (int i = 0; i < 59; i++)
        jobs_tick(n->jobs, n->now_ns += CLOCK_NS_PER_S);
    assert_int_equal(n->seen.n_detach_job, 0);
    for (int i = 0; i < 3; i++)
        jobs_tick(n->jobs, n->now_ns += CLOCK_NS_PER_S);
    assert_int_equal(n->seen.n_signals, 0); /* there was nobody */
    let_go(n);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_whole_life),
        TEST(test_a_rank_ends_once),
        TEST(test_killed_before_start),
        TEST(test_signals_before_start),
        TEST(test_end_before_launch),
        TEST(test_refused),
        TEST(test_quota),
        TEST(test_attach),
        TEST(test_a_rank_vanishes),
        TEST(test_offences_and_aborts),
        TEST(test_spawner_lost),
        TEST(test_start_fails),
        TEST(test_nodes_lost),
        TEST(test_given_up),
        TEST(test_home_lost),
        TEST(test_never_started),
    };

    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
