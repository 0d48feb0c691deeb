/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of text for people: columns as wide as their content, numbers to the right. Used by
 * motetctl. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct table {
    size_t n_columns, n_rows;
    char **cells; /* row by row; row 0 is the heading */
    bool *right;  /* per column: set to the right */
};

/* A table of n_rows rows below the heading, all empty. 0 or -ENOMEM. */
int table_init(struct table *t, size_t n_columns, size_t n_rows);
void table_free(struct table *t);
/* Copies the text; control characters in it become '?', so that nothing a rank or peer is called
 * can move the cursor. */
void table_set(struct table *t, size_t row, size_t column, const char *text);
/* Characters of a printed row. */
size_t table_width(const struct table *t);
void table_print(const struct table *t, FILE *to);
