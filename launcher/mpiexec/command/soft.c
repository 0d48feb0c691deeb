/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/command/soft.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

struct soft_triplet {
    long from, to, step;
};

static bool soft_number(const char **text, long *ret)
{
    char *end;

    if (!isdigit((unsigned char)(*text)[**text == '-']))
        return false;
    *ret = strtol(*text, &end, 10);
    *text = end;
    return *ret >= -INT_MAX && *ret <= INT_MAX;
}

/* Takes one triplet and the comma behind it. */
static bool soft_next(const char **text, struct soft_triplet *ret)
{
    if (!soft_number(text, &ret->from))
        return false;
    ret->to = ret->from;
    ret->step = 1;
    if (**text == ':' && (++*text, !soft_number(text, &ret->to)))
        return false;
    if (**text == ':' && (++*text, !soft_number(text, &ret->step)))
        return false;
    if (**text == ',' && *++*text == '\0')
        return false;
    return ret->step != 0;
}

int soft_check(const char *text)
{
    struct soft_triplet t;

    do {
        const char *before = text;
        if (!soft_next(&text, &t) || (*text && text[-1] != ','))
            return -EINVAL;
        if (text == before)
            return -EINVAL;
    } while (*text);
    return 0;
}

/* The largest number of one triplet up to high, or 0. */
static long soft_best_of(const struct soft_triplet *t, long high)
{
    if (t->step < 0 ? t->to > t->from : t->to < t->from)
        return 0;
    long low = t->step > 0 ? t->from : t->from - (t->from - t->to) / -t->step * -t->step;
    long top = t->step > 0 ? t->to : t->from, step = labs(t->step);

    if (top > high)
        top = high;
    if (top < low)
        return 0;
    long best = low + (top - low) / step * step;
    return best > 0 ? best : 0;
}

uint32_t soft_best(const char *text, uint32_t high)
{
    struct soft_triplet t;
    long best = 0;

    while (*text && soft_next(&text, &t)) {
        long one = soft_best_of(&t, high);
        best = one > best ? one : best;
    }
    return (uint32_t)best;
}
