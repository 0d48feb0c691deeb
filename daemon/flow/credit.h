/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credit of destination ranks, as their senders' channels know it. A rank has full credit until its
 * node says stop: then so much is held for it there that more would soon be refused. A stopped rank
 * gets a trickle, one message in an interval that doubles while the stops go on; full credit comes
 * back when its node says so, or by silence after a trickle should that word be lost. Messages that
 * were refused wait at their source; they go first, and as long as there are any, new ones
 * wait in the rings. So a rank that does not drain costs a bounded number of blocks, and only the
 * senders to it wait.
 *
 * Owned by a channel's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CREDIT_STOPS 128u

struct credit_stop {
    uint64_t job;
    uint32_t rank;
    uint32_t n_refused; /* messages for it that were refused and wait here */
    uint32_t interval_ms;
    bool stopped;
    bool tried;        /* a message of the trickle went since the last stop */
    uint64_t heard_ns; /* the last stop */
    uint64_t until_ns; /* nothing is sent before */
};

struct credit {
    uint32_t n;
    struct credit_stop stops[CREDIT_STOPS];
};

/* A stop has come. False if there are too many at once; it is forgotten then, and the rank's node
 * refuses. */
bool credit_stop(struct credit *c, uint64_t job, uint32_t rank, uint64_t now_ns);
/* The rank drains again. */
void credit_go(struct credit *c, uint64_t job, uint32_t rank);
/* May a new message go to this rank now? Each true for a stopped rank uses up its trickle. */
bool credit_take(struct credit *c, uint64_t job, uint32_t rank, uint64_t now_ns);
/* Is it stopped, or do refused messages wait for it? Uses up nothing. */
bool credit_is_stopped(const struct credit *c, uint64_t job, uint32_t rank);
/* A message to this rank was refused and is to wait here. False if it cannot. */
bool credit_refuse(struct credit *c, uint64_t job, uint32_t rank, uint64_t now_ns);
/* May a refused message go now? If so it counts as gone. */
bool credit_take_refused(struct credit *c, uint64_t job, uint32_t rank, uint64_t now_ns);
/* A refused message was thrown away. */
void credit_drop_refused(struct credit *c, uint64_t job, uint32_t rank);
/* Forgets stops of which nothing was heard for long. Now and then. */
void credit_age(struct credit *c, uint64_t now_ns);
