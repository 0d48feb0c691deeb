/* SPDX-License-Identifier: BSD-3-Clause */
/* Intercommunicators between groups that nothing joins but two of their members. */
#ifndef MOTET_CLIENT_COMM_INTER_H
#define MOTET_CLIENT_COMM_INTER_H

#include "client/object/comm.h"

/* As MPI_Intercomm_create, where the leaders of both groups have just met: peer_comm joins the two
 * alone, and the tag, which both know, tells their meeting from others. Without the leader's peer
 * the others give NULL. */
int inter_meet(struct comm *local_comm, int local_leader, struct comm *peer_comm, int tag,
               struct comm **ret_newintercomm);

#endif
