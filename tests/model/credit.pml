/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The eager allowance of client/p2p (peer.h, outbound.c, inbound.c): two ranks that flood each other, each with one ring towards the
 * other of two slots. A rank is one thread, so each of its steps is atomic.
 *
 * A sender spends allowance on an eager message or on the first bytes of an announcement; when it has none left it announces
 * without bytes (rendezvous) and never waits for allowance. The receiver owes what it took when the message finds its receive,
 * and gives back in batches; what finds no room in the ring waits in a list of its own.
 *
 * Shown: the allowance in use never exceeds the limit and never gets negative; what the receiver holds unexpected is bounded by it;
 * nothing is lost: at the end the sender misses exactly what the receiver still owes; both ranks always finish.
 * Good: default; LAST_FIRST (the program receives the last message before all others, so nothing is given back until it came);
 * PIGGYBACK (every message also carries what is owed: not in the code today).
 */
#ifndef MESSAGES
#define MESSAGES 4 /* each way */
#endif
#ifndef ALLOWANCE
#define ALLOWANCE 3
#endif
#define BATCH 2
#define SLOTS 2

mtype = { EAGER, RTS, CREDIT, FINISHED };

/* Towards each rank: kind, allowance charged by this message, allowance given back. */
chan ring[2] = [SLOTS] of { mtype, byte, byte };

byte out[2];     /* allowance in use, at the sender */
byte owed[2];    /* [r]: owed by r to the other one */
byte held[2];    /* [r]: charged messages that lie unexpected at r */
byte n_sent[2], n_received[2];

inline owe(n)
{
	owed[me] = owed[me] + n
}

inline give_batch()
{
	if
	:: owed[me] >= BATCH ->
#ifdef BAD_DROPPED_WHEN_FULL
		if
		:: nfull(ring[1 - me]) -> ring[1 - me]!CREDIT, 0, owed[me]
		:: full(ring[1 - me])
		fi;
#else
		control!CREDIT, owed[me];
#endif
		owed[me] = 0
	:: else
	fi
}

#ifdef PIGGYBACK
#define carried owed[me]
#define carried_done() owed[me] = 0
#else
#define carried 0
#define carried_done() skip
#endif

#ifdef LAST_FIRST
#define may_receive (n_received[me] + len(unexpected) == MESSAGES)
#else
#define may_receive true
#endif

/* A message (kind, charge) and a receive have met. */
inline match_made(kind, charge)
{
	n_received[me]++;
#ifndef BAD_OWED_AT_ARRIVAL
	owe(charge);
#endif
	if
	:: kind == RTS -> control!FINISHED, 0
	:: else
	fi;
	give_batch()
}

proctype rank(byte me)
{
	byte n_asked, n_posted, waiting, charge, back, n;
	mtype kind;
	chan control = [8] of { mtype, byte };
	chan unexpected = [MESSAGES] of { mtype, byte };

end:
	do
	/* The program: nonblocking sends and receives in any order. */
	:: atomic { n_asked < MESSAGES -> n_asked++; waiting++ }
	:: atomic { n_posted + n_received[me] < MESSAGES && may_receive && nempty(unexpected) ->
		unexpected?kind, charge;
		held[me] = held[me] - charge;
		match_made(kind, charge); kind = 0; charge = 0 }
	:: atomic { n_posted + n_received[me] < MESSAGES && may_receive && empty(unexpected) -> n_posted++ }

	/* Progress: what waits for room. */
	:: atomic { nempty(control) && nfull(ring[1 - me]) ->
		control?kind, back;
		ring[1 - me]!kind, 0, back; kind = 0; back = 0 }
	:: atomic { waiting > 0 && nfull(ring[1 - me]) && out[me] < ALLOWANCE ->
		if
		:: kind = EAGER; n_sent[me]++
		:: kind = RTS
		fi;
		waiting--;
#ifdef BAD_UNCHARGED_ANNOUNCEMENT
		if
		:: kind == EAGER -> out[me]++
		:: else
		fi;
#else
		out[me]++;
#endif
		ring[1 - me]!kind, 1, carried;
		carried_done(); kind = 0 }
#ifndef BAD_WAIT_FOR_ALLOWANCE
	:: atomic { waiting > 0 && nfull(ring[1 - me]) && out[me] >= ALLOWANCE ->
		waiting--;
		ring[1 - me]!RTS, 0, carried;
		carried_done() }
#endif

	/* Progress: what arrives. */
#ifdef BAD_NO_PROGRESS_WHEN_FULL
	:: atomic { nempty(ring[me]) && !(waiting > 0 && len(ring[1 - me]) == SLOTS) ->
#else
	:: atomic { nempty(ring[me]) ->
#endif
		ring[me]?kind, charge, back;
		assert(out[me] >= back);
		out[me] = out[me] - back;
		if
		:: kind == EAGER || kind == RTS ->
#if defined(BAD_OWED_AT_ARRIVAL) || defined(BAD_OWED_TWICE)
			owe(charge);
#endif
			if
			:: n_posted > 0 -> n_posted--; match_made(kind, charge)
			:: else ->
				unexpected!kind, charge;
				held[me] = held[me] + charge;
				assert(held[me] <= ALLOWANCE);
#ifdef BAD_OWED_AT_ARRIVAL
				give_batch()
#endif
			fi
		:: kind == FINISHED -> n_sent[me]++
		:: kind == CREDIT
		fi;
		assert(out[me] <= ALLOWANCE);
		kind = 0; charge = 0; back = 0 }
	od
}

proctype judge()
{
	timeout ->
	assert(n_sent[0] == MESSAGES && n_sent[1] == MESSAGES && n_received[0] == MESSAGES && n_received[1] == MESSAGES);
	assert(out[0] == owed[1] && out[1] == owed[0])
}

init {
	atomic { run judge(); run rank(0); run rank(1) }
}
