/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fitting any number of ranks to the algorithms that want a power of two.
 *
 * Of the first 2 * (p - p2) ranks, each even one folds its operand into the odd one above it and
 * sits out; the others are renumbered 0 .. p2-1 in order. Neighbours fold, so the order of operands
 * is kept.
 */
#ifndef MOTET_CLIENT_COLL_ALGORITHMS_FOLD_H
#define MOTET_CLIENT_COLL_ALGORITHMS_FOLD_H

#include "client/coll/schedule/schedule.h"

static inline int fold_pof2(int size) /* largest power of two <= size */
{
    int pof2 = 1;
    while (pof2 <= size / 2)
        pof2 *= 2;
    return pof2;
}

struct fold {
    int pof2, rest; /* ranks that go on; ranks that sit out */
    int rank;       /* this rank's new number, or -1: it sits out */
};

static inline struct fold fold_of(const struct schedule *s)
{
    struct fold f = {.pof2 = fold_pof2(s->view.size)};
    f.rest = s->view.size - f.pof2;
    if (s->view.rank >= 2 * f.rest)
        f.rank = s->view.rank - f.rest;
    else
        f.rank = s->view.rank % 2 ? s->view.rank / 2 : -1;
    return f;
}

/* View rank of a new number. */
static inline int fold_back(const struct fold *f, int rank)
{
    return rank < f->rest ? 2 * rank + 1 : rank + f->rest;
}

/* Odd partner of a rank that sits out, even partner of one that took over an operand, or -1. */
static inline int fold_partner(const struct fold *f, int view_rank)
{
    if (view_rank >= 2 * f->rest)
        return -1;
    return view_rank ^ 1;
}

#endif
