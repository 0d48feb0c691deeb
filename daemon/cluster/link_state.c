/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/link_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/cluster/neighbours.h"
#include "daemon/port/cmd.h"
#include "daemon/routing/death.h"

static char *link_state_text(const char *s, bool *failed)
{
    char *copy = strdup(s);
    *failed |= !copy;
    return copy;
}

static Motet__Endpoint *link_state_endpoint(const struct neighbours *all, uint32_t ch, bool *failed)
{
    const struct config_channel *config = &all->config->channels[ch];
    Motet__Endpoint *e = malloc(sizeof *e);
    uint8_t address[128];
    int len = all->ops->address(all->ctx, ch, address, sizeof address);

    if (!e) {
        *failed = true;
        return NULL;
    }
    motet__endpoint__init(e);
    e->channel = ch;
    e->network = link_state_text(config->network, failed);
    e->driver = link_state_text(all->ops->driver(all->ctx, ch), failed);
    e->provider = link_state_text(all->ops->provider(all->ctx, ch), failed);
    e->address.data = malloc(len > 0 ? (size_t)len : 1);
    *failed |= !e->address.data;
    if (e->address.data && len > 0) {
        memcpy(e->address.data, address, (size_t)len);
        e->address.len = (size_t)len;
    }
    e->control_host = link_state_text(config->address, failed);
    e->control_port = (uint32_t)config->port;
    return e;
}

static Motet__Adjacency *link_state_adjacency(struct neighbours *all, struct neighbour *n,
                                              uint64_t now_ns, bool *failed)
{
    Motet__Adjacency *a = malloc(sizeof *a);
    uint64_t mbytes = 0;

    if (!a) {
        *failed = true;
        return NULL;
    }
    for (uint32_t ch = 0; ch < (uint32_t)all->config->n_channels; ch++)
        if (neighbour_carries(n, ch))
            mbytes += all->config->channels[ch].mbytes_per_s;
    motet__adjacency__init(a);
    a->node_id = n->key.node_id;
    a->network = link_state_text(n->key.network, failed);
    a->rtt_us = neighbours_tell_rtt(all, n, now_ns);
    a->mbytes_per_s = (uint32_t)mbytes;
    const struct neighbour_channel *fault = n->usable ? NULL : neighbour_fault(all, n);
    if (fault) {
        a->has_fault = true;
        a->fault = fault->verdict;
        a->has_fault_value = fault->verdict == LINK_LARGE || fault->verdict == LINK_BROKEN;
        a->fault_value = fault->verdict == LINK_LARGE ? fault->good_bytes : (uint32_t)-fault->error;
    }
    return a;
}

Motet__LinkState *link_state_new(const struct link_state_self *self, struct neighbours *all,
                                 uint64_t now_ns)
{
    const struct config *config = all->config;
    Motet__LinkState *s = malloc(sizeof *s);
    bool failed = false;

    if (!s)
        return NULL;
    motet__link_state__init(s);
    s->node_id = self->node_id;
    s->node = link_state_text(config->name, &failed);
    s->epoch = self->epoch;
    s->sequence = self->sequence;
    s->n_cores = self->n_cores;
    s->draining = self->draining;
    s->has_busy = true;
    s->busy = self->busy;
    s->endpoints = calloc((size_t)config->n_channels + 1, sizeof *s->endpoints);
    s->links = calloc((size_t)HASH_COUNT(all->table) + 1, sizeof *s->links);
    failed |= !s->endpoints || !s->links;
    for (uint32_t ch = 0; !failed && ch < (uint32_t)config->n_channels; ch++) {
        Motet__Endpoint *e =
            all->ops->alive(all->ctx, ch) ? link_state_endpoint(all, ch, &failed) : NULL;
        if (e)
            s->endpoints[s->n_endpoints++] = e;
    }
    for (struct neighbour *n = all->table; !failed && n; n = n->hh.next) {
        Motet__Adjacency *a = n->usable || (n->up && neighbour_fault(all, n))
                                  ? link_state_adjacency(all, n, now_ns, &failed)
                                  : NULL;
        if (a)
            s->links[s->n_links++] = a;
    }
    if (failed || death_describe(self->deaths, s) < 0) {
        motet__link_state__free_unpacked(s, NULL);
        return NULL;
    }
    return s;
}
