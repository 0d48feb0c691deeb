/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/run.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "launcher/mpiexec/command/outfile.h"
#include "launcher/mpiexec/explain.h"
#include "launcher/mpiexec/frame_stream.h"
#include "launcher/mpiexec/input.h"
#include "launcher/mpiexec/lines.h"
#include "launcher/mpiexec/output.h"
#include "launcher/mpiexec/signals.h"
#include "proto/attach.h"
#include "proto/control.pb-c.h"

#define EXIT_LOST    1
#define EXIT_TIMEOUT 124 /* as timeout(1) */
#define END_LIMIT_NS (5 * CLOCK_NS_PER_S)
/* While so much output waits for a slow reader, none is taken from the daemon, which in turn lets
 * the ranks wait. */
#define OUTPUT_HIGH_BYTES (4u << 20)
/* After a kill nothing waits for the reader any more: what exceeds this is dropped. */
#define OUTPUT_DROP_BYTES (64u << 20)
/* Ranks that ignore SIGPIPE and go on writing to nobody for this long are ended. */
#define NOBODY_READS_NS (2 * CLOCK_NS_PER_S)

enum run_state { RUN_SUBMITTED, RUN_RUNNING, RUN_ENDING, RUN_OVER };

/* A job that a rank has spawned, directly or not. */
struct child {
    struct child *next;
    uint64_t job;
    uint32_t n_ranks;
    struct lines lines[2];
};

struct run {
    const struct run_options *options;
    enum run_state state;
    struct frame_stream daemon;
    struct input input;
    struct output out[2]; /* stdout, stderr */
    struct lines lines[2];
    struct outfile_set files;
    uint32_t n_ranks;
    uint64_t job;
    bool own_over; /* the job itself is; children may go on */
    struct child *children;
    int exit_code;
    int forced_code;     /* > 0: mpiexec itself decided how this ends */
    int n_interrupts;    /* INT and TERM so far */
    uint64_t timeout_ns; /* points in time; UINT64_MAX: none */
    uint64_t give_up_ns;
    uint64_t nobody_reads_ns;
    bool output_lost;   /* a file could not be written */
    bool failure_known; /* the first rank that failed has been seen */
    char failure[256];
};

/* A line of mpiexec's own goes through the same queue as the ranks', or it could tear one of
 * theirs. */
static void run_say(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void run_say(struct run *r, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    bytes_append(&r->out[1].queue, "mpiexec: ", 9);
    bytes_append(&r->out[1].queue, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    bytes_append(&r->out[1].queue, "\n", 1);
}

/* ---- to the daemon ---- */

static void daemon_lost(struct run *r, int rc)
{
    if (r->state != RUN_ENDING)
        run_say(r, "the connection to the daemon is lost (%s); the job has been ended",
                rc == -ECONNRESET || rc == -EPIPE ? "it ended" : strerror(-rc));
    r->exit_code = r->forced_code ? r->forced_code : EXIT_LOST;
    r->state = RUN_OVER;
}

static void run_send_signal_to(struct run *r, uint64_t job, int signal, const char *reason,
                               int code)
{
    Motet__Kill message = MOTET__KILL__INIT;

    message.job = job;
    message.signal = signal;
    message.reason = (char *)reason;
    message.has_code = code > 0;
    message.code = code;
    frame_stream_send(&r->daemon, MOTET__FRAME_TYPE__KILL, &message.base);
}

/* To all jobs. */
static void run_send_signal(struct run *r, int signal, const char *reason, int code)
{
    if (!r->own_over)
        run_send_signal_to(r, r->job, signal, reason, code);
    for (const struct child *c = r->children; c; c = c->next)
        run_send_signal_to(r, c->job, signal, reason, code);
}

/* Ends the job; `code` becomes mpiexec's exit code. */
static void run_end_job(struct run *r, const char *reason, int code)
{
    if (r->state >= RUN_ENDING)
        return;
    r->forced_code = code;
    r->give_up_ns = clock_now_ns() + END_LIMIT_NS;
    if (r->state == RUN_SUBMITTED) {
        /* Without a job number nothing can be killed by message; the end of the connection does
         * it. */
        r->exit_code = code;
        r->state = RUN_OVER;
        return;
    }
    r->state = RUN_ENDING;
    run_send_signal(r, SIGKILL, reason, code);
}

/* ---- from the daemon ---- */

/* "node a1 has ranks 0-3, 8" */
static void run_show_placement(struct run *r, const Motet__Placement *p)
{
    char ranks[900] = "";
    size_t n = 0;

    for (size_t i = 0; i < p->n_ranks && n + 32 < sizeof ranks;) {
        size_t last = i;
        while (last + 1 < p->n_ranks && p->ranks[last + 1] == p->ranks[last] + 1)
            last++;
        n += (size_t)snprintf(ranks + n, sizeof ranks - n, last > i ? "%s%u-%u" : "%s%u",
                              i ? ", " : "", p->ranks[i], p->ranks[last]);
        i = last + 1;
        if (n + 32 >= sizeof ranks && i < p->n_ranks)
            snprintf(ranks + n, sizeof ranks - n, ", ...");
    }
    run_say(r, "node %s has rank%s %s", p->node, p->n_ranks == 1 ? "" : "s", ranks);
}

static void child_free(struct run *r, struct child *c)
{
    for (int i = 0; i < 2; i++) {
        for (uint32_t rank = 0; rank < c->n_ranks; rank++)
            lines_end(&c->lines[i], rank, &r->out[i].queue);
        lines_free(&c->lines[i]);
    }
    free(c);
}

static void on_child(struct run *r, const Motet__Submitted *message)
{
    struct child *c = calloc(1, sizeof *c);

    for (size_t i = 0; c && i < message->n_placements; i++)
        c->n_ranks += (uint32_t)message->placements[i]->n_ranks;
    if (!c || lines_init(&c->lines[0], c->n_ranks, r->options->tag_output) < 0 ||
        lines_init(&c->lines[1], c->n_ranks, r->options->tag_output) < 0) {
        free(c);
        run_end_job(r, "mpiexec is out of memory", EXIT_LOST);
        return;
    }
    c->job = message->job;
    c->next = r->children;
    r->children = c;
    if (r->options->verbose)
        run_say(r, "job %016" PRIx64 ", spawned by job %016" PRIx64, c->job, message->parent_job);
    for (size_t i = 0; (r->options->verbose || r->options->show_map) && i < message->n_placements;
         i++)
        run_show_placement(r, message->placements[i]);
    if (r->state == RUN_ENDING)
        run_send_signal_to(r, c->job, SIGKILL, "ended by mpiexec", r->forced_code);
}

static struct child **child_of(struct run *r, uint64_t job)
{
    struct child **at = &r->children;

    while (*at && (*at)->job != job)
        at = &(*at)->next;
    return at;
}

static void on_submitted(struct run *r, const Motet__Submitted *message)
{
    if (r->state != RUN_SUBMITTED) {
        on_child(r, message);
        return;
    }
    if (!message->ok) {
        run_say(r, "%s",
                message->error && message->error[0] ? message->error
                                                    : "the daemon refused the job");
        r->exit_code = EXIT_LOST;
        r->state = RUN_OVER;
        return;
    }
    r->job = message->job;
    r->state = RUN_RUNNING;
    if (outfile_place(&r->files, message->placements, message->n_placements) < 0)
        run_end_job(r, "mpiexec is out of memory", EXIT_LOST);
    if (r->options->verbose)
        run_say(r, "job %016" PRIx64, r->job);
    for (size_t i = 0; (r->options->verbose || r->options->show_map) && i < message->n_placements;
         i++)
        run_show_placement(r, message->placements[i]);
}

/* The daemon did not know yet who connected, and wants no connection: it says so as it would to a
 * rank. */
static int on_refused(struct run *r, const uint8_t *body, uint32_t n)
{
    struct attach_reply reply;

    if (r->state != RUN_SUBMITTED || n != sizeof reply)
        return -EPROTO;
    memcpy(&reply, body, sizeof reply);
    reply.text[sizeof reply.text - 1] = '\0';
    run_say(r, "the daemon refused the connection: %s", reply.text);
    r->exit_code = EXIT_LOST;
    r->state = RUN_OVER;
    return 0;
}

static void on_stdio(struct run *r, const Motet__Stdio *message)
{
    uint32_t stream = message->stream - 1;
    struct child *c = message->job == r->job ? NULL : *child_of(r, message->job);

    if (stream > 1 || (message->job != r->job && !c) ||
        message->rank >= (c ? c->n_ranks : r->n_ranks))
        return;
    struct output *out = &r->out[stream];
    struct lines *into = c ? &c->lines[stream] : &r->lines[stream];
    if (!c && r->files.pattern[stream] && message->data.len > 0) {
        const char *name;
        int rc = outfile_write(&r->files, (int)stream, message->rank, message->data.data,
                               message->data.len, &name);
        if (rc < 0) {
            run_say(r, "cannot write '%.600s': %s; what comes for it is lost", name, strerror(-rc));
            r->output_lost = true;
        }
        if (!r->files.copy)
            return;
    }
    if (message->data.len == 0) {
        lines_end(into, message->rank, &out->queue);
        return;
    }
    if (out->gone || (r->state == RUN_ENDING && out->queue.n > OUTPUT_DROP_BYTES))
        return;
    lines_add(into, message->rank, (const char *)message->data.data, message->data.len,
              clock_now_ns(), &out->queue);
}

/* One clear line about the end of a rank. Returns whether it is a failure. */
static bool explain_exit(const Motet__RankExit *m, char *text, size_t room)
{
    int status = m->status;

    if (m->reason && m->reason[0]) {
        snprintf(text, room, "rank %u on node %s: %s", m->rank, m->node, m->reason);
        return true;
    }
    if (WIFSIGNALED(status)) {
        snprintf(text, room, "rank %u on node %s was killed by signal %d (%s)%s", m->rank, m->node,
                 WTERMSIG(status), strsignal(WTERMSIG(status)),
                 WCOREDUMP(status) ? ", core dumped" : "");
        return true;
    }
    snprintf(text, room, "rank %u on node %s ended with exit code %d%s", m->rank, m->node,
             WEXITSTATUS(status), m->finalized ? "" : " without leaving MPI");
    return WEXITSTATUS(status) != 0 || !m->finalized;
}

static void on_rank_exit(struct run *r, const Motet__RankExit *message)
{
    char text[256];
    bool failed = explain_exit(message, text, sizeof text);

    if (message->job != r->job) {
        if (r->options->verbose)
            run_say(r, "job %016" PRIx64 ": %s", message->job, text);
        return;
    }
    if (message->rank == 0)
        input_close(&r->input);
    if (failed && !r->failure_known) {
        r->failure_known = true;
        snprintf(r->failure, sizeof r->failure, "%s", text);
    }
    if (r->options->verbose)
        run_say(r, "%s", text);
}

/* Of a spawned job: what went wrong there is not lost, but for that the job itself decides how all
 * of it ended. */
static void on_child_end(struct run *r, const Motet__JobEnd *message)
{
    struct child **at = child_of(r, message->job), *c = *at;

    if (!c)
        return;
    *at = c->next;
    child_free(r, c);
    if (message->failed_spawn && message->message && r->options->verbose)
        run_say(r, "spawned job %016" PRIx64 ": %s", message->job, message->message);
    if (message->code != 0 && r->exit_code == 0 && !r->forced_code) {
        r->exit_code = message->code & 0xff ? message->code & 0xff : 1;
        if (message->message && message->message[0])
            run_say(r, "spawned job %016" PRIx64 ": %s", message->job, message->message);
    }
    if (r->own_over && !r->children)
        r->state = RUN_OVER;
}

static void on_job_end(struct run *r, const Motet__JobEnd *message)
{
    if (message->job != r->job) {
        on_child_end(r, message);
        return;
    }
    const char *text = message->message && message->message[0] ? message->message
                       : r->failure_known                      ? r->failure
                                                               : NULL;

    /* Only the low eight bits reach the shell; a failure must not become a success by that. */
    int code = r->forced_code         ? r->forced_code
               : message->code & 0xff ? message->code & 0xff
               : message->code        ? 1
                                      : 0;
    r->exit_code = code ? code : r->exit_code;
    if (code != 0 && text && !r->forced_code)
        run_say(r, "%s", text);
    r->own_over = true;
    input_close(&r->input);
    if (!r->children)
        r->state = RUN_OVER;
}

static void on_stdio_window(struct run *r, const Motet__StdioWindow *message)
{
    if (message->stream == 0)
        input_taken(&r->input, message->consumed);
}

/* Unpacks, hands over, frees; a macro, since every message has a type and functions of its own. */
#define DISPATCH(name, call)                                                                       \
    {                                                                                              \
        Motet__##name *message = motet__##call##__unpack(NULL, n, body);                           \
        if (!message)                                                                              \
            return -EPROTO;                                                                        \
        on_##call(r, message);                                                                     \
        motet__##call##__free_unpacked(message, NULL);                                             \
        return 0;                                                                                  \
    }

static int run_on_frame(struct run *r, uint16_t type, const uint8_t *body, uint32_t n)
{
    switch (type) {
    case ATTACH_REPLY:
        return on_refused(r, body, n);
    case MOTET__FRAME_TYPE__SUBMITTED:
        if (r->state >= RUN_OVER)
            return -EPROTO;
        DISPATCH(Submitted, submitted)
    case MOTET__FRAME_TYPE__STDIO:
        DISPATCH(Stdio, stdio)
    case MOTET__FRAME_TYPE__STDIO_WINDOW:
        DISPATCH(StdioWindow, stdio_window)
    case MOTET__FRAME_TYPE__RANK_EXIT:
        DISPATCH(RankExit, rank_exit)
    case MOTET__FRAME_TYPE__JOB_END:
        DISPATCH(JobEnd, job_end)
    default:
        return -EPROTO;
    }
}

static void on_readable(struct run *r)
{
    int rc = frame_stream_fill(&r->daemon);

    while (rc == 0 && r->state != RUN_OVER) {
        const uint8_t *body;
        uint16_t type;
        uint32_t n;
        int got = frame_stream_next(&r->daemon, &type, &body, &n);
        if (got == 0)
            return;
        rc = got < 0 ? got : run_on_frame(r, type, body, n);
    }
    if (rc < 0 && r->state != RUN_OVER)
        daemon_lost(r, rc);
}

/* ---- from the terminal ---- */

/* Like any program of the shell's job: tells the ranks, then stops. */
static void stop_self(struct run *r)
{
    run_send_signal(r, SIGTSTP, NULL, 0);
    frame_stream_flush(&r->daemon);
    raise(SIGSTOP);
}

static void on_signal(struct run *r, int signal)
{
    switch (signal) {
    case SIGINT:
    case SIGTERM:
        if (++r->n_interrupts > 1 || r->state == RUN_SUBMITTED) {
            run_end_job(r, "ended by mpiexec's user", 128 + signal);
            return;
        }
        if (isatty(STDERR_FILENO))
            run_say(r, "%s goes to all ranks; once more ends the job at once",
                    signal == SIGINT ? "SIGINT" : "SIGTERM");
        break;
    case SIGTSTP:
        stop_self(r);
        return;
    default:
        break;
    }
    if (r->state == RUN_RUNNING)
        run_send_signal(r, signal, NULL, 0);
}

static void on_input(struct run *r)
{
    Motet__Stdio message = MOTET__STDIO__INIT;
    const char *data;
    ssize_t n = input_read(&r->input, &data);

    if (n < 0)
        return;
    message.job = r->job;
    message.data.data = (uint8_t *)data;
    message.data.len = (size_t)n;
    frame_stream_send(&r->daemon, MOTET__FRAME_TYPE__STDIO, &message.base);
}

/* ---- the loop ---- */

static void flush_outputs(struct run *r, uint64_t now_ns)
{
    for (int i = 0; i < 2; i++) {
        int rc = output_flush(&r->out[i]);
        if (rc == 0)
            continue;
        if (rc != -EPIPE && i == 0)
            run_say(r, "cannot write standard output: %s", strerror(-rc));
        /* As if the ranks wrote to the closed pipe themselves: most end, quietly. Those that ignore
         * the signal have a moment. */
        if (i == 0 && r->state == RUN_RUNNING) {
            run_send_signal(r, SIGPIPE, NULL, 0);
            r->nobody_reads_ns = now_ns + NOBODY_READS_NS;
            r->forced_code = 128 + SIGPIPE;
        }
    }
}

static void check_time(struct run *r, uint64_t now_ns)
{
    if (now_ns >= r->timeout_ns && r->state < RUN_ENDING) {
        run_say(r, "the job has run for the %.10g s of -timeout and is ended",
                (double)r->options->timeout_ns / 1e9);
        if (r->state == RUN_RUNNING)
            explain_waits(r->job, r->options->status_socket, &r->out[1].queue);
        run_end_job(r, "time limit of mpiexec", EXIT_TIMEOUT);
    }
    if (now_ns >= r->nobody_reads_ns && r->state == RUN_RUNNING)
        run_end_job(r, "its standard output was closed", 128 + SIGPIPE);
    if (now_ns >= r->give_up_ns && r->state == RUN_ENDING) {
        run_say(r, "the daemon does not confirm the end of the job, leaving");
        daemon_lost(r, -ETIMEDOUT);
    }
}

static uint64_t run_earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int wait_ms(uint64_t until_ns, uint64_t now_ns)
{
    if (until_ns == UINT64_MAX)
        return -1;
    uint64_t ms = until_ns > now_ns ? (until_ns - now_ns) / CLOCK_NS_PER_MS + 1 : 0;
    return ms > 1000000 ? 1000000 : (int)ms;
}

static bool output_is_full(const struct run *r)
{
    return r->state != RUN_ENDING &&
           (r->out[0].queue.n > OUTPUT_HIGH_BYTES || r->out[1].queue.n > OUTPUT_HIGH_BYTES);
}

static void run_turn(struct run *r)
{
    uint64_t now_ns = clock_now_ns(), until_ns = UINT64_MAX;

    for (int i = 0; i < 2; i++) {
        until_ns = run_earlier(until_ns, lines_timer(&r->lines[i], now_ns, &r->out[i].queue));
        for (struct child *c = r->children; c; c = c->next)
            until_ns = run_earlier(until_ns, lines_timer(&c->lines[i], now_ns, &r->out[i].queue));
    }
    flush_outputs(r, now_ns);
    check_time(r, now_ns);
    if (r->state == RUN_OVER)
        return;
    if (r->state < RUN_ENDING)
        until_ns = run_earlier(until_ns, run_earlier(r->timeout_ns, r->nobody_reads_ns));
    else
        until_ns = run_earlier(until_ns, r->give_up_ns);
    bool input = r->state == RUN_RUNNING && input_wanted(&r->input, now_ns, &until_ns);
    bool full = output_is_full(r), sending = frame_stream_has_output(&r->daemon);
    struct pollfd p[] = {
        {.fd = full && !sending ? -1 : r->daemon.fd,
         .events = (short)((full ? 0 : POLLIN) | (sending ? POLLOUT : 0))},
        {.fd = signals_fd(), .events = POLLIN},
        {.fd = input ? r->input.fd : -1, .events = POLLIN},
        {.fd = output_waits(&r->out[0]) ? r->out[0].fd : -1, .events = POLLOUT},
        {.fd = output_waits(&r->out[1]) ? r->out[1].fd : -1, .events = POLLOUT},
    };
    int ready = poll(p, sizeof p / sizeof *p, wait_ms(until_ns, now_ns));
    if (ready <= 0)
        return;
    for (int signal; p[1].revents && (signal = signals_take()) > 0;)
        on_signal(r, signal);
    if (p[0].revents)
        frame_stream_flush(&r->daemon);
    if (p[0].revents & (POLLIN | POLLHUP | POLLERR) && !full)
        on_readable(r);
    if (p[2].revents && r->state == RUN_RUNNING)
        on_input(r);
}

/* Writes what is left, however slow the reader is, unless a signal says that nobody wants it any
 * more. */
static void drain_outputs(struct run *r)
{
    for (int stream = 0; stream < 2; stream++) {
        for (uint32_t rank = 0; rank < r->n_ranks; rank++)
            lines_end(&r->lines[stream], rank, &r->out[stream].queue);
    }
    while (output_waits(&r->out[0]) || output_waits(&r->out[1])) {
        struct pollfd p[] = {
            {.fd = signals_fd(), .events = POLLIN},
            {.fd = output_waits(&r->out[0]) ? r->out[0].fd : -1, .events = POLLOUT},
            {.fd = output_waits(&r->out[1]) ? r->out[1].fd : -1, .events = POLLOUT}};
        /* After a kill by the user the last words have a second. */
        int limit_ms = r->n_interrupts > 1 ? 1000 : -1;
        if (poll(p, 3, limit_ms) == 0)
            return;
        for (int signal; p[0].revents && (signal = signals_take()) > 0;) {
            if (signal == SIGTSTP)
                raise(SIGSTOP);
            r->n_interrupts += 2 * (signal == SIGINT || signal == SIGTERM);
        }
        for (int i = 0; i < 2; i++)
            output_flush(&r->out[i]);
    }
}

int run_job(int daemon_fd, const struct submit *submit, struct run_options *options)
{
    struct run r = {.options = options,
                    .n_ranks = submit->n_ranks,
                    .timeout_ns = UINT64_MAX,
                    .give_up_ns = UINT64_MAX,
                    .nobody_reads_ns = UINT64_MAX};

    signals_catch();
    frame_stream_init(&r.daemon, daemon_fd);
    input_init(&r.input, options->stdin_to_rank0 ? STDIN_FILENO : -1);
    if (outfile_init(&r.files, options->pattern, options->copy, r.n_ranks) < 0)
        daemon_lost(&r, -ENOMEM);
    for (int i = 0; i < 2; i++) {
        output_init(&r.out[i], i == 0 ? STDOUT_FILENO : STDERR_FILENO);
        if (lines_init(&r.lines[i], r.n_ranks, options->tag_output) < 0)
            daemon_lost(&r, -ENOMEM);
    }
    if (options->timeout_ns)
        r.timeout_ns = clock_now_ns() + options->timeout_ns;
    if (r.state != RUN_OVER)
        frame_stream_send_raw(&r.daemon, MOTET__FRAME_TYPE__SUBMIT, submit->body, submit->n);
    while (r.state != RUN_OVER)
        run_turn(&r);
    while (r.children) {
        struct child *c = r.children;
        r.children = c->next;
        child_free(&r, c);
    }
    drain_outputs(&r);

    frame_stream_close(&r.daemon);
    for (int i = 0; i < 2; i++) {
        lines_free(&r.lines[i]);
        bytes_free(&r.out[i].queue);
    }
    outfile_deinit(&r.files);
    return r.exit_code == 0 && r.output_lost ? EXIT_LOST : r.exit_code;
}
