/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections between two jobs, as the home of both keeps them: which jobs, which of their nodes
 * use one, and when it is over. Called by manager.c; the nodes' side is foreign.h.
 *
 * A connection has a random number, even; it stands in packets to the job of side 0, the number
 * plus one in those to the job of side 1. A node of either job that claims it is told where the
 * other job's ranks are. When no node uses it, or one of the jobs is over, the nodes that know it
 * are told, and it is forgotten. Pure, without socket and clock; control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/dynamic/ports.h"
#include "proto/control.pb-c.h"

struct connections;
struct placement;

struct connections_ops {
    void (*to_node)(void *ctx, uint32_t node_id, uint16_t type, const ProtobufCMessage *msg);
    /* Where the job's ranks run; NULL: it is over. */
    const struct placement *(*places)(void *ctx, uint64_t job);
};

/* NULL: no memory. */
struct connections *connections_new(const struct connections_ops *ops, void *ctx);
void connections_free(struct connections *all);

/* Two jobs become connected. The number for packets to the first one, or 0: no memory, or no random
 * numbers. */
uint64_t connections_make(struct connections *all, uint64_t job, uint64_t other);
/* The number of packets to the other job. */
static inline uint64_t connections_other(uint64_t number)
{
    return number ^ 1;
}

/* A spawn has begun, or has not (`error`, number 0): its root's node is told, and claims. */
void connections_answer_spawn(struct connections *all, uint32_t node_id, uint64_t job,
                              uint32_t rank, uint32_t request, uint64_t number, const char *error);
/* Connects those who have found one another at a port; the context is a struct connections. */
extern const struct ports_ops connections_ports_ops;

/* A node of `job` uses the connection, or does not any more. */
void connections_on_claim(struct connections *all, uint32_t node_id, const Motet__Claim *msg);
/* Does a node of the job at the other end of this one's connection use it? */
bool connections_is_used(const struct connections *all, uint64_t number);

/* The job fails with this code, or is over: those that are connected with it hear of it. */
void connections_on_failing(struct connections *all, uint64_t job, int32_t code, const char *text);
void connections_on_over(struct connections *all, uint64_t job, bool failed, int32_t code,
                         const char *text);
