/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which half of a job a message is for: its part on this node (job.h) or the job as a whole
 * (manager.h). Called by whoever delivers mail. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct jobs;
struct manager;

/* True if the type is one of jobs; a body that is not valid is ignored. */
bool job_mail_deliver(struct jobs *jobs, struct manager *manager, uint32_t src_node, uint16_t type,
                      const uint8_t *body, uint32_t len, uint64_t now_ns);
