/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trial: which of several methods is the fastest for messages of one kind, found out while the
 * program runs. A pure machine: it is told of messages and of times, and says which method is the
 * next one's.
 *
 *   waiting -(enough bytes have come)-> trying method by method, some messages each, in rounds
 *           -(all rounds)-> waiting, with the fastest
 *
 * Rounds, because a machine has slow moments that would hit one method alone; of a method the best
 * round counts. The last round leaves out who was less than half as fast as the best one. Trials
 * come back, since a machine changes, so rarely that they take a small part of the time that
 * messages take.
 */
#ifndef MOTET_CLIENT_P2P_METHOD_TRIAL_H
#define MOTET_CLIENT_P2P_METHOD_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/method.h"

/* Messages before the first trial: what a program sends only a few times is not worth one. */
#define TRIAL_FIRST_MESSAGES 4u
/* Of each method and round. The first one is not counted: it may still follow the last method's. */
#define TRIAL_SAMPLES 5u
/* Of messages that come in windows more, up to so many or to so many bytes: through the rings the
 * beginnings of all messages of a window come before the rest of its first ones. */
#define TRIAL_WINDOW_SAMPLES 48u
#define TRIAL_WINDOW_BYTES   (8u << 20)
#define TRIAL_ROUNDS         3u
/* Rounds in which all are tried; one is not enough to know a slow method from a slow moment. */
#define TRIAL_ALL_ROUNDS 2u
/* Messages without a sample before a method is passed over: its sender cannot use it. */
#define TRIAL_PATIENCE 1000u
/* A trial takes at most one part of so many of the time, and so do its messages by the slowest
 * method. */
#define TRIAL_SHARE 64u
/* A method takes another one's place if it is faster by more than one part of so many. */
#define TRIAL_WORTH 20u

struct trial {
    uint8_t permitted; /* bits by enum method; the rings are always permitted */
    uint8_t method;    /* of the next message */
    uint8_t settled;   /* of messages outside of trials */
    bool trying, tried;
    uint8_t round, n_samples;
    uint8_t most_samples;
    uint16_t n_without;
    uint32_t mb_per_s[METHOD_N]; /* 0: no figure */
    uint64_t step_ns, step_bytes;
    uint64_t trial_bytes; /* that have come since the trial began */
    uint64_t rest_bytes;  /* until the next trial; the first one counts messages */
    uint32_t rest_messages;
};

void trial_init(struct trial *t, uint8_t permitted, enum method_kind kind);

/* A method is no longer permitted. True: `method` or a figure has changed. */
bool trial_forbid(struct trial *t, uint8_t permitted);

/* A message of so many bytes has come, by whatever method. True: `method` or `trying` has
 * changed. */
bool trial_message(struct trial *t, uint64_t bytes);

/* A message took so long; only those that say when they began. True: as above. */
bool trial_sample(struct trial *t, enum method method, uint64_t bytes, uint64_t ns);

#endif
