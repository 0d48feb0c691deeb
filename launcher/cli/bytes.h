/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of bytes: appended at one end, taken from the other. Used by one thread. */
#pragma once

#include <stddef.h>

struct bytes {
    char *at;
    size_t start, n, room; /* the queue is at[start .. start + n) */
};

/* Appends; running out of memory ends the program (see words.h). */
void bytes_append(struct bytes *b, const void *data, size_t n);
static inline const char *bytes_data(const struct bytes *b)
{
    return b->at ? b->at + b->start : NULL;
}
/* Drops the first n, at most all. */
void bytes_drop(struct bytes *b, size_t n);
void bytes_free(struct bytes *b);
