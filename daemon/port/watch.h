/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can wake a channel's thread from sleep: one epoll set of the channel's own wake word, the
 * network's wait descriptor and the jobs' bells. Belongs to the channel's thread.
 */
#pragma once

#include <stdint.h>

struct watch {
    int epoll_fd; /* -1: closed */
};

/* 0 or -errno. */
int watch_open(struct watch *w);
void watch_close(struct watch *w);
/* Watches a descriptor, if it is one; once more does no harm. 0 or -errno. */
int watch_add(struct watch *w, int fd);
void watch_remove(struct watch *w, int fd);
/* Sleeps until something rings or the time is over. */
void watch_sleep(struct watch *w, uint64_t timeout_ns);
