/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What status shows of this node and whom it asks: filled once by whoever wires the daemon. Control
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"

struct channels;
struct clients;
struct cluster;
struct event_base;
struct forwarding;
struct jobs;
struct mail;
struct manager;
struct mesh;
struct quota;
struct topology;

struct status_node {
    struct event_base *base;
    struct config *config;   /* the one that runs */
    const char *config_path; /* NULL: none */
    uint32_t id, epoch;
    uint64_t started_ns;
    const char *software;
    bool private_mode;
    bool fenced;           /* this node uses full fences */
    bool socket_activated; /* the sockets belong to systemd */
    struct forwarding *forwarding;
    struct channels *channels;
    struct mail *mail;
    struct topology *topology;
    struct mesh *mesh;
    struct cluster *cluster;
    struct jobs *jobs;
    struct manager *manager;
    struct clients *clients;
    struct quota *quota;
    /* Reads the daemon's configuration file anew, as it would count for this node after a restart.
     * 0 or -EINVAL, complaints reported. */
    int (*read_config)(void *ctx, struct config *ret_fresh, config_report_fn *report,
                       void *report_ctx);
    void *ctx;
};
