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

struct home;
struct node;
struct session;
struct sessions;

/* Listens on fd (taken over). NULL: no memory. */
struct sessions *sessions_new(struct node *node, int listen_fd);
void sessions_free(struct sessions *sessions);
unsigned sessions_count(const struct sessions *sessions);
/* No new connections (draining). */
void sessions_stop_accepting(struct sessions *sessions);

/* The rank's rings are drained: answers its detach. */
void session_detached(struct session *session);
/* The job of this rank ended: the connection closes. */
void session_end_rank(struct session *session);

/* Of mpiexec's connection: sends a message; bytes not written yet; ends it after what is queued. */
int session_send(struct session *session, uint16_t type, const ProtobufCMessage *msg);
size_t session_queued(const struct session *session);
void session_finish(struct session *session);
