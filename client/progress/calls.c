/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/progress/calls.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/client.h"
#include "client/object/comm.h"
#include "client/object/group.h"
#include "client/transport/transport.h"

_Thread_local struct calls_now calls_now;
static _Thread_local uint32_t thread_id;

struct calls {
    _Atomic uint64_t used_records, used_comms; /* a bit for each entry in use */
};
static struct calls calls_first;
static struct calls *calls_here = &calls_first;
CLIENT_PART(calls_here, calls_first);
static_assert(CALLS_RECORDS <= 64 && CALLS_COMMS <= 64, "a bit for each");

static struct calls_board *calls_own_board(void)
{
    return segment_calls_at(transport_here->base, &transport_here->layout,
                            transport_here->local_rank);
}

/* The lowest free one of n entries, or -1. */
static int calls_take(_Atomic uint64_t *used, unsigned n)
{
    uint64_t seen = atomic_load_explicit(used, memory_order_relaxed);
    int i;

    do {
        if (seen == UINT64_MAX)
            return -1;
        i = __builtin_ctzll(~seen);
        if ((unsigned)i >= n)
            return -1;
    } while (!atomic_compare_exchange_weak_explicit(used, &seen, seen | UINT64_C(1) << i,
                                                    memory_order_relaxed, memory_order_relaxed));
    return i;
}

static void calls_give(_Atomic uint64_t *used, long i)
{
    atomic_fetch_and_explicit(used, ~(UINT64_C(1) << i), memory_order_relaxed);
}

static void copy_text(char *to, size_t room, const char *from)
{
    size_t n = strnlen(from, room - 1);

    memcpy(to, from, n);
    memset(to + n, 0, room - n);
}

/* ---- communicators ---- */

/* The id that the members share: that of the hidden local one is its intercommunicator's. */
static uint32_t context_of(const struct comm *comm)
{
    return comm->context_id & ~3u;
}

void calls_comm_add(struct comm *comm)
{
    int i = transport_here->base && comm->context_id % 4 == 0
                ? calls_take(&calls_here->used_comms, CALLS_COMMS)
                : -1;

    comm->shown = NULL;
    if (i < 0)
        return;
    struct calls_comm *c = comm->shown = &calls_own_board()->comms[i];
    const struct group *remote = comm->remote_group;
    atomic_store_explicit(&c->state, 0, memory_order_relaxed);
    c->context = context_of(comm);
    c->leader = comm->size > 0 ? (uint32_t)comm->group->procs[0] : 0;
    if (remote && remote->size > 0 && (uint32_t)remote->procs[0] < c->leader)
        c->leader = (uint32_t)remote->procs[0];
    c->rank = comm->rank;
    c->size = comm->size;
    c->remote_size = remote ? remote->size : 0;
    for (int form = 0; form < CALLS_FORMS; form++) {
        atomic_store_explicit(&c->entered[form], 0, memory_order_relaxed);
        c->last[form][0] = '\0';
        comm->shown_last[form] = NULL;
    }
    copy_text(c->name, sizeof c->name, comm->name);
    /* release: pairs with the acquire of the daemon's scan. */
    atomic_store_explicit(&c->state, 1, memory_order_release);
}

void calls_comm_name(const struct comm *comm)
{
    struct calls_comm *c = comm->shown;

    if (!c)
        return;
    atomic_store_explicit(&c->state, 0, memory_order_release);
    copy_text(c->name, sizeof c->name, comm->name);
    atomic_store_explicit(&c->state, 1, memory_order_release);
}

void calls_comm_remove(struct comm *comm)
{
    if (!comm->shown)
        return;
    atomic_store_explicit(&comm->shown->state, 0, memory_order_release);
    calls_give(&calls_here->used_comms, comm->shown - calls_own_board()->comms);
    comm->shown = NULL;
}

/* ---- calls ---- */

void calls_collective(struct comm *comm, enum calls_form form, uint32_t sequence)
{
    const char *function = calls_now.function;
    struct calls_comm *c = comm->shown;

    calls_now.context = context_of(comm);
    calls_now.form = form;
    calls_now.sequence = sequence;
    if (!c)
        return;
    if (__builtin_expect(comm->shown_last[form] != function, 0) && function) {
        copy_text(c->last[form], sizeof c->last[form], function);
        comm->shown_last[form] = function;
    }
    atomic_store_explicit(&c->entered[form], sequence, memory_order_relaxed);
}

static void calls_put(struct calls_record **record, enum calls_state state, const char *function,
                      const struct calls_now *of)
{
    int i = function && transport_here->base ? calls_take(&calls_here->used_records, CALLS_RECORDS)
                                             : -1;

    if (i < 0)
        return;
    struct calls_record *r = *record = &calls_own_board()->records[i];
    if (thread_id == 0)
        thread_id = (uint32_t)gettid();
    atomic_store_explicit(&r->state, CALLS_FREE, memory_order_relaxed);
    r->context = of->sequence ? of->context : CALLS_NO_CONTEXT;
    r->form = of->form;
    r->sequence = of->sequence;
    r->since_ns = clock_coarse_ns();
    r->thread = thread_id;
    copy_text(r->function, sizeof r->function, function);
    /* release: pairs with the acquire of the daemon's scan. */
    atomic_store_explicit(&r->state, state, memory_order_release);
}

void calls_show(struct calls_record **record)
{
    calls_put(record, CALLS_WAITS, calls_now.function, &calls_now);
}

void calls_show_running(struct calls_record **record, const char *function, const struct comm *comm,
                        enum calls_form form, uint32_t sequence)
{
    const struct calls_now of = {.context = context_of(comm), .form = form, .sequence = sequence};

    calls_put(record, CALLS_RUNS, function, &of);
}

void calls_hide(struct calls_record **record)
{
    struct calls_record *r = *record;

    if (!r)
        return;
    *record = NULL;
    atomic_store_explicit(&r->state, CALLS_FREE, memory_order_release);
    calls_give(&calls_here->used_records, r - calls_own_board()->records);
}
