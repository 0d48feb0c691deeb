/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Daemons that have ended without a word (kill -9, a crash) while their host lives. Called by
 * cluster.c; pure, without socket and clock. Control thread.
 *
 * Idea: silence can be a cable that comes back, so a silent node is given up late. A host that
 * answers the connect(2) which it took before with a refusal is no cable: nobody listens there any
 * more. Who sees that says so in its link state, with the epoch; everybody who has no way to that
 * incarnation gives it up at once. Only the side that had opened the connection counts as a
 * witness: for others a refusal may be a firewall's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/routing/topology.h"

struct death {
    uint32_t node_id, epoch;
    uint64_t since_ns;
};

/* Kept for the time in which a node could need them; a witness of more than so many deaths at once
 * names the latest. */
struct deaths {
    struct death notes[TOPOLOGY_MAX_DEATHS];
    uint32_t n;
};

/* A node in this incarnation refused a connection. True: it is news for others. */
bool death_note(struct deaths *g, uint32_t node_id, uint32_t epoch, uint64_t now_ns);
/* Drops notes older than this. True if there were any. */
bool death_expire(struct deaths *g, uint64_t age_ns, uint64_t now_ns);
/* Adds the notes to the own link state. 0 or -ENOMEM. */
int death_describe(const struct deaths *g, Motet__LinkState *state);
/* Calls fn for each node of which another says that it has gone in the incarnation that is known of
 * it. */
void death_each(const struct topology *topology,
                void (*fn)(void *ctx, struct topology_node *gone, uint64_t now_ns), void *ctx,
                uint64_t now_ns);
