/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making communicators: what the creation functions share, also for topologies and windows.
 */
#ifndef MOTET_CLIENT_COMM_CREATE_H
#define MOTET_CLIENT_COMM_CREATE_H

#include "client/object/comm.h"
#include "client/object/group.h"

/* A communicator under an agreed id, with the parent's error handler, and for an intercommunicator
 * (remote_group not NULL) its local one. No user handle yet. References to the groups are taken. On
 * failure the id is given back. */
int create_comm(uint32_t context_id, const struct comm *parent, struct group *group,
                struct group *remote_group, struct comm **ret_comm);

/* The same, published under a handle: the result of a creation call. NULL for a process outside of
 * `group`, whose id is given back. */
int create_published(uint32_t context_id, const struct comm *parent, struct group *group,
                     struct group *remote_group, struct comm **ret_comm);

/* A communicator of the same processes for the library's own messages: no handle, no attributes, no
 * hints. Collective. */
int create_private(struct comm *comm, struct comm **ret_comm);

/* For the creations from groups: a tag for coll_group_tag() that follows from a string, and the
 * last touches. */
int create_tag_of(const char *stringtag);
int create_dress(struct comm *comm, const struct info *info, struct errhandler *errhandler);

#endif
