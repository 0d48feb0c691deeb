/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VCIs: what lets threads of MPI_THREAD_MULTIPLE that use different communicators send and receive
 * side by side.
 *
 * A vci is one set of rings between the ranks of a node, with the match tables, transfers and
 * protocols over them (client/p2p/protocols.h), and the lock of all that. VCI 0 belongs to
 * everything and is protected by the library lock. A communicator whose members are all on one node
 * and all have MPI_THREAD_MULTIPLE gets one of the further vcis when its context id is agreed on
 * (client/comm/context.h): the one that fewest others use. The short calls (the attribute `vci` in
 * client/abi/api) take only the lock of the vci; every other call takes the library lock, and
 * within it that of the vci while it touches the vci's things.
 *
 * Order of locks: library, vci, handle table. A thread that holds a vci alone never waits for the
 * library lock: it tries, or gives the vci up before.
 */
#ifndef MOTET_CLIENT_PROGRESS_VCI_H
#define MOTET_CLIENT_PROGRESS_VCI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/lock/lock.h"
#include "client/lock/mutex.h"
#include "client/object/object.h"
#include "proto/segment.h"

struct engine;

struct vci {
    struct mutex mutex;
    struct engine *engine;
    uint32_t index;
    uint32_t n_idle_polls;   /* since the last look at everything by threads that hold it alone */
    uint32_t n_comms;        /* context ids of this process that have it; library lock */
    _Atomic uint32_t n_done; /* requests completed, vci 0 left out: see progress_sleep */
};

#define VCI_CONTEXTS 65536u /* of the context ids' fours, 64 Ki communicators at a time */
struct vci_state {
    struct vci table[SEGMENT_MAX_VCIS];
    _Atomic uint32_t n_used;
    _Atomic bool has_dead;
    const struct vci_ops *ops; /* NULL before p2p_init */
    uint32_t n_vcis;
    /* Linked through `handle`, which the dead do not have. */
    _Atomic uintptr_t dead;
    void (*_Atomic bury_fns[OBJECT_KINDS])(struct object *object);
    uint8_t of_context[VCI_CONTEXTS];
};
extern struct vci_state *vci_here;

/* VCIs [0, vci_n_used()) may have traffic. 1 unless threads have communicators with vcis. */
static inline uint32_t vci_n_used(void)
{
    /* relaxed: who creates a communicator and who uses it agree by other means. */
    return atomic_load_explicit(&vci_here->n_used, memory_order_relaxed);
}

/* What the point-to-point layer does with one vci, whose lock is held. */
struct vci_ops {
    int (*poll)(struct vci *vci);      /* handles what has come; returns the number of events */
    bool (*has_news)(struct vci *vci); /* has something come? Asked when everybody has been told
                                            that this thread will sleep */
    bool (*impatient)(
        struct vci *vci); /* does it wait for what comes without a message (room in a ring)? */
    void (*idle)(struct vci *vci); /* a wait has found nothing for some microseconds */
};

/* n: vcis of the job segment. MOTET_VCIS bounds it; 0 or MPI_ERR_OTHER if that is no number. */
int vci_init(uint32_t n);

/* ---- which vci a communicator has ---- */

/* This process's vote for a new context id: ANDed over the members. */
uint64_t vci_offer(void);
/* The new context id has the vci that the ANDed votes leave. */
void vci_settle(uint64_t vote, uint32_t context_id);
void vci_give_back(uint32_t context_id);
struct vci *vci_of_context(uint32_t context_id);

/* ---- locking ---- */

/* For a thread that holds the library lock, or this vci already. */
static inline void vci_take(struct vci *vci)
{
    if (__builtin_expect(vci->index != 0, 0))
        mutex_take(&vci->mutex);
}

static inline void vci_give(struct vci *vci)
{
    if (__builtin_expect(vci->index != 0, 0))
        mutex_give(&vci->mutex);
}

/* The vci that the calling thread holds without the library lock, or NULL. */
struct vci *vci_alone(void);
/* Gives that up for a while, however deep it is; returns what vci_step_in needs to take it
 * again. */
int vci_step_out(struct vci *vci);
void vci_step_in(struct vci *vci, int depth);

/* Ends what a function of vci_choose.h began. */
void vci_leave_alone(struct vci *vci);

#define VCI_ENTER(choose)                                                                          \
    __extension__({                                                                                \
        struct vci *vci_entered_ = NULL;                                                           \
        if (__builtin_expect(vci_n_used() > 1, 0))                                                 \
            vci_entered_ = (choose);                                                               \
        else                                                                                       \
            lock_enter();                                                                          \
        vci_entered_;                                                                              \
    })

static inline void vci_leave(struct vci *vci)
{
    if (__builtin_expect(vci != NULL, 0))
        vci_leave_alone(vci);
    else
        lock_leave();
}

/* Requests that were completed in further vcis so far. */
uint32_t vci_n_done(void);

/* ---- references ---- */

/* The last reference of an object went while its vci was held alone: fn(object), the same for all
 * of its kind, is called later with the library lock. The object has no handle any more. */
void vci_bury(struct object *object, void (*fn)(struct object *object));
/* Does so. With the library lock. */
void vci_bury_now(void);

#endif
