/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must be so. Always: bounds, and mail that is in order or whose loss was told. After a quiet
 * time: every daemon knows exactly the cluster that there is, its routes lead everywhere that can
 * be reached and nowhere else, no mail waits, and nobody keeps anything of a job that is over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/cluster.h"
#include "daemon/cluster/mail.h"
#include "daemon/cluster/mesh.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/manager.h"
#include "daemon/routing/forwarding.h"
#include "daemon/routing/node_name.h"
#include "daemon/routing/topology.h"
#include "tests/simcontrol/world.h"

#define PROBE_MAIL 60000u

struct probe_body {
    uint64_t number;
    uint32_t from_start, padding;
};

static uint32_t id_of(const struct host *host)
{
    return node_name_id(host->name);
}

static struct host *host_of(struct world *w, uint32_t node_id)
{
    for (uint32_t i = 0; i < w->n_hosts; i++)
        if (id_of(&w->hosts[i]) == node_id)
            return &w->hosts[i];
    return NULL;
}

/* ---- mail ---- */

void truth_probe(struct world *w, struct host *from, struct host *to)
{
    struct cluster *c = daemon_cluster(from->daemon);
    struct probe *p = &from->probes[to->idx];
    struct probe_body body = {.number = p->sent + 1, .from_start = from->n_starts};

    if (from == to || !topology_find(cluster_topology(c), id_of(to)))
        return;
    if (mail_send(cluster_mail(c), id_of(to), PROBE_MAIL, &body, sizeof body, w->now_ns) == 0)
        p->sent++;
    daemon_wake(from->daemon);
}

void truth_on_probe(struct world *w, struct host *at, uint32_t src_node, const uint8_t *body,
                    uint32_t len)
{
    struct host *from = host_of(w, src_node);
    struct probe_body b;

    if (!from || len != sizeof b)
        world_fail(w, "%s: mail came in broken", at->name);
    memcpy(&b, body, sizeof b);
    struct probe *p = &at->probes[from->idx];
    if (p->from_start != b.from_start) {
        if (b.from_start < p->from_start)
            world_fail(w, "%s: mail of a past incarnation of %s", at->name, from->name);
        p->from_start = b.from_start;
        p->received = 0;
    }
    if (b.number <= p->received)
        world_fail(w, "%s: mail %llu of %s came after %llu", at->name, (unsigned long long)b.number,
                   from->name, (unsigned long long)p->received);
    /* A gap is what its sender was told of. */
    if (b.number != p->received + 1 && from->daemon && from->n_starts == b.from_start &&
        from->probes[at->idx].lost_at < b.number - 1)
        world_fail(
            w, "%s: mail %llu of %s came after %llu, and nobody said that the others are lost",
            at->name, (unsigned long long)b.number, from->name, (unsigned long long)p->received);
    p->received = b.number;
}

void truth_on_lost(struct world *w, struct host *at, uint32_t node_id)
{
    struct host *lost = host_of(w, node_id);

    if (!lost)
        world_fail(w, "%s lost a node that there never was", at->name);
    at->probes[lost->idx].lost_at = at->probes[lost->idx].sent;
}

static void check_mail(struct world *w, const struct host *from, const struct host *to)
{
    const struct probe *p = &from->probes[to->idx];

    if (p->sent > p->lost_at && (to->probes[from->idx].from_start != from->n_starts ||
                                 to->probes[from->idx].received != p->sent))
        world_fail(w, "%s sent %llu probes to %s, which got %llu", from->name,
                   (unsigned long long)p->sent, to->name,
                   (unsigned long long)to->probes[from->idx].received);
    size_t queued = mail_queued(cluster_mail(daemon_cluster(from->daemon)), id_of(to));
    if (queued > 0)
        world_fail(w, "%s keeps %zu bytes of mail for %s", from->name, queued, to->name);
}

/* ---- bounds ---- */

static void check_host_bounds(struct world *w, const struct host *host)
{
    const struct cluster *c = daemon_cluster(host->daemon);
    unsigned n_links = 0, n_members = 0;

    list_foreach(it, mesh_links(cluster_mesh(c)))
        n_links++;
    for (uint32_t ch = 0; ch < host->n_channels; ch++)
        n_members += w->networks[host->networks[ch]].n_members;
    if (n_links > 4 * n_members + 64)
        world_fail(w, "%s has %u connections to %u neighbours", host->name, n_links, n_members);
    if (mesh_n_targets(cluster_mesh(c)) > n_members)
        world_fail(w, "%s knows %u addresses of %u neighbours", host->name,
                   mesh_n_targets(cluster_mesh(c)), n_members);
    if (topology_count(cluster_topology(c)) > w->n_hosts)
        world_fail(w, "%s knows more nodes than there are", host->name);
}

void truth_check_bounds(struct world *w)
{
    for (uint32_t i = 0; i < w->n_hosts; i++)
        if (w->hosts[i].daemon)
            check_host_bounds(w, &w->hosts[i]);
}

/* ---- the cluster ---- */

/* Two daemons with a connection on a network. */
static bool connected(const struct world *w, const struct host *a, const struct host *b,
                      uint32_t network)
{
    return a != b && a->daemon && b->daemon && wire_open(w, a->idx, b->idx, network);
}

/* Two daemons between which data passes. */
static bool linked(const struct world *w, const struct host *a, const struct host *b,
                   uint32_t network)
{
    return connected(w, a, b, network) && wire_data_open(w, a->idx, b->idx, network) &&
           wire_data_open(w, b->idx, a->idx, network);
}

/* Numbers the hosts by what can reach what; 0: no daemon. */
static void find_parts(const struct world *w, uint32_t *part)
{
    uint32_t *stack = calloc(w->n_hosts, sizeof *stack), n_parts = 0;

    if (!stack)
        abort();
    memset(part, 0, w->n_hosts * sizeof *part);
    for (uint32_t first = 0; first < w->n_hosts; first++) {
        uint32_t n_stack = 0;
        if (part[first] || !w->hosts[first].daemon)
            continue;
        part[first] = ++n_parts;
        stack[n_stack++] = first;
        while (n_stack > 0) {
            const struct host *h = &w->hosts[stack[--n_stack]];
            for (uint32_t ch = 0; ch < h->n_channels; ch++) {
                const struct network *n = &w->networks[h->networks[ch]];
                for (uint32_t m = 0; m < n->n_members; m++) {
                    const struct host *other = &w->hosts[n->members[m]];
                    if (part[other->idx] || !linked(w, h, other, h->networks[ch]))
                        continue;
                    part[other->idx] = n_parts;
                    stack[n_stack++] = other->idx;
                }
            }
        }
    }
    free(stack);
}

/* What `at` knows of `of` is what there is. */
static void check_state(struct world *w, const struct host *at, const struct host *of)
{
    const struct topology_node *t =
        topology_find(cluster_topology(daemon_cluster(at->daemon)), id_of(of));
    uint32_t n_links = 0;

    if (!t || t->state->epoch != of->epoch || t->lost)
        world_fail(w, "%s does not know %s as it is", at->name, of->name);
    for (uint32_t ch = 0; ch < of->n_channels; ch++) {
        const struct network *n = &w->networks[of->networks[ch]];
        char name[32];
        snprintf(name, sizeof name, "net%u", of->networks[ch]);
        for (uint32_t m = 0; m < n->n_members; m++) {
            const struct host *other = &w->hosts[n->members[m]];
            bool expected = linked(w, of, other, of->networks[ch]);
            const Motet__Adjacency *a =
                other == of ? NULL : topology_adjacency(t, id_of(other), name);
            bool said = a && !a->has_fault;
            n_links += a != NULL;
            if (a ? !connected(w, of, other, of->networks[ch])
                  : connected(w, of, other, of->networks[ch]))
                world_fail(w, "%s thinks that %s is%s connected with %s on %s", at->name, of->name,
                           a ? "" : " not", other->name, name);
            if (expected != said)
                world_fail(w, "%s thinks that %s %s a link to %s on %s", at->name, of->name,
                           said ? "has" : "has not", other->name, name);
        }
    }
    if (n_links != t->state->n_links)
        world_fail(w, "%s: %s has links that cannot be", at->name, of->name);
}

/* One step of a packet from `at` towards a node over one of its ways; -1: there is none. */
static int follow(struct world *w, const struct host *at, const struct host *to, unsigned way)
{
    const struct forwarding *f = daemon_forwarding(at->daemon);
    int slot = forwarding_find(f, id_of(to));

    if (slot <= 0)
        return -1;
    const struct hop_entry *e = &forwarding_table(f)->entries[slot];
    hop_word word = way == 0 ? e->quick : e->wide[way - 1];
    if (word == HOP_NONE)
        return -1;
    if (e->epoch != to->epoch)
        world_fail(w, "%s: the forwarding table has epoch %u for %s, which is %u", at->name,
                   e->epoch, to->name, to->epoch);
    const struct host *next = host_of(w, forwarding_node_id(f, hop_next_slot(word)));
    if (!next || hop_channel(word) >= at->n_channels ||
        !linked(w, at, next, at->networks[hop_channel(word)]))
        world_fail(w, "%s sends what is for %s where no link is", at->name, to->name);
    return (int)next->idx;
}

/* Every way leads there, whichever is taken at each step. */
static void check_way(struct world *w, const struct host *from, const struct host *to, bool wide)
{
    const struct host *at = from;

    for (uint32_t n = 0; at != to; n++) {
        unsigned way = wide ? 1 + (unsigned)world_draw(w, HOP_MAX_WIDE) : 0;
        int next = follow(w, at, to, way);
        if (next < 0 && way > 1)
            next = follow(w, at, to, 1);
        if (next < 0)
            world_fail(w, "%s has no %s way to %s (from %s)", at->name, wide ? "wide" : "quick",
                       to->name, from->name);
        if (n > w->n_hosts)
            world_fail(w, "a packet from %s to %s goes in circles at %s", from->name, to->name,
                       at->name);
        at = &w->hosts[next];
    }
}

static void check_pair(struct world *w, const struct host *from, const struct host *to, bool joined)
{
    bool reachable = cluster_reachable(daemon_cluster(from->daemon), id_of(to));

    if (reachable != joined)
        world_fail(w, "%s thinks that %s can%s be reached", from->name, to->name,
                   reachable ? "" : "not");
    if (!joined) {
        if (follow(w, from, to, 0) >= 0)
            world_fail(w, "%s has a way to %s, which cannot be reached", from->name, to->name);
        return;
    }
    check_state(w, from, to);
    check_way(w, from, to, false);
    check_way(w, from, to, true);
    check_mail(w, from, to);
}

/* Where everybody hears everybody, two nodes flood for all. */
static void check_flooding(struct world *w, uint32_t network)
{
    const struct network *n = &w->networks[network];
    unsigned n_ends = 0;
    char name[32];

    snprintf(name, sizeof name, "net%u", network);
    for (uint32_t a = 0; a < n->n_members; a++) {
        const struct host *at = &w->hosts[n->members[a]];
        if (!at->daemon)
            return;
        for (uint32_t b = 0; b < n->n_members; b++)
            if (a != b && !linked(w, at, &w->hosts[n->members[b]], network))
                return;
        list_foreach(it, mesh_links(cluster_mesh(daemon_cluster(at->daemon)))) {
            const struct mesh_link *l = list_entry(it, struct mesh_link, link);
            n_ends += l->up && strcmp(l->peer.network, name) == 0 && l->flood.adjacent;
        }
    }
    if (n->n_members > 1 && n_ends != 2 * (2 * n->n_members - 3))
        world_fail(w, "%s: link states go over %u ends of connections among %u nodes", name, n_ends,
                   n->n_members);
}

void truth_check_quiet(struct world *w)
{
    uint32_t *part = calloc(w->n_hosts, sizeof *part);

    if (!part)
        abort();
    find_parts(w, part);
    for (uint32_t n = 0; n < w->n_networks; n++)
        check_flooding(w, n);
    for (uint32_t i = 0; i < w->n_hosts; i++) {
        const struct host *host = &w->hosts[i];
        unsigned n_processes = ranks_n_processes(host), n_parts = ranks_n_parts(host);
        if (n_processes > 0 || n_parts > 0)
            world_fail(w, "%s has %u processes and %u parts of jobs left", host->name, n_processes,
                       n_parts);
        if (!host->daemon)
            continue;
        if (jobs_count(daemon_jobs(host->daemon)) > 0)
            world_fail(w, "%s keeps %u jobs that are over", host->name,
                       jobs_count(daemon_jobs(host->daemon)));
        if (manager_count(daemon_manager(host->daemon)) > 0)
            world_fail(w, "%s still manages %u jobs", host->name,
                       manager_count(daemon_manager(host->daemon)));
        for (uint32_t j = 0; j < w->n_hosts; j++)
            if (j != i)
                check_pair(w, host, &w->hosts[j], part[i] == part[j]);
    }
    free(part);
}
