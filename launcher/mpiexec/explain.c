/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/cli/node_daemon.h"

#define EXPLAIN_LIMIT_NS  (5 * CLOCK_NS_PER_S)
#define EXPLAIN_MAX_BYTES (64u << 10)

static _Noreturn void explain_child(int out, const char *program, const char *job,
                                    const char *status_socket)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR);

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0)
        _exit(127);
    if (status_socket[0])
        setenv("MOTET_STATUS_SOCKET", status_socket, 1);
    execlp(program, "motetctl", "waits", job, NULL);
    _exit(127);
}

int explain_waits(uint64_t job, const char *status_socket, struct bytes *ret_text)
{
    char program[NODE_DAEMON_PATH_MAX + 256] = "motetctl", text[32], room[4096];
    uint64_t until_ns = clock_now_ns() + EXPLAIN_LIMIT_NS;
    size_t n_all = 0;
    int ends[2], status = 0;

    if (node_daemon_beside("motetctl", "motetctl", program, sizeof program) < 0)
        snprintf(program, sizeof program, "motetctl");
    snprintf(text, sizeof text, "%016" PRIx64, job);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        explain_child(ends[1], program, text, status_socket);
    close(ends[1]);
    FD_AUTO in = ends[0];
    if (pid < 0)
        return -EAGAIN;
    for (;;) {
        uint64_t now_ns = clock_now_ns();
        struct pollfd p = {.fd = in, .events = POLLIN};
        if (now_ns >= until_ns ||
            poll(&p, 1, (int)((until_ns - now_ns) / CLOCK_NS_PER_MS) + 1) == 0) {
            kill(pid, SIGKILL);
            break;
        }
        ssize_t n = read(in, room, sizeof room);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        if (n > 0 && n_all + (size_t)n <= EXPLAIN_MAX_BYTES) {
            bytes_append(ret_text, room, (size_t)n);
            n_all += (size_t)n;
        }
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return n_all > 0 ? 0 : -EIO;
}
