/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What carries the connections of the mesh: listens on every channel's address, connects, resolves
 * names without holding up the loop, and keeps the mesh's timer. Control thread.
 *
 * Idea: everything that decides is mesh.h's; here are sockets, events and the clock only, so that
 * the same mesh runs over other connections in the simulation.
 */
#pragma once

#include <stdint.h>

#include "daemon/cluster/mesh.h"

struct event_base;
struct mesh_sockets;

extern const struct mesh_socket_ops mesh_socket_ops;

/* The context of mesh_socket_ops. NULL: no memory. */
struct mesh_sockets *mesh_sockets_new(struct event_base *base, const struct config *config);
/* After the mesh. NULL is fine. */
void mesh_sockets_free(struct mesh_sockets *s);
/* Opens the listeners and begins. 0 or negative errno, logged. */
int mesh_sockets_start(struct mesh_sockets *s, struct mesh *mesh);
