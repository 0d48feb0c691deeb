/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/p2p.h"

#include <stdlib.h>

#include "client/object/err.h"
#include "client/p2p/inbound.h"
#include "client/p2p/outbound.h"
#include "client/p2p/protocols.h"
#include "client/progress/progress.h"
#include "client/transport/foreign.h"

/* ---- the turn of an engine ---- */

static int p2p_poll(struct vci *vci)
{
    struct engine *e = vci->engine;
    struct protocols *all = protocols_of(e);
    int n = e->inbox.rings ? inbox_poll(&e->inbox) : 0;

    if (e->n_waiting > 0)
        n += rendezvous_poll(&all->rendezvous) + outbound_poll(e);
    if (__builtin_expect(all->coop.n_joining + all->coop.n_offers > 0, 0))
        n += coop_poll(&all->coop);
    return n;
}

static bool p2p_has_news(struct vci *vci)
{
    return vci->engine->inbox.rings && inbox_has_news(&vci->engine->inbox);
}

/* The sender of a cooperative copy does not ring when its last chunk is done, and nobody rings for
 * room in a ring. */
static bool p2p_impatient(struct vci *vci)
{
    return vci->engine->n_waiting > 0 || protocols_of(vci->engine)->coop.n_joining > 0;
}

/* Relaxed: the vci's lock is held, and the daemon wants no order. */
static void p2p_count(_Atomic uint64_t *counter, uint64_t *n)
{
    engine_add(counter, *n);
    *n = 0;
}

/* Shows the receives that have waited for long, and adds what the engine has counted to the rank's
 * counters. */
static void p2p_idle(struct vci *vci)
{
    struct engine *e = vci->engine;
    struct segment_rank *me = transport_here->me;

    transfer_show_late(e);
    p2p_count(&me->sent_msgs, &e->sent_msgs);
    p2p_count(&me->sent_bytes, &e->sent_bytes);
    p2p_count(&me->recv_msgs, &e->recv_msgs);
    p2p_count(&me->recv_bytes, &e->recv_bytes);
    p2p_count(&me->rendezvous_out, &e->rendezvous_out);
    p2p_count(&me->rendezvous_in, &e->rendezvous_in);
}

static const struct vci_ops p2p_vci_ops = {
    .poll = p2p_poll, .has_news = p2p_has_news, .impatient = p2p_impatient, .idle = p2p_idle};

/* ---- messages that a layer above takes as they come ---- */

void p2p_set_taker(p2p_taker *taker)
{
    vci_here->table[0].engine->taker = taker;
}

void p2p_taken(uint32_t src_world, uint64_t bytes)
{
    peer_owe(peer_get(vci_here->table[0].engine, src_world), bytes);
}

/* ---- other jobs ---- */

static void p2p_forget(uint32_t first, uint32_t n)
{
    struct engine *e = vci_here->table[0].engine;

    inbound_forget(e, first, n);
    peer_forget(e, first, n);
}

/* ---- set-up and end ---- */

static int p2p_make_engine(struct vci *vci)
{
    struct protocols *all = calloc(1, sizeof *all);

    if (!all)
        return MPI_ERR_NO_MEM;
    struct engine *e = vci->engine = &all->engine;
    e->vci = vci;
    e->shares_sent = request_init_sent(&e->sent, vci->index != 0 ? vci : NULL);
    record_init(&e->records);
    transfer_init(e, PROTOCOLS_TRANSFER_BYTES);
    rendezvous_init(&all->rendezvous, e);
    coop_init(&all->coop, &all->rendezvous);
    int err = method_read_setting(&e->copy_method);
    if (err)
        return err;
    if (match_init(&e->match) || peer_init(e))
        return MPI_ERR_NO_MEM;
    if (transport_here->base && (outbox_init(&e->outbox, vci->index) ||
                                 inbox_init(&e->inbox, vci->index, inbound_message, e)))
        return MPI_ERR_NO_MEM;
    return MPI_SUCCESS;
}

int p2p_init(void)
{
    uint32_t n = transport_here->base ? transport_here->layout.shape.n_vcis : 1;
    int err = vci_init(n);

    if (err)
        return err;
    for (uint32_t i = 0; !err && i < n; i++)
        err = p2p_make_engine(&vci_here->table[i]);
    vci_here->ops = &p2p_vci_ops;
    foreign_here->forget = p2p_forget;
    progress_register(foreign_poll, &foreign_here->n_waiting, true);
    return err == MPI_ERR_NO_MEM ? err_set(err, "no memory for the message queues") : err;
}

static void p2p_free_engine(struct vci *vci)
{
    struct engine *e = vci->engine;

    if (transport_here->base) {
        p2p_idle(vci);
        inbox_deinit(&e->inbox);
        outbox_deinit(&e->outbox);
    }
    record_deinit(&e->records);
    match_deinit(&e->match);
    rendezvous_deinit(&protocols_of(e)->rendezvous);
    inbound_deinit(e);
    peer_deinit(e);
    transfer_deinit(e);
    request_deinit_sent(&e->sent);
    free(protocols_of(e));
    vci->engine = NULL;
}

void p2p_deinit(void)
{
    vci_here->ops = NULL;
    foreign_here->forget = NULL;
    for (uint32_t i = 0; i < SEGMENT_MAX_VCIS; i++)
        if (vci_here->table[i].engine)
            p2p_free_engine(&vci_here->table[i]);
}
