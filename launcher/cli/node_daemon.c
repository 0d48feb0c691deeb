/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/cli/node_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define READY_LIMIT_NS (20 * CLOCK_NS_PER_S)
#define STOP_LIMIT_NS  (5 * CLOCK_NS_PER_S)

int node_daemon_connect(const char *variable, const char *file, char *ret_path, size_t room)
{
    const char *named = getenv(variable), *runtime = getenv("XDG_RUNTIME_DIR");

    if (named && *named) {
        snprintf(ret_path, room, "%s", named);
        return fd_unix_connect(named);
    }
    for (int i = 0; i < 2; i++) {
        const char *dir = i == 0 ? runtime : "/run";
        if (!dir || !*dir)
            continue;
        snprintf(ret_path, room, "%s/motet/%s", dir, file);
        int fd = fd_unix_connect(ret_path);
        if (fd >= 0)
            return fd;
    }
    ret_path[0] = '\0';
    return -ENOENT;
}

/* The directory of this program. 0 or negative errno. */
static int own_directory(char *path, size_t room)
{
    ssize_t n = readlink("/proc/self/exe", path, room - 1);

    if (n < 0)
        return -errno;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return 0;
}

int node_daemon_beside(const char *installed, const char *built, char *path, size_t room)
{
    char own[PATH_MAX];

    if (own_directory(own, sizeof own) < 0)
        return -ENOENT;
    for (int i = 0; i < 2; i++) {
        if ((size_t)snprintf(path, room, "%s/%s", own, i == 0 ? installed : built) < room &&
            access(path, R_OK) == 0)
            return 0;
    }
    return -ENOENT;
}

int node_daemon_program(char *path, size_t room)
{
    const char *named = getenv("MOTET_MOTETD");

    if (named && *named) {
        snprintf(path, room, "%s", named);
        return access(path, X_OK) == 0 ? 0 : -errno;
    }
    if (node_daemon_beside("../sbin/motetd", "../daemon/motetd", path, room) == 0)
        return 0;
    snprintf(path, room, "%s/motetd", MOTET_SBINDIR);
    return access(path, X_OK) == 0 ? 0 : -errno;
}

/* A daemon that was moved together with this program, or not installed at all, is told where its
 * spawner is. */
static void tell_spawner(void)
{
    char path[PATH_MAX];

    if (node_daemon_beside("../libexec/motet-spawner", "../daemon/spawner/motet-spawner", path,
                           sizeof path) == 0)
        setenv("MOTET_SPAWNER", path, 0);
}

static _Noreturn void run_daemon(const char *path, int lifeline, int ready)
{
    char number[16];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;

    /* A session of its own: Ctrl-C is mpiexec's to handle. */
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    snprintf(number, sizeof number, "%d", lifeline);
    if (null < 0 || dup2(null, 0) < 0 || dup2(ready, 1) < 0 || fcntl(lifeline, F_SETFD, 0) < 0)
        _exit(126);
    tell_spawner();
    execl(path, path, "--private", "--lifeline", number, (char *)NULL);
    fprintf(stderr, "mpiexec: cannot run %s: %s\n", path, strerror(errno));
    _exit(127);
}

/* Reads the line that the daemon prints when it is ready. 0, -ETIMEDOUT, or -ECONNRESET when it
 * ended before. */
static int read_ready(int fd, char *line, size_t room)
{
    uint64_t deadline_ns = clock_now_ns() + READY_LIMIT_NS;
    size_t n = 0;

    for (;;) {
        int rc = fd_read_full(fd, line + n, 1, deadline_ns);
        if (rc < 0)
            return rc;
        if (line[n] == '\n') {
            line[n] = '\0';
            if (strncmp(line, "ready ", 6) == 0)
                return 0;
            n = 0; /* something else that it had to say */
        } else if (n + 1 < room) {
            n++;
        }
    }
}

static void take_field(const char *line, const char *name, char *ret_value, size_t room)
{
    const char *p = strstr(line, name);

    if (p)
        snprintf(ret_value, room, "%.*s", (int)strcspn(p + strlen(name), " "), p + strlen(name));
}

/* Why a daemon is not there, after it failed to say that it is ready. */
static void explain_end(pid_t pid, int rc, const char *path, char *why, size_t room)
{
    int status = 0;

    if (rc == -ETIMEDOUT)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (rc == -ETIMEDOUT)
        snprintf(why, room, "%s did not get ready within %llu s", path,
                 READY_LIMIT_NS / CLOCK_NS_PER_S);
    else if (WIFSIGNALED(status))
        snprintf(why, room, "%s was killed by signal %d while starting", path, WTERMSIG(status));
    else
        snprintf(why, room, "%s ended with exit code %d while starting", path, WEXITSTATUS(status));
}

int node_daemon_start(struct node_daemon *ret_daemon, char *why, size_t room)
{
    char path[PATH_MAX], line[512] = "";
    int life[2], ready[2];
    int rc = node_daemon_program(path, sizeof path);

    if (rc < 0) {
        snprintf(why, room, "cannot run %s: %s", path, strerror(-rc));
        return rc;
    }
    if (pipe2(life, O_CLOEXEC) < 0)
        return -errno;
    FD_AUTO life_read = life[0];
    FD_AUTO life_write = life[1];
    if (pipe2(ready, O_CLOEXEC) < 0)
        return -errno;
    FD_AUTO ready_read = ready[0];
    FD_AUTO ready_write = ready[1];

    pid_t pid = fork();
    if (pid < 0) {
        rc = -errno;
        snprintf(why, room, "cannot start a daemon: fork: %s", strerror(-rc));
        return rc;
    }
    if (pid == 0)
        run_daemon(path, life_read, ready_write);
    fd_closep(&ready_write);
    rc = read_ready(ready_read, line, sizeof line);
    struct node_daemon d = {.pid = pid, .lifeline = -1};
    take_field(line, "client=", d.client, sizeof d.client);
    take_field(line, "status=", d.status, sizeof d.status);
    if (rc == 0 && !d.client[0])
        rc = -EPROTO;
    if (rc < 0) {
        if (rc == -EPROTO)
            kill(pid, SIGKILL);
        explain_end(pid, rc, path, why, room);
        return rc;
    }
    d.lifeline = fd_steal(&life_write);
    *ret_daemon = d;
    return 0;
}

void node_daemon_stop(struct node_daemon *d)
{
    uint64_t deadline_ns = clock_now_ns() + STOP_LIMIT_NS;

    if (d->pid <= 0)
        return;
    fd_closep(&d->lifeline);
    while (waitpid(d->pid, NULL, WNOHANG) == 0) {
        if (clock_now_ns() > deadline_ns) {
            fprintf(stderr, "mpiexec: the private daemon (process %d) does not end, killing it\n",
                    (int)d->pid);
            kill(d->pid, SIGKILL);
            waitpid(d->pid, NULL, 0);
            break;
        }
        poll(NULL, 0, 1);
    }
    d->pid = 0;
}
