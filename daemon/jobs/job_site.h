/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the jobs of a node hold there in reality: shared memory, pipes, processes, their part of the
 * channels, rank connections. Carries out what job.h decides. Made by whoever wires the daemon.
 * Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/job.h"

struct channels;
struct cluster;
struct event_base;
struct forwarding;
struct job_site;
struct spawner;

/* Everything stays the caller's and valid. */
struct job_site_setup {
    struct event_base *base;
    const struct config *config;
    bool fenced;
    struct forwarding *forwarding;
    struct channels *channels;
    struct spawner *spawner;
    struct cluster *cluster;
};

/* What jobs_new needs; the context is the site. */
extern const struct job_ops job_site_ops;

/* NULL: no memory. */
struct job_site *job_site_new(const struct job_site_setup *setup);
/* After the jobs. NULL is fine. */
void job_site_free(struct job_site *site);
/* After jobs_new. */
void job_site_set_jobs(struct job_site *site, struct jobs *jobs);

/* A channel has let go of a job. */
void job_site_on_job_detached(struct job_site *site, uint64_t job, uint32_t channel);
/* Changes how the job's ranks wait. */
void job_site_set_wait(struct job *job, enum wait_mode mode);
