/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/routing/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/routing/epoch.h"
#include "daemon/routing/node_name.h"
#include "proto/hop.h"

#define MAX_ADDRESS_BYTES 128u
#define MAX_HOST_BYTES    64u

struct topology {
    uint32_t own_id, own_epoch, max_nodes;
    uint32_t next_index;
    struct topology_node *nodes;
};

struct topology *topology_new(uint32_t own_id, uint32_t own_epoch, uint32_t max_nodes)
{
    struct topology *t = calloc(1, sizeof *t);

    if (t) {
        t->own_id = own_id;
        t->own_epoch = own_epoch;
        t->max_nodes = max_nodes;
    }
    return t;
}

void topology_free(struct topology *t)
{
    struct topology_node *n, *next;

    if (!t)
        return;
    HASH_ITER(hh, t->nodes, n, next) {
        HASH_DEL(t->nodes, n);
        motet__link_state__free_unpacked(n->state, NULL);
        free(n);
    }
    free(t);
}

struct topology_node *topology_find(const struct topology *t, uint32_t node_id)
{
    struct topology_node *n;
    HASH_FIND(hh, t->nodes, &node_id, sizeof node_id, n);
    return n;
}

struct topology_node *topology_find_name(const struct topology *t, const char *name)
{
    struct topology_node *n = topology_find(t, node_name_id(name));
    return n && strcmp(n->state->node, name) == 0 ? n : NULL;
}

struct topology_node *topology_first(const struct topology *t)
{
    return t->nodes;
}

unsigned topology_count(const struct topology *t)
{
    return HASH_COUNT(t->nodes);
}

static bool topology_text_valid(const char *s, size_t max)
{
    size_t n = strlen(s);

    if (n == 0 || n >= max)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 127)
            return false;
    return true;
}

/* It will be flooded on, and what is not understood here could come out unreadable. */
static bool topology_all_known(const Motet__LinkState *s)
{
    bool known = s->base.n_unknown_fields == 0;

    for (size_t i = 0; i < s->n_endpoints; i++)
        known &= s->endpoints[i]->base.n_unknown_fields == 0;
    for (size_t i = 0; i < s->n_links; i++)
        known &= s->links[i]->base.n_unknown_fields == 0;
    for (size_t i = 0; i < s->n_deaths; i++)
        known &= s->deaths[i]->base.n_unknown_fields == 0;
    return known;
}

static bool topology_state_valid(const Motet__LinkState *s)
{
    if (!topology_text_valid(s->node, NODE_NAME_BYTES) || s->node_id == 0 ||
        s->node_id != node_name_id(s->node) || s->epoch == 0 || s->n_endpoints > HOP_MAX_CHANNELS ||
        s->n_links > HOP_MAX_NODES * HOP_MAX_CHANNELS || s->n_deaths > TOPOLOGY_MAX_DEATHS ||
        !topology_all_known(s))
        return false;
    for (size_t i = 0; i < s->n_endpoints; i++) {
        const Motet__Endpoint *e = s->endpoints[i];
        if (e->channel >= HOP_MAX_CHANNELS || !topology_text_valid(e->network, NODE_NAME_BYTES) ||
            !topology_text_valid(e->driver, NODE_NAME_BYTES) ||
            !topology_text_valid(e->provider, MAX_HOST_BYTES) ||
            e->address.len > MAX_ADDRESS_BYTES ||
            !topology_text_valid(e->control_host, MAX_HOST_BYTES) || e->control_port > 65535)
            return false;
    }
    for (size_t i = 0; i < s->n_links; i++)
        if (s->links[i]->node_id == 0 || s->links[i]->node_id == s->node_id ||
            !topology_text_valid(s->links[i]->network, NODE_NAME_BYTES))
            return false;
    return true;
}

int topology_order(const Motet__LinkState *a, uint32_t epoch, uint64_t sequence)
{
    if (a->epoch != epoch)
        return epoch_newer(a->epoch, epoch) ? 1 : -1;
    return a->sequence < sequence ? -1 : a->sequence > sequence;
}

static struct topology_node *topology_node_add(struct topology *t, Motet__LinkState *state)
{
    struct topology_node *n = calloc(1, sizeof *n);

    if (!n)
        return NULL;
    n->node_id = state->node_id;
    n->state = state;
    n->index = t->next_index++;
    list_init(&n->flood.pending);
    HASH_ADD(hh, t->nodes, node_id, sizeof n->node_id, n);
    return n;
}

/* Whether routes that were computed with one are right with the other, but for round trips. */
static bool topology_same_graph(const Motet__LinkState *a, const Motet__LinkState *b,
                                bool *ret_costs)
{
    *ret_costs = false;
    if (a->epoch != b->epoch || a->draining != b->draining || a->n_links != b->n_links)
        return false;
    for (size_t i = 0; i < a->n_links; i++) {
        const Motet__Adjacency *x = a->links[i], *y = b->links[i];
        *ret_costs |= x->rtt_us != y->rtt_us;
        if (x->node_id != y->node_id || x->mbytes_per_s != y->mbytes_per_s ||
            x->has_fault != y->has_fault || strcmp(x->network, y->network) != 0)
            return false;
    }
    return true;
}

static bool topology_same_endpoint(const Motet__Endpoint *a, const Motet__Endpoint *b)
{
    return a->channel == b->channel && a->control_port == b->control_port &&
           a->address.len == b->address.len &&
           memcmp(a->address.data, b->address.data, a->address.len) == 0 &&
           strcmp(a->network, b->network) == 0 && strcmp(a->driver, b->driver) == 0 &&
           strcmp(a->provider, b->provider) == 0 && strcmp(a->control_host, b->control_host) == 0;
}

/* Whether they say the same of what has nothing to do with links. */
static bool topology_same_rest(const Motet__LinkState *a, const Motet__LinkState *b)
{
    if (a->busy != b->busy || a->n_cores != b->n_cores || a->n_deaths != b->n_deaths ||
        a->n_endpoints != b->n_endpoints)
        return false;
    for (size_t i = 0; i < a->n_deaths; i++)
        if (a->deaths[i]->node_id != b->deaths[i]->node_id ||
            a->deaths[i]->epoch != b->deaths[i]->epoch)
            return false;
    for (size_t i = 0; i < a->n_endpoints; i++)
        if (!topology_same_endpoint(a->endpoints[i], b->endpoints[i]))
            return false;
    return true;
}

static void topology_replace(struct topology_node *n, Motet__LinkState *state,
                             struct topology_change *ret_change)
{
    ret_change->restarted = state->epoch != n->state->epoch;
    ret_change->graph = !topology_same_graph(n->state, state, &ret_change->costs);
    ret_change->rest = ret_change->graph || !topology_same_rest(n->state, state);
    motet__link_state__free_unpacked(n->state, NULL);
    n->state = state;
}

static int topology_apply_checked(struct topology *t, Motet__LinkState *state,
                                  struct topology_change *ret_change)
{
    struct topology_node *n = topology_find(t, state->node_id);

    if (state->node_id == t->own_id) {
        if (!n)
            return TOPOLOGY_E_KNOWN;
        int order = topology_order(state, n->state->epoch, n->state->sequence);
        if (order > 0)
            return TOPOLOGY_E_OURSELVES;
        return order == 0 || state->epoch == t->own_epoch ? TOPOLOGY_E_KNOWN : TOPOLOGY_E_OLDER;
    }
    if (!n) {
        if (HASH_COUNT(t->nodes) >= t->max_nodes)
            return TOPOLOGY_E_FULL;
        return topology_node_add(t, state) ? 0 : -ENOMEM;
    }
    if (strcmp(n->state->node, state->node) != 0)
        return -EINVAL; /* two names with one id; the hand-shake names them both */
    int order = topology_order(state, n->state->epoch, n->state->sequence);
    if (order <= 0)
        return order == 0 ? TOPOLOGY_E_KNOWN : TOPOLOGY_E_OLDER;
    topology_replace(n, state, ret_change);
    return 0;
}

int topology_apply(struct topology *t, Motet__LinkState *state, struct topology_change *ret_change)
{
    *ret_change = (struct topology_change){.graph = true, .rest = true, .epoch = state->epoch};
    int rc = topology_state_valid(state) ? topology_apply_checked(t, state, ret_change) : -EINVAL;
    if (rc != 0)
        motet__link_state__free_unpacked(state, NULL);
    return rc;
}

int topology_set_own(struct topology *t, Motet__LinkState *state,
                     struct topology_change *ret_change)
{
    struct topology_node *n = topology_find(t, t->own_id);

    *ret_change = (struct topology_change){.graph = true, .rest = true};
    if (!n)
        return topology_node_add(t, state) ? 0 : -ENOMEM;
    topology_replace(n, state, ret_change);
    return 0;
}

const Motet__Adjacency *topology_adjacency(const struct topology_node *from, uint32_t to,
                                           const char *network)
{
    for (size_t i = 0; i < from->state->n_links; i++) {
        const Motet__Adjacency *a = from->state->links[i];
        if (a->node_id == to && strcmp(a->network, network) == 0)
            return a;
    }
    return NULL;
}

const Motet__Endpoint *topology_endpoint(const struct topology_node *node, const char *network,
                                         uint32_t n)
{
    uint32_t count = 0;

    for (size_t i = 0; i < node->state->n_endpoints; i++)
        count += strcmp(node->state->endpoints[i]->network, network) == 0;
    if (count == 0)
        return NULL;
    n %= count;
    for (size_t i = 0; i < node->state->n_endpoints; i++)
        if (strcmp(node->state->endpoints[i]->network, network) == 0 && n-- == 0)
            return node->state->endpoints[i];
    return NULL;
}
