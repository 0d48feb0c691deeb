/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/cluster/neighbours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/port/cmd.h"
#include "daemon/routing/forwarding.h"
#include "daemon/routing/topology.h"

/* A measured round trip is told to others when it has doubled or halved and changed by 500 us, and
 * not before some time after the last telling, which doubles while it goes on changing. */
#define RTT_HOLD_MIN_NS (10 * CLOCK_NS_PER_S)
#define RTT_HOLD_MAX_NS (300 * CLOCK_NS_PER_S)
/* It is first told after so many measurements or so much time: a node that starts is busy, and the
 * first ones tell of that. */
#define RTT_FIRST_SAMPLES 16u
#define RTT_FIRST_NS      (5 * CLOCK_NS_PER_S)
#define RTT_CALM_HOLDS    4u /* after so many times the hold without change it begins anew */
#define RTT_TELL_US       50u
/* A channel that could not use a neighbour's address tries it again after this time, doubled up to
 * the limit. */
#define RETRY_MIN_NS (200 * CLOCK_NS_PER_MS)
#define RETRY_MAX_NS (10 * CLOCK_NS_PER_S)

void neighbours_deinit(struct neighbours *all)
{
    struct neighbour *n, *next;

    HASH_ITER(hh, all->table, n, next) {
        HASH_DEL(all->table, n);
        free(n);
    }
}

static const struct config_channel *neighbours_channel(const struct neighbours *all,
                                                       uint32_t channel)
{
    return &all->config->channels[channel];
}

struct neighbour *neighbours_find(const struct neighbours *all, uint32_t node_id,
                                  const char *network)
{
    struct neighbour_key key;
    struct neighbour *n;

    memset(&key, 0, sizeof key);
    key.node_id = node_id;
    snprintf(key.network, sizeof key.network, "%s", network);
    HASH_FIND(hh, all->table, &key, sizeof key, n);
    return n;
}

struct neighbour *neighbours_get(struct neighbours *all, uint32_t node_id, const char *network)
{
    struct neighbour *n = neighbours_find(all, node_id, network);

    if (n)
        return n;
    n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->key.node_id = node_id;
    snprintf(n->key.network, sizeof n->key.network, "%s", network);
    HASH_ADD(hh, all->table, key, sizeof n->key, n);
    return n;
}

void neighbour_down(struct neighbour *n)
{
    n->up = false;
    n->rtt_ns = 0;
    n->n_samples = 0;
}

static struct neighbours_rtt *neighbours_rtt_of(struct neighbours *all, const struct neighbour *n)
{
    for (uint32_t ch = 0; ch < (uint32_t)all->config->n_channels; ch++)
        if (strcmp(neighbours_channel(all, ch)->network, n->key.network) == 0)
            return &all->rtts[ch];
    return NULL;
}

/* The least round trip may be another one, now that this neighbour's is. */
static void neighbours_rtt_take(struct neighbours *all, struct neighbours_rtt *r,
                                const struct neighbour *n)
{
    if (r->least_ns == 0 || n->rtt_ns <= r->least_ns) {
        r->least_ns = n->rtt_ns;
        r->least_node = n->key.node_id;
        return;
    }
    const struct neighbour *least = neighbours_find(all, r->least_node, n->key.network);
    if (least && least != n && least->rtt_ns == r->least_ns)
        return;
    r->least_ns = n->rtt_ns;
    r->least_node = n->key.node_id;
    for (const struct neighbour *o = all->table; o; o = o->hh.next) {
        if (o->rtt_ns == 0 || o->rtt_ns >= r->least_ns ||
            strcmp(o->key.network, n->key.network) != 0)
            continue;
        r->least_ns = o->rtt_ns;
        r->least_node = o->key.node_id;
    }
}

bool neighbours_on_rtt(struct neighbours *all, struct neighbour *n, uint64_t rtt_ns,
                       uint64_t now_ns)
{
    struct neighbours_rtt *r = neighbours_rtt_of(all, n);

    if (!r)
        return false;
    n->samples_ns[n->n_samples++ % NEIGHBOUR_RTT_SAMPLES] = rtt_ns;
    n->rtt_ns = rtt_ns;
    for (uint32_t i = 0; i < NEIGHBOUR_RTT_SAMPLES && i < n->n_samples; i++)
        if (n->samples_ns[i] < n->rtt_ns)
            n->rtt_ns = n->samples_ns[i];
    neighbours_rtt_take(all, r, n);
    if (r->n_samples++ == 0)
        r->first_ns = now_ns;
    r->known |= r->n_samples >= RTT_FIRST_SAMPLES || now_ns - r->first_ns >= RTT_FIRST_NS;
    if (!r->known)
        return false;
    uint32_t us = (uint32_t)(r->least_ns / CLOCK_NS_PER_US);
    uint32_t less = us < r->told_us ? us : r->told_us, more = us < r->told_us ? r->told_us : us;
    r->tell |= n->usable && more > 2 * less && more - less > RTT_TELL_US &&
               now_ns - r->told_ns > r->hold_ns;
    return r->tell;
}

uint32_t neighbours_tell_rtt(struct neighbours *all, const struct neighbour *n, uint64_t now_ns)
{
    struct neighbours_rtt *r = neighbours_rtt_of(all, n);

    if (!r || !r->known || (r->told_us != 0 && !r->tell))
        return r ? r->told_us : 0;
    bool flaps = r->hold_ns != 0 && now_ns - r->told_ns < RTT_CALM_HOLDS * r->hold_ns;
    r->hold_ns = flaps ? 2 * r->hold_ns : RTT_HOLD_MIN_NS;
    if (r->hold_ns > RTT_HOLD_MAX_NS)
        r->hold_ns = RTT_HOLD_MAX_NS;
    r->tell = false;
    r->told_ns = now_ns;
    r->told_us = (uint32_t)(r->least_ns / CLOCK_NS_PER_US) + 1;
    return r->told_us;
}

bool neighbours_on_channel_error(struct neighbours *all, uint32_t channel, uint32_t slot, int error,
                                 uint64_t now_ns)
{
    struct neighbour *n = neighbours_find(all, forwarding_node_id(all->forwarding, slot),
                                          neighbours_channel(all, channel)->network);

    if (!n || n->channels[channel].len == 0)
        return false;
    struct neighbour_channel *nc = &n->channels[channel];
    if (nc->retry_ns == 0 || now_ns - nc->added_ns > RETRY_MAX_NS)
        nc->retry_ns = RETRY_MIN_NS;
    else
        nc->retry_ns = nc->retry_ns * 2 < RETRY_MAX_NS ? nc->retry_ns * 2 : RETRY_MAX_NS;
    nc->bad_until_ns = now_ns + nc->retry_ns;
    log_info("channel %s cannot use the address of node %08x: %s; trying again in %llu ms",
             neighbours_channel(all, channel)->name, n->key.node_id, strerror(-error),
             (unsigned long long)(nc->retry_ns / CLOCK_NS_PER_MS));
    return true;
}

bool neighbour_carries(const struct neighbour *n, uint32_t channel)
{
    return n->channels[channel].len > 0 && n->channels[channel].verdict == LINK_ALIVE;
}

const struct neighbour_channel *neighbour_fault(const struct neighbours *all,
                                                const struct neighbour *n)
{
    const struct neighbour_channel *found = NULL;

    for (uint32_t ch = 0; ch < (uint32_t)all->config->n_channels; ch++) {
        const struct neighbour_channel *nc = &n->channels[ch];
        if (nc->len == 0 || nc->verdict == LINK_UNPROVED)
            continue;
        if (nc->verdict == LINK_ALIVE)
            return NULL;
        if (!found || nc->verdict > found->verdict)
            found = nc;
    }
    return found;
}

/* As the log says it; NULL: that it is alive is told where the link goes up. */
static void neighbour_log(const struct neighbours *all, const struct neighbour *n,
                          const struct neighbour_news *news, uint8_t before)
{
    const struct topology_node *t = topology_find(all->topology, n->key.node_id);
    const char *name = t ? t->state->node : "?", *network = n->key.network;
    const char *channel = neighbours_channel(all, news->channel)->name;

    switch ((enum link_verdict)news->verdict) {
    case LINK_UNPROVED:
        break;
    case LINK_ALIVE:
        if (before != LINK_UNPROVED)
            log_notice("channel %s: data passes to and from node %s on network %s again", channel,
                       name, network);
        break;
    case LINK_SILENT:
        log_notice("channel %s: no data comes from node %s on network %s", channel, name, network);
        break;
    case LINK_ONE_WAY:
        log_notice("channel %s: data does not arrive at node %s on network %s, though its data "
                   "arrives here",
                   channel, name, network);
        break;
    case LINK_LARGE:
        if (before != LINK_LARGE)
            log_notice("channel %s: large packets do not arrive at node %s on network %s, small "
                       "ones do",
                       channel, name, network);
        break;
    case LINK_BROKEN:
        log_notice("channel %s: cannot send to node %s on network %s: %s", channel, name, network,
                   strerror(-news->error));
        break;
    }
}

bool neighbours_on_channel_link(struct neighbours *all, const struct neighbour_news *news,
                                uint64_t now_ns)
{
    struct neighbour *n = neighbours_find(all, forwarding_node_id(all->forwarding, news->slot),
                                          neighbours_channel(all, news->channel)->network);

    if (!n || n->channels[news->channel].len == 0)
        return false;
    struct neighbour_channel *nc = &n->channels[news->channel];
    uint8_t before = nc->verdict;
    nc->error = news->error;
    nc->good_bytes = news->good_bytes;
    if (before == news->verdict && before != LINK_LARGE)
        return false;
    if (before != news->verdict)
        nc->verdict_ns = now_ns;
    nc->verdict = news->verdict;
    neighbour_log(all, n, news, before);
    return true;
}

bool neighbours_retry_due(struct neighbours *all, uint64_t now_ns)
{
    bool retry = false;

    for (struct neighbour *n = all->table; n; n = n->hh.next)
        for (uint32_t ch = 0; ch < (uint32_t)all->config->n_channels; ch++)
            if (n->up && n->channels[ch].len == 0 && n->channels[ch].bad_until_ns != 0 &&
                now_ns >= n->channels[ch].bad_until_ns) {
                n->channels[ch].bad_until_ns = 0;
                retry = true;
            }
    return retry;
}

/* True if the packets of this channel can be read at that endpoint; said once if not. */
static bool neighbour_speaks(struct neighbours *all, struct neighbour *n, uint32_t channel,
                             const Motet__Endpoint *e)
{
    struct neighbour_channel *nc = &n->channels[channel];
    const char *driver = all->ops->driver(all->ctx, channel);
    bool same = strcmp(driver, e->driver) == 0;

    if (!same && !nc->told_unlike)
        log_error("channel %s: node %08x speaks \"%s\" on network %s, this node \"%s\": no packets "
                  "between them there; give both "
                  "the same provider in motetd.conf",
                  neighbours_channel(all, channel)->name, n->key.node_id, e->driver, n->key.network,
                  driver);
    nc->told_unlike = !same;
    return same;
}

/* Brings one channel's view of one neighbour into step. True if data passes between them. */
static bool neighbour_sync_channel(struct neighbours *all, struct neighbour *n, uint32_t channel,
                                   uint32_t ordinal, uint64_t now_ns)
{
    struct neighbour_channel *nc = &n->channels[channel];
    const struct topology_node *t = topology_find(all->topology, n->key.node_id);
    const Motet__Endpoint *e = NULL;
    int slot = forwarding_find(all->forwarding, n->key.node_id);

    if (slot < 0)
        return false;
    if (n->up && t && t->state->epoch == n->epoch && all->ops->alive(all->ctx, channel) &&
        now_ns >= nc->bad_until_ns)
        e = topology_endpoint(t, n->key.network, ordinal);
    if (e && !neighbour_speaks(all, n, channel, e))
        e = NULL;
    if (!e || e->address.len == 0) {
        if (nc->len > 0)
            all->ops->remove_link(all->ctx, channel, (uint16_t)slot);
        nc->len = 0;
        return false;
    }
    if (nc->len == e->address.len && nc->epoch == n->epoch &&
        memcmp(nc->address, e->address.data, nc->len) == 0)
        return nc->verdict == LINK_ALIVE;
    /* Each pair of channels has a secret of its own: what one channel has sent is news to none
     * other. */
    uint8_t secret[SEAL_SECRET_BYTES], place = (uint8_t)ordinal;
    if (seal_derive(n->secret, "motet channel", &place, sizeof place, secret, sizeof secret) < 0)
        return false;
    nc->len = (uint32_t)e->address.len;
    nc->epoch = n->epoch;
    memcpy(nc->address, e->address.data, nc->len);
    nc->added_ns = nc->verdict_ns = now_ns;
    nc->verdict = LINK_UNPROVED;
    all->ops->add_link(all->ctx, channel, (uint16_t)slot, nc->address, nc->len, secret);
    seal_forget(secret, sizeof secret);
    return false;
}

bool neighbours_sync(struct neighbours *all, uint64_t now_ns)
{
    bool changed = false;

    for (struct neighbour *n = all->table; n; n = n->hh.next) {
        uint32_t ordinal = 0;
        bool usable = false;
        for (uint32_t ch = 0; ch < (uint32_t)all->config->n_channels; ch++)
            if (strcmp(neighbours_channel(all, ch)->network, n->key.network) == 0)
                usable |= neighbour_sync_channel(all, n, ch, ordinal++, now_ns);
        changed |= usable != n->usable;
        n->usable = usable;
    }
    return changed;
}
