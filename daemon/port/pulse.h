/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pulse of a link: whether data passes it, in both directions and at full size. Pure: without
 * clock and network; link.c calls it, carries out what it asks for and tells control the verdict.
 * Belongs to the channel's thread.
 *
 *                 small, then full size answered
 *      UNPROVED ----------------------------------> ALIVE
 *          |                                         |  unanswered for long, or the network says
 * why
 *          '---- unanswered ---> SILENT, ONE_WAY, <--'
 *                                BROKEN, LARGE ----> ALIVE: small ones in a row, then full size,
 * the more of them the sooner it failed again
 *
 * Idea: a control connection says nothing of the packets beside it: a firewall, a switch's MTU or a
 * dead thread stops them alone. So a link counts as alive while probes come back. Probes are rare
 * at rest; a link over which packets go is probed often, and fast once one is unanswered. What
 * shows otherwise that packets get through (a driver that takes more, bytes that the far kernel
 * confirms) puts a decision off, since a probe may stand in a queue.
 *
 * A stream carries everything in one order: what is too large for the path holds up the small
 * packets behind it. There a large loss shows as silence first; the connection is made anew, small
 * probes pass, and then the one of full size does not. Where each class of packets has a stream of
 * its own, small ones go on, and only a probe of full size finds out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/port/cmd.h"
#include "proto/wire.h"

struct pulse {
    uint8_t verdict; /* enum link_verdict */
    bool stream;     /* below is a connection: it repeats what is lost, and keeps order */
    bool held;       /* the last small probe found no room */
    bool split;      /* two: one for what is small, one for what is large */
    bool large_due;  /* a probe of full size is wanted at once */
    int error;       /* why the network refused last */
    uint32_t full_bytes, good_bytes, bad_bytes; /* sizes of packets that pass, and do not */
    uint32_t try_bytes;                         /* the next large probe */
    uint32_t n_missed, n_large_missed;          /* unanswered, of each size */
    uint32_t n_good, n_large_good;              /* answered, while the link is not alive */
    uint32_t n_breaks;                          /* errors since the last answer */
    uint32_t n_falls;                           /* in quick succession */
    uint64_t renew_every_ns;                    /* UINT64_MAX: never */
    uint64_t due_ns;                            /* pulse_step has nothing to do before */
    uint64_t since_ns;                          /* of the verdict */
    uint64_t down_ns;                           /* since when it is not alive */
    uint64_t break_ns;                          /* of the last error */
    uint64_t every_ns;                          /* as the last step was told */
    uint64_t heard_ns;                          /* a probe of theirs */
    uint64_t answered_ns, renewed_ns;
    uint64_t sent_ns, asked_ns;             /* last small probe; oldest unanswered one, 0: none */
    uint64_t large_sent_ns, large_asked_ns; /* likewise */
    uint64_t peak_ns;                       /* longest round trips of late */
};

struct pulse_config {
    uint32_t full_bytes; /* largest packet, header included */
    bool stream, split;
    uint64_t renew_every_ns; /* how often a new connection may be made; UINT64_MAX: there is none */
};

/* What pulse_step asks for. */
enum { PULSE_SEND_SMALL = 1, PULSE_SEND_LARGE = 2, PULSE_RENEW = 4 };

/* How the link is used. */
struct pulse_use {
    uint64_t every_ns; /* between probes while all is well */
    bool large;        /* large packets go */
};

void pulse_start(struct pulse *p, const struct pulse_config *config, uint64_t now_ns);
/* Decides, and returns what is to be done. pulse_sent follows for each probe that really left;
 * nothing is asked for along with PULSE_RENEW. */
uint32_t pulse_step(struct pulse *p, const struct pulse_use *use, uint64_t now_ns);
void pulse_sent(struct pulse *p, bool large, uint64_t now_ns);
/* The driver has no room for it now: it is asked for again soon. */
void pulse_held(struct pulse *p, bool large, uint64_t now_ns);
/* A probe of theirs came. */
void pulse_on_probe(struct pulse *p, const struct wire_probe *probe, uint64_t now_ns);
/* One of ours is answered: rtt_ns ago it left. */
void pulse_on_echo(struct pulse *p, const struct wire_probe *echo, uint64_t rtt_ns,
                   uint64_t now_ns);
/* Packets get through that a probe of this size may stand behind: it was too early to judge. */
void pulse_on_progress(struct pulse *p, bool large, uint64_t now_ns);
/* Something that went over the link is not acknowledged in time. */
void pulse_doubt(struct pulse *p, uint64_t now_ns);
/* The network says that it cannot: the connection broke, or could not be made. */
void pulse_on_break(struct pulse *p, int error, uint64_t now_ns);
/* A probe is wanted within this time. */
void pulse_hurry(struct pulse *p, uint64_t within_ns, uint64_t now_ns);
