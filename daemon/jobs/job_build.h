/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a job's part on this node from its Launch message: checking, tables, segment, and the
 * environment of its ranks. Called by job.c only. Control thread.
 */
#pragma once

#include "daemon/jobs/job.h"

/* Checks the message (job->launch, taken over already) and fills ids, tables, ranks, segment. 0, or
 * negative errno and a reason for the user in error. What was made stays in the job for
 * job_build_free. */
int job_build(struct job *job, char *error, size_t error_size);
/* Frees what job_build made, the launch message included. */
void job_build_free(struct job *job);

/* The environment of a rank: a NULL-terminated list of allocated strings, freed with job_env_free.
 * NULL: no memory. */
char **job_env_new(const struct job *job, uint32_t local, size_t *ret_n);
void job_env_free(char **env);
