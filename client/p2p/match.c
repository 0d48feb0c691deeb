/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/match.h"

#include <stdlib.h>

#include "client/p2p/transfer.h"

#define FIRST_BUCKETS  256u
#define CONTEXT_CLASSES 64u

struct table {
    struct list *buckets;
    uint32_t mask;
    uint32_t n;
};

static struct table posted, unexpected;
static struct list arrivals[CONTEXT_CLASSES]; /* unexpected messages by context modulo, oldest first */
static uint32_t n_any_source, n_any_tag, n_any_both;
static uint64_t next_stamp;
uint32_t match_n_unexpected;

static uint32_t hash(uint32_t context, int32_t source, int32_t tag)
{
    uint32_t h = context * 0x9e3779b1u ^ (uint32_t)source * 0x85ebca6bu ^ (uint32_t)tag * 0xc2b2ae35u;
    return h ^ h >> 15;
}

static int table_init(struct table *t, uint32_t n_buckets)
{
    t->buckets = malloc(n_buckets * sizeof *t->buckets);
    if (!t->buckets)
        return MPI_ERR_NO_MEM;
    for (uint32_t i = 0; i < n_buckets; i++)
        list_init(&t->buckets[i]);
    t->mask = n_buckets - 1;
    t->n = 0;
    return MPI_SUCCESS;
}

/* Twice the buckets. Chains keep their order because they are moved from the front. Without memory the table stays as it is. */
static void table_grow(struct table *t)
{
    struct table bigger;

    if (table_init(&bigger, 2 * (t->mask + 1)))
        return;
    for (uint32_t i = 0; i <= t->mask; i++) {
        list_foreach_safe(it, &t->buckets[i]) {
            struct match_node *node = list_entry(it, struct match_node, bucket);
            list_remove(it);
            list_append(&bigger.buckets[hash(node->context, node->source, node->tag) & bigger.mask], it);
        }
    }
    bigger.n = t->n;
    free(t->buckets);
    *t = bigger;
}

static void table_add(struct table *t, struct match_node *node)
{
    if (t->n > 2 * t->mask)
        table_grow(t);
    t->n++;
    node->stamp = next_stamp++;
    list_append(&t->buckets[hash(node->context, node->source, node->tag) & t->mask], &node->bucket);
}

static void table_remove(struct table *t, struct match_node *node)
{
    t->n--;
    list_remove(&node->bucket);
}

/* The oldest entry with exactly this key. */
static struct match_node *table_find(const struct table *t, uint32_t context, int32_t source, int32_t tag)
{
    list_foreach(it, &t->buckets[hash(context, source, tag) & t->mask]) {
        struct match_node *node = list_entry(it, struct match_node, bucket);
        if (node->context == context && node->source == source && node->tag == tag)
            return node;
    }
    return NULL;
}

int match_init(void)
{
    for (uint32_t i = 0; i < CONTEXT_CLASSES; i++)
        list_init(&arrivals[i]);
    n_any_source = n_any_tag = n_any_both = match_n_unexpected = 0;
    int err = table_init(&posted, FIRST_BUCKETS);
    return err ? err : table_init(&unexpected, FIRST_BUCKETS);
}

void match_deinit(void)
{
    for (uint32_t i = 0; unexpected.buckets && i < CONTEXT_CLASSES; i++)
        list_foreach_safe(it, &arrivals[i])
            free(list_entry(it, struct unexpected, match.arrival));
    free(posted.buckets);
    free(unexpected.buckets);
    posted.buckets = unexpected.buckets = NULL;
    match_n_unexpected = 0;
}

static uint32_t *wildcard_count(const struct match_node *node)
{
    if (node->source == MPI_ANY_SOURCE)
        return node->tag == MPI_ANY_TAG ? &n_any_both : &n_any_source;
    return node->tag == MPI_ANY_TAG ? &n_any_tag : NULL;
}

void match_post(struct transfer *recv)
{
    uint32_t *n;

    recv->match.context = recv->context;
    recv->match.source = recv->rank;
    recv->match.tag = recv->tag;
    n = wildcard_count(&recv->match);
    if (n)
        ++*n;
    table_add(&posted, &recv->match);
    recv->posted = true;
}

void match_unpost(struct transfer *recv)
{
    uint32_t *n = wildcard_count(&recv->match);

    if (n)
        --*n;
    table_remove(&posted, &recv->match);
    recv->posted = false;
}

struct transfer *match_arrived(uint32_t context, int32_t source, int32_t tag)
{
    struct match_node *best = table_find(&posted, context, source, tag);

    if (__builtin_expect(n_any_source + n_any_tag + n_any_both > 0, 0)) {
        struct match_node *others[3] = {
            n_any_source ? table_find(&posted, context, MPI_ANY_SOURCE, tag) : NULL,
            n_any_tag ? table_find(&posted, context, source, MPI_ANY_TAG) : NULL,
            n_any_both ? table_find(&posted, context, MPI_ANY_SOURCE, MPI_ANY_TAG) : NULL,
        };
        /* MPI_ANY_TAG takes the user's messages only; those of the library have contexts of their own, so no more is to check. */
        for (int i = 0; i < 3; i++)
            if (others[i] && (!best || others[i]->stamp < best->stamp))
                best = others[i];
    }
    if (!best)
        return NULL;
    struct transfer *recv = list_entry(best, struct transfer, match);
    match_unpost(recv);
    return recv;
}

void match_add_unexpected(struct unexpected *u)
{
    table_add(&unexpected, &u->match);
    list_append(&arrivals[u->match.context % CONTEXT_CLASSES], &u->match.arrival);
    match_n_unexpected++;
}

struct unexpected *match_find_unexpected(uint32_t context, int32_t source, int32_t tag)
{
    if (source != MPI_ANY_SOURCE && tag != MPI_ANY_TAG) {
        struct match_node *node = table_find(&unexpected, context, source, tag);
        return node ? list_entry(node, struct unexpected, match) : NULL;
    }
    list_foreach(it, &arrivals[context % CONTEXT_CLASSES]) {
        struct match_node *node = list_entry(it, struct match_node, arrival);
        if (node->context == context && (source == MPI_ANY_SOURCE || node->source == source) &&
            (tag == MPI_ANY_TAG || node->tag == tag))
            return list_entry(node, struct unexpected, match);
    }
    return NULL;
}

void match_remove_unexpected(struct unexpected *u)
{
    table_remove(&unexpected, &u->match);
    list_remove(&u->match.arrival);
    match_n_unexpected--;
}
