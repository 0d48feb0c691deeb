/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int table_init(struct table *t, size_t n_columns, size_t n_rows)
{
    *t = (struct table){.n_columns = n_columns, .n_rows = n_rows};
    t->cells = calloc(n_columns * (n_rows + 1) + 1, sizeof *t->cells);
    t->right = calloc(n_columns + 1, sizeof *t->right);
    if (t->cells && t->right)
        return 0;
    table_free(t);
    return -ENOMEM;
}

void table_free(struct table *t)
{
    for (size_t i = 0; t->cells && i < t->n_columns * (t->n_rows + 1); i++)
        free(t->cells[i]);
    free(t->cells);
    free(t->right);
    *t = (struct table){0};
}

void table_set(struct table *t, size_t row, size_t column, const char *text)
{
    char **cell = &t->cells[row * t->n_columns + column];

    free(*cell);
    *cell = strdup(text);
    for (char *p = *cell; p && *p; p++) {
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
    }
}

/* Characters, not bytes: what continues a UTF-8 sequence takes no room. */
static size_t table_text_width(const char *text)
{
    size_t n = 0;

    for (; text && *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void table_pad(FILE *to, size_t n)
{
    while (n-- > 0)
        fputc(' ', to);
}

/* Width of each column, to be freed; NULL: no memory. */
static size_t *column_widths(const struct table *t)
{
    size_t *widths = calloc(t->n_columns + 1, sizeof *widths);

    for (size_t i = 0; widths && i < t->n_columns * (t->n_rows + 1); i++) {
        size_t width = table_text_width(t->cells[i]), column = i % t->n_columns;
        if (width > widths[column])
            widths[column] = width;
    }
    return widths;
}

size_t table_width(const struct table *t)
{
    size_t *widths = column_widths(t), sum = 0;

    for (size_t i = 0; widths && i < t->n_columns; i++)
        sum += widths[i] + (i > 0 ? 2 : 0);
    free(widths);
    return sum;
}

void table_print(const struct table *t, FILE *to)
{
    size_t *widths = column_widths(t);

    if (!widths)
        return;
    for (size_t row = 0; t->n_columns > 0 && row <= t->n_rows; row++) {
        for (size_t column = 0; column < t->n_columns; column++) {
            const char *text = t->cells[row * t->n_columns + column];
            size_t room = widths[column] - table_text_width(text);
            if (t->right[column])
                table_pad(to, room);
            fputs(text ? text : "", to);
            if (column + 1 < t->n_columns)
                table_pad(to, 2 + (t->right[column] ? 0 : room));
        }
        fputc('\n', to);
    }
    free(widths);
}
