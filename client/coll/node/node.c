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

struct shared_state {
    struct {
        bool used, on_offer;
        uint32_t context_id;
        uint64_t base; /* the communicator's steps begin behind it */
    } slots[CELLS_SLOTS];
    struct waiter *waiters;
};
static struct shared_state shared_first;
static struct shared_state *shared_here = &shared_first;
CLIENT_PART(shared_here, shared_first);

uint64_t shared_offer(uint64_t *ret_above)
{
    uint64_t mask = 0;
    *ret_above = cells_highest();
    for (uint32_t i = 0; cells_exist() && i < CELLS_SLOTS; i++) {
        if (shared_here->slots[i].used || shared_here->slots[i].on_offer)
            continue;
        shared_here->slots[i].on_offer = true;
        mask |= UINT64_C(1) << i;
    }
    return mask;
}

void shared_withdraw(uint64_t offered)
{
    for (uint32_t i = 0; i < CELLS_SLOTS; i++)
        if (offered >> i & 1)
            shared_here->slots[i].on_offer = false;
}

void shared_settle(uint64_t common, uint64_t above, uint32_t context_id)
{
    if (common == 0)
        return;
    uint32_t i = (uint32_t)__builtin_ctzll(common);
    shared_here->slots[i].used = true;
    shared_here->slots[i].context_id = context_id;
    shared_here->slots[i].base = above;
}

void shared_give_back(uint32_t context_id)
{
    for (uint32_t i = 0; i < CELLS_SLOTS; i++)
        if (shared_here->slots[i].used && shared_here->slots[i].context_id == context_id)
            shared_here->slots[i].used = false;
}

void shared_init(void)
{
    shared_here->slots[0].used = true; /* without agreement: the first one of every process */
    shared_here->slots[0].context_id = COMM_CONTEXT_WORLD;
    shared_here->slots[0].base = 0;
}

static void open_rows(struct comm *comm)
{
    uint32_t slot = 0;
    struct coll_comm *c = comm_is_inter(comm) ? coll_comm_of(comm) : coll_shape_of(comm);
    if (!c)
        return;
    c->cells_tried = true;
    if (comm_is_inter(comm))
        return;
    while (slot < CELLS_SLOTS && !(shared_here->slots[slot].used &&
                                   shared_here->slots[slot].context_id == comm->context_id))
        slot++;
    if (slot == CELLS_SLOTS || !cells_exist() || c->n_members < 2)
        return;
    uint32_t *locals = malloc((size_t)c->n_members * sizeof *locals);
    for (int i = 0; locals && i < c->n_members; i++)
        locals[i] = (uint32_t)job_local_rank_of(comm->group->procs[c->members[i]]);
    for (uint32_t row = 0; locals && row < CELLS_ROWS; row++)
        c->rows[row] = cells_open(slot, row, shared_here->slots[slot].base, (uint32_t)c->n_members,
                                  locals, (uint32_t)c->my_member);
    free(locals);
    if (!c->rows[0] || !c->rows[1])
        /* The other members count on this one. */
        end_no_memory(__func__, "a communicator's collectives within the node",
                      (size_t)c->n_members * (sizeof *locals + 2 * sizeof(void *)));
}

void shared_close(struct coll_comm *c)
{
    cells_close(c->rows[0]);
    cells_close(c->rows[1]);
    c->rows[0] = c->rows[1] = NULL;
}

/* ---- steps ---- */

static struct cells *cells_of(const struct schedule *s)
{
    struct coll_comm *c = s->view.comm->coll;
    if (s->repeats)
        return NULL;
    if (__builtin_expect(!c || !c->cells_tried, 0)) {
        open_rows(s->view.comm);
        c = s->view.comm->coll;
    }
    if (!c || !c->rows[0] || (s->view.map ? s->view.map != c->members : c->n_nodes > 1))
        return NULL;
    /* Some of the node's ranks, from the first one on: the others would not count the step. */
    if (s->view.size != c->n_members)
        return NULL;
    enum coll_form form = coll_form_of(s->tag);
    return form <= COLL_NONBLOCKING ? c->rows[form] : NULL;
}

bool shared_available(const struct schedule *s)
{
    return cells_of(s) != NULL;
}

struct shared shared_begin(const struct schedule *s)
{
    struct cells *x = cells_of(s);
    return (struct shared){x, cells_take(x), s->view.comm, s->tag};
}

void shared_look_ahead(const struct schedule *s, const struct shared *sh)
{
    if (!s->recording)
        cells_prefetch(sh->cells, sh->step);
}

MPI_Count shared_max_bytes(void)
{
    return cells_exist() ? cells_max_bytes() : 0;
}

/* Blocking waits; one per thread that is in one. */
struct waiter {
    const struct shared *shared;
    int member; /* -1: for room */
    struct queue_record *record;
    struct waiter *next;
};

static void leave(struct waiter *w)
{
    struct waiter **at = &shared_here->waiters;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    record_hide(&vci_here->table[0].engine->records, &w->record);
}

void shared_show(const struct shared *sh, int member, struct queue_record **record)
{
    int rank = sh->comm->coll->members[member];
    record_show_wait(&vci_here->table[0].engine->records, record,
                     sh->comm->context_id + P2P_CONTEXT_COLL, rank, sh->comm->group->procs[rank],
                     sh->tag);
}

const void *shared_wait_for(const struct shared *sh, int member, uint32_t *ret_len)
{
    const void *published = cells_peek(sh->cells, (uint32_t)member, sh->step, ret_len);
    if (__builtin_expect(published != NULL, 1))
        return published;
    struct waiter waiter = {.shared = sh, .member = member, .next = shared_here->waiters};
    struct progress_wait wait;
    shared_here->waiters = &waiter;
    progress_wait_begin(&wait);
    while (!(published = cells_peek(sh->cells, (uint32_t)member, sh->step, ret_len))) {
        progress_wait_step(&wait);
        if (__builtin_expect(wait.record && !waiter.record, 0))
            shared_show(sh, member, &waiter.record);
    }
    progress_wait_end(&wait);
    leave(&waiter);
    return published;
}

void *shared_wait_room(const struct shared *sh, uint32_t n_bytes)
{
    struct waiter waiter = {.shared = sh, .member = -1, .next = shared_here->waiters};
    struct progress_wait wait;
    void *place;
    shared_here->waiters = &waiter;
    progress_wait_begin(&wait);
    while (!(place = cells_claim(sh->cells, sh->step, n_bytes)))
        progress_wait_step(&wait);
    progress_wait_end(&wait);
    leave(&waiter);
    return place;
}

enum progress_news shared_news(void)
{
    enum progress_news news = PROGRESS_NO_NEWS;
    uint32_t len;
    for (struct waiter *w = shared_here->waiters; w; w = w->next) {
        if (w->member < 0)
            news = PROGRESS_SOON;
        else if (cells_peek(w->shared->cells, (uint32_t)w->member, w->shared->step, &len))
            return PROGRESS_NEWS;
        else
            shared_show(w->shared, w->member, &w->record);
    }
    return news;
}
