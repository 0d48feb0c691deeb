/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/progress/vci.h"

#include <errno.h>
#include <stdlib.h>

#include "client/client.h"
#include "client/object/comm.h"
#include "client/object/err.h"
#include "client/object/group.h"
#include "client/object/handle.h"
#include "client/process/job.h"
#include "client/process/setting.h"
#include "client/progress/calls.h"
#include "client/progress/sleepers.h"

/* A vote: who has threads, which vcis it has (from bit 8), which of them no communicator has (from
 * bit 0). */
#define VOTE_THREADS (UINT64_C(1) << 62)
#define VOTE_EXISTS  8
#define CONTEXT_STEP 4u

static struct vci_state vci_first;
struct vci_state *vci_here = &vci_first;

/* VCIs are between ranks of one node. */
static bool is_here(const struct group *group)
{
    int here = job_node_of(job_rank());

    for (int i = 0; i < group->size; i++)
        if (job_node_of(group->procs[i]) != here)
            return false;
    return true;
}

static void comm_begins(struct comm *comm)
{
    comm->vci = vci_of_context(comm->context_id);
    if (comm->vci->index != 0 && (comm->remote_group || !is_here(comm->group)))
        comm->vci = &vci_here->table[0];
    calls_comm_add(comm);
}

static bool vci_defer(struct object *object, void (*fn)(struct object *object))
{
    if (!vci_alone())
        return false;
    vci_bury(object, fn);
    return true;
}

static const struct comm_life comm_life = {
    .begin = comm_begins, .rename = calls_comm_name, .end = calls_comm_remove, .defer = vci_defer};

static void vci_part_init(void)
{
    comm_here->life = &comm_life;
    vci_here->n_used = 1;
    vci_here->n_vcis = 1;
}
CLIENT_PART(vci_here, vci_first, .init = vci_part_init);

static _Thread_local struct vci *alone __attribute__((tls_model("initial-exec")));

int vci_init(uint32_t n)
{
    const char *text = setting_of("MOTET_VCIS");

    vci_here->n_vcis = n > 0 ? n : 1;
    for (uint32_t i = 0; i < SEGMENT_MAX_VCIS; i++)
        vci_here->table[i].index = i;
    if (!text)
        return MPI_SUCCESS;
    char *end;
    errno = 0;
    unsigned long most = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || most == 0)
        return err_set(MPI_ERR_OTHER,
                       "MOTET_VCIS=%s is no number of vcis; 1 is none beside the common one", text);
    if (most < vci_here->n_vcis)
        vci_here->n_vcis = (uint32_t)most;
    return MPI_SUCCESS;
}

/* ---- which vci a communicator has ---- */

uint64_t vci_offer(void)
{
    uint64_t vote = VOTE_THREADS;

    /* The list of who made which handle has no lock of its own. */
    if (!lock_here->multiple || handle_here->on_new)
        return 0;
    for (uint32_t i = 1; i < vci_here->n_vcis; i++)
        vote |= (vci_here->table[i].n_comms == 0 ? UINT64_C(1) << i : 0) | UINT64_C(1)
                                                                               << (VOTE_EXISTS + i);
    return vote;
}

/* The number-th vci of a set. */
static uint32_t vci_pick(uint32_t set, uint32_t number)
{
    for (number %= (uint32_t)__builtin_popcount(set); number > 0; number--)
        set &= set - 1;
    return (uint32_t)__builtin_ctz(set);
}

void vci_settle(uint64_t vote, uint32_t context_id)
{
    uint32_t free_vcis = vote & 0xff, existing = vote >> VOTE_EXISTS & 0xff, index;

    if (!(vote & VOTE_THREADS) || existing == 0)
        return;
    index = free_vcis ? (uint32_t)__builtin_ctz(free_vcis)
                      : vci_pick(existing, context_id / CONTEXT_STEP);
    vci_here->of_context[context_id / CONTEXT_STEP] = (uint8_t)index;
    vci_here->table[index].n_comms++;
    if (index >= vci_n_used())
        atomic_store_explicit(&vci_here->n_used, index + 1, memory_order_relaxed);
}

void vci_give_back(uint32_t context_id)
{
    uint8_t *of = &vci_here->of_context[context_id / CONTEXT_STEP];

    if (*of)
        vci_here->table[*of].n_comms--;
    *of = 0;
}

struct vci *vci_of_context(uint32_t context_id)
{
    uint32_t number = context_id / CONTEXT_STEP;

    return &vci_here->table[number < VCI_CONTEXTS ? vci_here->of_context[number] : 0];
}

/* ---- locking ---- */

struct vci *vci_alone(void)
{
    return vci_n_used() > 1 ? alone : NULL;
}

int vci_step_out(struct vci *vci)
{
    alone = NULL;
    return mutex_release(&vci->mutex);
}

void vci_step_in(struct vci *vci, int depth)
{
    mutex_resume(&vci->mutex, depth);
    alone = vci;
}

void vci_leave_alone(struct vci *vci)
{
    vci_step_out(vci);
}

uint32_t vci_n_done(void)
{
    uint32_t n = 0;

    for (uint32_t i = 1; i < vci_n_used(); i++)
        /* seq_cst: after the announcement in progress_sleep, in the one order with the
         * completions. */
        n += atomic_load_explicit(&vci_here->table[i].n_done, memory_order_seq_cst);
    return n;
}

/* ---- references ---- */

void vci_bury(struct object *object, void (*fn)(struct object *object))
{
    atomic_store_explicit(&vci_here->bury_fns[object->kind], fn, memory_order_relaxed);
    object->handle = atomic_load_explicit(&vci_here->dead, memory_order_relaxed);
    /* release: pairs with the acquire in vci_bury_now. */
    while (!atomic_compare_exchange_weak_explicit(&vci_here->dead, &object->handle,
                                                  (uintptr_t)object, memory_order_release,
                                                  memory_order_relaxed))
        ;
    /* Somebody may wait for what this ends. seq_cst: as in request_complete. */
    atomic_store_explicit(&vci_here->has_dead, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&alone->n_done, 1, memory_order_seq_cst);
    sleepers_wake();
}

void vci_bury_now(void)
{
    atomic_store_explicit(&vci_here->has_dead, false, memory_order_relaxed);
    struct object *next =
        (struct object *)atomic_exchange_explicit(&vci_here->dead, 0, memory_order_acquire);

    while (next) {
        struct object *object = next;
        next = (struct object *)object->handle;
        object->handle = 0;
        atomic_load_explicit(&vci_here->bury_fns[object->kind], memory_order_relaxed)(object);
    }
}
