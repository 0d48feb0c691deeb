/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes: what lets threads of MPI_THREAD_MULTIPLE that use different communicators send and receive
 * side by side.
 *
 * A lane is one set of rings between the ranks of a node, with the match tables, transfers and
 * protocols over them (client/p2p/engine.h), and the lock of all that. Lane 0 belongs to everything
 * and is protected by the library lock. A communicator whose members are all on one node and all
 * have MPI_THREAD_MULTIPLE gets one of the further lanes when its context id is agreed on
 * (client/comm/context.h): the one that fewest others use. The short calls (the attribute `lane` in
 * client/abi/api) take only the lock of the lane; every other call takes the library lock, and
 * within it that of the lane while it touches the lane's things.
 *
 * Order of locks: library, lane, handle table. A thread that holds a lane alone never waits for the
 * library lock: it tries, or gives the lane up before.
 */
#ifndef MOTET_CLIENT_CORE_LANE_H
#define MOTET_CLIENT_CORE_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/core/lock.h"
#include "client/core/mutex.h"
#include "client/core/object.h"
#include "proto/segment.h"

struct engine;

struct lane {
    struct mutex mutex;
    struct engine *engine;
    uint32_t index;
    uint32_t n_idle_polls;   /* since the last look at everything by threads that hold it alone */
    uint32_t n_comms;        /* context ids of this process that have it; library lock */
    _Atomic uint32_t n_done; /* requests completed, lane 0 left out: see progress_sleep */
};

extern struct lane lane_table[SEGMENT_MAX_LANES];
/* Lanes [0, lane_n_used()) may have traffic. 1 unless threads have communicators with lanes. */
extern _Atomic uint32_t lane_used_;
static inline uint32_t lane_n_used(void)
{
    /* relaxed: who creates a communicator and who uses it agree by other means. */
    return atomic_load_explicit(&lane_used_, memory_order_relaxed);
}

/* What the point-to-point layer does with one lane, whose lock is held. */
struct lane_ops {
    int (*poll)(struct lane *lane);      /* handles what has come; returns the number of events */
    bool (*has_news)(struct lane *lane); /* has something come? Asked when everybody has been told
                                            that this thread will sleep */
    bool (*impatient)(
        struct lane *lane); /* does it wait for what comes without a message (room in a ring)? */
    void (*idle)(struct lane *lane); /* a wait has found nothing for some microseconds */
};
extern const struct lane_ops *lane_ops; /* NULL before p2p_init */

/* n: lanes of the job segment. MOTET_LANES bounds it; 0 or MPI_ERR_OTHER if that is no number. */
int lane_init(uint32_t n);

/* ---- which lane a communicator has ---- */

/* This process's vote for a new context id: ANDed over the members. */
uint64_t lane_offer(void);
/* The new context id has the lane that the ANDed votes leave. */
void lane_settle(uint64_t vote, uint32_t context_id);
void lane_give_back(uint32_t context_id);
struct lane *lane_of_context(uint32_t context_id);

/* ---- locking ---- */

/* For a thread that holds the library lock, or this lane already. */
static inline void lane_take(struct lane *lane)
{
    if (__builtin_expect(lane->index != 0, 0))
        mutex_take(&lane->mutex);
}

static inline void lane_give(struct lane *lane)
{
    if (__builtin_expect(lane->index != 0, 0))
        mutex_give(&lane->mutex);
}

/* The lane that the calling thread holds without the library lock, or NULL. */
struct lane *lane_alone(void);
/* Gives that up for a while, however deep it is; returns what lane_step_in needs to take it
 * again. */
int lane_step_out(struct lane *lane);
void lane_step_in(struct lane *lane, int depth);

/* Bindings of the short path: take the lock of the lane that the object has, or the library
 * lock. */
struct lane *lane_choose_comm(uintptr_t comm);
struct lane *lane_choose_request(uintptr_t request);
struct lane *lane_choose_requests(const uintptr_t *requests, long long n);
void lane_leave_alone(struct lane *lane);

#define LANE_ENTER(choose)                                                                         \
    __extension__({                                                                                \
        struct lane *lane_entered_ = NULL;                                                         \
        if (__builtin_expect(lane_n_used() > 1, 0))                                                \
            lane_entered_ = (choose);                                                              \
        else                                                                                       \
            lock_enter();                                                                          \
        lane_entered_;                                                                             \
    })

static inline void lane_leave(struct lane *lane)
{
    if (__builtin_expect(lane != NULL, 0))
        lane_leave_alone(lane);
    else
        lock_leave();
}

/* Requests that were completed in further lanes so far. */
uint32_t lane_n_done(void);

/* ---- references ---- */

/* The last reference of an object went while its lane was held alone: fn(object), the same for all
 * of its kind, is called later with the library lock. The object has no handle any more. */
void lane_bury(struct object *object, void (*fn)(struct object *object));
/* Does so. With the library lock. */
void lane_bury_now(void);
extern _Atomic bool lane_has_dead;

#endif
