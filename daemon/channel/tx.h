/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the ranks to the network: takes messages from the up rings, copies each into a block and
 * gives it to the flow to its destination node. The copy is deliberate: the rank may die the next
 * moment, networks want registered memory, and the block is also what is sent again.
 *
 * A rank can write anything into its ring at any time. A message's header is copied once, the copy
 * is checked and used; a ring with rubbish is not read any more, and control is told. Belongs to
 * the channel's thread.
 */
#pragma once

#include "daemon/channel/backlog.h"
#include "daemon/channel/delivery.h"

/* One rank's ring towards this channel. */
struct up {
    struct ring_consumer ring;
    struct list node; /* in tx.active or tx.quiet */
    struct channel_job *job;
    uint32_t local, world;
    bool known;         /* in one of the lists */
    bool active;        /* polled in every turn */
    bool blocked;       /* its next message waits for a window or a block */
    bool poisoned;      /* rubbish was found: not read any more */
    bool gone;          /* detached */
    bool draining;      /* to be answered when empty */
    const char *poison; /* not yet reported */
    uint64_t last_ns;
};

struct tx {
    struct port *port;
    const struct job_table *jobs;
    struct backlog *backlog;
    struct delivery *delivery;
    struct list active, quiet;
};

void tx_init(struct tx *tx, struct backlog *backlog, struct delivery *delivery);
/* Takes messages from the rings, and those of the backlog that may go. Returns how many. */
uint32_t tx_poll(struct tx *tx, uint32_t budget);
/* True if a ring has a message that could be taken now. */
bool tx_has_work(const struct tx *tx);
/* Polls this ring from now on, until it is silent. */
void tx_activate(struct tx *tx, struct up *up);
/* Looks at this ring never again. */
void tx_forget(struct up *up);
/* Is all of this rank's taken and gone? */
bool tx_is_drained(struct up *up);
