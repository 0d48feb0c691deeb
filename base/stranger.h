/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strangers: processes that compute on the cores we wait on. Whoever yields to one waits for its
 * time slice (milliseconds), while a sleeper is woken ahead of it; but a sleep costs ten times what
 * a yield among waiting threads costs. So a wait that lost much time in a yield sleeps for a while
 * instead, briefly at first (it may have been an accident), longer while it goes on losing.
 *
 * One per waiting thread, or under its lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* A yield, or a gap between two looks at the clock, of this length went to somebody who computes:
 * our own threads give way sooner. */
#define STRANGER_LOST_NS (300 * CLOCK_NS_PER_US)
/* Twice a usual time slice, and the longest time after which yielding is tried again: at most a
 * twentieth is lost by trying. */
#define STRANGER_MIN_NS (8 * CLOCK_NS_PER_MS)
#define STRANGER_MAX_NS (128 * CLOCK_NS_PER_MS)

struct stranger {
    uint64_t until_ns;  /* sleep instead of yielding until then; 0: none was met */
    uint64_t window_ns; /* length of the last such time */
};

static inline bool stranger_near(const struct stranger *s, uint64_t now_ns)
{
    return now_ns < s->until_ns;
}

/* Time was lost until now_ns. */
static inline void stranger_met(struct stranger *s, uint64_t now_ns)
{
    bool again = now_ns < s->until_ns + s->window_ns;

    s->window_ns = !again                           ? STRANGER_MIN_NS
                   : s->window_ns < STRANGER_MAX_NS ? 2 * s->window_ns
                                                    : STRANGER_MAX_NS;
    s->until_ns = now_ns + s->window_ns;
}
