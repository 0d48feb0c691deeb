/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/spawner/rank_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static _Noreturn void rank_exec_fail(int pipe_fd, enum rank_exec_step step)
{
    struct rank_exec_failure failure = {.step = step, .error = errno};
    ssize_t put = write(pipe_fd, &failure, sizeof failure);

    (void)put; /* The spawner is gone then, and this process dies either way. */
    _exit(127);
}

/* The spawner ignores or blocks signals; a rank starts with none of that. All are blocked until
 * here: one that was sent meanwhile is neither lost by being ignored nor handled by the spawner's
 * means. */
static void reset_signals(void)
{
    sigset_t none;

    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Moves the three descriptors to 0, 1, 2, also when they have these numbers in another order. */
static void place_stdio(const int fds[3], int pipe_fd)
{
    int high[3];

    for (int i = 0; i < 3; i++) {
        high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        if (high[i] < 0)
            rank_exec_fail(pipe_fd, STEP_PREPARE);
    }
    for (int i = 0; i < 3; i++) {
        if (dup2(high[i], i) < 0)
            rank_exec_fail(pipe_fd, STEP_PREPARE);
    }
}

static void become_user(uid_t uid, gid_t gid, int pipe_fd)
{
    if (geteuid() == uid && getegid() == gid)
        return;
    struct passwd *pw = getpwuid(uid);
    /* A user without an entry has no supplementary groups. */
    if ((pw ? initgroups(pw->pw_name, gid) : setgroups(1, &gid)) < 0 || setgid(gid) < 0)
        rank_exec_fail(pipe_fd, STEP_GROUP);
    if (setuid(uid) < 0)
        rank_exec_fail(pipe_fd, STEP_USER);
}

/* Whether the path has a file of this name in a directory that can be looked into. */
static bool in_path(const char *path, const char *name)
{
    char file[PATH_MAX];

    for (; path && *path; path += strcspn(path, ":"), path += *path == ':') {
        int n = (int)strcspn(path, ":");
        if (snprintf(file, sizeof file, "%.*s/%s", n, path, name) < (int)sizeof file &&
            access(file, F_OK) == 0)
            return true;
    }
    return false;
}

/* As execvp does with PATH. Comes back with errno: of a file that is there and cannot be run, else
 * ENOENT. */
static void exec_in_path(const char *path, char **argv)
{
    char file[PATH_MAX];
    int error = ENOENT;

    for (; *path; path += strcspn(path, ":"), path += *path == ':') {
        int n = (int)strcspn(path, ":");
        if (snprintf(file, sizeof file, "%.*s/%s", n > 0 ? n : 1, n > 0 ? path : ".", argv[0]) >=
            (int)sizeof file)
            continue;
        execv(file, argv);
        if (errno != ENOENT && errno != ENOTDIR)
            error = errno;
    }
    errno = error;
}

static _Noreturn void run_child(const struct rank_exec_plan *plan, int pipe_fd, pid_t spawner)
{
    reset_signals();
    /* A group of its own, so that signals reach what the rank starts, but the daemon's session: the
     * kernel's autogroups share the processor out by session, and a yield to a channel thread in
     * another group gives nothing away. */
    if (setpgid(0, 0) < 0)
        rank_exec_fail(pipe_fd, STEP_PREPARE);
    place_stdio(plan->fds, pipe_fd);
    if (plan->umask != (mode_t)-1)
        umask(plan->umask);
    if (plan->bound && sched_setaffinity(0, sizeof plan->cpus, &plan->cpus) < 0)
        rank_exec_fail(pipe_fd, STEP_BIND);
    become_user(plan->uid, plan->gid, pipe_fd);
    /* As the user: a directory that only root may enter must not open for the rank. */
    if (chdir(plan->wdir) < 0)
        rank_exec_fail(pipe_fd, STEP_DIRECTORY);
    /* After the change of user, which clears it. The spawner may have died before the call took
     * hold. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        rank_exec_fail(pipe_fd, STEP_PREPARE);
    if (getppid() != spawner)
        _exit(127);
    environ = plan->env; /* execvp searches the PATH that the rank will have. */
    if (plan->path && !strchr(plan->argv[0], '/'))
        exec_in_path(plan->path, plan->argv);
    else
        execvp(plan->argv[0], plan->argv);
    /* A directory of the path that is closed to the user hides a missing program behind another
     * error. */
    int error = errno;
    if (error == EACCES && !strchr(plan->argv[0], '/') &&
        !in_path(plan->path ? plan->path : getenv("PATH"), plan->argv[0]))
        error = ENOENT;
    errno = error;
    rank_exec_fail(pipe_fd, STEP_EXEC);
}

int rank_exec_start(const struct rank_exec_plan *plan, int *ret_pipe)
{
    int ends[2];
    pid_t spawner = getpid();

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    FD_AUTO reading = ends[0];
    FD_AUTO writing = ends[1];
    /* The end that stays here only; the child writes into a blocking pipe. */
    int rc = fd_set_nonblock(reading, true);
    if (rc < 0)
        return rc;
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        run_child(plan, writing, spawner);
    rc = pid < 0 ? -errno : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (rc < 0)
        return rc;
    *ret_pipe = fd_steal(&reading);
    return pid;
}

void rank_exec_explain(const struct rank_exec_failure *failure, const char *argv0, const char *wdir,
                       uint32_t uid, uint32_t gid, char *text, size_t room)
{
    const char *why = strerror(failure->error);

    switch ((enum rank_exec_step)failure->step) {
    case STEP_GROUP:
        snprintf(text, room, "setgid %u: %s", gid, why);
        return;
    case STEP_USER:
        snprintf(text, room, "setuid %u: %s", uid, why);
        return;
    case STEP_DIRECTORY:
        snprintf(text, room, "chdir '%s': %s", wdir, why);
        return;
    case STEP_BIND:
        snprintf(text, room, "sched_setaffinity: %s", why);
        return;
    case STEP_EXEC:
        snprintf(text, room, "execve '%s': %s", argv0, why);
        return;
    case STEP_PREPARE:
        break;
    }
    snprintf(text, room, "cannot prepare the process: %s", why);
}

void rank_exec_unique_env(char **env)
{
    size_t n = 0;

    while (env[n])
        n++;
    /* From the end, so that the last value of a name stays; kept ones gather at the end of the
     * array. */
    size_t first_kept = n;
    for (size_t i = n; i-- > 0;) {
        size_t len = strcspn(env[i], "=");
        bool again = false;
        for (size_t k = first_kept; k < n && !again; k++)
            again =
                strncmp(env[k], env[i], len) == 0 && (env[k][len] == '=' || env[k][len] == '\0');
        if (!again)
            env[--first_kept] = env[i];
    }
    memmove(env, env + first_kept, (n - first_kept + 1) * sizeof *env);
}
