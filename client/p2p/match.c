/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/match.h"

#include <stdlib.h>

#define FIRST_BUCKETS 256u

static uint32_t match_hash(uint32_t context, int32_t source, int32_t tag)
{
    uint32_t h =
        context * 0x9e3779b1u ^ (uint32_t)source * 0x85ebca6bu ^ (uint32_t)tag * 0xc2b2ae35u;
    return h ^ h >> 15;
}

static void match_table_set_limit(struct match_table *t)
{
    t->limit = 2 * t->mask + 1;
    if (t->watched && t->high < t->limit)
        t->limit = t->high;
}

static int match_table_init(struct match_table *t, uint32_t n_buckets)
{
    t->buckets = malloc(n_buckets * sizeof *t->buckets);
    if (!t->buckets)
        return MPI_ERR_NO_MEM;
    for (uint32_t i = 0; i < n_buckets; i++)
        list_init(&t->buckets[i]);
    t->mask = n_buckets - 1;
    t->n = 0;
    t->high = 0;
    t->watched = false;
    match_table_set_limit(t);
    return MPI_SUCCESS;
}

/* Twice the buckets. Chains keep their order because they are moved from the front. Without memory
 * the table stays as it is. */
static void match_table_grow(struct match_table *t)
{
    struct match_table bigger;

    if (match_table_init(&bigger, 2 * (t->mask + 1)))
        return;
    for (uint32_t i = 0; i <= t->mask; i++) {
        list_foreach_safe(it, &t->buckets[i]) {
            struct match_node *node = list_entry(it, struct match_node, bucket);
            list_remove(it);
            list_append(
                &bigger.buckets[match_hash(node->context, node->source, node->tag) & bigger.mask],
                it);
        }
    }
    bigger.n = t->n;
    bigger.high = t->high;
    bigger.watched = t->watched;
    free(t->buckets);
    *t = bigger;
}

/* One more than the limit allows is about to be added. Out of line: it is rare. */
static __attribute__((noinline)) void match_table_reach(struct match_table *t)
{
    if (t->n > 2 * t->mask)
        match_table_grow(t);
    if (t->watched && t->n >= t->high)
        t->high = t->n + 1;
    match_table_set_limit(t);
}

void match_table_watch(struct match_table *t, bool watched)
{
    t->watched = watched;
    t->high = t->n;
    match_table_set_limit(t);
}

static void match_table_add(struct match *m, struct match_table *t, struct match_node *node)
{
    if (t->n >= t->limit)
        match_table_reach(t);
    t->n++;
    node->stamp = m->next_stamp++;
    list_append(&t->buckets[match_hash(node->context, node->source, node->tag) & t->mask],
                &node->bucket);
}

static void match_table_remove(struct match_table *t, struct match_node *node)
{
    t->n--;
    list_remove(&node->bucket);
}

/* The oldest entry with exactly this key. */
static struct match_node *match_table_find(const struct match_table *t, uint32_t context,
                                           int32_t source, int32_t tag)
{
    list_foreach(it, &t->buckets[match_hash(context, source, tag) & t->mask]) {
        struct match_node *node = list_entry(it, struct match_node, bucket);
        if (node->context == context && node->source == source && node->tag == tag)
            return node;
    }
    return NULL;
}

int match_init(struct match *m)
{
    for (uint32_t i = 0; i < MATCH_CONTEXT_CLASSES; i++)
        list_init(&m->arrivals[i]);
    m->n_any_source = m->n_any_tag = m->n_any_both = m->n_unexpected = 0;
    int err = match_table_init(&m->posted, FIRST_BUCKETS);
    return err ? err : match_table_init(&m->unexpected, FIRST_BUCKETS);
}

void match_deinit(struct match *m)
{
    for (uint32_t i = 0; m->unexpected.buckets && i < MATCH_CONTEXT_CLASSES; i++)
        list_foreach_safe(it, &m->arrivals[i])
            free(list_entry(it, struct unexpected, match.arrival));
    free(m->posted.buckets);
    free(m->unexpected.buckets);
    m->posted.buckets = m->unexpected.buckets = NULL;
    m->n_unexpected = 0;
}

uint32_t match_table_count(const struct match_table *t, uint32_t context)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i <= t->mask; i++)
        list_foreach(it, &t->buckets[i])
            n += list_entry(it, struct match_node, bucket)->context == context;
    return n;
}

static uint32_t *match_wildcard_count(struct match *m, const struct match_node *node)
{
    if (node->source == MPI_ANY_SOURCE)
        return node->tag == MPI_ANY_TAG ? &m->n_any_both : &m->n_any_source;
    return node->tag == MPI_ANY_TAG ? &m->n_any_tag : NULL;
}

void match_post(struct match *m, struct match_node *recv)
{
    uint32_t *n = match_wildcard_count(m, recv);

    if (n)
        ++*n;
    match_table_add(m, &m->posted, recv);
    recv->posted = true;
}

void match_unpost(struct match *m, struct match_node *recv)
{
    uint32_t *n = match_wildcard_count(m, recv);

    if (n)
        --*n;
    match_table_remove(&m->posted, recv);
    recv->posted = false;
}

struct match_node *match_arrived(struct match *m, uint32_t context, int32_t source, int32_t tag)
{
    struct match_node *best = match_table_find(&m->posted, context, source, tag);

    if (__builtin_expect(m->n_any_source + m->n_any_tag + m->n_any_both > 0, 0)) {
        struct match_node *others[3] = {
            m->n_any_source ? match_table_find(&m->posted, context, MPI_ANY_SOURCE, tag) : NULL,
            m->n_any_tag ? match_table_find(&m->posted, context, source, MPI_ANY_TAG) : NULL,
            m->n_any_both ? match_table_find(&m->posted, context, MPI_ANY_SOURCE, MPI_ANY_TAG)
                          : NULL,
        };
        /* MPI_ANY_TAG takes the user's messages only; those of the library have contexts of their
         * own, so no more is to check. */
        for (int i = 0; i < 3; i++)
            if (others[i] && (!best || others[i]->stamp < best->stamp))
                best = others[i];
    }
    if (!best)
        return NULL;
    if (__builtin_expect(m->n_any_source + m->n_any_tag + m->n_any_both > 0, 0)) {
        match_unpost(m, best);
        return best;
    }
    match_table_remove(&m->posted, best);
    best->posted = false;
    return best;
}

void match_add_unexpected(struct match *m, struct unexpected *u)
{
    match_table_add(m, &m->unexpected, &u->match);
    list_append(&m->arrivals[u->match.context % MATCH_CONTEXT_CLASSES], &u->match.arrival);
    m->n_unexpected++;
}

struct unexpected *match_find_unexpected(struct match *m, uint32_t context, int32_t source,
                                         int32_t tag)
{
    if (source != MPI_ANY_SOURCE && tag != MPI_ANY_TAG) {
        struct match_node *node = match_table_find(&m->unexpected, context, source, tag);
        return node ? list_entry(node, struct unexpected, match) : NULL;
    }
    list_foreach(it, &m->arrivals[context % MATCH_CONTEXT_CLASSES]) {
        struct match_node *node = list_entry(it, struct match_node, arrival);
        if (node->context == context && (source == MPI_ANY_SOURCE || node->source == source) &&
            (tag == MPI_ANY_TAG || node->tag == tag))
            return list_entry(node, struct unexpected, match);
    }
    return NULL;
}

void match_remove_unexpected(struct match *m, struct unexpected *u)
{
    match_table_remove(&m->unexpected, &u->match);
    list_remove(&u->match.arrival);
    m->n_unexpected--;
}
