/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Long enough for the rest of a line that was written in two pieces, short enough not to be noticed
 * at a prompt. */
#define PARTIAL_WAIT_NS (20 * CLOCK_NS_PER_MS)
/* Untagged output without newlines (binary data) is not held back beyond this. */
#define UNTAGGED_MAX_BYTES (64u << 10)

int lines_init(struct lines *l, uint32_t n_ranks, bool tags)
{
    *l = (struct lines){
        .tags = tags, .n_ranks = n_ranks, .partial = calloc(n_ranks, sizeof *l->partial)};
    return l->partial ? 0 : -ENOMEM;
}

void lines_free(struct lines *l)
{
    for (uint32_t i = 0; l->partial && i < l->n_ranks; i++)
        bytes_free(&l->partial[i].text);
    free(l->partial);
    *l = (struct lines){0};
}

static void lines_hold(struct lines *l, struct partial_line *p, const char *data, size_t n,
                       uint64_t now_ns)
{
    if (n == 0)
        return;
    if (p->text.n == 0) {
        p->since_ns = now_ns;
        l->n_waiting++;
    }
    bytes_append(&p->text, data, n);
}

/* Puts out what is held, with its tag if it is the beginning of a line. */
static void lines_release(struct lines *l, uint32_t rank, struct bytes *out)
{
    struct partial_line *p = &l->partial[rank];
    char tag[16];

    if (l->tags)
        bytes_append(out, tag, (size_t)snprintf(tag, sizeof tag, "[%u] ", rank));
    if (p->text.n == 0)
        return;
    bytes_append(out, bytes_data(&p->text), p->text.n);
    out->failed |= p->text.failed;
    /* Freed, not only emptied: a thousand ranks may each have had one long line. */
    bytes_free(&p->text);
    l->n_waiting--;
}

/* Whole lines go out in one piece; the rest waits unless it has become too much. */
static void add_untagged(struct lines *l, uint32_t rank, const char *data, size_t n,
                         uint64_t now_ns, struct bytes *out)
{
    struct partial_line *p = &l->partial[rank];
    const char *newline = memrchr(data, '\n', n);
    size_t whole = newline ? (size_t)(newline - data) + 1 : 0;

    if (p->text.n + (n - whole) >= UNTAGGED_MAX_BYTES)
        whole = n;
    if (whole > 0) {
        lines_release(l, rank, out);
        bytes_append(out, data, whole);
    }
    lines_hold(l, p, data + whole, n - whole, now_ns);
}

static void add_tagged(struct lines *l, uint32_t rank, const char *data, size_t n, uint64_t now_ns,
                       struct bytes *out)
{
    struct partial_line *p = &l->partial[rank];

    while (n > 0) {
        const char *newline = memchr(data, '\n', n);
        size_t room = LINES_MAX_BYTES - p->text.n,
               line = newline ? (size_t)(newline - data) + 1 : n;
        if (!newline && n < room) {
            lines_hold(l, p, data, n, now_ns);
            return;
        }
        if (line > room)
            line = room;
        lines_release(l, rank, out);
        bytes_append(out, data, line);
        if (data[line - 1] != '\n')
            bytes_append(out, "\n", 1);
        data += line;
        n -= line;
    }
}

void lines_add(struct lines *l, uint32_t rank, const char *data, size_t n, uint64_t now_ns,
               struct bytes *out)
{
    (l->tags ? add_tagged : add_untagged)(l, rank, data, n, now_ns, out);
}

void lines_end(struct lines *l, uint32_t rank, struct bytes *out)
{
    if (!l->partial || l->partial[rank].text.n == 0)
        return;
    lines_release(l, rank, out);
    if (l->tags)
        bytes_append(out, "\n", 1);
}

uint64_t lines_timer(struct lines *l, uint64_t now_ns, struct bytes *out)
{
    uint64_t next_ns = UINT64_MAX;

    if (l->tags || l->n_waiting == 0)
        return next_ns;
    for (uint32_t rank = 0; rank < l->n_ranks; rank++) {
        struct partial_line *p = &l->partial[rank];
        if (p->text.n == 0)
            continue;
        uint64_t due_ns = p->since_ns + PARTIAL_WAIT_NS;
        if (due_ns <= now_ns)
            lines_release(l, rank, out);
        else if (due_ns < next_ns)
            next_ns = due_ns;
    }
    return next_ns;
}
