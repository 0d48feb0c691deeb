/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls a function in the control loop when a descriptor is readable. A thin cover over libevent for fabric.c, which also includes
 * the channels' headers: those and libevent's both have a `struct event`. Control thread.
 */
#pragma once

struct event_base;
struct watch;

/* NULL: no memory. */
struct watch *watch_new(struct event_base *base, int fd, void (*readable)(void *ctx), void *ctx);
void watch_free(struct watch *watch);
