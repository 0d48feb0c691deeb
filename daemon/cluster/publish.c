/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/publish.h"

#include "daemon/cluster/neighbours.h"
#include "daemon/routing/forwarding.h"
#include "daemon/routing/graph.h"
#include "daemon/routing/topology.h"

/* Turns one way of a route (neighbour, network) into words, one per own channel that can go it.
 * Their number. */
static uint32_t publish_expand(const struct neighbours *all, const struct graph *graph,
                               const struct route_way *way, hop_word *words, uint32_t max)
{
    const struct topology_node *next = graph_node(graph, way->next);
    struct neighbour *n =
        next ? neighbours_find(all, next->node_id, graph_network(graph, way->network)) : NULL;
    int slot = next ? forwarding_find(all->forwarding, next->node_id) : -1;
    uint32_t usable[CONFIG_MAX_CHANNELS], n_usable = 0;
    uint64_t sum = 0;

    if (!n || slot < 0)
        return 0;
    for (uint32_t ch = 0; ch < (uint32_t)all->config->n_channels && n_usable < max; ch++) {
        if (!neighbour_carries(n, ch))
            continue;
        usable[n_usable++] = ch;
        sum += all->config->channels[ch].mbytes_per_s;
    }
    for (uint32_t i = 0; i < n_usable; i++) {
        uint64_t share =
            sum ? (uint64_t)way->share * all->config->channels[usable[i]].mbytes_per_s / sum
                : way->share / n_usable;
        words[i] = hop_pack((uint16_t)slot, (uint8_t)usable[i],
                            (uint8_t)(way->n_hops < 255 ? way->n_hops : 255),
                            (uint16_t)(share < 65535 ? share : 65535));
    }
    return n_usable;
}

bool publish_route(struct forwarding *forwarding, const struct neighbours *all,
                   const struct graph *graph, const struct topology_node *t, const struct route *r)
{
    hop_word quick[CONFIG_MAX_CHANNELS], wide[HOP_MAX_WIDE];
    uint32_t n_wide = 0;
    int slot = forwarding_find(forwarding, t->node_id);

    if (slot <= 0)
        return false;
    if (!r->reachable)
        return forwarding_set(forwarding, (uint32_t)slot, t->lost ? 0 : t->state->epoch, HOP_NONE,
                              NULL, 0);
    uint32_t n_quick = publish_expand(all, graph, &r->quick, quick, CONFIG_MAX_CHANNELS);
    for (uint32_t i = 0; i < r->n_wide && n_wide < HOP_MAX_WIDE; i++)
        n_wide += publish_expand(all, graph, &r->wide[i], wide + n_wide, HOP_MAX_WIDE - n_wide);
    /* Rounding and ways that did not fit: the shares must add up to the whole. */
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n_wide; i++)
        sum += hop_share(wide[i]);
    if (n_wide > 0 && sum < 65535)
        wide[0] = hop_pack(hop_next_slot(wide[0]), hop_channel(wide[0]), hop_n_hops(wide[0]),
                           (uint16_t)(hop_share(wide[0]) + 65535 - sum));
    return forwarding_set(forwarding, (uint32_t)slot, t->state->epoch,
                          n_quick ? quick[t->node_id % n_quick] : HOP_NONE, wide, n_wide);
}
