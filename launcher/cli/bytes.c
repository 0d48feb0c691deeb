/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/cli/bytes.h"

#include <stdlib.h>
#include <string.h>

void bytes_append(struct bytes *b, const void *data, size_t n)
{
    if (n == 0 || b->failed)
        return;
    if (b->start + b->n + n > b->room && b->start > 0) {
        memmove(b->at, b->at + b->start, b->n);
        b->start = 0;
    }
    if (b->n + n > b->room) {
        size_t room = b->room ? b->room : 4096;
        while (room < b->n + n)
            room *= 2;
        char *at = realloc(b->at, room);
        if (!at) {
            b->failed = true;
            return;
        }
        b->at = at;
        b->room = room;
    }
    memcpy(b->at + b->start + b->n, data, n);
    b->n += n;
}

void bytes_drop(struct bytes *b, size_t n)
{
    if (n > b->n)
        n = b->n;
    b->start += n;
    b->n -= n;
    if (b->n == 0)
        b->start = 0;
}

void bytes_free(struct bytes *b)
{
    free(b->at);
    *b = (struct bytes){0};
}
