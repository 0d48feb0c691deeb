/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the waiting code needs of the kernel: futex on shared memory, the asymmetric barrier, pause,
 * the number of cores.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Tells the core that this is a spin loop. */
static inline void thread_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Begins to fetch the cache line of an address for writing. */
static inline void thread_prefetch_own(const void *address)
{
#if defined(__x86_64__)
    /* What __builtin_prefetch emits only for processors named to the compiler; those without it
     * take it for no operation. */
    __asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)address));
#else
    __builtin_prefetch(address, 1);
#endif
}

/* Sleeps while *word == expected, at most timeout_ns (UINT64_MAX: for ever). Works across processes
 * on shared memory. Returns 0 when woken or the word differs, -ETIMEDOUT, or -EINTR. */
int thread_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
/* Wakes at most n sleepers. */
void thread_futex_wake(_Atomic uint32_t *word, int n);

/*
 * The asymmetric barrier (membarrier(2), MEMBARRIER_CMD_GLOBAL_EXPEDITED): a sleeper pays for the
 * full barrier on every core that runs a registered process, so that producers need none. Register
 * once per process, before producing or sleeping. Returns 0, or -ENOSYS where the kernel lacks it;
 * then both sides must use sequentially consistent operations.
 */
int thread_barrier_register(void);
/* Runs the barrier: every store that another registered thread made before, in program order, is
 * now visible here, and every load it makes after sees the stores made here before. */
void thread_barrier_all(void);

/* Cores this process may run on (sched_getaffinity), at least 1. */
int thread_n_cores(void);
/* Names the calling thread (15 characters at most) for ps and top. */
void thread_set_name(const char *name);
