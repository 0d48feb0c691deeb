/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static const int caught[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
static int ends[2] = {-1, -1};

static void on_signal(int signal)
{
    unsigned char byte = (unsigned char)signal;
    int saved = errno;
    ssize_t put = write(ends[1], &byte, 1);

    (void)put; /* A full pipe holds 65,536 signals that nobody has looked at. */
    errno = saved;
}

int signals_catch(void)
{
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        struct sigaction old, sa = {.sa_handler = on_signal};
        /* What the shell has switched off (nohup, a background job of a script) stays off. */
        if (sigaction(caught[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
            continue;
        sigaction(caught[i], &sa, NULL);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    return 0;
}

int signals_fd(void)
{
    return ends[0];
}

int signals_take(void)
{
    unsigned char byte;

    return read(ends[0], &byte, 1) == 1 ? byte : 0;
}
