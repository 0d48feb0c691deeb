/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Weak memory for the models: every process writes into a store buffer of its own, and a separate process moves entries to
 * memory whenever it likes. Entries to different cells may overtake one another (as C11 and weakly ordered machines allow), except
 * that a release store waits for everything stored before it. A process reads its own youngest store first.
 * With TSO defined, entries leave in order: what x86 does.
 *
 * Loads happen where they stand in the text; acquire loads are therefore plain here. What a missing acquire would do is modelled by
 * variants that read in the wrong order.
 *
 * The includer defines CELLS, PROCS and BUFFER (entries per store buffer).
 */
typedef store_entry {
	byte cell;
	byte value;
	bit release
}
typedef store_buffer {
	store_entry e[BUFFER];
	byte n
}
byte mem[CELLS];
store_buffer sb[PROCS];

#define RELAXED 0
#define RELEASE 1

/* Waits for a free entry, then stores. */
inline store(p, c, v, r)
{
	atomic {
		sb[p].n < BUFFER ->
		sb[p].e[sb[p].n].cell = c;
		sb[p].e[sb[p].n].value = v;
		sb[p].e[sb[p].n].release = r;
		sb[p].n++
	}
}

inline load(p, c, out)
{
	d_step {
		out = mem[c];
		ld_i = 0;
		do
		:: ld_i < sb[p].n ->
			if
			:: sb[p].e[ld_i].cell == c -> out = sb[p].e[ld_i].value
			:: else
			fi;
			ld_i++
		:: else -> break
		od;
		ld_i = 0
	}
}

/* Everything this process stored is in memory. */
#define drained(p) (sb[p].n == 0)

/* Moves entry i to memory and closes the gap. Inside d_step only. */
inline commit(p, i)
{
	mem[sb[p].e[i].cell] = sb[p].e[i].value;
	fl_j = i;
	do
	:: fl_j + 1 < sb[p].n ->
		sb[p].e[fl_j].cell = sb[p].e[fl_j + 1].cell;
		sb[p].e[fl_j].value = sb[p].e[fl_j + 1].value;
		sb[p].e[fl_j].release = sb[p].e[fl_j + 1].release;
		fl_j++
	:: else -> break
	od;
	sb[p].n--;
	sb[p].e[sb[p].n].cell = 0;
	sb[p].e[sb[p].n].value = 0;
	sb[p].e[sb[p].n].release = 0;
	fl_j = 0
}

#ifdef TSO
#define may_overtake(p, i) false
#else
#define may_overtake(p, i) \
	(sb[p].n > i && !sb[p].e[i].release && sb[p].e[i].cell != sb[p].e[0].cell && \
	 (i < 2 || sb[p].e[i].cell != sb[p].e[1].cell))
#endif

/* The store buffer of process p at work. */
proctype flush(byte p)
{
	byte fl_j;
end:
	do
	:: d_step { sb[p].n > 0 -> commit(p, 0) }
	:: d_step { may_overtake(p, 1) -> commit(p, 1) }
#if BUFFER > 2
	:: d_step { may_overtake(p, 2) -> commit(p, 2) }
#endif
	od
}

/* membarrier(2): every process's earlier stores are in memory, and the caller's own. Call with drained(own) as a guard. */
inline barrier_all()
{
	d_step {
		ba_p = 0;
		do
		:: ba_p < PROCS ->
			do
			:: sb[ba_p].n > 0 -> commit(ba_p, 0)
			:: else -> break
			od;
			ba_p++
		:: else -> break
		od;
		ba_p = 0
	}
}
