/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job this process is a rank of: size, places, and the ways in and out. Facts are constant from
 * job_attach to job_detach.
 */
#ifndef MOTET_CLIENT_PROCESS_JOB_H
#define MOTET_CLIENT_PROCESS_JOB_H

#include <stdbool.h>
#include <stdint.h>

/* Attaches to the daemon named by the environment (proto/attach.h), or, with no MOTET_JOB set,
 * makes a job of this one process. Returns what transport_attach does. */
int job_attach(void);
/* Leaves in order: the daemon has taken everything this rank sent when it returns. */
void job_detach(void);

bool job_attached(void);
int job_size(void);
int job_rank(void);
int job_n_nodes(void);
/* Node index (0 .. job_n_nodes() - 1) of a world rank. */
int job_node_of(int world_rank);
/* Rank's index among the ranks of its node. */
int job_local_rank_of(int world_rank);
int job_local_size(void);
int job_local_rank(void);
bool job_is_local(int world_rank);
/* What names a node in the whole cluster. */
uint64_t job_node_id(int node);
/* Name of a node by index; valid until job_detach. */
const char *job_node_name(int node);
/* Networks that nodes of the job are on, in the same order on all ranks: their number, their names,
 * and who is on one. */
int job_n_networks(void);
const char *job_network_name(int network);
bool job_on_network(int node, int network);
/* Gateways between two of them on the shortest way, as it was when the job started; JOB_APART:
 * there was none. */
#define JOB_APART 255
int job_network_distance(int from, int to);
/* Job id as a 64-bit number, 0 without a daemon. */
uint64_t job_id(void);

#endif
