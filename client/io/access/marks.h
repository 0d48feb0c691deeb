/* SPDX-License-Identifier: BSD-3-Clause */
/* Which bytes of an aggregator's window somebody has given: a bit for each. */
#ifndef MOTET_CLIENT_IO_MARKS_H
#define MOTET_CLIENT_IO_MARKS_H

#include <stddef.h>
#include <stdint.h>

struct marks {
    uint64_t *words;
    size_t n_bits;
};

int marks_init(struct marks *m, size_t n_bits); /* 0 or ENOMEM */
void marks_deinit(struct marks *m);
void marks_clear(struct marks *m, size_t n_bits);
void marks_set(struct marks *m, size_t from, size_t n);
/* The next run of marked bytes from `from` on; its length, 0: none. */
size_t marks_next(const struct marks *m, size_t from, size_t *ret_begin);

#endif
