/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/engine.h"

#include <stdlib.h>

#include "client/client.h"
#include "client/p2p/board.h"
#include "client/p2p/inbound.h"
#include "client/p2p/joint.h"
#include "client/p2p/outbound.h"
#include "client/p2p/rendezvous.h"
#include "client/p2p/transfer.h"

struct engine_state {
    uint32_t n_engines;
};
static struct engine_state engine_first;
static struct engine_state *engine_here = &engine_first;
CLIENT_PART(engine_here, engine_first);

static int poll(struct vci *vci)
{
    struct engine *e = vci->engine;
    int n = e->inbox.rings ? inbox_poll(&e->inbox) : 0;

    if (e->n_waiting > 0)
        n += outbound_poll(e);
    if (__builtin_expect(e->n_joining + e->n_offers > 0, 0))
        n += joint_poll(e);
    return n;
}

static bool has_news(struct vci *vci)
{
    return vci->engine->inbox.rings && inbox_has_news(&vci->engine->inbox);
}

/* The sender of a joint copy does not ring when its last chunk is done, and nobody rings for room
 * in a ring. */
static bool impatient(struct vci *vci)
{
    return vci->engine->n_waiting > 0 || vci->engine->n_joining > 0;
}

static void idle(struct vci *vci)
{
    board_publish(vci->engine);
}

static const struct vci_ops ops = {
    .poll = poll, .has_news = has_news, .impatient = impatient, .idle = idle};

static int make(struct vci *vci)
{
    struct engine *e = vci->engine = calloc(1, sizeof *e);

    if (!e)
        return MPI_ERR_NO_MEM;
    e->vci = vci;
    e->shares_sent = request_init_sent(&e->sent, vci->index != 0 ? vci : NULL);
    rendezvous_init(e);
    joint_init(e);
    board_init(e);
    if (match_init(&e->match) || outbound_init(e))
        return MPI_ERR_NO_MEM;
    if (transport_here->base && (outbox_init(&e->outbox, vci->index) ||
                                 inbox_init(&e->inbox, vci->index, inbound_message, e)))
        return MPI_ERR_NO_MEM;
    return MPI_SUCCESS;
}

int engine_init(void)
{
    int err = MPI_SUCCESS;

    engine_here->n_engines = transport_here->base ? transport_here->layout.shape.n_vcis : 1;
    for (uint32_t i = 0; !err && i < engine_here->n_engines; i++)
        err = make(&vci_here->table[i]);
    vci_here->ops = &ops;
    return err;
}

void engine_deinit(void)
{
    vci_here->ops = NULL;
    for (uint32_t i = 0; i < engine_here->n_engines; i++) {
        struct engine *e = vci_here->table[i].engine;
        if (!e)
            continue;
        if (transport_here->base) {
            board_publish(e);
            inbox_deinit(&e->inbox);
            outbox_deinit(&e->outbox);
        }
        board_deinit(e);
        match_deinit(&e->match);
        rendezvous_deinit(e);
        peer_deinit(e);
        transfer_deinit(e);
        request_deinit_sent(&e->sent);
        free(e);
        vci_here->table[i].engine = NULL;
    }
    engine_here->n_engines = 0;
}
