/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/flow/credit.h"

#include <assert.h>
#include <stddef.h>

#include "base/clock.h"

#define INTERVAL_FIRST_MS 5u
#define INTERVAL_MAX_MS   100u
/* Silence after a trickle that means the rank drains again: its message had this time to arrive and
 * to be answered. */
#define SILENCE_NS (30 * CLOCK_NS_PER_MS)

static struct credit_stop *credit_find(struct credit *c, uint64_t job, uint32_t rank)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->stops[i].rank == rank && c->stops[i].job == job)
            return &c->stops[i];
    return NULL;
}

static void credit_forget(struct credit *c, struct credit_stop *s)
{
    *s = c->stops[--c->n];
}

bool credit_stop(struct credit *c, uint64_t job, uint32_t rank, uint64_t now_ns)
{
    struct credit_stop *s = credit_find(c, job, rank);

    if (!s) {
        if (c->n == CREDIT_STOPS)
            return false;
        s = &c->stops[c->n++];
        *s = (struct credit_stop){.job = job, .rank = rank, .interval_ms = INTERVAL_FIRST_MS};
    } else if (s->tried) {
        s->interval_ms =
            s->interval_ms * 2 < INTERVAL_MAX_MS ? s->interval_ms * 2 : INTERVAL_MAX_MS;
    }
    s->stopped = true;
    s->tried = false;
    s->heard_ns = now_ns;
    if (s->until_ns < now_ns + s->interval_ms * CLOCK_NS_PER_MS)
        s->until_ns = now_ns + s->interval_ms * CLOCK_NS_PER_MS;
    return true;
}

void credit_go(struct credit *c, uint64_t job, uint32_t rank)
{
    struct credit_stop *s = credit_find(c, job, rank);

    if (!s)
        return;
    s->stopped = false;
    s->until_ns = 0;
    s->interval_ms = INTERVAL_FIRST_MS;
    if (s->n_refused == 0)
        credit_forget(c, s);
}

/* Uses up the trickle. */
static bool credit_trickle(struct credit_stop *s, uint64_t now_ns)
{
    if (!s->stopped)
        return true;
    if (now_ns < s->until_ns)
        return false;
    if (now_ns - s->heard_ns > 2 * s->interval_ms * CLOCK_NS_PER_MS + SILENCE_NS)
        s->stopped = false;
    else
        s->until_ns = now_ns + s->interval_ms * CLOCK_NS_PER_MS;
    s->tried = true;
    return true;
}

bool credit_take(struct credit *c, uint64_t job, uint32_t rank, uint64_t now_ns)
{
    struct credit_stop *s = credit_find(c, job, rank);

    if (!s)
        return true;
    if (s->n_refused > 0 || !credit_trickle(s, now_ns))
        return false;
    if (!s->stopped)
        credit_forget(c, s);
    return true;
}

bool credit_is_stopped(const struct credit *c, uint64_t job, uint32_t rank)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->stops[i].rank == rank && c->stops[i].job == job)
            return c->stops[i].stopped || c->stops[i].n_refused > 0;
    return false;
}

bool credit_refuse(struct credit *c, uint64_t job, uint32_t rank, uint64_t now_ns)
{
    if (!credit_stop(c, job, rank, now_ns))
        return false;
    credit_find(c, job, rank)->n_refused++;
    return true;
}

bool credit_take_refused(struct credit *c, uint64_t job, uint32_t rank, uint64_t now_ns)
{
    struct credit_stop *s = credit_find(c, job, rank);

    if (s && !credit_trickle(s, now_ns))
        return false;
    if (s) {
        assert(s->n_refused > 0);
        s->n_refused--;
    }
    return true;
}

void credit_drop_refused(struct credit *c, uint64_t job, uint32_t rank)
{
    struct credit_stop *s = credit_find(c, job, rank);

    if (s) {
        assert(s->n_refused > 0);
        s->n_refused--;
    }
}

void credit_age(struct credit *c, uint64_t now_ns)
{
    for (uint32_t i = c->n; i-- > 0;) {
        struct credit_stop *s = &c->stops[i];
        if (s->n_refused == 0 &&
            (!s->stopped ||
             (now_ns >= s->until_ns &&
              now_ns - s->heard_ns > 2 * s->interval_ms * CLOCK_NS_PER_MS + SILENCE_NS)))
            credit_forget(c, s);
    }
}
