/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/core/lane.h"

#include <errno.h>
#include <stdlib.h>

#include "client/core/comm.h"
#include "client/core/err.h"
#include "client/core/handle.h"
#include "client/core/progress.h"
#include "client/core/request.h"

/* A vote: who has threads, which lanes it has (from bit 8), which of them no communicator has (from
 * bit 0). */
#define VOTE_THREADS (UINT64_C(1) << 62)
#define VOTE_EXISTS  8
#define CONTEXT_STEP 4u
#define N_CONTEXTS   65536u

struct lane lane_table[SEGMENT_MAX_LANES];
_Atomic uint32_t lane_used_ = 1;
const struct lane_ops *lane_ops;
_Atomic bool lane_has_dead;

static uint32_t n_lanes = 1;
static uint8_t of_context[N_CONTEXTS];
static _Thread_local struct lane *alone __attribute__((tls_model("initial-exec")));

/* Linked through `handle`, which the dead do not have. */
static _Atomic uintptr_t dead;
static void (*_Atomic bury_fns[OBJECT_KINDS])(struct object *object);

int lane_init(uint32_t n)
{
    const char *text = getenv("MOTET_LANES");

    n_lanes = n > 0 ? n : 1;
    for (uint32_t i = 0; i < SEGMENT_MAX_LANES; i++)
        lane_table[i].index = i;
    if (!text)
        return MPI_SUCCESS;
    char *end;
    errno = 0;
    unsigned long most = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || most == 0)
        return err_set(MPI_ERR_OTHER,
                       "MOTET_LANES=%s is no number of lanes; 1 is none beside the common one",
                       text);
    if (most < n_lanes)
        n_lanes = (uint32_t)most;
    return MPI_SUCCESS;
}

/* ---- which lane a communicator has ---- */

uint64_t lane_offer(void)
{
    uint64_t vote = VOTE_THREADS;

    /* The list of who made which handle has no lock of its own. */
    if (!lock_multiple || handle_on_new)
        return 0;
    for (uint32_t i = 1; i < n_lanes; i++)
        vote |= (lane_table[i].n_comms == 0 ? UINT64_C(1) << i : 0) | UINT64_C(1)
                                                                          << (VOTE_EXISTS + i);
    return vote;
}

/* The number-th lane of a set. */
static uint32_t pick(uint32_t set, uint32_t number)
{
    for (number %= (uint32_t)__builtin_popcount(set); number > 0; number--)
        set &= set - 1;
    return (uint32_t)__builtin_ctz(set);
}

void lane_settle(uint64_t vote, uint32_t context_id)
{
    uint32_t free_lanes = vote & 0xff, existing = vote >> VOTE_EXISTS & 0xff, index;

    if (!(vote & VOTE_THREADS) || existing == 0)
        return;
    index = free_lanes ? (uint32_t)__builtin_ctz(free_lanes)
                       : pick(existing, context_id / CONTEXT_STEP);
    of_context[context_id / CONTEXT_STEP] = (uint8_t)index;
    lane_table[index].n_comms++;
    if (index >= lane_n_used())
        atomic_store_explicit(&lane_used_, index + 1, memory_order_relaxed);
}

void lane_give_back(uint32_t context_id)
{
    uint8_t *of = &of_context[context_id / CONTEXT_STEP];

    if (*of)
        lane_table[*of].n_comms--;
    *of = 0;
}

struct lane *lane_of_context(uint32_t context_id)
{
    uint32_t number = context_id / CONTEXT_STEP;

    return &lane_table[number < N_CONTEXTS ? of_context[number] : 0];
}

/* ---- locking ---- */

struct lane *lane_alone(void)
{
    return lane_n_used() > 1 ? alone : NULL;
}

int lane_step_out(struct lane *lane)
{
    alone = NULL;
    return mutex_release(&lane->mutex);
}

void lane_step_in(struct lane *lane, int depth)
{
    mutex_resume(&lane->mutex, depth);
    alone = lane;
}

/* lane 0, a thread that is in the library already (a callback), and whoever has no threads: the
 * library lock. */
static struct lane *choose(struct lane *lane)
{
    if (lane && lane->index != 0 && lock_mode == LOCK_THREADED && !lock_is_mine()) {
        lane_step_in(lane, 1);
        return lane;
    }
    lock_enter();
    return NULL;
}

struct lane *lane_choose_comm(uintptr_t comm)
{
    const struct comm *c = (const struct comm *)handle_get(OBJECT_COMM, comm);

    return choose(c ? c->lane : NULL);
}

struct lane *lane_choose_request(uintptr_t request)
{
    const struct request *r = (const struct request *)handle_get(OBJECT_REQUEST, request);

    return choose(r ? r->lane : NULL);
}

struct lane *lane_choose_requests(const uintptr_t *requests, long long n)
{
    struct lane *lane = NULL;

    for (long long i = 0; requests && i < n; i++) {
        const struct request *r = (const struct request *)handle_get(OBJECT_REQUEST, requests[i]);
        if (requests[i] == (uintptr_t)MPI_REQUEST_NULL)
            continue;
        if (!r || !r->lane || (lane && lane != r->lane))
            return choose(NULL);
        lane = r->lane;
    }
    return choose(lane);
}

void lane_leave_alone(struct lane *lane)
{
    lane_step_out(lane);
}

uint32_t lane_n_done(void)
{
    uint32_t n = 0;

    for (uint32_t i = 1; i < lane_n_used(); i++)
        /* seq_cst: after the announcement in progress_sleep, in the one order with the
         * completions. */
        n += atomic_load_explicit(&lane_table[i].n_done, memory_order_seq_cst);
    return n;
}

/* ---- references ---- */

void lane_bury(struct object *object, void (*fn)(struct object *object))
{
    atomic_store_explicit(&bury_fns[object->kind], fn, memory_order_relaxed);
    object->handle = atomic_load_explicit(&dead, memory_order_relaxed);
    /* release: pairs with the acquire in lane_bury_now. */
    while (!atomic_compare_exchange_weak_explicit(&dead, &object->handle, (uintptr_t)object,
                                                  memory_order_release, memory_order_relaxed))
        ;
    /* Somebody may wait for what this ends. seq_cst: as in request_complete. */
    atomic_store_explicit(&lane_has_dead, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&alone->n_done, 1, memory_order_seq_cst);
    progress_wake_sleepers();
}

void lane_bury_now(void)
{
    atomic_store_explicit(&lane_has_dead, false, memory_order_relaxed);
    struct object *next = (struct object *)atomic_exchange_explicit(&dead, 0, memory_order_acquire);

    while (next) {
        struct object *object = next;
        next = (struct object *)object->handle;
        object->handle = 0;
        atomic_load_explicit(&bury_fns[object->kind], memory_order_relaxed)(object);
    }
}
