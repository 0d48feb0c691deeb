/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/control/service.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "daemon/cluster/channels.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/mesh.h"
#include "daemon/control/node.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/manager.h"
#include "daemon/routing/topology.h"

#define MAX_SOCKETS 8
/* A thread that has not moved for so long hangs: channel threads move at least once a second. */
#define STUCK_NS (5 * CLOCK_NS_PER_S)

struct service {
    struct node *node;
    bool ready, stopping, stuck;
    bool keeps;           /* its sockets stay open when it goes */
    uint64_t watchdog_ns; /* 0: none wanted */
    uint64_t fed_ns, moved_ns;
    int n_sockets;
    char *names[MAX_SOCKETS];
    int fds[MAX_SOCKETS];
    char status[160];
};

struct service *service_new(struct node *node)
{
    struct service *s = calloc(1, sizeof *s);
    char **names = NULL;
    uint64_t usec = 0;

    if (!s)
        return NULL;
    s->node = node;
    if (sd_watchdog_enabled(0, &usec) > 0)
        s->watchdog_ns = usec * CLOCK_NS_PER_US;
    /* Left in the environment, for this process may begin anew. */
    int n = sd_listen_fds_with_names(0, &names);
    for (int i = 0; i < n; i++) {
        if (s->n_sockets < MAX_SOCKETS &&
            sd_is_socket(SD_LISTEN_FDS_START + i, AF_UNIX, SOCK_STREAM, 1) > 0) {
            fd_set_nonblock(SD_LISTEN_FDS_START + i, true);
            s->fds[s->n_sockets] = SD_LISTEN_FDS_START + i;
            s->names[s->n_sockets++] = names[i];
        } else {
            log_warn("systemd passed a descriptor '%s' that is no listening Unix socket, ignoring",
                     names[i]);
            close(SD_LISTEN_FDS_START + i);
            free(names[i]);
        }
    }
    free(names);
    return s;
}

void service_free(struct service *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_sockets; i++) {
        if (!s->keeps)
            close(s->fds[i]);
        free(s->names[i]);
    }
    free(s);
}

int service_socket(struct service *s, const char *name)
{
    for (int i = 0; i < s->n_sockets; i++) {
        if (strcmp(s->names[i], name) == 0)
            return fcntl(s->fds[i], F_DUPFD_CLOEXEC, SD_LISTEN_FDS_START + MAX_SOCKETS);
    }
    return -1;
}

void service_keep_sockets(struct service *s)
{
    s->keeps = true;
    for (int i = 0; i < s->n_sockets; i++)
        fcntl(s->fds[i], F_SETFD, 0);
}

static void tell_status(struct service *s)
{
    struct node *node = s->node;
    unsigned n_reachable = 0;
    char text[160], seeds[64];
    bool alone = mesh_is_alone(cluster_mesh(node->cluster), seeds, sizeof seeds);

    for (struct topology_node *t = topology_first(cluster_topology(node->cluster)); t;
         t = t->hh.next)
        n_reachable += t->reachable || t->node_id == node->id;
    snprintf(text, sizeof text, "%s: %s%u of %u nodes reachable, %u jobs here",
             cluster_draining(node->cluster) ? "draining" : "serving",
             alone ? "alone, no seed answers; " : "", n_reachable,
             topology_count(cluster_topology(node->cluster)), jobs_count(node->jobs));
    if (strcmp(text, s->status) == 0)
        return;
    memcpy(s->status, text, sizeof s->status);
    sd_notifyf(0, "STATUS=%s", text);
}

void service_tick(struct service *s, uint64_t now_ns)
{
    bool moved = channels_moved(s->node->channels);

    if (moved) {
        if (s->stuck)
            log_notice("all channel threads move again");
        s->stuck = false;
        s->moved_ns = now_ns;
    } else if (s->ready && !s->stuck && now_ns - s->moved_ns > STUCK_NS) {
        s->stuck = true;
        log_error("a channel thread has not moved for %llu s",
                  (unsigned long long)(STUCK_NS / CLOCK_NS_PER_S));
    }
    if (!s->ready && moved) {
        s->ready = true;
        s->moved_ns = now_ns;
        sd_notify(0, "READY=1");
    }
    tell_status(s);
    if (s->watchdog_ns && moved && now_ns - s->fed_ns >= s->watchdog_ns / 4) {
        s->fed_ns = now_ns;
        sd_notify(0, "WATCHDOG=1");
    }
}

void service_reloading(struct service *s, uint64_t now_ns)
{
    (void)s;
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
               (unsigned long long)(now_ns / CLOCK_NS_PER_US));
}

void service_reloaded(struct service *s)
{
    (void)s;
    sd_notify(0, "READY=1");
}

void service_stopping(struct service *s, uint64_t limit_ns)
{
    if (!s->stopping)
        sd_notifyf(0, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu",
                   (unsigned long long)(limit_ns / CLOCK_NS_PER_US));
    s->stopping = true;
}
