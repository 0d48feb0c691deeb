/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/engine.h"

#include <stdlib.h>

#include "client/p2p/board.h"
#include "client/p2p/inbound.h"
#include "client/p2p/joint.h"
#include "client/p2p/outbound.h"
#include "client/p2p/rendezvous.h"
#include "client/p2p/transfer.h"

static uint32_t n_engines;

static int poll(struct lane *lane)
{
    struct engine *e = lane->engine;
    int n = e->inbox.rings ? inbox_poll(&e->inbox) : 0;

    if (e->n_waiting > 0)
        n += outbound_poll(e);
    if (__builtin_expect(e->n_joining + e->n_offers > 0, 0))
        n += joint_poll(e);
    return n;
}

static bool has_news(struct lane *lane)
{
    return lane->engine->inbox.rings && inbox_has_news(&lane->engine->inbox);
}

/* The sender of a joint copy does not ring when its last chunk is done, and nobody rings for room
 * in a ring. */
static bool impatient(struct lane *lane)
{
    return lane->engine->n_waiting > 0 || lane->engine->n_joining > 0;
}

static void idle(struct lane *lane)
{
    board_publish(lane->engine);
}

static const struct lane_ops ops = {
    .poll = poll, .has_news = has_news, .impatient = impatient, .idle = idle};

static int make(struct lane *lane)
{
    struct engine *e = lane->engine = calloc(1, sizeof *e);

    if (!e)
        return MPI_ERR_NO_MEM;
    e->lane = lane;
    e->shares_sent = request_init_sent(&e->sent, lane->index != 0 ? lane : NULL);
    rendezvous_init(e);
    joint_init(e);
    board_init(e);
    if (match_init(&e->match) || outbound_init(e))
        return MPI_ERR_NO_MEM;
    if (link_self.base && (outbox_init(&e->outbox, lane->index) ||
                           inbox_init(&e->inbox, lane->index, inbound_message, e)))
        return MPI_ERR_NO_MEM;
    return MPI_SUCCESS;
}

int engine_init(void)
{
    int err = MPI_SUCCESS;

    n_engines = link_self.base ? link_self.layout.shape.n_lanes : 1;
    for (uint32_t i = 0; !err && i < n_engines; i++)
        err = make(&lane_table[i]);
    lane_ops = &ops;
    return err;
}

void engine_deinit(void)
{
    lane_ops = NULL;
    for (uint32_t i = 0; i < n_engines; i++) {
        struct engine *e = lane_table[i].engine;
        if (!e)
            continue;
        if (link_self.base) {
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
        lane_table[i].engine = NULL;
    }
    n_engines = 0;
}
