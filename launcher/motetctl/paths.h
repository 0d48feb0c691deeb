/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the ranks of a job can reach one another at all: a rank that waits for one behind a path
 * that is blocked waits for the network, and no deadlock can be told from that; nor can it while a
 * transfer still moves. Used by waits.c.
 */
#pragma once

#include "launcher/motetctl/snapshot.h"

/* Tells which ranks reach one another (their `part`), by the rows of links, and says what blocks
 * the others. NULL rows: nothing is known, all do. */
void paths_find_blocked(struct snapshot *p, const json_t *links);
/* Marks the ranks that wait for the network: their transfer has begun on both sides, or packets
 * between the nodes of the two ends are not acknowledged; and says between which nodes. Such a wait
 * ends by itself, however slow the network is, so nothing that hangs can be told from it. */
struct waits_looks {
    const json_t *later_queues; /* rows of queues, half a second later */
    const json_t *links;        /* of the cluster */
};
void paths_find_carried(struct snapshot *p, const struct waits_looks *looks);
/* Marks the ranks of which a transfer has moved between two looks at the queues. */
void paths_find_moving(struct snapshot *p, const json_t *later_queues);
