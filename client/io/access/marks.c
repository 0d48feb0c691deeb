/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/access/marks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static size_t words_of(size_t n_bits)
{
    return (n_bits + 63) / 64;
}

int marks_init(struct marks *m, size_t n_bits)
{
    m->n_bits = n_bits;
    m->words = calloc(words_of(n_bits) + 1, sizeof *m->words);
    return m->words ? 0 : ENOMEM;
}

void marks_deinit(struct marks *m)
{
    free(m->words);
    m->words = NULL;
}

void marks_clear(struct marks *m, size_t n_bits)
{
    memset(m->words, 0, words_of(n_bits) * sizeof *m->words);
}

/* Bits [low, high) of a word, 0 <= low < high <= 64. */
static uint64_t bits(size_t low, size_t high)
{
    uint64_t below = high == 64 ? UINT64_MAX : ((uint64_t)1 << high) - 1;
    return below & ~(((uint64_t)1 << low) - 1);
}

void marks_set(struct marks *m, size_t from, size_t n)
{
    if (n == 0)
        return;
    size_t first = from / 64, last = (from + n - 1) / 64, end = (from + n - 1) % 64 + 1;
    if (first == last) {
        m->words[first] |= bits(from % 64, end);
        return;
    }
    m->words[first] |= bits(from % 64, 64);
    memset(m->words + first + 1, 0xff, (last - first - 1) * sizeof *m->words);
    m->words[last] |= bits(0, end);
}

/* The first bit from `from` on that is (or is not) set; n_bits: none. */
static size_t marks_find(const struct marks *m, size_t from, bool set)
{
    size_t i = from / 64, n = words_of(m->n_bits);
    if (from >= m->n_bits)
        return m->n_bits;
    uint64_t flip = set ? 0 : UINT64_MAX, word = (m->words[i] ^ flip) & bits(from % 64, 64);
    while (word == 0 && ++i < n)
        word = m->words[i] ^ flip;
    size_t at = word ? i * 64 + (size_t)__builtin_ctzll(word) : m->n_bits;
    return at < m->n_bits ? at : m->n_bits;
}

size_t marks_next(const struct marks *m, size_t from, size_t *ret_begin)
{
    size_t begin = marks_find(m, from, true);
    *ret_begin = begin;
    return begin < m->n_bits ? marks_find(m, begin, false) - begin : 0;
}
