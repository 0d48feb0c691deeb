/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Incoming rings. Active ones are looked at in every poll; a ring that has been silent for long becomes quiet and rings the bell
 * instead (proto/bell.h). With few talking peers nothing ever turns quiet and the bell stays silent.
 */
#include "client/link/link.h"

#include <limits.h>
#include <stdlib.h>

#include "base/thread.h"

/* Messages taken from one ring before the next gets its turn. */
#define BURST 32u
/* Rings looked at in every poll without asking whether they still talk: their slots stay in the first-level cache. */
#define ALWAYS_ACTIVE 8u
/* Polls without a message after which a ring beyond those turns quiet. */
#define QUIET_AFTER 1024u

struct inbox_ring {
    struct ring_consumer consumer;
    uint32_t src_world; /* of a local ring */
    uint32_t idle_polls;
    bool known, active, from_channel;
};

static struct inbox_ring *rings; /* index = bit in the bell: local ranks, then channels */
static uint32_t n_rings, n_words;
static uint32_t *active, *quiet; /* indices of known rings, by state */
static uint32_t n_active, n_quiet, quiet_at;
static inbox_handler *handle;

int inbox_init(inbox_handler *handler)
{
    handle = handler;
    n_rings = link_self.n_local + link_self.n_channels;
    n_words = (n_rings + 63) / 64;
    rings = calloc(n_rings, sizeof *rings);
    active = calloc(n_rings, sizeof *active);
    quiet = calloc(n_rings, sizeof *quiet);
    n_active = n_quiet = quiet_at = 0;
    return rings && active && quiet ? 0 : -1;
}

void inbox_deinit(void)
{
    free(rings);
    free(active);
    free(quiet);
    rings = NULL;
    active = quiet = NULL;
    n_active = n_quiet = n_rings = n_words = 0;
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

static void activate(uint32_t idx)
{
    struct inbox_ring *r = &rings[idx];

    if (idx >= n_rings || r->active)
        return;
    if (!r->known) {
        r->known = true;
        r->from_channel = idx >= link_self.n_local;
        if (r->from_channel) {
            ring_consumer_init(&r->consumer,
                               segment_down_ring(link_self.base, &link_self.layout, link_self.local_rank,
                                                 idx - link_self.n_local),
                               &link_self.layout.shape.down);
        } else {
            r->src_world = link_self.local_to_world[idx];
            ring_consumer_init(&r->consumer,
                               segment_local_ring(link_self.base, &link_self.layout, idx, link_self.local_rank),
                               &link_self.layout.shape.local);
        }
    } else {
        drop_from(quiet, &n_quiet, idx);
    }
    r->active = true;
    r->idle_polls = 0;
    /* relaxed: a producer that still reads 0 rings the bell once too often. */
    atomic_store_explicit(&r->consumer.shared->active, 1, memory_order_relaxed);
    active[n_active++] = idx;
}

/* A producer that read `active` just before this store publishes without a bell; poll_quiet and inbox_sleep look for that. */
static void deactivate(uint32_t position)
{
    uint32_t idx = active[position];

    rings[idx].active = false;
    atomic_store_explicit(&rings[idx].consumer.shared->active, 0, memory_order_relaxed);
    active[position] = active[--n_active];
    quiet[n_quiet++] = idx;
}

static int drain(struct inbox_ring *r)
{
    struct ring_slot *slot;
    unsigned n = 0;

    while (n < BURST && (slot = ring_peek(&r->consumer)) != NULL) {
        uint32_t len = slot->len;
        const void *payload = ring_payload(&r->consumer, slot, len, slot->data_line);
        uint32_t src = r->from_channel ? slot->peer : r->src_world;
        /* A slot that points outside its ring was not written by this library: nothing of it is believed. */
        if (__builtin_expect(payload != NULL && src < link_self.n_world, 1))
            handle(src, slot, len, payload);
        else
            len = 0;
        ring_advance(&r->consumer, len);
        n++;
    }
    return (int)n;
}

int inbox_poll(void)
{
    int n = 0;

    for (uint32_t i = 0; i < n_active;) {
        struct inbox_ring *r = &rings[active[i]];
        int got = drain(r);
        n += got;
        if (got > 0) {
            r->idle_polls = 0;
        } else if (n_active > ALWAYS_ACTIVE && ++r->idle_polls > QUIET_AFTER) {
            deactivate(i);
            continue;
        }
        i++;
    }
    for (uint32_t w = 0; w < n_words; w++) {
        uint64_t bits = bell_collect(&link_self.me->bell, w);
        while (bits) {
            uint32_t idx = w * 64 + (uint32_t)__builtin_ctzll(bits);
            bits &= bits - 1;
            activate(idx);
            if (idx < n_rings)
                n += drain(&rings[idx]);
        }
    }
    if (n_quiet > 0) {
        uint32_t idx = quiet[quiet_at++ % n_quiet];
        if (ring_peek(&rings[idx].consumer))
            activate(idx);
    }
    return n;
}

static bool has_news(void)
{
    for (uint32_t w = 0; w < n_words; w++)
        if (atomic_load_explicit(&link_self.me->bell.rung[w], memory_order_relaxed) != 0)
            return true;
    for (uint32_t i = 0; i < n_active; i++)
        if (ring_peek(&rings[active[i]].consumer))
            return true;
    for (uint32_t i = 0; i < n_quiet; i++) {
        if (ring_peek(&rings[quiet[i]].consumer)) {
            activate(quiet[i]);
            return true;
        }
    }
    return false;
}

bool inbox_sleep_begin(void)
{
    bell_sleep_begin(&link_self.me->bell, link_self.fenced);
    return !has_news();
}

void inbox_sleep(uint64_t timeout_ns)
{
    bell_sleep(&link_self.me->bell, timeout_ns);
}

void inbox_sleep_end(void)
{
    bell_sleep_end(&link_self.me->bell);
}

bool inbox_sleep_announced(void)
{
    return atomic_load_explicit(&link_self.me->bell.sleeping, memory_order_relaxed) != 0;
}

void inbox_wake_all(void)
{
    /* Cleared first: one that has announced itself and is on its way into the futex must not fall asleep. */
    atomic_store_explicit(&link_self.me->bell.sleeping, 0, memory_order_seq_cst);
    thread_futex_wake(&link_self.me->bell.sleeping, INT_MAX);
}
