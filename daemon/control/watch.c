/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/control/watch.h"

#include <event2/event.h>
#include <stdlib.h>

struct watch {
    struct event *event;
    void (*readable)(void *ctx);
    void *ctx;
};

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
    struct watch *watch = ctx;

    (void)fd, (void)what;
    watch->readable(watch->ctx);
}

struct watch *watch_new(struct event_base *base, int fd, void (*readable)(void *ctx), void *ctx)
{
    struct watch *watch = calloc(1, sizeof *watch);

    if (!watch)
        return NULL;
    watch->readable = readable;
    watch->ctx = ctx;
    watch->event = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, watch);
    if (!watch->event || event_add(watch->event, NULL) < 0) {
        watch_free(watch);
        return NULL;
    }
    return watch;
}

void watch_free(struct watch *watch)
{
    if (!watch)
        return;
    if (watch->event)
        event_free(watch->event);
    free(watch);
}
