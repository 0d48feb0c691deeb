/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared memory of a job on this node (proto/segment.h), filled from its tables, and the event
 * descriptors by which its ranks wake the channels. Called by job_site.c. Control thread.
 */
#pragma once

#include "daemon/jobs/job.h"

/* Fills segment, layout and event_fds, which were empty (descriptors -1). 0, or negative errno and
 * a reason for the user in error; what was made stays for job_segment_free. */
int job_segment_make(struct job *job, uint32_t n_channels, const char *node_name, char *error,
                     size_t error_size);
void job_segment_free(struct job *job);
