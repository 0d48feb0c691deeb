/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proto/ring.h: claim, publish, peek, release, with laps, reuse of slots and of the data area, and the wrap of the position counter.
 * A message is inline or takes one or two lines of a data area of four. Every cell a message touches is written with the
 * message's number (its position + 1), so a cell read too early or reused too early shows as a wrong number.
 *
 * The run never ends: positions count modulo WRAP instead of 2^32, so the search covers any number of messages and the wrap of the
 * counter. The consumer gives back at any time it likes (the code: once per quarter ring), but surely when it finds nothing.
 */
#ifndef WRAP
#define WRAP (2 * SLOTS)
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#if SLOTS == 2
#define SHIFT 1
#else
#define SHIFT 2
#endif
#define LINES 4
#define POS(x) ((x) & (WRAP - 1))
#define DPOS(x) ((x) & 7)
#define HALF 2

#define CELLS (1 + 3 * SLOTS + LINES)
#define PROCS 2
#ifndef BUFFER
#define BUFFER 3
#endif
#define HEAD 0
#define TURN(s) (1 + 3 * (s))
#define PLACE(s) (2 + 3 * (s)) /* len and data_line: lines * 4 + first line */
#define INLINE(s) (3 + 3 * (s))
#define DATA(l) (1 + 3 * SLOTS + (l))

#include "memory.pml"

byte ghost_lines[SLOTS]; /* what was sent, for the assertions only */

/* The consumer reads a cell of a message. What was read is wiped, so that stale contents do not multiply the states; a cell that was
 * overwritten too early is wrong now, or wiped and wrong when its own message is read. */
inline take(c, out)
{
	d_step { out = mem[c]; mem[c] = 0 }
}

#define turn_of(pos) (((pos) >> SHIFT) + 1)

/* ring_padding */
#ifdef BAD_NO_PADDING
#define padding(dt, need) 0
#else
#define padding(dt, need) ((LINES - ((dt) & 3)) < (need) -> LINES - ((dt) & 3) : 0)
#endif

/* ring_make_room without the load of head: judges what `head` says. */
inline make_room()
{
	room = false;
	if
	:: POS(head - head_seen) > POS(tail - head_seen) -> impossible_head()
	:: else -> take_head()
	fi
}

/* An honest consumer's head is always possible; with a hostile one the ring counts as full. */
inline impossible_head()
{
#ifndef HOSTILE
	assert(false)
#else
	skip
#endif
}

inline take_head()
{
	if
	:: head != head_seen ->
		head_seen = head;
#ifdef BAD_DATA_END
		data_head = data_end[head & (SLOTS - 1)]
#else
		data_head = data_end[(head - 1) & (SLOTS - 1)]
#endif
	:: else
	fi;
	if
	:: POS(tail - head_seen) > SLOTS - 1
	:: else ->
		if
		:: need == 0 -> room = true
		:: else ->
			if
			:: head_seen == tail && data_head == data_tail ->
				data_tail = DPOS((data_tail + LINES - 1) & 4);
				data_head = data_tail
			:: else
			fi;
			room = (DPOS(data_tail + padding(data_tail, need) + need - data_head) <= LINES)
		fi
	fi
}

proctype producer()
{
	byte tail, head_seen, data_tail, data_head, need, pad, off, head, i, ld_i;
	byte data_end[SLOTS];
	bool room;

	do
	:: skip ->
		if
		:: need = 0
		:: need = 1
		:: need = HALF
		fi;
claim:
		room = true;
		pad = (need > 0 -> padding(data_tail, need) : 0);
		if
#ifdef BAD_IGNORE_DATA_HEAD
		:: POS(tail - head_seen) > SLOTS - 1 ->
#else
		:: POS(tail - head_seen) > SLOTS - 1 ||
		   (need > 0 && DPOS(data_tail + pad + need - data_head) > LINES) ->
#endif
			load(0, HEAD, head);
			d_step {
				make_room();
				pad = (need > 0 -> padding(data_tail, need) : 0);
#ifdef BAD_IGNORE_DATA_HEAD
				room = (POS(tail - head_seen) <= SLOTS - 1)
#endif
			}
		:: else
		fi;
		if
		:: !room ->
			mem[HEAD] != head_seen; /* nothing changes until the consumer gives something back */
			goto claim
		:: else
		fi;
		d_step {
			off = (data_tail + pad) & (LINES - 1);
			assert(off + need <= LINES);
			assert(POS(tail - head_seen) < SLOTS && DPOS(data_tail + (need > 0 -> pad + need : 0) - data_head) <= LINES);
			ghost_lines[tail & (SLOTS - 1)] = need
		}
#ifdef BAD_TURN_FIRST
		store(0, TURN(tail & (SLOTS - 1)), turn_of(tail), RELEASE);
#endif
#ifndef HOSTILE /* nobody reads */
		store(0, PLACE(tail & (SLOTS - 1)), need * 4 + off + 16, RELAXED);
		if
		:: need == 0 -> store(0, INLINE(tail & (SLOTS - 1)), tail + 1, RELAXED)
		:: else ->
			i = 0;
			do
			:: i < need -> store(0, DATA(off + i), tail + 1, RELAXED); i++
			:: else -> break
			od
		fi;
#endif
		skip; /* spin forbids a jump into a d_step */
		d_step {
			if
			:: need > 0 -> data_tail = DPOS(data_tail + pad + need)
			:: else
			fi;
			data_end[tail & (SLOTS - 1)] = data_tail
		}
#if defined(HOSTILE)
#elif defined(BAD_TURN_PLAIN)
		store(0, TURN(tail & (SLOTS - 1)), turn_of(tail), RELAXED);
#elif defined(BAD_NO_LAP)
		store(0, TURN(tail & (SLOTS - 1)), 1, RELEASE);
#elif !defined(BAD_TURN_FIRST)
		store(0, TURN(tail & (SLOTS - 1)), turn_of(tail), RELEASE);
#endif
		d_step { tail = POS(tail + 1); i = 0; off = 0; pad = 0; need = 0; head = 0 }
	od
}

#ifdef BAD_NO_LAP
#define expected 1
#else
#define expected turn_of(next)
#endif

proctype consumer()
{
	byte next, released, v, lines, line, i, ld_i;

	do
	:: skip ->
		load(1, TURN(next & (SLOTS - 1)), v);
		if
		:: v != expected ->
			if
#ifndef BAD_NO_IDLE_RELEASE
			:: next != released ->
				store(1, HEAD, next, RELEASE);
				released = next
#endif
			:: else
			fi;
			mem[TURN(next & (SLOTS - 1))] == expected
		:: else ->
#ifdef BAD_HEAD_FIRST
			store(1, HEAD, POS(next + 1), RELEASE);
			released = POS(next + 1);
#endif
			take(PLACE(next & (SLOTS - 1)), v);
			d_step {
				lines = (v - 16) / 4;
				line = v & 3;
				assert(v >= 16 && lines == ghost_lines[next & (SLOTS - 1)]);
				v = 0
			}
			if
			:: lines == 0 ->
				take(INLINE(next & (SLOTS - 1)), v);
				assert(v == next + 1)
			:: else ->
				i = 0;
				do
				:: i < lines ->
					take(DATA(line + i), v);
					assert(v == next + 1);
					i++
				:: else -> break
				od
			fi;
			skip;
			d_step { next = POS(next + 1); lines = 0; line = 0; i = 0; v = 0 }
			if
			:: store(1, HEAD, next, RELEASE); released = next
			:: skip
			fi
		fi
	od
}

/* Writes anything to head, at any time, for ever. The producer must stay within the ring and within its own view of it. */
proctype hostile()
{
	byte v;

	do
	:: select(v : 0 .. WRAP - 1); mem[HEAD] = v
	od
}

init {
	atomic {
		run producer();
#ifdef HOSTILE
		run hostile();
#else
		run consumer();
#endif
		run flush(0);
		run flush(1)
	}
}
