/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A listening Unix socket in the loop: hands on every connection with the user that the kernel
 * names for it, some at a time, so that whoever opens many does not hold up what else the loop has
 * to do. Without descriptors it waits a while instead of asking the kernel again and again. Used by
 * client and status. Control thread.
 */
#pragma once

#include <event2/event.h>
#include <sys/socket.h>

struct listener;

/* Takes over fd, which does not block. */
typedef void listener_fn(void *ctx, int fd, const struct ucred *peer);

/* Listens on fd (taken over in every case). NULL: no memory. */
struct listener *listener_new(struct event_base *base, int fd, listener_fn *accepted, void *ctx);
void listener_free(struct listener *listener);
/* No more connections. */
void listener_stop(struct listener *listener);
