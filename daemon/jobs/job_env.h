/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment of a rank: what mpiexec gave, and who and where the rank is. Called by
 * job_site.c. Control thread.
 */
#pragma once

#include "daemon/config.h"
#include "daemon/jobs/job.h"

/* A NULL-terminated list of allocated strings, freed with job_env_free. NULL: no memory. */
char **job_env_new(const struct job *job, uint32_t local, const struct config *config,
                   size_t *ret_n);
void job_env_free(char **env);
