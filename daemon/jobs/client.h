/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections to the client socket: ranks (proto/attach.h) and mpiexec (proto/control.proto). The
 * first frame tells which. What a client is allowed to do follows from the credentials that the
 * kernel gives for its socket, never from what it says. Control thread.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>
#include <sys/types.h>

struct client;
struct clients;
struct cluster;
struct config;
struct event_base;
struct jobs;
struct manager;
struct quota;

/* Everything stays the caller's and valid. */
struct clients_setup {
    struct event_base *base;
    struct cluster *cluster;
    struct jobs *jobs;
    struct manager *manager;
    struct quota *quota;
};

/* Listens on fd (taken over). NULL: no memory. */
struct clients *clients_new(const struct clients_setup *setup, int listen_fd);
void clients_free(struct clients *clients);
unsigned clients_count(const struct clients *clients);
/* No new connections (draining). */
void clients_stop_accepting(struct clients *clients);

/* The rank's rings are drained: answers its detach. */
void client_detached(struct client *client);
/* A frame for the rank. */
void client_to_rank(struct client *client, uint16_t type, const void *body, uint32_t len);
/* The job of this rank ended: the connection closes. */
void client_end_rank(struct client *client);

/* Of mpiexec's connection: sends a message; bytes not written yet; ends it after what is queued. */
int client_send(struct client *client, uint16_t type, const ProtobufCMessage *msg);
size_t client_queued(const struct client *client);
void client_finish(struct client *client);
