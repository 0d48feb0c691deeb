/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs and ranks of the simulation: messages are written straight into up rings and read from down
 * rings, and every one is accounted for. A message of a job that lives must arrive exactly once,
 * whole, at its rank; one of a job that was ended may be lost, but never doubled, damaged or
 * misdelivered.
 */
#pragma once

#include "cluster.h"

struct traffic;

/* Makes the jobs and plans their start, and what their ranks do wrong. */
void traffic_build(struct sim *s, uint64_t duration_ns);
void traffic_free(struct sim *s);
/* One random rank does something. True if it sent or received. */
bool traffic_step(struct sim *s);
/* When a rank has something to do of itself, unless it may at any time; UINT64_MAX: never. */
uint64_t traffic_next_ns(const struct sim *s);
/* What a channel of a node has to tell its control thread. */
void traffic_on_event(struct sim *s, uint32_t node, const struct cmd_event *e);
void traffic_event(struct sim *s, const struct sim_event *e);
void traffic_node_died(struct sim *s, uint32_t node);
void traffic_node_started(struct sim *s, uint32_t node);
/* Everything that must arrive has arrived. */
bool traffic_done(const struct sim *s);
/* Ranks finalize, jobs end. Call once. */
void traffic_finish(struct sim *s);
/* All channels have let go of all jobs. */
bool traffic_gone(const struct sim *s);
/* For the message on a failure. */
void traffic_report(const struct sim *s);
