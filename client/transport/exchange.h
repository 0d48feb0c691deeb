/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One row of steps of the exchange (proto/exchange.h), as a rank of it sees it. The collectives
 * call it (client/coll/schedule/schedule.c, shared.c), on the thread that holds the library lock.
 *
 * A step: exchange_take gives its number, in the same order on all members. A member may publish
 * once in it (claim, fill, publish) and read what others published (peek); it finishes the step
 * when it will read nothing of it any more, in any order of steps. Nothing here waits: what is not
 * there yet, or finds no room yet, is asked for again.
 */
#ifndef MOTET_CLIENT_TRANSPORT_EXCHANGE_H
#define MOTET_CLIENT_TRANSPORT_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/transport/transport.h"
#include "proto/exchange.h"

#define EXCHANGE_ALL (-1)

struct exchange;

/* True where the job segment has an exchange. */
bool exchange_exists(void);
/* The row `row` of slot `slot` for the members with these local ranks, beginning behind step
 * `base`; `me`: own place among them. NULL: no memory. */
struct exchange *exchange_open(uint32_t slot, uint32_t row, uint64_t base, uint32_t n_members,
                               const uint32_t *locals, uint32_t me);
/* Others may still read what was published: the next one in this row waits for them before it
 * publishes. NULL is fine. */
void exchange_close(struct exchange *x);
/* No step that this process ever took has a higher number. */
uint64_t exchange_highest(void);

/* Largest publication. */
uint32_t exchange_max_bytes(void);

uint64_t exchange_take(struct exchange *x);
/* Room for `len` bytes (at most exchange_max_bytes) to publish in this step, or NULL: not yet. */
void *exchange_claim(struct exchange *x, uint64_t step, uint32_t len);
/* Publishes what was claimed and filled. `to`: the only member that may wait for it, or
 * EXCHANGE_ALL. */
void exchange_publish(struct exchange *x, uint64_t step, int to);
/* What `member` published in this step, or NULL: nothing yet. Valid until the step is finished
 * here. */
const void *exchange_peek(const struct exchange *x, uint32_t member, uint64_t step,
                          uint32_t *ret_len);
/* Fetches all members' entries of the next step into the cache: most of them are there by the time
 * when it is wanted. */
void exchange_prefetch(const struct exchange *x, uint64_t step);
/* False: so many earlier steps are unfinished that this one cannot be counted yet. */
bool exchange_finish(struct exchange *x, uint64_t step);

#endif
