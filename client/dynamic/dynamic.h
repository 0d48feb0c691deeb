/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that come later (MPI-5.0 chapter 11): jobs that a job spawns.
 *
 * A spawned group is a job of its own, started by the daemons; the two are connected by them
 * (daemon/jobs/dynamic), which makes the ranks of each peers of the other's
 * (transport/foreign.h). Then the root and the first child meet: they alone know of each other, and
 * speak in a context that is set apart for this (COMM_CONTEXT_HELLO), with a tag made from the
 * connection's number. All else is MPI_Intercomm_create.
 */
#ifndef MOTET_CLIENT_DYNAMIC_DYNAMIC_H
#define MOTET_CLIENT_DYNAMIC_DYNAMIC_H

#include "client/object/comm.h"
#include "client/transport/foreign.h"

/* Of the two who meet over a connection: equal on both sides. */
int dynamic_tag(uint64_t number);
/* An intercommunicator of this process and the one of this rank at the other end (NULL: of the own
 * job), without handle; only for the first words. */
int dynamic_meeting(const struct foreign *foreign, int rank, struct comm **ret_comm);

/* In a job that was spawned: makes the intercommunicator with the parents, over MPI_COMM_WORLD.
 * Collective, at the end of MPI_Init. */
int dynamic_start(void);
void dynamic_stop(void);

#endif
