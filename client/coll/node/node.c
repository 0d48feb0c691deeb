/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/node/node.h"

#include "client/client.h"
#include "client/object/group.h"
#include "client/p2p/engine.h"
#include "client/p2p/p2p.h"
#include "client/process/job.h"
#include "client/progress/vci.h"
#include "client/transport/cells.h"
#include "client/transport/end.h"

#include <stdlib.h>

/* ---- slots ---- */

struct node_state {
    struct {
        bool used, on_offer;
        uint32_t context_id;
        uint64_t base; /* the communicator's steps begin behind it */
    } slots[CELLS_SLOTS];
    struct waiter *waiters;
};
static struct node_state node_first;
static struct node_state *node_here = &node_first;
CLIENT_PART(node_here, node_first);

uint64_t node_offer(uint64_t *ret_above)
{
    uint64_t mask = 0;
    *ret_above = cells_highest();
    for (uint32_t i = 0; cells_exist() && i < CELLS_SLOTS; i++) {
        if (node_here->slots[i].used || node_here->slots[i].on_offer)
            continue;
        node_here->slots[i].on_offer = true;
        mask |= UINT64_C(1) << i;
    }
    return mask;
}

void node_withdraw(uint64_t offered)
{
    for (uint32_t i = 0; i < CELLS_SLOTS; i++)
        if (offered >> i & 1)
            node_here->slots[i].on_offer = false;
}

void node_settle(uint64_t common, uint64_t above, uint32_t context_id)
{
    if (common == 0)
        return;
    uint32_t i = (uint32_t)__builtin_ctzll(common);
    node_here->slots[i].used = true;
    node_here->slots[i].context_id = context_id;
    node_here->slots[i].base = above;
}

void node_give_back(uint32_t context_id)
{
    for (uint32_t i = 0; i < CELLS_SLOTS; i++)
        if (node_here->slots[i].used && node_here->slots[i].context_id == context_id)
            node_here->slots[i].used = false;
}

void node_init(void)
{
    node_here->slots[0].used = true; /* without agreement: the first one of every process */
    node_here->slots[0].context_id = COMM_CONTEXT_WORLD;
    node_here->slots[0].base = 0;
}

void node_open_rows(struct node_rows *rows, const struct comm *comm, const struct shape *shape)
{
    uint32_t slot = 0;
    rows->tried = true;
    while (slot < CELLS_SLOTS &&
           !(node_here->slots[slot].used && node_here->slots[slot].context_id == comm->context_id))
        slot++;
    if (slot == CELLS_SLOTS || !cells_exist() || shape->n_members < 2)
        return;
    uint32_t *locals = malloc((size_t)shape->n_members * sizeof *locals);
    for (int i = 0; locals && i < shape->n_members; i++)
        locals[i] = (uint32_t)job_local_rank_of(comm->group->procs[shape->members[i]]);
    for (uint32_t row = 0; locals && row < CELLS_ROWS; row++)
        rows->row[row] = cells_open(slot, row, node_here->slots[slot].base,
                                    (uint32_t)shape->n_members, locals, (uint32_t)shape->my_member);
    free(locals);
    if (!rows->row[0] || !rows->row[1])
        /* The other members count on this one. */
        end_no_memory(__func__, "a communicator's collectives within the node",
                      (size_t)shape->n_members * (sizeof *locals + 2 * sizeof(void *)));
    rows->members = shape->members;
    rows->n_members = shape->n_members;
    rows->whole = shape->n_nodes == 1;
}

void node_close_rows(struct node_rows *rows)
{
    cells_close(rows->row[0]);
    cells_close(rows->row[1]);
    rows->row[0] = rows->row[1] = NULL;
}

/* ---- waiting ---- */

MPI_Count node_max_bytes(void)
{
    return cells_exist() ? cells_max_bytes() : 0;
}

/* Blocking waits; one per thread that is in one. */
struct waiter {
    const struct node_step *step;
    int member; /* -1: for room */
    struct queue_record *record;
    struct waiter *next;
};

static void waiter_leave(struct waiter *w)
{
    struct waiter **at = &node_here->waiters;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    record_hide(&vci_here->table[0].engine->records, &w->record);
}

void node_show(const struct node_step *step, int member, struct queue_record **record)
{
    int rank = step->members[member];
    record_show_wait(&vci_here->table[0].engine->records, record,
                     step->comm->context_id + P2P_CONTEXT_COLL, rank,
                     step->comm->group->procs[rank], step->tag);
}

const void *node_wait_for(const struct node_step *step, int member, uint32_t *ret_len)
{
    const void *published = cells_peek(step->cells, (uint32_t)member, step->number, ret_len);
    if (__builtin_expect(published != NULL, 1))
        return published;
    struct waiter waiter = {.step = step, .member = member, .next = node_here->waiters};
    struct progress_wait wait;
    node_here->waiters = &waiter;
    progress_wait_begin(&wait);
    while (!(published = cells_peek(step->cells, (uint32_t)member, step->number, ret_len))) {
        progress_wait_step(&wait);
        if (__builtin_expect(wait.record && !waiter.record, 0))
            node_show(step, member, &waiter.record);
    }
    progress_wait_end(&wait);
    waiter_leave(&waiter);
    return published;
}

void *node_wait_room(const struct node_step *step, uint32_t n_bytes)
{
    struct waiter waiter = {.step = step, .member = -1, .next = node_here->waiters};
    struct progress_wait wait;
    void *place;
    node_here->waiters = &waiter;
    progress_wait_begin(&wait);
    while (!(place = cells_claim(step->cells, step->number, n_bytes)))
        progress_wait_step(&wait);
    progress_wait_end(&wait);
    waiter_leave(&waiter);
    return place;
}

enum progress_news node_news(void)
{
    enum progress_news news = PROGRESS_NO_NEWS;
    uint32_t len;
    for (struct waiter *w = node_here->waiters; w; w = w->next) {
        if (w->member < 0)
            news = PROGRESS_SOON;
        else if (cells_peek(w->step->cells, (uint32_t)w->member, w->step->number, &len))
            return PROGRESS_NEWS;
        else
            node_show(w->step, w->member, &w->record);
    }
    return news;
}
