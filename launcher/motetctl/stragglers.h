/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is missing in the collectives that a job hangs in, and who computes while others wait for its
 * messages. Used by waits.c.
 *
 * Idea: all members of a communicator enter its collectives in the same order, so each one counts
 * them (proto/calls.h). Whoever has counted less than those who wait in a collective has not come
 * to it. Of a persistent one the count says only that it was made: there, the missing are those
 * whom the waiting ranks wait for and who do not run it.
 */
#pragma once

#include <stddef.h>

struct snapshot;

/* Adds the findings "absent" and "collective". Returns how many. */
size_t stragglers_in_collectives(struct snapshot *p);
/* Adds the findings "computing": ranks outside MPI whom others wait for in receives and sends. */
void stragglers_in_messages(struct snapshot *p);
