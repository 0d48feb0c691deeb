/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The channel's thread: turns, and what to do between turns that found no work. It passes through
 * three stages. After every turn it gives its core to the next thread; after some time without work
 * it sleeps, on one epoll set of the network's wait descriptor, the jobs' bells and the channel's
 * own wake word.
 *
 * Sleep is bounded: by the next timer, and, as wait descriptors of networks have been seen to miss
 * a packet, by a time that grows with the time without work (from 1 ms up to 1 s), so that a miss
 * costs little when anything is going on and nothing when nothing is.
 */
#pragma once

#include <pthread.h>

#include "daemon/channel/turn.h"

struct loop {
    struct turn *turn;
    uint64_t spin_ns; /* without work before sleeping */
    /* The channel's thread's. */
    uint64_t idle_ns;           /* since when there was no work */
    bool resting;               /* slept since then */
    _Atomic uint64_t heartbeat; /* read by control */
    /* The control thread's. */
    _Alignas(64) pthread_t thread;
    bool running;
};

void loop_init(struct loop *l, struct turn *turn, uint64_t spin_ns);
/* Control thread: starts the channel's thread. 0 or negative errno. */
int loop_start(struct loop *l);
/* Waits for the thread, which has been told to end. */
void loop_join(struct loop *l);
