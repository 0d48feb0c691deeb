/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/control/node.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/cluster/channels.h"
#include "daemon/cluster/cluster.h"
#include "daemon/control/control.h"
#include "daemon/control/service.h"
#include "daemon/jobs/client.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/manager.h"
#include "daemon/jobs/quota.h"
#include "daemon/jobs/spawner.h"
#include "daemon/routing/epoch.h"
#include "daemon/routing/forwarding.h"
#include "daemon/routing/node_name.h"
#include "daemon/status/status.h"

/* The clock's guess, in hundredths of a second: one epoch per start, and years until they go round.
 * Later than the one that `again` names. */
static uint32_t node_new_epoch(const struct node_again *again)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    uint32_t epoch =
        epoch_after((uint32_t)((uint64_t)ts.tv_sec * 100 + (uint64_t)ts.tv_nsec / 10000000));
    if (again->epoch != 0 && !epoch_newer(epoch, again->epoch))
        epoch = epoch_after(again->epoch);
    return epoch;
}

/* `path` is the configured one; a socket from systemd replaces it by its own, since ranks are told
 * where to connect. */
static int node_open_socket(struct node *node, const char *name, char *path, size_t path_size)
{
    int fd = service_socket(node->service, name);

    if (fd >= 0) {
        struct sockaddr_un addr = {0}; /* a socket without a name tells of its family alone */
        socklen_t len = sizeof addr;
        node->socket_activated = true;
        if (getsockname(fd, (struct sockaddr *)&addr, &len) == 0 && addr.sun_path[0] == '/' &&
            strnlen(addr.sun_path, sizeof addr.sun_path) < path_size)
            strcpy(path, addr.sun_path);
        return fd;
    }
    if (path[0] != '@' && mkdir(node->config.runtime_dir, 0755) < 0 && errno != EEXIST) {
        log_error("cannot make the directory %s: %s", node->config.runtime_dir, strerror(errno));
        return -errno;
    }
    fd = fd_unix_listen(path, (unsigned)node->config.client_mode);
    if (fd < 0)
        log_error("cannot listen on %s: %s", path,
                  fd == -EADDRINUSE ? "another daemon does" : strerror(-fd));
    return fd;
}

static int node_read_config(void *ctx, struct config *ret_fresh, config_report_fn *report,
                            void *report_ctx)
{
    return control_read_config(ctx, ret_fresh, report, report_ctx);
}

/* Fills what status sees. */
static void node_show(struct node *node)
{
    node->shown = (struct status_node){.base = node->base,
                                       .config = &node->config,
                                       .config_path = node->config_path,
                                       .id = node->id,
                                       .epoch = node->epoch,
                                       .started_ns = node->started_ns,
                                       .software = NODE_SOFTWARE,
                                       .private_mode = node->private_mode,
                                       .fenced = node->fenced,
                                       .socket_activated = node->socket_activated,
                                       .forwarding = node->forwarding,
                                       .channels = node->channels,
                                       .mail = cluster_mail(node->cluster),
                                       .topology = cluster_topology(node->cluster),
                                       .mesh = cluster_mesh(node->cluster),
                                       .cluster = node->cluster,
                                       .jobs = node->jobs,
                                       .manager = node->manager,
                                       .clients = node->clients,
                                       .quota = node->quota,
                                       .read_config = node_read_config,
                                       .ctx = node};
}

static int node_open_sockets(struct node *node)
{
    int fd = node_open_socket(node, "client", node->config.client_socket,
                              sizeof node->config.client_socket);

    if (fd < 0)
        return fd;
    const struct clients_setup clients = {.base = node->base,
                                          .quota = node->quota,
                                          .cluster = node->cluster,
                                          .jobs = node->jobs,
                                          .manager = node->manager};
    node->clients = clients_new(&clients, fd);
    if (!node->clients)
        return -ENOMEM;
    fd = node_open_socket(node, "status", node->config.status_socket,
                          sizeof node->config.status_socket);
    if (fd < 0)
        return fd;
    node_show(node);
    node->status = status_new(&node->shown, fd);
    return node->status ? 0 : -ENOMEM;
}

static void node_remove_socket(const struct node *node, const char *path)
{
    if (path[0] != '@' && !node->socket_activated)
        unlink(path);
}

/* What users may take of this node follows from what it has. */
static struct quota *node_new_quota(const struct node *node)
{
    const long n_pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    struct rlimit files = {.rlim_cur = UINT64_MAX};

    getrlimit(RLIMIT_NOFILE, &files);
    const struct quota_host host = {
        .n_files = files.rlim_cur,
        .memory_bytes = n_pages > 0 && page > 0 ? (uint64_t)n_pages * (uint64_t)page : UINT64_MAX,
        .own = geteuid()};
    return quota_new(&node->config, &host);
}

int node_new(const struct config *config, const char *config_path, bool private_mode,
             int lifeline_fd, const struct node_start *start, struct node **ret_node)
{
    struct node *node = calloc(1, sizeof *node);
    int rc = -ENOMEM;

    if (!node)
        return -ENOMEM;
    node->config = *config;
    node->config_path = config_path;
    node->private_mode = private_mode;
    node->lifeline_fd = lifeline_fd;
    node->id = node_name_id(node->config.name);
    node->again = start->again;
    node->epoch = node_new_epoch(&start->again);
    node->started_ns = clock_now_ns();
    node->fenced = node->config.fenced || thread_barrier_register() < 0;
    if (node->id == 0) {
        log_error("the name '%s' cannot be used: its number is 0; choose another",
                  node->config.name);
        rc = -EINVAL;
        goto fail;
    }
    node->base = event_base_new();
    node->service = service_new(node);
    node->quota = node_new_quota(node);
    if (!node->base || !node->service || !node->quota)
        goto fail;
    node->spawner = control_spawner_new(node, start->spawner_pid, start->spawner_fd);
    if (!node->spawner) {
        close(start->spawner_fd);
        goto fail;
    }
    rc = forwarding_new((uint32_t)node->config.packet_bytes, (uint32_t)node->config.n_channels,
                        node->id, node->epoch, &node->forwarding);
    if (rc < 0) {
        log_error("cannot make the node segment: %s", strerror(-rc));
        goto fail;
    }
    rc = control_channels_new(node);
    if (rc < 0)
        goto fail;
    rc = control_init(node);
    if (rc < 0)
        goto fail;
    rc = channels_start(node->channels);
    if (rc == 0)
        rc = node_open_sockets(node);
    if (rc < 0)
        goto fail;
    *ret_node = node;
    return 0;
fail:
    node_free(node);
    return rc;
}

void node_free(struct node *node)
{
    if (!node)
        return;
    if (node->clients)
        node_remove_socket(node, node->config.client_socket);
    clients_free(node->clients);
    if (node->status)
        node_remove_socket(node, node->config.status_socket);
    status_free(node->status);
    node->clients = NULL;
    node->status = NULL;
    /* Channel threads stop before the memory of jobs goes. */
    channels_free(node->channels);
    jobs_free(node->jobs);
    control_deinit(node);
    spawner_free(node->spawner);
    forwarding_free(node->forwarding);
    service_free(node->service);
    quota_free(node->quota);
    if (node->base)
        event_base_free(node->base);
    free(node);
}

bool node_again(struct node *node, struct node_again *ret_again)
{
    if (!node->outlived)
        return false;
    service_keep_sockets(node->service);
    *ret_again = node->again;
    return true;
}

int node_run(struct node *node)
{
    event_base_dispatch(node->base);
    return node->exit_code;
}
