/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/listener.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define ACCEPT_BATCH 64
/* Pause when there are no descriptors. */
#define PAUSE_US 100000

struct listener {
    struct event *accept_event, *resume;
    listener_fn *accepted;
    void *ctx;
    int fd;
    bool short_of_files; /* said so */
};

static void listener_on_accept(evutil_socket_t listen_fd, short what, void *ctx)
{
    struct listener *l = ctx;

    (void)what;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        struct ucred peer;
        socklen_t len = sizeof peer;
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            const struct timeval pause = {.tv_usec = PAUSE_US};
            if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
                return;
            if (!l->short_of_files)
                log_warn("cannot accept connections to a local socket: %s", strerror(errno));
            l->short_of_files = true;
            event_del(l->accept_event);
            evtimer_add(l->resume, &pause);
            return;
        }
        l->short_of_files = false;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
            close(fd);
        else
            l->accepted(l->ctx, fd, &peer);
    }
}

static void listener_on_resume(evutil_socket_t fd, short what, void *ctx)
{
    struct listener *l = ctx;

    (void)fd, (void)what;
    event_add(l->accept_event, NULL);
}

struct listener *listener_new(struct event_base *base, int fd, listener_fn *accepted, void *ctx)
{
    struct listener *l = calloc(1, sizeof *l);

    if (!l) {
        close(fd);
        return NULL;
    }
    *l = (struct listener){.fd = fd, .accepted = accepted, .ctx = ctx};
    l->accept_event = event_new(base, fd, EV_READ | EV_PERSIST, listener_on_accept, l);
    l->resume = evtimer_new(base, listener_on_resume, l);
    if (!l->accept_event || !l->resume || event_add(l->accept_event, NULL) < 0) {
        listener_free(l);
        return NULL;
    }
    return l;
}

void listener_stop(struct listener *l)
{
    event_del(l->accept_event);
    event_del(l->resume);
}

void listener_free(struct listener *l)
{
    if (!l)
        return;
    if (l->accept_event)
        event_free(l->accept_event);
    if (l->resume)
        event_free(l->resume);
    close(l->fd);
    free(l);
}
