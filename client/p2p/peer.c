/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/peer.h"

#include <stdlib.h>

#include "client/p2p/outbound.h"
#include "client/transport/end.h"

/* Below this two copies through the ring beat the system call that reads the sender's memory, whose
 * latency is about 1 us (bench/run --only node). */
#define LOCAL_EAGER_BYTES 16384u

int peer_init(struct engine *e)
{
    e->peers = calloc(transport_here->n_world, sizeof *e->peers);
    return e->peers ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void free_list(struct list *head)
{
    list_foreach_safe(it, head) {
        list_remove(it);
        free(it); /* both kinds of message have the node first */
    }
}

void peer_deinit(struct engine *e)
{
    for (uint32_t i = 0; e->peers && i < transport_here->n_world; i++) {
        if (!e->peers[i])
            continue;
        free_list(&e->peers[i]->early);
        free_list(&e->peers[i]->control);
        free(e->peers[i]);
    }
    free(e->peers);
    e->peers = NULL;
}

struct peer *peer_make(struct engine *e, uint32_t world)
{
    struct peer *p = calloc(1, sizeof *p);

    if (!p)
        end_no_memory(__func__, "what is kept of a peer", sizeof *p);
    p->engine = e;
    p->world = world;
    list_init(&p->early);
    list_init(&p->pending);
    list_init(&p->control);
    list_init(&p->busy);
    if (transport_here->base) {
        const struct segment_world *place = transport_world(world);
        p->node = place->node;
        p->local = place->node == transport_here->node;
        if (p->local) {
            p->ring = outbox_local(&e->outbox, place->local);
            uint32_t most = ring_max_payload(&transport_here->layout.shape.local);
            p->eager_limit = LOCAL_EAGER_BYTES < most ? LOCAL_EAGER_BYTES : most;
        } else {
            p->eager_limit = transport_here->packet_bytes;
        }
    }
    e->peers[world] = p;
    return p;
}
