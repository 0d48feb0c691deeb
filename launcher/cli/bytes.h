/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of bytes: appended at one end, taken from the other. Used by one thread. For want of
 * memory it takes no more and says so, so that who fills it in many steps asks once, at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct bytes {
    char *at;
    size_t start, n, room; /* the queue is at[start .. start + n) */
    bool failed;           /* something is missing at its end; until bytes_free */
};

/* Appends, unless it has failed. */
void bytes_append(struct bytes *b, const void *data, size_t n);
static inline const char *bytes_data(const struct bytes *b)
{
    return b->at ? b->at + b->start : NULL;
}
/* Drops the first n, at most all. */
void bytes_drop(struct bytes *b, size_t n);
void bytes_free(struct bytes *b);
