/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A snapshot of one job, at which waits.c and stragglers.c look: its ranks and how they are, what
 * each of them waits for, the calls they are in, and their communicators. Made from rows of the
 * status socket, which may be of any kind and form: what does not fit is left out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

/* Receives and sends younger than this are ordinary, and a snapshot that is not taken at one moment
 * may show them askew. */
#define SNAPSHOT_YOUNG_MS 1000

/* So many things of one kind are named in a text. */
#define SNAPSHOT_NAMED 16
/* Room for words about one rank, and for a finding's text. */
#define SNAPSHOT_WORDS 256
#define SNAPSHOT_TEXT  2048

enum snapshot_mood {
    MOOD_FREE,    /* computes, or waits for a moment only */
    MOOD_WAITING, /* in MPI for long */
    MOOD_STOPPED, /* by a signal */
    MOOD_LEFT,    /* has left MPI in order */
    MOOD_GONE,    /* has ended */
    MOOD_UNSEEN,  /* its node has not answered */
    MOOD_N
};
extern const char *const snapshot_moods[MOOD_N];

struct snapshot_rank {
    json_int_t number;
    const char *node;
    enum snapshot_mood mood;
    bool in_mpi; /* was seen in a call that waits */
    bool asleep; /* its process used no processor between the two looks */
    bool can_go_on, has_edges;
    bool moves;   /* a transfer of it went on between the two looks */
    bool carried; /* what it waits for is with the network, as far as one can tell */
    size_t part;  /* ranks of different ones are cut off from one another */
    /* Tarjan's numbers. */
    size_t order, low;
    bool on_stack;
    size_t component;
};

/* What a rank waits for: an entry of its board other than an unexpected message. */
struct snapshot_edge {
    size_t from;
    ssize_t to; /* index of a rank, -1: any */
    const json_t *row;
};

/* A call that a thread of a rank waits in, or a collective that runs. */
struct snapshot_call {
    size_t rank;
    bool waits; /* false: runs */
    bool collective;
    json_int_t communicator, sequence; /* of a collective */
    json_int_t leader; /* that makes it the communicator's own; -1: it is not shown */
    const char *form;
    const json_t *row;
};

/* A communicator as one of its members shows it. */
struct snapshot_member {
    size_t rank;
    json_int_t communicator;
    const json_t *row;
};

struct snapshot {
    struct snapshot_rank *ranks; /* by number */
    size_t n_ranks;
    struct snapshot_edge *edges; /* of waiting ranks, ordered by `from` */
    size_t n_edges;
    struct snapshot_call *calls; /* of all ranks */
    size_t n_calls;
    struct snapshot_member *members; /* of all ranks and communicators */
    size_t n_members;
    const json_t *queues; /* of all jobs */
    const char *job;
    json_t *findings;
    /* Search for circles. */
    size_t *stack, n_stack, n_order, n_components;
    bool blocked; /* some ranks are cut off from others */
    bool failed;  /* for want of memory something was not looked at */
};

/* A snapshot of one job from the rows of these subjects; `later`: ranks once more, half a second
 * later. They stay the caller's, and are used until snapshot_free. 0, or -ENOMEM with nothing to
 * free. */
int snapshot_make(const char *job, const json_t *ranks, const json_t *queues,
                  const json_t *communicators, const json_t *later, struct snapshot *ret_snapshot);
/* All but the findings, which are the caller's. */
void snapshot_free(struct snapshot *p);

bool snapshot_of_job(const struct snapshot *p, const json_t *row);

/* Index of a rank by its number, or -1. */
ssize_t snapshot_find_rank(const struct snapshot *p, json_int_t number);
/* The edges of a rank, side by side. Never NULL. */
const struct snapshot_edge *snapshot_edges_of(const struct snapshot *p, size_t rank, size_t *ret_n);
/* What a rank shows of a communicator, or NULL. */
const json_t *snapshot_member_of(const struct snapshot *p, size_t rank, json_int_t communicator);
/* The calls of a rank, side by side. Never NULL. */
const struct snapshot_call *snapshot_calls_of(const struct snapshot *p, size_t rank, size_t *ret_n);
/* The call that an entry of the rank's board belongs to, as far as one can tell: of those that it
 * waits in, the oldest that is collective as the entry is, else the oldest. `entry` may be NULL.
 * NULL: none is shown. */
const struct snapshot_call *snapshot_call_of(const struct snapshot *p, size_t rank,
                                             const json_t *entry);
/* The call that ends when the collective does: itself, or the wait for it. NULL: none. */
const struct snapshot_call *snapshot_wait_of(const struct snapshot *p,
                                             const struct snapshot_call *collective);

/* Memory for n that is all zero; NULL, and the snapshot has failed, when there is none. */
void *snapshot_zeroed(struct snapshot *p, size_t n, size_t size);
static inline void snapshot_freep(void *at)
{
    free(*(void **)at);
}
/* Such memory until the end of the block. */
#define SNAPSHOT_AUTO __attribute__((cleanup(snapshot_freep)))

/* Adds a finding; returns its list of ranks. */
json_t *snapshot_say(struct snapshot *p, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "tag 7", or "any tag". */
const char *snapshot_tag(const json_t *row, char text[32]);
/* "MPI_COMM_WORLD", "communicator 12" or "communicator 12 (rows)". */
const char *snapshot_comm(const json_t *row, char text[SNAPSHOT_WORDS]);
/* What a rank does about an entry of its board: "receive", "large send". */
const char *snapshot_doing(const json_t *row);
/* What a rank does, to follow "it": "computes", "is in MPI_Recv from rank 3, tag 7". */
const char *snapshot_rank_does(const struct snapshot *p, size_t rank, char text[SNAPSHOT_WORDS]);
/* "rank 5", "ranks 0-4, 6" of those that are marked. */
const char *snapshot_ranks(const struct snapshot *p, const bool *marked, char text[SNAPSHOT_WORDS]);
