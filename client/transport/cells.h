/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One row of cells (proto/cells.h), as a rank of it sees it. The collectives
 * call it (client/coll/schedule/schedule.c, client/coll/node/node.c), on the thread that holds the
 * library lock.
 *
 * A step: cells_take gives its number, in the same order on all members. A member may publish
 * once in it (claim, fill, publish) and read what others published (peek); it finishes the step
 * when it will read nothing of it any more, in any order of steps. Nothing here waits: what is not
 * there yet, or finds no room yet, is asked for again.
 *
 * Room. Collectives that are under way at once claim in any order of steps, but room comes back in
 * the order of steps only, when all members have finished. So a claim that overtakes an earlier
 * step, one that is neither published nor finished here, must leave room for the largest
 * publication behind its own, and one of the CELLS_DEPTH places in the list of parts. Then none
 * waits for ever, whatever the sizes: let k be the lowest step that a member has not finished, and
 * look at one that has not claimed in k yet. All parts of steps before k may be given back. The
 * parts of later steps were claimed while k was neither published nor finished here, so the last of
 * them left that room behind itself; what was claimed after it belongs to steps before k, and parts
 * are given back from that end, too. So k finds room. Its entry is free as well (all are done up to
 * k - 1), and so it ends as soon as its collective comes to it. That one waits for no later step,
 * under one condition: within a collective, a step is finished before the next one is claimed.
 */
#ifndef MOTET_CLIENT_TRANSPORT_CELLS_H
#define MOTET_CLIENT_TRANSPORT_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/transport/transport.h"
#include "proto/cells.h"

#define CELLS_ALL (-1)

struct cells;

/* True where the job segment has cells. */
bool cells_exist(void);
/* The row `row` of slot `slot` for the members with these local ranks, beginning behind step
 * `base`; `me`: own place among them. NULL: no memory. */
struct cells *cells_open(uint32_t slot, uint32_t row, uint64_t base, uint32_t n_members,
                         const uint32_t *locals, uint32_t me);
/* Others may still read what was published: the next one in this row waits for them before it
 * publishes. NULL is fine. */
void cells_close(struct cells *x);
/* No step that this process ever took has a higher number. */
uint64_t cells_highest(void);

/* Largest publication. */
uint32_t cells_max_bytes(void);

uint64_t cells_take(struct cells *x);
/* Room for `len` bytes (at most cells_max_bytes) to publish in this step, or NULL: not yet. */
void *cells_claim(struct cells *x, uint64_t step, uint32_t len);
/* Publishes what was claimed and filled. `to`: the only member that may wait for it, or
 * CELLS_ALL. */
void cells_publish(struct cells *x, uint64_t step, int to);
/* What `member` published in this step, or NULL: nothing yet. Valid until the step is finished
 * here. */
const void *cells_peek(const struct cells *x, uint32_t member, uint64_t step, uint32_t *ret_len);
/* Fetches all members' entries of the next step into the cache: most of them are there by the time
 * when it is wanted. */
void cells_prefetch(const struct cells *x, uint64_t step);
/* False: so many earlier steps are unfinished that this one cannot be counted yet. */
bool cells_finish(struct cells *x, uint64_t step);

#endif
