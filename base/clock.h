/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time: nanoseconds on CLOCK_MONOTONIC. Only the outermost loops read it; state machines get
 * `now_ns` as an argument so that the simulation can drive them with a clock of its own.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_US 1000ull
#define CLOCK_NS_PER_MS 1000000ull
#define CLOCK_NS_PER_S  1000000000ull

/* Now, exact (about 20 ns through the vDSO). */
static inline uint64_t clock_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * CLOCK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Now, to the kernel's tick (1 to 4 ms), for ages and time stamps on the short path (about 5
 * ns). */
static inline uint64_t clock_coarse_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return (uint64_t)ts.tv_sec * CLOCK_NS_PER_S + (uint64_t)ts.tv_nsec;
}
