/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of nonblocking and persistent collectives: a recorded schedule that progress advances.
 */
#ifndef MOTET_CLIENT_COLL_SCHEDULE_COLL_REQUEST_H
#define MOTET_CLIENT_COLL_SCHEDULE_COLL_REQUEST_H

#include "client/coll/schedule/schedule.h"

/* Registers with progress; once. */
void coll_request_init(void);

/* Starts a recorded schedule and hands it over to the new request. On failure the schedule is
 * freed. Conditions: MPI_ERR_NO_MEM, or the error that recording met. s may be NULL (schedule_new
 * found no memory). */
int coll_request_start(struct schedule *s, struct request **ret_request);

/* The same, but as an inactive persistent request. */
int coll_request_persist(struct schedule *s, struct request **ret_request);

#endif
