/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/peer.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/p2p/outbound.h"

/* Below this two copies through the ring beat the system call that reads the sender's memory, whose latency is about 1 us
 * (bench/run --only node). */
#define LOCAL_EAGER_BYTES 16384u

struct peer **peer_table;
static uint32_t n_table;

int peer_init(void)
{
    n_table = link_self.n_world;
    peer_table = calloc(n_table, sizeof *peer_table);
    return peer_table ? 0 : -1;
}

static void free_list(struct list *head)
{
    list_foreach_safe(it, head) {
        list_remove(it);
        free(it); /* both kinds of message have the node first */
    }
}

void peer_deinit(void)
{
    for (uint32_t i = 0; peer_table && i < n_table; i++) {
        if (!peer_table[i])
            continue;
        free_list(&peer_table[i]->early);
        free_list(&peer_table[i]->control);
        free(peer_table[i]);
    }
    free(peer_table);
    peer_table = NULL;
}

struct peer *peer_make(uint32_t world)
{
    struct peer *p = calloc(1, sizeof *p);

    if (!p) {
        fprintf(stderr, "motet: rank %u: no memory to talk to rank %u\n", link_self.world_rank, world);
        abort();
    }
    p->world = world;
    list_init(&p->early);
    list_init(&p->pending);
    list_init(&p->control);
    list_init(&p->busy);
    if (link_self.base) {
        const struct segment_world *place = link_world(world);
        p->node = place->node;
        p->local = place->node == link_self.node;
        if (p->local) {
            p->ring = outbox_local(place->local);
            uint32_t most = ring_max_payload(&link_self.layout.shape.local);
            p->eager_limit = LOCAL_EAGER_BYTES < most ? LOCAL_EAGER_BYTES : most;
        } else {
            p->eager_limit = link_self.packet_bytes;
        }
    }
    peer_table[world] = p;
    return p;
}
