/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/simcontrol/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t world_draw(struct world *w, uint64_t n)
{
    return rand_below(&w->rand, n);
}

bool world_chance(struct world *w, uint64_t percent)
{
    return world_draw(w, 100) < percent;
}

void world_say(const struct world *w, const char *fmt, ...)
{
    va_list ap;

    if (!w->verbose)
        return;
    printf("%10.6f ", (double)w->now_ns / 1e9);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void world_fail(const struct world *w, const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    fprintf(stderr, "seed %llu (%s, %u nodes) at %.6f: ", (unsigned long long)w->seed, w->shape,
            w->n_hosts, (double)w->now_ns / 1e9);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

/* ---- the queue: a binary heap by time, then by order of making ---- */

static bool event_before(const struct event *a, const struct event *b)
{
    return a->when_ns != b->when_ns ? a->when_ns < b->when_ns : a->order < b->order;
}

static void heap_push(struct world *w, struct event e)
{
    if (w->n_heap == w->heap_size) {
        w->heap_size = w->heap_size ? w->heap_size * 2 : 1024;
        w->heap = realloc(w->heap, w->heap_size * sizeof *w->heap);
        if (!w->heap)
            abort();
    }
    size_t at = w->n_heap++;
    while (at > 0 && event_before(&e, &w->heap[(at - 1) / 2])) {
        w->heap[at] = w->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    w->heap[at] = e;
}

static struct event heap_pop(struct world *w)
{
    struct event first = w->heap[0], last = w->heap[--w->n_heap];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= w->n_heap)
            break;
        if (child + 1 < w->n_heap && event_before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!event_before(&w->heap[child], &last))
            break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return first;
}

void world_at(struct world *w, uint64_t when_ns, struct host *host, event_fn *fn, void *object,
              uint64_t value)
{
    heap_push(w, (struct event){.when_ns = when_ns > w->now_ns ? when_ns : w->now_ns,
                                .order = w->next_order++,
                                .fn = fn,
                                .object = object,
                                .value = value,
                                .node = host ? host->idx : MAX_NODES,
                                .incarnation = host ? host->incarnation : 0});
}

void world_after(struct world *w, uint64_t delay_ns, struct host *host, event_fn *fn, void *object,
                 uint64_t value)
{
    world_at(w, w->now_ns + delay_ns, host, fn, object, value);
}

bool world_step(struct world *w, uint64_t until_ns)
{
    if (w->n_heap == 0 || w->heap[0].when_ns > until_ns) {
        w->now_ns = until_ns;
        return false;
    }
    struct event e = heap_pop(w);
    w->now_ns = e.when_ns;
    if (e.node < MAX_NODES) {
        struct host *host = &w->hosts[e.node];
        if (host->incarnation != e.incarnation)
            return true;
        /* A daemon that gets no processor: everything waits, in its order. */
        if (host->stalled_ns > w->now_ns) {
            e.when_ns = host->stalled_ns;
            heap_push(w, e);
            return true;
        }
    }
    w->n_events_run++;
    e.fn(w, e.object, e.value);
    return true;
}

void world_run(struct world *w, uint64_t until_ns)
{
    while (world_step(w, until_ns))
        continue;
}

void world_deinit(struct world *w)
{
    free(w->heap);
    free(w->networks);
    for (uint32_t i = 0; i < w->n_hosts; i++)
        free(w->hosts[i].probes);
}
