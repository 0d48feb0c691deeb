/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/gone.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool gone_note(struct gone *g, uint32_t node_id, uint32_t epoch, uint64_t now_ns)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (g->notes[i].node_id == node_id && g->notes[i].epoch == epoch)
            return false;
    if (g->n == GONE_MAX) {
        memmove(g->notes, g->notes + 1, (GONE_MAX - 1) * sizeof *g->notes);
        g->n--;
    }
    g->notes[g->n++] = (struct gone_note){.node_id = node_id, .epoch = epoch, .since_ns = now_ns};
    return true;
}

bool gone_expire(struct gone *g, uint64_t age_ns, uint64_t now_ns)
{
    uint32_t n_old = 0;

    while (n_old < g->n && now_ns - g->notes[n_old].since_ns > age_ns)
        n_old++;
    g->n -= n_old;
    memmove(g->notes, g->notes + n_old, g->n * sizeof *g->notes);
    return n_old > 0;
}

int gone_describe(const struct gone *g, Motet__LinkState *state)
{
    if (g->n == 0)
        return 0;
    state->gone = calloc(g->n, sizeof *state->gone);
    for (uint32_t i = 0; state->gone && i < g->n; i++) {
        Motet__Gone *one = malloc(sizeof *one);
        if (!one)
            return -ENOMEM;
        motet__gone__init(one);
        one->node_id = g->notes[i].node_id;
        one->epoch = g->notes[i].epoch;
        state->gone[state->n_gone++] = one;
    }
    return state->gone ? 0 : -ENOMEM;
}

bool gone_told(const struct topology *topology, const struct topology_node *node)
{
    for (const struct topology_node *t = topology_first(topology); t; t = t->hh.next)
        for (size_t i = 0; i < t->state->n_gone; i++)
            if (t->state->gone[i]->node_id == node->node_id &&
                t->state->gone[i]->epoch == node->state->epoch)
                return true;
    return false;
}
