/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated processes: each runs an MPI program on the real client library, as a fiber, with the
 * library's state and memory of its own. What the library asks of the kernel is answered here: the
 * clock is the simulation's, a yield or a sleep on a futex gives the turn to somebody else, reading
 * another process's memory is a copy, or refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "client/progress/calls.h"
#include "tests/sim/cluster.h"

struct client;
struct fiber;

#define PROCESS_KEYS 4

struct process {
    struct fiber *fiber;
    struct client *client;
    struct calls_now calls;        /* what else the library keeps per thread */
    void *specifics[PROCESS_KEYS]; /* pthread_setspecific */
    struct list memory;            /* blocks that the library and the program have */
    uint64_t n_blocks;
    uint32_t pid;
    bool may_read; /* other processes' memory */
    bool alive;
    /* Why it does not run now. */
    uint64_t until_ns;            /* not before, unless woken */
    uint64_t stopped_ns;          /* not before, whatever comes */
    const _Atomic uint32_t *word; /* sleeps on this futex */
    bool woken;
    struct list node; /* among the living */
};

/* The process whose turn it is; NULL: the daemons'. */
extern struct process *process_here;

/* Somebody was woken or began since this was last set to false. */
extern bool process_news;

/* The clock that all processes read. */
void process_use_clock(struct sim *s);
/* A process that will run fn(arg). */
struct process *process_new(struct sim *s, uint32_t pid, void (*fn)(void *arg), void *arg);
/* Kills it if it is alive: its memory goes with it. One that has ended must have freed it all. */
void process_free(struct process *p);
bool process_can_run(const struct process *p, uint64_t now_ns);
/* When it can run without being woken; UINT64_MAX: never. */
uint64_t process_next_ns(const struct process *p);
/* Gives it a turn. True when it did something other than wait. */
bool process_run(struct process *p);

/* For the running process: it does something else for so long, without the library. */
void process_pause(uint64_t ns);
/* Its only thread ends: what the library keeps for the thread goes. */
void process_end_thread(void);
/* What malloc and its like are to the processes, the library's calls included. */
void *sim_malloc(size_t n);
void *sim_calloc(size_t n, size_t size);
void sim_free(void *p);
