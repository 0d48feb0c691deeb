/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/outbound.h"

#include "client/p2p/announce.h"
#include "client/p2p/self.h"

/* Whatever waits before it is the caller's business. False: no room; the transfer is untouched. */
static bool outbound_try(struct peer *p, struct transfer *t)
{
    if (t->mode == P2P_SYNCHRONOUS || !eager_fits(p, t->bytes))
        return announce_send(p, t);
    /* Without room it waits rather than change the protocol. */
    if (!eager_send(p, &t->buffer, t->bytes, t->context, t->base.comm->rank, t->tag))
        return false;
    transfer_complete(t, MPI_SUCCESS);
    return true;
}

void outbound_start(struct transfer *t)
{
    if (t->rank == MPI_PROC_NULL) {
        transfer_complete(t, MPI_SUCCESS);
        return;
    }
    if (t->world == transport_here->world_rank) {
        self_send(t);
        return;
    }
    struct peer *p = peer_get(t->engine, t->world);
    if (list_empty(&p->backlog) && outbound_try(p, t))
        return;
    list_append(&p->backlog, &t->link);
    transfer_show(t, QUEUE_PENDING);
    p->engine->n_room_stalls++;
    notice_tell(NOTICE_STALLED, t->context, (int)t->world, t->tag, t->bytes);
    peer_mark_busy(p);
}

static int outbound_retry(struct peer *p)
{
    int n = 0;

    list_foreach_safe(it, &p->backlog) {
        struct transfer *t = list_entry(it, struct transfer, link);
        /* Off the list first: completing it may free it. */
        list_remove(it);
        if (!outbound_try(p, t)) {
            list_prepend(&p->backlog, it);
            return n;
        }
        n++;
    }
    return n;
}

int outbound_poll(struct engine *e)
{
    int n = 0;

    list_foreach_safe(it, &e->busy_peers) {
        struct peer *p = list_entry(it, struct peer, busy);
        n += peer_retry_control(p);
        if (list_empty(&p->control_backlog))
            n += outbound_retry(p);
        if (list_empty(&p->control_backlog) && list_empty(&p->backlog)) {
            list_remove(it);
            e->n_waiting--;
        }
    }
    return n;
}
