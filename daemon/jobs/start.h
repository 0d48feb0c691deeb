/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a job's start travels: down a tree of its nodes, and the answers up again, so that nobody
 * speaks to more than log2(n) nodes and all are reached in log2(n) steps. Used by manager.c (the
 * root) and job.c (all others); pure, without socket and clock. Control thread.
 *
 * Idea: a binomial tree as in collective operations. The home is position 0, placement i position i
 * + 1. The parent of a position is the position without its lowest bit, so everybody can compute
 * everything from the list of placements that the order carries:
 *
 *      0 -- 1            1, 2, 4, 8 ... are the root's children; 6 = 4 + 2 is 4's, 7 = 6 + 1 is 6's
 *       `-- 2 -- 3
 *        `- 4 -- 5
 *            `-- 6 -- 7
 *
 * Only Launch, its answer and Start travel so. What ends a job goes straight from its home to every
 * node, also to those whose parent died: it may overtake the order that it takes back. start_over
 * remembers such jobs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/control.pb-c.h"

/* Of a tree of as many nodes as a hop table can hold. */
#define START_MAX_CHILDREN 16u
/* Ends that came before their job are remembered; jobs in the middle of a start are few. */
#define START_OVER_MAX 256u

struct start {
    uint32_t parent; /* node id that the answer goes to; 0: the root */
    uint32_t children[START_MAX_CHILDREN];
    uint32_t n_children;
    uint32_t answered;    /* a bit for each child */
    bool own_ready, over; /* over: READY or FAILED has been returned */
};

enum start_next {
    START_WAITS,  /* for others */
    START_READY,  /* this node and all below it are ready: say so upwards. Once */
    START_FAILED, /* some node below is not: pass its reason upwards. Once */
    START_IGNORE, /* nobody whose answer is awaited */
};

/* The root's or, with own_id, a node's place. 0, or -EINVAL: the node is not among them, or they
 * are too many. */
int start_init_root(struct start *s, Motet__Placement *const *placements, size_t n);
int start_init(struct start *s, uint32_t own_id, uint32_t home_id,
               Motet__Placement *const *placements, size_t n);
/* What this node itself has to prepare is done. */
enum start_next start_on_own_ready(struct start *s);
enum start_next start_on_answer(struct start *s, uint32_t src_id, bool ok);

struct start_over {
    uint64_t jobs[START_OVER_MAX];
    uint32_t n;
};

void start_over_note(struct start_over *over, uint64_t job);
bool start_over_has(const struct start_over *over, uint64_t job);
