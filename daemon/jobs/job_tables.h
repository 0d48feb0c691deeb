/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job's tables on this node from its Launch message, which is checked here: who is where, which
 * ranks are this node's. Called by job.c only; without clock, sockets and shared memory. Control
 * thread.
 */
#pragma once

#include "daemon/jobs/job.h"

/* Checks the message (job->launch, taken over already) and fills ids, tables, ranks and the part of
 * the layout's shape that follows from them. 0, or negative errno and a reason for the user in
 * error. What was made stays in the job for job_tables_free. */
int job_tables_build(struct job *job, uint32_t own_id, const char *own_name, char *error,
                     size_t error_size);
/* Frees what job_tables_build made, the launch message included. */
void job_tables_free(struct job *job);
