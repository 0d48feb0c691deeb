/* SPDX-License-Identifier: BSD-3-Clause */
/* What client/transport/attach.c is to the library, in a simulated process: the segments are in
 * this process already, and the daemon is a function call away. */
#include "client/transport/transport.h"

#include <stdlib.h>

#include "base/hash.h"
#include "tests/sim/client/client_process.h"
#include "tests/sim/client/client_world.h"

const char *transport_reason(void)
{
    return "the simulation";
}

int transport_attach(void)
{
    struct rank *k = world_here();
    struct sim_part *part = world_part(k);
    const struct segment_shape *shape = &part->layout.shape;
    struct transport t = {
        .base = part->segment,
        .layout = part->layout,
        .hops = world_node(k)->hops,
        .sock = -1,
        .world_rank = k->world,
        .local_rank = k->in->job.places[k->world].local,
        .n_world = shape->n_world,
        .n_local = shape->n_local,
        .n_nodes = shape->n_nodes,
        .n_channels = shape->n_channels,
        .node = k->in->job.node_of[k->in->job.places[k->world].node],
        .packet_bytes = world_node(k)->hops->packet_bytes,
        .job = k->in->job.id,
        .fenced = true,
        .local_to_world = sim_malloc(shape->n_local * sizeof(uint32_t)),
    };

    for (uint32_t c = 0; c < HOP_MAX_CHANNELS; c++)
        t.event_fds[c] = -1;
    t.me = segment_rank_at(t.base, &t.layout, t.local_rank);
    for (uint32_t r = 0; t.local_to_world && r < shape->n_world; r++)
        if (k->in->job.places[r].node == k->in->job.places[k->world].node)
            t.local_to_world[k->in->job.places[r].local] = r;
    *transport_here = t;
    atomic_store_explicit(&t.me->state, RANK_ATTACHED, memory_order_release);
    return 0;
}

void transport_detach(void)
{
    atomic_store_explicit(&transport_here->me->state, RANK_FINALIZED, memory_order_release);
    world_leave(world_here());
    sim_free(transport_here->local_to_world);
    *transport_here = (struct transport){.sock = -1, .n_world = 1, .n_local = 1, .n_nodes = 1};
}

bool transport_abort(int code, const char *text)
{
    world_fail("the library ends the job with code %d: %s", code, text ? text : "");
}

bool transport_alive(void)
{
    return true;
}
