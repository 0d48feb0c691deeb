/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/port/watch.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"

int watch_open(struct watch *w)
{
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return w->epoll_fd < 0 ? -errno : 0;
}

void watch_close(struct watch *w)
{
    if (w->epoll_fd >= 0)
        close(w->epoll_fd);
    w->epoll_fd = -1;
}

int watch_add(struct watch *w, int fd)
{
    /* Edge-triggered: every ring of a bell is an edge, and nobody has to read the counter. And
     * libfabric 1.17 leaves its descriptor readable after the first completion, for ever; what
     * arrives makes an edge all the same. What an edge might miss is found by the bound on sleep.
     */
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

    if (fd >= 0 && epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 && errno != EEXIST)
        return -errno;
    return 0;
}

void watch_remove(struct watch *w, int fd)
{
    if (fd >= 0)
        epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void watch_sleep(struct watch *w, uint64_t timeout_ns)
{
    struct epoll_event events[8];
    struct timespec ts = {.tv_sec = (time_t)(timeout_ns / CLOCK_NS_PER_S),
                          .tv_nsec = (long)(timeout_ns % CLOCK_NS_PER_S)};

    if (epoll_pwait2(w->epoll_fd, events, 8, &ts, NULL) < 0 && errno == ENOSYS)
        epoll_wait(w->epoll_fd, events, 8,
                   (int)((timeout_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS));
}
