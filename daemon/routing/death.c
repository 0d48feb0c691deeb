/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/routing/death.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool death_note(struct deaths *g, uint32_t node_id, uint32_t epoch, uint64_t now_ns)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (g->notes[i].node_id == node_id && g->notes[i].epoch == epoch)
            return false;
    if (g->n == TOPOLOGY_MAX_DEATHS) {
        memmove(g->notes, g->notes + 1, (TOPOLOGY_MAX_DEATHS - 1) * sizeof *g->notes);
        g->n--;
    }
    g->notes[g->n++] = (struct death){.node_id = node_id, .epoch = epoch, .since_ns = now_ns};
    return true;
}

bool death_expire(struct deaths *g, uint64_t age_ns, uint64_t now_ns)
{
    uint32_t n_old = 0;

    while (n_old < g->n && now_ns - g->notes[n_old].since_ns > age_ns)
        n_old++;
    g->n -= n_old;
    memmove(g->notes, g->notes + n_old, g->n * sizeof *g->notes);
    return n_old > 0;
}

int death_describe(const struct deaths *g, Motet__LinkState *state)
{
    if (g->n == 0)
        return 0;
    state->deaths = calloc(g->n, sizeof *state->deaths);
    for (uint32_t i = 0; state->deaths && i < g->n; i++) {
        Motet__Death *one = malloc(sizeof *one);
        if (!one)
            return -ENOMEM;
        motet__death__init(one);
        one->node_id = g->notes[i].node_id;
        one->epoch = g->notes[i].epoch;
        state->deaths[state->n_deaths++] = one;
    }
    return state->deaths ? 0 : -ENOMEM;
}

void death_each(const struct topology *topology,
                void (*fn)(void *ctx, struct topology_node *gone, uint64_t now_ns), void *ctx,
                uint64_t now_ns)
{
    for (const struct topology_node *t = topology_first(topology); t; t = t->hh.next)
        for (size_t i = 0; i < t->state->n_deaths; i++) {
            struct topology_node *gone = topology_find(topology, t->state->deaths[i]->node_id);
            if (gone && gone->state->epoch == t->state->deaths[i]->epoch)
                fn(ctx, gone, now_ns);
        }
}
