/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root object of the daemon: everything a node has, made in order by node_new and undone in
 * reverse by node_free. Seen by daemon/control and main only: every other module has a struct of
 * what it needs. Made and used on the control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/cluster/auth.h"
#include "daemon/config.h"
#include "daemon/status/status_node.h"

#define NODE_SOFTWARE "motet " MOTET_VERSION

struct channels;
struct clients;
struct cluster;
struct control;
struct event_base;
struct forwarding;
struct job_site;
struct jobs;
struct manager;
struct mesh_sockets;
struct service;
struct spawner;
struct status;

/* A daemon that ended since a later incarnation of its node was known: the next one is to be later
 * than that. */
struct node_again {
    uint32_t epoch; /* of the other one; 0: none */
    unsigned n;     /* times that this has happened in a row */
};

struct node {
    struct config config;
    const char *config_path; /* NULL: none */
    bool private_mode;
    int lifeline_fd; /* private: ends with it; -1: none */
    uint32_t id, epoch;
    struct auth_key key; /* of the cluster */
    bool fenced;         /* this node uses full fences */
    int exit_code;
    uint64_t started_ns;

    struct event_base *base;
    struct forwarding *forwarding;
    struct channels *channels;
    struct spawner *spawner;
    struct mesh_sockets *sockets;
    struct cluster *cluster;
    struct job_site *site;
    struct jobs *jobs;
    struct manager *manager;
    struct clients *clients;
    struct status_node shown; /* what status sees of all this */
    struct status *status;
    struct service *service;
    struct control *control;
    struct quota *quota;
    bool socket_activated; /* the sockets belong to systemd */

    /* Incarnations that others take for later ones than this: see node_again. */
    struct node_again again;
    bool outlived, yields;
    uint64_t complained_ns;
};

/* What was started before the node exists: the spawner. */
struct node_start {
    pid_t spawner_pid;
    int spawner_fd;
    struct node_again again;
};
/* Builds everything; config is copied. 0 or negative errno, logged. */
int node_new(const struct config *config, const char *config_path, bool private_mode,
             int lifeline_fd, const struct node_start *start, struct node **ret_node);
void node_free(struct node *node);
/* It ended so that the program is started anew, in the same process, with *ret_again and the
 * sockets that systemd gave it, which stay open. To be asked before node_free. */
bool node_again(struct node *node, struct node_again *ret_again);
/* Runs until told to stop. Returns the exit code. */
int node_run(struct node *node);
