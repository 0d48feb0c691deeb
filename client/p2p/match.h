/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching: which receive takes which message (MPI-5.0 section 3.5).
 *
 * Posted receives and unexpected messages each lie in a hash table keyed by (context, source, tag),
 * wildcards under their literal values. A message looks up at most four keys (exact, any source,
 * any tag, both), the last three only while such receives are posted, and takes the oldest of the
 * heads found; so 10,000 unmatched receives cost what none cost. A receive with wildcards walks the
 * unexpected messages of its context in the order of arrival.
 */
#ifndef MOTET_CLIENT_P2P_MATCH_H
#define MOTET_CLIENT_P2P_MATCH_H

#include "mpi.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "proto/msg.h"
#include "proto/queue.h"

struct transfer;

/* The receive's or message's place in a table. Its owner fills in the key. */
struct match_node {
    struct list bucket;  /* in the hash table */
    struct list arrival; /* unexpected messages: in the list of the context's hash class, oldest
                            first */
    uint64_t stamp;      /* order of posting or arrival */
    uint32_t context;
    int32_t source; /* of a receive also MPI_ANY_SOURCE */
    int32_t tag;    /* of a receive also MPI_ANY_TAG */
    bool posted;    /* a receive that is in the table */
};

enum unexpected_kind {
    UNEXPECTED_EAGER, /* payload is the message */
    UNEXPECTED_RTS,   /* payload is its beginning */
    UNEXPECTED_SELF,  /* self is the send of this very process */
};

/* A message that no receive has taken. Also what an MPI_Message refers to. */
struct unexpected {
    struct match_node match;
    struct queue_record *record;
    uint8_t kind; /* enum unexpected_kind */
    uint32_t src_world;
    uint32_t len;    /* of the payload */
    MPI_Count bytes; /* of the whole message */
    struct msg_rts rts;
    struct transfer *self;
    uint8_t payload[];
};

struct match_table {
    struct list *buckets;
    uint32_t mask;
    uint32_t n;
    uint32_t limit; /* with so many the next one takes the slow path: buckets are to be added, or
                       somebody watches how many there are at most */
    uint32_t high;  /* watched: most since match_table_watch */
    bool watched;
};

#define MATCH_CONTEXT_CLASSES 64u

/* The two queues of one engine. */
struct match {
    struct match_table posted, unexpected;
    struct list
        arrivals[MATCH_CONTEXT_CLASSES]; /* unexpected messages by context modulo, oldest first */
    uint32_t n_any_source, n_any_tag, n_any_both;
    uint32_t n_unexpected;
    uint64_t next_stamp;
};

/* 0 or MPI_ERR_NO_MEM. */
int match_init(struct match *m);
void match_deinit(struct match *m);

/* From now on (`watched`) `high` tells the most entries that there were; beginning with those that
 * there are. */
void match_table_watch(struct match_table *t, bool watched);

/* Entries of a context. Walks the whole table. */
uint32_t match_table_count(const struct match_table *t, uint32_t context);

/* Posts a receive. */
void match_post(struct match *m, struct match_node *recv);
/* Takes a posted receive back (cancel). */
void match_unpost(struct match *m, struct match_node *recv);
/* The receive that takes this message, taken off the table, or NULL. */
struct match_node *match_arrived(struct match *m, uint32_t context, int32_t source, int32_t tag);

/* Adds an unexpected message. */
void match_add_unexpected(struct match *m, struct unexpected *u);
/* The oldest unexpected message that fits; wildcards allowed. It stays. */
struct unexpected *match_find_unexpected(struct match *m, uint32_t context, int32_t source,
                                         int32_t tag);
/* Takes it off the table. */
void match_remove_unexpected(struct match *m, struct unexpected *u);

#endif
