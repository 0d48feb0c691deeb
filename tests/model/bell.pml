/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proto/bell.h: finding the ring that has news, and sleeping without losing a wake-up. Two producers with a ring each, one consumer.
 * A ring is a counter of published messages here (what happens inside one is ring.pml's matter).
 *
 * The consumer polls the rings it holds active, may turn one quiet at any time, may skip its look at a known quiet ring on any turn,
 * and goes to sleep at any time it found nothing. Its sleep has no time limit; when nothing can move any more, everything that was
 * published must have been read, or a wake-up was lost.
 *
 * Good: default (membarrier), FENCED (exchanges on both sides), EVENTFD (the consumer sleeps on a descriptor that remembers wakes).
 * WAKER_DIES shows the limit of the method and must fail: a producer that is stopped between taking the word and waking takes
 * the wake-up with it, so every sleep in the code has a bound.
 */
#ifndef ROUNDS
#define ROUNDS 2 /* messages per producer, at most */
#endif
#define PRODUCERS 2
#define CONSUMER PRODUCERS
#define PROCS (PRODUCERS + 1)
#define BUFFER 2

#define PUBLISHED(i) (i)
#define ACTIVE(i) (PRODUCERS + (i))
#define RUNG (2 * PRODUCERS)
#define SLEEPING (2 * PRODUCERS + 1)
#define CELLS (2 * PRODUCERS + 2)

#include "memory.pml"

byte got[PRODUCERS];
bool waiting;  /* the consumer is inside futex_wait */
bool token;    /* event descriptor */

inline wake()
{
#ifdef EVENTFD
	token = true
#else
	waiting = false /* FUTEX_WAKE reaches whoever waits now */
#endif
}

inline set_bit()
{
	if
	:: is_active == 0 -> atomic { drained(me) -> mem[RUNG] = mem[RUNG] | (1 << me) }
	:: else
	fi
}

proctype producer(byte me)
{
	byte k, is_active, sleeping, ld_i;

	do
	:: k > 0 -> break
	:: k < ROUNDS ->
#ifdef BAD_LOOK_FIRST
		load(me, SLEEPING, sleeping);
#endif
		/* ring_publish */
#if defined(FENCED) && !defined(BAD_PLAIN_PUBLISH)
		atomic { drained(me) -> mem[PUBLISHED(me)] = k + 1 };
#else
		store(me, PUBLISHED(me), k + 1, RELEASE);
#endif
		k++;
		/* bell_notify */
		load(me, ACTIVE(me), is_active);
#ifndef BAD_BIT_LATE
		set_bit();
#endif
#ifndef BAD_LOOK_FIRST
		load(me, SLEEPING, sleeping);
#endif
#ifdef BAD_BIT_LATE
		set_bit();
#endif
		/* bell_wake */
		if
		:: sleeping ->
#ifdef BAD_WAKE_FIRST
			wake();
			atomic { drained(me) -> mem[SLEEPING] = 0 }
#else
			atomic { drained(me) -> sleeping = mem[SLEEPING]; mem[SLEEPING] = 0 };
			if
			:: sleeping -> wake()
#ifdef WAKER_DIES
			:: sleeping && me == 0 -> break /* stopped or killed here */
#endif
			:: else
			fi
#endif
		:: else
		fi;
		d_step { is_active = 0; sleeping = 0 }
	od
}

/* bell_collect, and the rings it names become active. */
inline collect()
{
	load(CONSUMER, RUNG, v);
	if
	:: v != 0 ->
#ifdef BAD_CLEAR_AFTER_SCAN
		d_step { bits = v; known = known | v; found = true }
#else
		atomic { drained(CONSUMER) -> v = mem[RUNG]; mem[RUNG] = 0; known = known | v; found = true };
#endif
		i = 0;
		do
		:: i < PRODUCERS ->
			if
			:: (v >> i) & 1 && !((polled >> i) & 1) -> store(CONSUMER, ACTIVE(i), 1, RELAXED); polled = polled | (1 << i)
			:: else
			fi;
			i++
		:: else -> break
		od
	:: else
	fi;
	i = 0;
	v = 0
}

inline look(r)
{
	load(CONSUMER, PUBLISHED(r), v);
	if
	:: v > got[r] -> got[r] = v; found = true
	:: else
	fi;
	v = 0
}

proctype consumer()
{
	byte v, i, known, polled, ld_i, ba_p, fl_j;
	bool found;
#ifdef BAD_CLEAR_AFTER_SCAN
	byte bits;
#endif

again:
	do
	:: skip ->
		found = false;
		collect();
		/* One turn over the rings: active ones are looked at, quiet ones perhaps. */
		i = 0;
		do
		:: i < PRODUCERS ->
			if
			:: (polled >> i) & 1 -> look(i)
			:: (polled >> i) & 1 -> /* silent for long: becomes quiet */
				polled = polled & ~(1 << i);
				store(CONSUMER, ACTIVE(i), 0, RELAXED)
			:: !((polled >> i) & 1) && (known >> i) & 1 -> look(i)
			:: !((polled >> i) & 1) -> skip
			fi;
			i++
		:: else -> break
		od;
		i = 0;
#ifdef BAD_CLEAR_AFTER_SCAN
		if
		:: bits -> atomic { drained(CONSUMER) -> mem[RUNG] = 0; bits = 0 }
		:: else
		fi;
#endif
		if
		:: found -> goto again
		:: else
		fi;

		/* bell_sleep_begin */
#ifdef BAD_CHECK_THEN_SLEEP
		collect(); look(0); look(1);
#endif
#ifdef BAD_PLAIN_SLEEPING
		store(CONSUMER, SLEEPING, 1, RELAXED);
#else
		atomic { drained(CONSUMER) -> mem[SLEEPING] = 1 };
#endif
#if !defined(FENCED) && !defined(BAD_NO_BARRIER)
		atomic { drained(CONSUMER) -> barrier_all() };
#endif
#ifndef BAD_CHECK_THEN_SLEEP
		collect();
		i = 0;
		do
		:: i < PRODUCERS ->
			if
#ifdef BAD_NO_QUIET_LOOK
			:: (polled >> i) & 1 -> look(i)
#else
			:: (known >> i) & 1 -> look(i)
#endif
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0;
#endif
		if
		:: found -> skip
		:: else ->
#ifdef EVENTFD
end_sleep:
			atomic { token -> token = false }
#else
			atomic {
				if
				:: mem[SLEEPING] == 1 -> waiting = true
				:: else
				fi
			};
end_sleep:
			!waiting
#endif
		fi;
		/* bell_sleep_end */
		store(CONSUMER, SLEEPING, 0, RELAXED)
	od
}

/* Runs when nothing else can. */
proctype judge()
{
	timeout -> assert(got[0] == mem[PUBLISHED(0)] && got[1] == mem[PUBLISHED(1)])
}

init {
	atomic {
		run judge();
		run producer(0);
		run producer(1);
		run consumer();
		run flush(0);
		run flush(1);
		run flush(2)
	}
}
