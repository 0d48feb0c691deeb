/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fibers: functions with stacks of their own that take turns on one thread, so that code which
 * blocks (an MPI program) can be one of many in a simulation. A stack that overflows meets a guard
 * page.
 */
#pragma once

#include <stdbool.h>

struct fiber;

/* A fiber that will run fn(arg). NULL without memory. */
struct fiber *fiber_new(void (*fn)(void *arg), void *arg);
/* Also of a fiber that has not come to its end: its stack is dropped as it is. */
void fiber_free(struct fiber *f);
/* Runs it until it gives its turn back or ends. Not from within a fiber. */
void fiber_resume(struct fiber *f);
/* Gives the turn back to whoever resumed the running fiber. */
void fiber_yield(void);
bool fiber_has_ended(const struct fiber *f);
