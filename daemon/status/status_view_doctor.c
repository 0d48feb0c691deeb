/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this node finds wrong with itself, a row for each thing looked at: how it is, and what to do
 * about it. What only several nodes together show (versions, clocks) motetctl compares from the row
 * "daemon". Control thread.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "daemon/channel/channel.h"
#include "daemon/cluster/channels.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/mesh.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/quota.h"
#include "daemon/net/net.h"
#include "daemon/port/count.h"
#include "daemon/routing/forwarding.h"
#include "daemon/routing/topology.h"
#include "daemon/status/status_link.h"
#include "daemon/status/status_node.h"
#include "daemon/status/status_view.h"

/* What a job of 64 ranks needs at the least, with several channels. */
#define FEW_FILES 4096u
/* Registered memory of one channel, generously. */
#define FEW_LOCKED_BYTES (256ull << 20)
/* So long after it happened it is worth a warning. */
#define INTRUDER_NS (600 * CLOCK_NS_PER_S)
/* So many complaints about the file are shown. */
#define MAX_COMPLAINTS 8

struct report {
    struct status_node *node;
    json_t *rows;
    const char *check;
    int n;
};

static void doctor_say(const struct report *r, const char *state, const char *advice,
                       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static void doctor_say(const struct report *r, const char *state, const char *advice,
                       const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    json_array_append_new(r->rows, json_pack("{s:s, s:s, s:s, s:s, s:s?}", "node",
                                             r->node->config->name, "check", r->check, "state",
                                             state, "text", text, "advice", advice));
}

static void check_daemon(struct report *r)
{
    struct timespec now;

    r->check = "daemon";
    clock_gettime(CLOCK_REALTIME, &now);
    json_array_append_new(r->rows,
                          json_pack("{s:s, s:s, s:s, s:s, s:n, s:s, s:I}", "node",
                                    r->node->config->name, "check", r->check, "state",
                                    cluster_draining(r->node->cluster) ? "warn" : "ok", "text",
                                    cluster_draining(r->node->cluster) ? "it is ending" : "it runs",
                                    "advice", "version", r->node->software, "clock_ms",
                                    (json_int_t)now.tv_sec * 1000 + now.tv_nsec / 1000000));
    if (r->node->fenced && !r->node->config->fenced)
        doctor_say(r, "warn", "allow membarrier(2) in its container or seccomp filter",
                   "membarrier(2) is forbidden: messages within the node are slower");
}

static void on_difference(void *ctx, const char *line)
{
    struct report *r = ctx;

    if (r->n++ < MAX_COMPLAINTS)
        doctor_say(r, "warn", "reload (SIGHUP) or restart the daemon, as the line says", "%s",
                   line);
}

static void on_mistake(void *ctx, const char *line)
{
    struct report *r = ctx;

    if (r->n++ < MAX_COMPLAINTS)
        doctor_say(r, "fail", "correct it: motetd --check-config", "%s", line);
}

static void check_config(struct report *r)
{
    struct config *fresh = malloc(sizeof *fresh);
    const char *path = r->node->config_path;

    r->check = "configuration";
    r->n = 0;
    if (!fresh)
        return;
    if (!path)
        doctor_say(r, "ok", NULL, "built in, there is no file");
    else if (r->node->read_config(r->node->ctx, fresh, on_mistake, r) == 0 &&
             config_diff(r->node->config, fresh, on_difference, r) == 0)
        doctor_say(r, "ok", NULL, "%s is what the daemon runs with", path);
    free(fresh);
}

static void check_socket(struct report *r, const char *path)
{
    struct stat st;

    r->check = "sockets";
    if (path[0] == '@' || r->node->socket_activated)
        return;
    if (stat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
        doctor_say(r, "fail", "restart the daemon", "%s is gone: nobody can connect there", path);
    else
        doctor_say(r, "ok", NULL, "%s, mode %04o", path, (unsigned)st.st_mode & 07777);
}

/* What keeps ranks from being started or from being fast. */
static void check_host(struct report *r)
{
    struct rlimit files, locked;
    char scope = '0';

    r->check = "spawner";
    if (access(r->node->config->spawner, X_OK) < 0)
        doctor_say(r, "fail", "install it, or correct `spawner` in [node]", "%s: %s",
                   r->node->config->spawner, strerror(errno));
    else
        doctor_say(r, "ok", NULL, "%s", r->node->config->spawner);
    r->check = "limits";
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FEW_FILES)
        doctor_say(r, "warn", "raise LimitNOFILE of the service (ulimit -n)",
                   "%llu open files: too few for a job of 64 ranks",
                   (unsigned long long)files.rlim_cur);
    else
        doctor_say(r, "ok", NULL, "%llu open files", (unsigned long long)files.rlim_cur);
    for (uint32_t ch = 0; ch < channels_count(r->node->channels); ch++) {
        const char *provider = channels_provider(r->node->channels, ch);
        bool registers =
            !strstr(provider, "tcp") && !strstr(provider, "udp") && strcmp(provider, "net") != 0;
        if (registers && getrlimit(RLIMIT_MEMLOCK, &locked) == 0 &&
            locked.rlim_cur < FEW_LOCKED_BYTES)
            doctor_say(r, "fail", "raise LimitMEMLOCK of the service (ulimit -l)",
                       "%llu KiB may be locked: too little for provider %s",
                       (unsigned long long)locked.rlim_cur >> 10, provider);
    }
    FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (f && fread(&scope, 1, 1, f) == 1 && scope > '0')
        doctor_say(
            r, "warn", "sysctl kernel.yama.ptrace_scope=0",
            "ptrace_scope is %c: ranks may not read one another's memory, and large messages "
            "within the node take two copies",
            scope);
    if (f)
        fclose(f);
    r->check = "cores";
    uint32_t n_ranks = 0;
    for (const struct job *job = jobs_first(r->node->jobs); job; job = job->hh.next)
        n_ranks += job->n_local;
    if (n_ranks > (uint32_t)thread_n_cores())
        doctor_say(r, "warn", "start fewer ranks here (-ppn)", "%u ranks share %d cores", n_ranks,
                   thread_n_cores());
}

static const struct ifaddrs *interface_find(const struct ifaddrs *all, const char *name)
{
    while (all && strcmp(all->ifa_name, name) != 0)
        all = all->ifa_next;
    return all;
}

static void check_channels(struct report *r)
{
    struct ifaddrs *all = NULL;

    r->check = "channels";
    if (getifaddrs(&all) < 0)
        return;
    for (uint32_t ch = 0; ch < channels_count(r->node->channels); ch++) {
        const struct config_channel *c = &r->node->config->channels[ch];
        const struct ifaddrs *found = interface_find(all, c->resolved_interface);
        unsigned flags = found ? found->ifa_flags : 0;
        if (!channels_alive(r->node->channels, ch))
            doctor_say(r, "fail", "look into the daemon's log, then restart it",
                       "%s on %s has failed", c->name, c->resolved_interface);
        else if (!found)
            doctor_say(r, "fail", "bring the interface back, then restart the daemon",
                       "%s: interface %s is gone", c->name, c->resolved_interface);
        else if (!(flags & IFF_UP) || !(flags & IFF_RUNNING))
            doctor_say(r, "fail", "plug in the cable, or: ip link set up", "%s: interface %s is %s",
                       c->name, c->resolved_interface,
                       flags & IFF_UP ? "without a carrier" : "down");
        else
            doctor_say(r, "ok", NULL, "%s on %s (%s), network %s", c->name, c->resolved_interface,
                       c->address, c->network);
    }
    freeifaddrs(all);
}

/* Somebody who tries, or a network that damages. */
static void check_intruders(struct report *r)
{
    unsigned n_quiet = 0;

    r->check = "intruders";
    for (uint32_t ch = 0; ch < channels_count(r->node->channels); ch++) {
        struct net_guard guard;
        uint64_t ago_ns;
        channels_refused(r->node->channels, ch, &guard, &ago_ns);
        if (ago_ns > INTRUDER_NS) {
            n_quiet++;
            continue;
        }
        doctor_say(
            r, "warn",
            "find out who on the nodes of this network does so (the daemon's log has "
            "addresses); none of it reached a job",
            "%s: refused %llu packets that are no peer's or were damaged, %llu that had come "
            "before, %llu connections of strangers; the last %llu s ago",
            r->node->config->channels[ch].name, (unsigned long long)guard.forged,
            (unsigned long long)guard.replayed, (unsigned long long)guard.strangers,
            (unsigned long long)(ago_ns / CLOCK_NS_PER_S));
    }
    uint64_t ago_ns = mesh_refused_ago(r->node->mesh, clock_now_ns());
    if (ago_ns <= INTRUDER_NS)
        doctor_say(r, "warn", "find out who does so (the daemon's log has addresses)",
                   "a control port refused connections of strangers, the last %llu s ago",
                   (unsigned long long)(ago_ns / CLOCK_NS_PER_S));
    else if (n_quiet == channels_count(r->node->channels))
        doctor_say(r, "ok", NULL, "nobody tried to get in");
}

static void doctor_on_refusal(void *ctx, const struct quota_refusal *refusal)
{
    struct report *r = ctx;

    r->n++;
    doctor_say(r, "warn",
               "ask that user what runs there; the limits are in [jobs] of motetd.conf, and other "
               "users have their own share",
               "user %u was refused %llu times, the last %llu s ago: %s", (unsigned)refusal->uid,
               (unsigned long long)refusal->n,
               (unsigned long long)((clock_now_ns() - refusal->last_ns) / CLOCK_NS_PER_S),
               refusal->why);
}

/* Users who wanted more than their share. */
static void check_quotas(struct report *r)
{
    r->check = "quotas";
    r->n = 0;
    quota_refusals(r->node->quota, clock_now_ns(), doctor_on_refusal, r);
    if (r->n == 0)
        doctor_say(r, "ok", NULL, "no user wanted more than its share");
}

static bool doctor_on_network(const struct topology_node *t, const char *network)
{
    for (size_t i = 0; i < t->state->n_endpoints; i++)
        if (strcmp(t->state->endpoints[i]->network, network) == 0)
            return true;
    return false;
}

/* The kernel's table of neighbours has room for so many entries, of all namespaces together; beyond
 * it packets to new ones are dropped, as if cables were missing. */
static void check_neighbour_table(struct report *r)
{
    FILE *f = fopen("/proc/sys/net/ipv4/neigh/default/gc_thresh3", "re");
    unsigned long limit = 0, n = 0;

    if (!f)
        return; /* in a namespace it cannot be seen */
    if (fscanf(f, "%lu", &limit) != 1)
        limit = 0;
    fclose(f);
    for (struct topology_node *t = topology_first(r->node->topology); t; t = t->hh.next)
        for (int ch = 0; ch < r->node->config->n_channels; ch++)
            n += t->node_id != r->node->id &&
                 doctor_on_network(t, r->node->config->channels[ch].network);
    r->check = "limits";
    if (limit == 0)
        return;
    if (n + n / 4 > limit)
        doctor_say(r, "fail", "sysctl net.ipv4.neigh.default.gc_thresh3, to twice as many or more",
                   "%lu nodes on the own networks, and the kernel's neighbour table has room for "
                   "%lu entries",
                   n, limit);
    else
        doctor_say(r, "ok", NULL, "%lu on the own networks, the kernel allows %lu", n, limit);
}

/* Datagrams that the way to a neighbour does not carry, though the interface does: messages go in
 * smaller ones. */
static void check_datagrams(const struct report *r, uint32_t ch, const struct topology_node *t)
{
    int slot = forwarding_find(r->node->forwarding, t->node_id);
    struct count_link l;

    if (slot <= 0 || !channel_link(channels_at(r->node->channels, ch), (uint32_t)slot, &l) ||
        !l.up || l.datagram_bytes == 0 || l.datagram_bytes >= l.datagram_most)
        return;
    doctor_say(r, "warn",
               "compare the MTU of the interfaces of both nodes and of all switches between; "
               "messages pass, in smaller datagrams",
               "datagrams of more than %u bytes do not arrive at node %s on network %s, "
               "the interface allows %u",
               l.datagram_bytes, t->state->node, r->node->config->channels[ch].network,
               l.datagram_most);
}

/* Everybody on a network of ours should be a neighbour there. */
static void check_links(struct report *r)
{
    const struct topology_node *self = topology_find(r->node->topology, r->node->id);
    unsigned n_up = 0;

    r->check = "links";
    for (int ch = 0; ch < r->node->config->n_channels; ch++) {
        const char *network = r->node->config->channels[ch].network;
        bool again = false;
        for (int before = 0; before < ch; before++)
            again |= strcmp(r->node->config->channels[before].network, network) == 0;
        for (struct topology_node *t = topology_first(r->node->topology); !again && t;
             t = t->hh.next) {
            if (t->node_id == r->node->id || t->lost || !doctor_on_network(t, network))
                continue;
            const Motet__Adjacency *a = self ? topology_adjacency(self, t->node_id, network) : NULL;
            struct status_link_words words;
            if (!mesh_find(r->node->mesh, t->node_id, network))
                doctor_say(
                    r, "fail",
                    "look at the cable, the switch, and a firewall (port of the channel, TCP)",
                    "no control connection to node %s on network %s", t->state->node, network);
            else if (a && status_link_fault(r->node, self, a, &words))
                doctor_say(r, "fail", words.advice, "%s", words.text);
            else if (!a)
                doctor_say(r, "fail", "look into the daemon's log, and ask again",
                           "the channel has not yet sent anything to node %s on network %s",
                           t->state->node, network);
            else
                n_up++;
            check_datagrams(r, (uint32_t)ch, t);
        }
    }
    if (n_up > 0)
        doctor_say(r, "ok", NULL, "%u up", n_up);
    r->check = "nodes";
    char seeds[300];
    if (mesh_is_alone(r->node->mesh, seeds, sizeof seeds))
        doctor_say(
            r, "fail",
            "see whether a daemon runs there, and the seeds, port and key_file of both sides; "
            "motetd --check-config",
            "this node is alone: none of its seeds can be connected to: %s", seeds);
    unsigned n_reachable = 0;
    for (struct topology_node *t = topology_first(r->node->topology); t; t = t->hh.next) {
        if (t->node_id != r->node->id && !t->reachable)
            doctor_say(r, "warn", "see whether its daemon runs, and its cables", "%s %s",
                       t->state->node, t->lost ? "is given up" : "cannot be reached");
        n_reachable += t->node_id != r->node->id && t->reachable;
    }
    doctor_say(r, "ok", NULL, "%u others can be reached", n_reachable);
}

void status_view_doctor(struct status_node *node, const struct status_request *q, json_t *rows)
{
    struct report r = {.node = node, .rows = rows};

    check_daemon(&r);
    /* Its text may name what is not for everybody. */
    if (status_privileged(q->uid))
        check_config(&r);
    check_socket(&r, node->config->client_socket);
    check_socket(&r, node->config->status_socket);
    check_host(&r);
    check_channels(&r);
    check_intruders(&r);
    check_quotas(&r);
    check_neighbour_table(&r);
    check_links(&r);
}
