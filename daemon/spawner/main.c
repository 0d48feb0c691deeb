/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * motet-spawner: forks the ranks. The daemon starts it before it has threads and talks to it over
 * descriptor 3 (frames Spawn, SpawnKill in; Spawned, Exited out). It is a process of its own, with
 * one thread, because forking a process with threads, libfabric's memory registrations and
 * gigabytes of mapped segments is neither safe nor quick, and because it outlives the daemon by the
 * moment that is needed to end every rank: end of file on descriptor 3 means that the daemon is
 * gone.
 *
 *      (none) -- Spawn: fork --> STARTING -- exec pipe closed: Spawned --> RUNNING
 *                                   |                                        |
 *               exec pipe carries a failure:                          waitpid: Exited
 *               Spawned with an error                                        v
 *                                   `---------------------------------->   GONE
 *
 * A job's records stay until the daemon's SpawnKill with SIGKILL, so that descendants of dead ranks
 * are still recognized.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "daemon/spawner/bind.h"
#include "daemon/spawner/rank_exec.h"
#include "daemon/spawner/ranks.h"
#include "daemon/spawner/reaper.h"
#include "proto/control.pb-c.h"
#include "proto/frame.h"

#define SPAWNER_FD 3
/* For one frame: the daemon is on this machine and writes whole frames. */
#define IO_LIMIT_NS    (10 * CLOCK_NS_PER_S)
#define SWEEP_EVERY_NS (10 * CLOCK_NS_PER_MS)
/* After that something is unkillable (in the kernel, or of another user). */
#define SWEEP_LIMIT_NS (3 * CLOCK_NS_PER_S)

struct spawner {
    struct list jobs;
    int signal_fd;
    bool daemon_gone;
};

/* ---- to the daemon ---- */

static void spawner_send(struct spawner *s, uint16_t type, const ProtobufCMessage *message)
{
    size_t n = protobuf_c_message_get_packed_size(message);
    uint8_t *body = malloc(n + 1);

    if (s->daemon_gone || !body) {
        free(body);
        return;
    }
    protobuf_c_message_pack(message, body);
    int rc = frame_send(SPAWNER_FD, type, body, (uint32_t)n, clock_now_ns() + IO_LIMIT_NS);
    free(body);
    if (rc < 0)
        s->daemon_gone = true;
}

static void send_spawned(struct spawner *s, uint64_t job, uint32_t rank, pid_t pid,
                         const char *error)
{
    Motet__Spawned message = MOTET__SPAWNED__INIT;

    message.job = job;
    message.rank = rank;
    message.pid = pid;
    message.error = (char *)error;
    spawner_send(s, MOTET__FRAME_TYPE__SPAWNED, &message.base);
}

static void send_exited(struct spawner *s, uint64_t job, uint32_t rank, int status)
{
    Motet__Exited message = MOTET__EXITED__INIT;

    message.job = job;
    message.rank = rank;
    message.status = status;
    spawner_send(s, MOTET__FRAME_TYPE__EXITED, &message.base);
}

/* ---- starting ---- */

/* A copy of a list of strings with a NULL at its end; the strings stay the message's. */
static char **with_end(char **strings, size_t n)
{
    char **copy = calloc(n + 1, sizeof *copy);

    if (copy && n)
        memcpy(copy, strings, n * sizeof *copy);
    return copy;
}

/* What the message says about processors. False: not possible, with the reason. */
static bool plan_binding(const Motet__Spawn *spawn, struct rank_exec_plan *plan,
                         const char **ret_why)
{
    CPU_ZERO(&plan->cpus);
    for (size_t i = 0; i < spawn->n_cpus; i++) {
        if (spawn->cpus[i] >= CPU_SETSIZE) {
            *ret_why = "processor number out of range";
            return false;
        }
        CPU_SET(spawn->cpus[i], &plan->cpus);
        plan->bound = true;
    }
    const Motet__Binding *b = spawn->binding;
    if (plan->bound || !b || b->to == BINDING_NONE)
        return true;
    const struct bind_request request = {
        .to = b->to, .over = b->over, .width = b->width, .index = spawn->bind_index};
    if (b->to >= BINDING_N_LEVELS || b->over >= BINDING_N_LEVELS || b->width == 0) {
        *ret_why = "cannot bind to what is not known";
        return false;
    }
    int rc = bind_cpus(&request, &plan->cpus);
    if (rc != 0) {
        *ret_why = rc == BIND_E_WIDTH
                       ? "cannot bind: this node has fewer of these than each rank is to have"
                       : "cannot bind: the machine's topology is not readable";
        return false;
    }
    plan->bound = true;
    return true;
}

/* "0-3,8" */
static void name_cpus(const cpu_set_t *cpus, char *text, size_t room)
{
    size_t n = 0;

    text[0] = '\0';
    for (int first = 0; first < CPU_SETSIZE && n < room; first++) {
        int last = first;
        if (!CPU_ISSET(first, cpus))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
            last++;
        n += (size_t)snprintf(text + n, room - n, last > first ? "%s%d-%d" : "%s%d", n ? "," : "",
                              first, last);
        first = last;
    }
}

/* The first words on a rank's standard error: the pipe is new and takes them. */
static void report_binding(const Motet__Spawn *spawn, const struct rank_exec_plan *plan, int fd)
{
    static const char variable[] = "MOTET_NODE=";
    const char *node = "";
    char cpus[256];

    for (size_t i = 0; i < spawn->n_env; i++)
        if (strncmp(spawn->env[i], variable, sizeof variable - 1) == 0)
            node = spawn->env[i] + sizeof variable - 1;
    name_cpus(&plan->cpus, cpus, sizeof cpus);
    if (plan->bound)
        dprintf(fd, "mpiexec: rank %u on node %s is bound to processors %s\n", spawn->rank, node,
                cpus);
    else
        dprintf(fd, "mpiexec: rank %u on node %s is not bound\n", spawn->rank, node);
}

/* Returns the child's record, in its job; NULL with the reason. */
static struct ranks_child *start_rank(struct ranks_job *job, const Motet__Spawn *spawn,
                                      const int fds[3], const char **ret_why)
{
    struct rank_exec_plan plan = {.wdir = spawn->wdir,
                                  .path = spawn->path,
                                  .uid = spawn->uid,
                                  .gid = spawn->gid,
                                  .umask = spawn->has_umask ? spawn->umask : (mode_t)-1,
                                  .fds = {fds[0], fds[1], fds[2]}};
    struct ranks_child *child = NULL;
    static char text[128];

    if (!plan_binding(spawn, &plan, ret_why))
        return NULL;
    if (spawn->binding && spawn->binding->report)
        report_binding(spawn, &plan, fds[2]);
    *ret_why = "out of memory";
    plan.argv = with_end(spawn->argv, spawn->n_argv);
    plan.env = with_end(spawn->env, spawn->n_env);
    child = calloc(1, sizeof *child);
    if (plan.argv && plan.env && child) {
        rank_exec_unique_env(plan.env);
        child->argv0 = strdup(spawn->argv[0]);
        child->wdir = strdup(spawn->wdir);
        child->rank = spawn->rank;
        child->uid = spawn->uid;
        child->gid = spawn->gid;
        child->pid = rank_exec_start(&plan, &child->exec_pipe);
        if (child->pid < 0) {
            snprintf(text, sizeof text, "fork: %s", strerror(-child->pid));
            *ret_why = text;
        }
    }
    free(plan.argv);
    free(plan.env);
    if (child && child->pid > 0) {
        list_init(&child->node);
        list_append(&job->children, &child->node);
        return child;
    }
    if (child)
        ranks_forget_names(child);
    free(child);
    return NULL;
}

static void on_spawn(struct spawner *s, const Motet__Spawn *spawn, const int *fds, int n_fds)
{
    const char *why = NULL;
    struct ranks_job *job = NULL;

    if (n_fds != 3)
        why = "the daemon sent no descriptors for input and output";
    else if (spawn->n_argv == 0 || !spawn->argv[0][0])
        why = "no program given";
    else if (geteuid() != 0 && (spawn->uid != geteuid() || spawn->gid != getegid()))
        why = "the daemon of this node does not run as root and starts ranks only for its own user";
    else if (!(job = ranks_job_get(&s->jobs, spawn->job)))
        why = "out of memory";
    else if (job->ending)
        why = "the job is being ended";
    if (why || !start_rank(job, spawn, fds, &why))
        send_spawned(s, spawn->job, spawn->rank, -1, why);
}

/* The exec pipe has been closed or carries a failure. */
static void on_exec_pipe(struct spawner *s, struct ranks_job *job, struct ranks_child *child)
{
    struct rank_exec_failure failure;
    char text[512];
    ssize_t n = read(child->exec_pipe, &failure, sizeof failure);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    fd_closep(&child->exec_pipe);
    if (n == (ssize_t)sizeof failure) {
        rank_exec_explain(&failure, child->argv0, child->wdir, child->uid, child->gid, text,
                          sizeof text);
        child->state = RANKS_GONE; /* Reaped like the others, but its exit is no news. */
        send_spawned(s, job->id, child->rank, -1, text);
    } else {
        child->state = RANKS_RUNNING;
        send_spawned(s, job->id, child->rank, child->pid, NULL);
    }
    ranks_forget_names(child);
}

/* ---- ending ---- */

/* One more pass over what the filter covers, before any of it can lose its place in the tree: the
 * first stops everything, so that nothing forks behind the second, and a stopped parent still shows
 * whose its children are. Returns whether anything was left. */
static bool spawner_sweep(struct spawner *s, const struct reaper_filter *filter)
{
    if (reaper_kill(filter, ranks_owner, &s->jobs, SIGSTOP) == 0)
        return false;
    reaper_kill(filter, ranks_owner, &s->jobs, SIGKILL);
    return true;
}

/* Sweeps, then makes sure of the process groups: where /proc is not readable they are all that is
 * known. */
static void kill_ranks(struct spawner *s, struct ranks_job *job, int64_t rank)
{
    struct reaper_filter filter = {.job = job->id, .rank = rank};

    spawner_sweep(s, &filter);
    list_foreach(it, &job->children) {
        struct ranks_child *child = list_entry(it, struct ranks_child, node);
        if (rank < 0 || child->rank == rank)
            ranks_signal(child, SIGKILL);
    }
}

static void on_kill(struct spawner *s, const Motet__SpawnKill *order)
{
    struct ranks_job *job = ranks_job_find(&s->jobs, order->job);
    int64_t rank = order->has_rank ? (int64_t)order->rank : -1;

    if (!job || order->signal <= 0 || order->signal >= NSIG)
        return;
    if (order->signal == SIGKILL) {
        kill_ranks(s, job, rank);
        if (rank < 0 && !job->ending) {
            job->ending = true;
            job->sweep_until_ns = clock_now_ns() + SWEEP_LIMIT_NS;
        }
        return;
    }
    /* A rank leads a group, in a session whose terminal is not its own, if there is one; where the
     * kernel counts the group as orphaned it drops SIGTSTP. */
    int signal = order->signal == SIGTSTP ? SIGSTOP : order->signal;
    list_foreach(it, &job->children) {
        struct ranks_child *child = list_entry(it, struct ranks_child, node);
        if (rank < 0 || child->rank == rank)
            ranks_signal(child, signal);
    }
}

/* Sweeps the jobs that end; forgets those of which nothing is left. With the last job goes also
 * what no job is known to own. Returns whether something is still waited for. */
static bool spawner_sweep_turn(struct spawner *s)
{
    bool more = false, ended = false;

    list_foreach_safe(it, &s->jobs) {
        struct ranks_job *job = list_entry(it, struct ranks_job, node);
        struct reaper_filter filter = {.job = job->id, .rank = -1};
        if (!job->ending)
            continue;
        bool left = spawner_sweep(s, &filter) || ranks_living(job);
        if (left && clock_now_ns() < job->sweep_until_ns) {
            more = true;
            continue;
        }
        if (left)
            log_warn("job %llx: some of its processes do not die from SIGKILL, ignoring",
                     (unsigned long long)job->id);
        ranks_job_free(job);
        ended = true;
    }
    if (ended && list_empty(&s->jobs)) {
        struct reaper_filter everything = {.everything = true};
        spawner_sweep(s, &everything);
    }
    return more;
}

static void spawner_reap(struct spawner *s)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        list_foreach(it, &s->jobs) {
            struct ranks_job *job = list_entry(it, struct ranks_job, node);
            list_foreach(c, &job->children) {
                struct ranks_child *child = list_entry(c, struct ranks_child, node);
                if (child->pid != pid || child->state == RANKS_GONE)
                    continue;
                if (child->state == RANKS_STARTING)
                    on_exec_pipe(s, job, child);
                if (child->state == RANKS_RUNNING)
                    send_exited(s, job->id, child->rank, status);
                child->state = RANKS_GONE;
            }
        }
    }
}

static void spawner_end_everything(struct spawner *s)
{
    struct reaper_filter filter = {.everything = true};
    uint64_t until_ns = clock_now_ns() + SWEEP_LIMIT_NS;

    for (;;) {
        spawner_sweep(s, &filter);
        list_foreach(it, &s->jobs) {
            struct ranks_job *job = list_entry(it, struct ranks_job, node);
            list_foreach(c, &job->children)
                ranks_signal(list_entry(c, struct ranks_child, node), SIGKILL);
        }
        spawner_reap(s);
        if ((waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD) || clock_now_ns() > until_ns)
            return;
        poll(NULL, 0, 2);
    }
}

/* ---- the loop ---- */

/* Takes one frame. Returns 0 or negative errno: the daemon is gone or talks nonsense. */
static int spawner_on_frame(struct spawner *s)
{
    struct frame_header h;
    int fds[3] = {-1, -1, -1}, n_fds = 0;
    uint64_t deadline_ns = clock_now_ns() + IO_LIMIT_NS;
    int rc = fd_recv_fds(SPAWNER_FD, &h, sizeof h, fds, 3, &n_fds, deadline_ns);

    if (rc < 0)
        return rc;
    rc = frame_check(&h);
    uint8_t *body = rc < 0 ? NULL : malloc(h.len + 1);
    if (rc == 0 && !body)
        rc = -ENOMEM;
    if (rc == 0 && h.len > 0)
        rc = fd_read_full(SPAWNER_FD, body, h.len, deadline_ns);
    if (rc == 0 && h.type == MOTET__FRAME_TYPE__SPAWN) {
        Motet__Spawn *spawn = motet__spawn__unpack(NULL, h.len, body);
        if (spawn)
            on_spawn(s, spawn, fds, n_fds);
        else
            rc = -EPROTO;
        motet__spawn__free_unpacked(spawn, NULL);
    } else if (rc == 0 && h.type == MOTET__FRAME_TYPE__SPAWN_KILL) {
        Motet__SpawnKill *order = motet__spawn_kill__unpack(NULL, h.len, body);
        if (order)
            on_kill(s, order);
        else
            rc = -EPROTO;
        motet__spawn_kill__free_unpacked(order, NULL);
    } else if (rc == 0) {
        rc = -EPROTO;
    }
    free(body);
    for (int i = 0; i < n_fds; i++)
        fd_closep(&fds[i]);
    return rc;
}

/* Descriptors to watch: the daemon, the signals, and the exec pipes of ranks that are just
 * starting. Allocated anew per turn: starting is rare. Returns NULL when there is no memory. */
static struct pollfd *spawner_watched(struct spawner *s, nfds_t *ret_n)
{
    nfds_t n = 2, i = 2;

    list_foreach(it, &s->jobs)
        list_foreach(c, &list_entry(it, struct ranks_job, node)->children)
            n += list_entry(c, struct ranks_child, node)->state == RANKS_STARTING;
    struct pollfd *p = calloc(n, sizeof *p);
    if (!p)
        return NULL;
    p[0] = (struct pollfd){.fd = SPAWNER_FD, .events = POLLIN};
    p[1] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
    list_foreach(it, &s->jobs) {
        list_foreach(c, &list_entry(it, struct ranks_job, node)->children) {
            struct ranks_child *child = list_entry(c, struct ranks_child, node);
            if (child->state == RANKS_STARTING)
                p[i++] = (struct pollfd){.fd = child->exec_pipe, .events = POLLIN};
        }
    }
    *ret_n = n;
    return p;
}

static void spawner_run(struct spawner *s)
{
    bool sweeping = false;
    int rc = 0;

    while (!s->daemon_gone) {
        nfds_t n;
        struct pollfd *p = spawner_watched(s, &n);
        if (!p) {
            log_error("out of memory, ending all ranks");
            break;
        }
        int ready = poll(p, n, sweeping ? (int)(SWEEP_EVERY_NS / CLOCK_NS_PER_MS) : -1);
        bool frame = ready > 0 && p[0].revents, signalled = ready > 0 && p[1].revents;
        free(p);

        /* A pipe that has nothing to say yet answers with EAGAIN, so all are asked. */
        list_foreach(it, &s->jobs) {
            struct ranks_job *job = list_entry(it, struct ranks_job, node);
            list_foreach(c, &job->children) {
                struct ranks_child *child = list_entry(c, struct ranks_child, node);
                if (child->state == RANKS_STARTING)
                    on_exec_pipe(s, job, child);
            }
        }
        if (signalled) {
            struct signalfd_siginfo info;
            while (read(s->signal_fd, &info, sizeof info) > 0)
                ;
            spawner_reap(s);
        }
        if (frame && (rc = spawner_on_frame(s)) < 0)
            break;
        sweeping = spawner_sweep_turn(s);
    }
    if (rc < 0 && rc != -ECONNRESET)
        log_error("the daemon's socket failed (%s), ending all ranks", strerror(-rc));
}

static int spawner_set_up(struct spawner *s)
{
    static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                  SIGUSR2, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU};
    sigset_t child;

    list_init(&s->jobs);
    if (fcntl(SPAWNER_FD, F_SETFD, FD_CLOEXEC) < 0) {
        fprintf(stderr, "motet-spawner is started by motetd, with a socket as descriptor 3\n");
        return -EBADF;
    }
    /* What the daemon's parent left open is nobody's business here, and 0 to 2 must exist before a
     * rank's are put there. */
    close_range(SPAWNER_FD + 1, ~0u, 0);
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return -EBADF;
    }
    /* Only the daemon's end ends the spawner: a signal to the whole group or slice must not leave
     * ranks without it. */
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &child, NULL) < 0)
        return -errno;
    s->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signal_fd < 0)
        return -errno;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return -errno;
    return 0;
}

int main(int argc, char **argv)
{
    struct spawner s = {.signal_fd = -1};
    int rc;

    log_init("motet-spawner");
    rc = spawner_set_up(&s);
    if (rc < 0) {
        log_error("cannot start: %s", strerror(-rc));
        return 1;
    }
    /* The daemon's word that its last spawner died, with its own process id: orphans of the ranks
     * have become the daemon's children. */
    if (argc > 2 && strcmp(argv[1], "--again") == 0)
        reaper_kill_siblings((pid_t)atoi(argv[2]));
    spawner_run(&s);
    spawner_end_everything(&s);
    while (!list_empty(&s.jobs))
        ranks_job_free(list_entry(list_first(&s.jobs), struct ranks_job, node));
    fd_closep(&s.signal_fd);
    return 0;
}
