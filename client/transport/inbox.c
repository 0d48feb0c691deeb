/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Incoming rings. Active ones are looked at in every poll; a ring that has been silent for long
 * becomes quiet and rings the bell instead (proto/bell.h). With few talking peers nothing ever
 * turns quiet and the bell stays silent.
 */
#include "client/transport/transport.h"

#include <limits.h>
#include <stdlib.h>

#include "base/thread.h"
#include "client/transport/foreign.h"

/* Messages taken from one ring before the next gets its turn. */
#define BURST 32u
/* Rings looked at in every poll without asking whether they still talk: their slots stay in the
 * first-level cache. */
#define ALWAYS_ACTIVE 8u
/* Polls without a message after which a ring beyond those turns quiet. */
#define QUIET_AFTER 1024u

struct inbox_ring {
    struct ring_consumer consumer;
    uint32_t src_world; /* of a local ring */
    uint32_t idle_polls;
    bool known, active, from_channel;
};

int inbox_init(struct inbox *box, uint32_t vci, inbox_handler *handler, void *arg)
{
    uint32_t n = transport_here->n_local + (vci == 0 ? transport_here->n_channels : 0);

    *box = (struct inbox){.handle = handler,
                          .arg = arg,
                          .vci = vci,
                          .n_rings = n,
                          .first_bit = segment_first_bit(&transport_here->layout.shape, vci),
                          .rings = calloc(n, sizeof *box->rings),
                          .active = calloc(n, sizeof *box->active),
                          .quiet = calloc(n, sizeof *box->quiet)};
    return box->rings && box->active && box->quiet ? 0 : -1;
}

void inbox_deinit(struct inbox *box)
{
    free(box->rings);
    free(box->active);
    free(box->quiet);
    *box = (struct inbox){0};
}

static void drop_from(uint32_t *list, uint32_t *n, uint32_t idx)
{
    for (uint32_t i = 0; i < *n; i++) {
        if (list[i] == idx) {
            list[i] = list[--*n];
            return;
        }
    }
}

static void activate(struct inbox *box, uint32_t idx)
{
    struct inbox_ring *r = &box->rings[idx];

    if (r->active)
        return;
    if (!r->known) {
        r->known = true;
        r->from_channel = idx >= transport_here->n_local;
        if (r->from_channel) {
            ring_consumer_init(&r->consumer,
                               segment_down_ring(transport_here->base, &transport_here->layout,
                                                 transport_here->local_rank,
                                                 idx - transport_here->n_local),
                               &transport_here->layout.shape.down);
        } else {
            r->src_world = transport_here->local_to_world[idx];
            ring_consumer_init(&r->consumer,
                               segment_local_ring(transport_here->base, &transport_here->layout,
                                                  box->vci, idx, transport_here->local_rank),
                               &transport_here->layout.shape.local);
        }
    } else {
        drop_from(box->quiet, &box->n_quiet, idx);
    }
    r->active = true;
    r->idle_polls = 0;
    /* relaxed: a producer that still reads 0 rings the bell once too often. */
    atomic_store_explicit(&r->consumer.shared->active, 1, memory_order_relaxed);
    box->active[box->n_active++] = idx;
}

/* A producer that read `active` just before this store publishes without a bell; inbox_poll and
 * inbox_has_news look for that. */
static void deactivate(struct inbox *box, uint32_t position)
{
    uint32_t idx = box->active[position];

    box->rings[idx].active = false;
    atomic_store_explicit(&box->rings[idx].consumer.shared->active, 0, memory_order_relaxed);
    box->active[position] = box->active[--box->n_active];
    box->quiet[box->n_quiet++] = idx;
}

static int drain(struct inbox *box, struct inbox_ring *r)
{
    struct ring_slot *slot;
    unsigned n = 0;

    while (n < BURST && (slot = ring_peek(&r->consumer)) != NULL) {
        uint32_t len = slot->len;
        const void *payload = ring_payload(&r->consumer, slot, len, slot->data_line);
        uint32_t src = r->from_channel ? foreign_source(slot->peer) : r->src_world;
        /* A slot that points outside its ring was not written by this library: nothing of it is
         * believed. */
        if (__builtin_expect(payload != NULL && src != UINT32_MAX, 1))
            box->handle(box->arg, src, slot, len, payload);
        else
            len = 0;
        ring_advance(&r->consumer, len);
        n++;
    }
    return (int)n;
}

/* The words of the bell in which this inbox has bits, and which of their bits. */
static uint32_t first_word(const struct inbox *box)
{
    return box->first_bit / 64;
}

static uint32_t end_word(const struct inbox *box)
{
    return (box->first_bit + box->n_rings + 63) / 64;
}

static uint64_t mask_of(const struct inbox *box, uint32_t word)
{
    uint32_t from = box->first_bit > word * 64 ? box->first_bit - word * 64 : 0;
    uint32_t end = box->first_bit + box->n_rings - word * 64;

    return ~UINT64_C(0) << from & (end >= 64 ? ~UINT64_C(0) : ~(~UINT64_C(0) << end));
}

int inbox_poll(struct inbox *box)
{
    int n = 0;

    for (uint32_t i = 0; i < box->n_active;) {
        struct inbox_ring *r = &box->rings[box->active[i]];
        int got = drain(box, r);
        n += got;
        if (got > 0) {
            r->idle_polls = 0;
        } else if (box->n_active > ALWAYS_ACTIVE && ++r->idle_polls > QUIET_AFTER) {
            deactivate(box, i);
            continue;
        }
        i++;
    }
    for (uint32_t w = first_word(box); w < end_word(box); w++) {
        if (atomic_load_explicit(&transport_here->me->bell.rung[w], memory_order_relaxed) == 0)
            continue;
        uint64_t bits = bell_collect_of(&transport_here->me->bell, w, mask_of(box, w));
        while (bits) {
            uint32_t idx = w * 64 + (uint32_t)__builtin_ctzll(bits) - box->first_bit;
            bits &= bits - 1;
            activate(box, idx);
            n += drain(box, &box->rings[idx]);
        }
    }
    if (box->n_quiet > 0) {
        uint32_t idx = box->quiet[box->quiet_at++ % box->n_quiet];
        if (ring_peek(&box->rings[idx].consumer))
            activate(box, idx);
    }
    return n;
}

bool inbox_has_news(struct inbox *box)
{
    for (uint32_t w = first_word(box); w < end_word(box); w++)
        if (atomic_load_explicit(&transport_here->me->bell.rung[w], memory_order_relaxed) &
            mask_of(box, w))
            return true;
    for (uint32_t i = 0; i < box->n_active; i++)
        if (ring_peek(&box->rings[box->active[i]].consumer))
            return true;
    for (uint32_t i = 0; i < box->n_quiet; i++) {
        if (ring_peek(&box->rings[box->quiet[i]].consumer)) {
            activate(box, box->quiet[i]);
            return true;
        }
    }
    return false;
}

void inbox_sleep_begin(void)
{
    bell_sleep_begin(&transport_here->me->bell, transport_here->fenced);
}

void inbox_sleep(uint64_t timeout_ns)
{
    bell_sleep(&transport_here->me->bell, timeout_ns);
}

void inbox_sleep_end(void)
{
    bell_sleep_end(&transport_here->me->bell);
}

bool inbox_sleep_announced(void)
{
    return atomic_load_explicit(&transport_here->me->bell.sleeping, memory_order_relaxed) != 0;
}

void inbox_wake_all(void)
{
    /* Cleared first: one that has announced itself and is on its way into the futex must not fall
     * asleep. */
    atomic_store_explicit(&transport_here->me->bell.sleeping, 0, memory_order_seq_cst);
    thread_futex_wake(&transport_here->me->bell.sleeping, INT_MAX);
}
