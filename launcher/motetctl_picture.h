/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The picture of one job that motetctl_waits.c and motetctl_absent.c look at: its ranks and how
 * they are, what each of them waits for, the calls they are in, and their communicators. Made from
 * rows of the status socket, which may be of any kind and form: what does not fit is left out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* So many things of one kind are named in a text. */
#define PICTURE_NAMED 16
/* Room for words about one rank, and for a finding's text. */
#define PICTURE_WORDS 256
#define PICTURE_TEXT  2048

enum picture_mood {
    MOOD_FREE,    /* computes, or waits for a moment only */
    MOOD_WAITING, /* in MPI for long */
    MOOD_STOPPED, /* by a signal */
    MOOD_LEFT,    /* has left MPI in order */
    MOOD_GONE,    /* has ended */
    MOOD_UNSEEN,  /* its node has not answered */
    MOOD_N
};
extern const char *const picture_moods[MOOD_N];

struct picture_rank {
    json_int_t number;
    const char *node;
    enum picture_mood mood;
    bool in_mpi; /* was seen in a call that waits */
    bool asleep; /* its process used no processor between the two looks */
    bool can_go_on, has_edges;
    /* Tarjan's numbers. */
    size_t order, low;
    bool on_stack;
    size_t component;
};

/* What a rank waits for: an entry of its board other than an unexpected message. */
struct picture_edge {
    size_t from;
    ssize_t to; /* index of a rank, -1: any */
    const json_t *row;
};

/* A call that a thread of a rank waits in, or a collective that runs. */
struct picture_call {
    size_t rank;
    bool waits; /* false: runs */
    bool collective;
    json_int_t communicator, sequence; /* of a collective */
    json_int_t leader; /* that makes it the communicator's own; -1: it is not shown */
    const char *form;
    const json_t *row;
};

/* A communicator as one of its members shows it. */
struct picture_member {
    size_t rank;
    json_int_t communicator;
    const json_t *row;
};

struct picture {
    struct picture_rank *ranks; /* by number */
    size_t n_ranks;
    struct picture_edge *edges; /* of waiting ranks, ordered by `from` */
    size_t n_edges;
    struct picture_call *calls; /* of all ranks */
    size_t n_calls;
    struct picture_member *members; /* of all ranks and communicators */
    size_t n_members;
    const json_t *queues; /* of all jobs */
    const char *job;
    json_t *findings;
    /* Search for circles. */
    size_t *stack, n_stack, n_order, n_components;
};

/* The picture of one job from the rows of these subjects; `later`: ranks once more, half a second
 * later. They stay the caller's, and are used until picture_free. */
void picture_make(const char *job, const json_t *ranks, const json_t *queues,
                  const json_t *communicators, const json_t *later, struct picture *ret_picture);
/* All but the findings, which are the caller's. */
void picture_free(struct picture *p);

/* Values of rows; "" and 0 where there is none. */
const char *picture_text(const json_t *row, const char *key);
json_int_t picture_number(const json_t *row, const char *key);
bool picture_same(const json_t *a, const json_t *b, const char *key);
bool picture_of_job(const struct picture *p, const json_t *row);
bool picture_is_collective(const json_t *row);

/* Index of a rank by its number, or -1. */
ssize_t picture_find_rank(const struct picture *p, json_int_t number);
/* The edges of a rank, side by side. Never NULL. */
const struct picture_edge *picture_edges_of(const struct picture *p, size_t rank, size_t *ret_n);
/* What a rank shows of a communicator, or NULL. */
const json_t *picture_member_of(const struct picture *p, size_t rank, json_int_t communicator);
/* The calls of a rank, side by side. Never NULL. */
const struct picture_call *picture_calls_of(const struct picture *p, size_t rank, size_t *ret_n);
/* The call that an entry of the rank's board belongs to, as far as one can tell: of those that it
 * waits in, the oldest that is collective as the entry is, else the oldest. `entry` may be NULL.
 * NULL: none is shown. */
const struct picture_call *picture_call_of(const struct picture *p, size_t rank,
                                           const json_t *entry);
/* The call that ends when the collective does: itself, or the wait for it. NULL: none. */
const struct picture_call *picture_wait_of(const struct picture *p,
                                           const struct picture_call *collective);

/* Memory that is all zero; ends the program when there is none. */
void *picture_zeroed(size_t n, size_t size);

/* Adds a finding; returns its list of ranks. */
json_t *picture_say(struct picture *p, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "tag 7", or "any tag". */
const char *picture_tag(const json_t *row, char text[32]);
/* "MPI_COMM_WORLD", "communicator 12" or "communicator 12 (rows)". */
const char *picture_comm(const json_t *row, char text[PICTURE_WORDS]);
/* What a rank does about an entry of its board: "receive", "large send". */
const char *picture_doing(const json_t *row);
/* What a rank does, to follow "it": "computes", "is in MPI_Recv from rank 3, tag 7". */
const char *picture_rank_does(const struct picture *p, size_t rank, char text[PICTURE_WORDS]);
/* "rank 5", "ranks 0-4, 6" of those that are marked. */
const char *picture_ranks(const struct picture *p, const bool *marked, char text[PICTURE_WORDS]);
