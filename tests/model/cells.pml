/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cells (proto/cells.h, client/transport/cells.c): members publish one entry a step in a row of their own of DEPTH entries,
 * and read one another's. An entry is used again when every member has finished the step that it held before. That a
 * sleeping member is woken is the bell's part (bell.pml).
 *
 * Each entry's contents are the step's number and its publisher's, so a read too early, or of an entry used again too early, shows.
 *
 * Good: default, two members who both publish in every step; ROOTED, one of three publishes; REUSE, a communicator is freed while one
 * of its members still reads, and another one with other members takes its place.
 */
#define DEPTH 2
#define STEPS 4
#if defined(ROOTED) || defined(REUSE)
#define MEMBERS 3
#else
#define MEMBERS 2
#endif

#define CELLS (MEMBERS * (2 * DEPTH + 1))
#define PROCS MEMBERS
#ifndef BUFFER
#define BUFFER 3
#endif
#define DONE(m)    ((m) * (2 * DEPTH + 1))
#define STEP(m, s) (DONE(m) + 1 + 2 * ((s) % DEPTH))
#define DATA(m, s) (DONE(m) + 2 + 2 * ((s) % DEPTH))
#define CONTENTS(m, s) ((s) * MEMBERS + (m))

#include "memory.pml"

#ifdef REUSE
/* The first user of the row has the members 0 and 1 and half of the steps, the second one 0 and 2 and the rest. */
#define BASE (STEPS / 2)
#define first_of(m) ((m) == 2 -> BASE + 1 : 1)
#define last_of(m) ((m) == 1 -> BASE : STEPS)
#define other_of(m, s) ((m) > 0 -> 0 : ((s) > BASE -> 2 : 1))
#else
#define BASE 0
#define first_of(m) 1
#define last_of(m) STEPS
#endif

#if defined(ROOTED) || defined(REUSE)
#define publishes(m) ((m) == 0)
#else
#define publishes(m) true
#endif

/* Is member k through with all steps up to s? What one has not begun counts as finished up to the base. */
#define finished(k, s) (mem[DONE(k)] >= (s) || ((s) <= BASE && step > BASE))

/* cells_claim: nothing of the step that the entry held before is read any more. */
inline wait_for_room()
{
#if defined(BAD_NO_ROOM)
	skip
#elif defined(BAD_OWN_DONE)
	step <= DEPTH || own_done >= step - DEPTH
#elif defined(REUSE)
	if
#ifndef BAD_NO_DRAIN
	:: step == BASE + 1 -> mem[DONE(1)] >= BASE
#endif
	:: else
	fi;
	step <= DEPTH || finished(other_of(me, step), step - DEPTH)
#elif defined(ROOTED)
	step <= DEPTH || (finished(1, step - DEPTH) && finished(2, step - DEPTH))
#else
	step <= DEPTH || finished(1 - me, step - DEPTH)
#endif
}

inline publish()
{
#if defined(BAD_STEP_FIRST)
	store(me, STEP(me, step), step, RELEASE);
	store(me, DATA(me, step), CONTENTS(me, step), RELAXED)
#elif defined(BAD_STEP_RELAXED)
	store(me, DATA(me, step), CONTENTS(me, step), RELAXED);
	store(me, STEP(me, step), step, RELAXED)
#else
	store(me, DATA(me, step), CONTENTS(me, step), RELAXED);
	store(me, STEP(me, step), step, RELEASE)
#endif
}

/* cells_peek until there is something. */
inline read(k)
{
#if defined(BAD_ANY_STEP)
	mem[STEP(k, step)] != 0;
#elif defined(BAD_CONTENTS_FIRST)
	seen = mem[DATA(k, step)];
	mem[STEP(k, step)] == step;
#else
	mem[STEP(k, step)] == step;
#endif
#ifndef BAD_CONTENTS_FIRST
	seen = mem[DATA(k, step)];
#endif
	assert(seen == CONTENTS(k, step));
	seen = 0
}

inline finish()
{
	own_done = step;
	store(me, DONE(me), step, RELEASE)
}

proctype member(byte me)
{
	byte step, own_done, seen;

	step = first_of(me);
	do
	:: step > last_of(me) -> break
	:: else ->
		if
		:: publishes(me) ->
			wait_for_room();
			publish()
		:: else
		fi;
#ifdef BAD_DONE_FIRST
		finish();
#endif
		if
#if defined(ROOTED) || defined(REUSE)
		:: me > 0 -> read(0)
#else
		:: true -> read(1 - me)
#endif
#if defined(ROOTED) || defined(REUSE)
		:: else
#endif
		fi;
#ifndef BAD_DONE_FIRST
		finish();
#endif
		step++
	od
}

init
{
	byte i;
	atomic {
		do
		:: i < MEMBERS -> run member(i); run flush(i); i++
		:: else -> break
		od
	}
}
