/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl_show.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "launcher/human.h"
#include "launcher/table.h"
#include "launcher/words.h"

/* A table with more columns than this and few rows is easier to read turned. */
#define WIDE_COLUMNS 14
#define LOW_ROWS     8
#define KEY_MAX      128

enum unit { UNIT_NONE, UNIT_BYTES, UNIT_DURATION };

static const struct suffix {
    const char *text;
    enum unit unit;
    int64_t ns;   /* per unit */
    bool dropped; /* from the heading: the values say it */
} suffixes[] = {
    {"_per_s", UNIT_NONE, 0, false},
    {"_bytes", UNIT_BYTES, 0, true},
    {"_ns", UNIT_DURATION, 1, true},
    {"_us", UNIT_DURATION, CLOCK_NS_PER_US, true},
    {"_ms", UNIT_DURATION, CLOCK_NS_PER_MS, true},
    {"_s", UNIT_DURATION, CLOCK_NS_PER_S, true},
};

static const struct suffix *suffix_of(const char *key)
{
    size_t n = strlen(key);

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t len = strlen(suffixes[i].text);
        if (n > len && strcmp(key + n - len, suffixes[i].text) == 0)
            return &suffixes[i];
    }
    return NULL;
}

static enum unit unit_of(const char *key)
{
    const struct suffix *suffix = suffix_of(key);
    const char *last = strrchr(key, '.');

    if (strcmp(last ? last + 1 : key, "bytes") == 0 || strncmp(last ? last + 1 : key, "bytes_", 6) == 0)
        return UNIT_BYTES;
    return suffix ? suffix->unit : UNIT_NONE;
}

static char *heading(const char *key, char text[KEY_MAX])
{
    const struct suffix *suffix = suffix_of(key);
    size_t n = strlen(key) - (suffix && suffix->dropped ? strlen(suffix->text) : 0);

    snprintf(text, KEY_MAX, "%.*s", (int)n, key);
    for (char *p = text; *p; p++)
        *p = *p == '_' ? ' ' : (char)toupper((unsigned char)*p);
    return text;
}

static void integer_text(const char *key, json_int_t value, char *text, size_t room)
{
    const struct suffix *suffix = suffix_of(key);
    char human[HUMAN_ROOM];

    switch (unit_of(key)) {
    case UNIT_BYTES:
        if (value >= 0) {
            human_bytes((uint64_t)value, human);
            snprintf(text, room, "%s", human);
            return;
        }
        break;
    case UNIT_DURATION: {
        json_int_t ns;
        if (!__builtin_mul_overflow(value, (json_int_t)suffix->ns, &ns)) {
            human_duration(ns, human);
            snprintf(text, room, "%s", human);
            return;
        }
        break;
    }
    case UNIT_NONE:
        break;
    }
    snprintf(text, room, "%" JSON_INTEGER_FORMAT, value);
}

/* Durations and sizes may come as real numbers, too. */
static void real_text(const char *key, double value, char *text, size_t room)
{
    const struct suffix *suffix = suffix_of(key);
    char human[HUMAN_ROOM];

    if (unit_of(key) == UNIT_DURATION && value > -9e8 && value < 9e8) {
        human_duration((int64_t)(value * (double)suffix->ns), human);
        snprintf(text, room, "%s", human);
        return;
    }
    snprintf(text, room, "%.4g", value);
}

/* The value of a cell. The result is to be freed. */
static char *value_text(const char *key, json_t *value)
{
    char text[64];

    switch (json_typeof(value)) {
    case JSON_STRING:
        return strdup(json_string_value(value));
    case JSON_INTEGER:
        integer_text(key, json_integer_value(value), text, sizeof text);
        return strdup(text);
    case JSON_REAL:
        real_text(key, json_real_value(value), text, sizeof text);
        return strdup(text);
    case JSON_TRUE:
        return strdup("yes");
    case JSON_FALSE:
        return strdup("no");
    case JSON_NULL:
        return strdup("-");
    case JSON_OBJECT:
    case JSON_ARRAY:
        break;
    }
    if (!json_is_array(value) || json_array_size(value) == 0)
        return json_is_array(value) ? strdup("-") : json_dumps(value, JSON_COMPACT);
    /* A list of plain values reads better without its punctuation. */
    struct words parts = {0};
    size_t i, n = 1;
    json_t *item;
    json_array_foreach(value, i, item) {
        char *part = json_is_object(item) || json_is_array(item) ? json_dumps(item, JSON_COMPACT)
                                                                 : value_text(key, item);
        words_add(&parts, part ? part : "");
        n += strlen(parts.at[i]) + 1;
        free(part);
    }
    char *joined = calloc(n, 1);
    for (i = 0; joined && i < parts.n; i++) {
        strcat(joined, i ? "," : "");
        strcat(joined, parts.at[i]);
    }
    words_free(&parts);
    return joined;
}

/* Calls `visit` with every plain value of an object; those of inner objects are named "outer.inner". */
typedef void visit_fn(void *arg, const char *key, json_t *value);

static void visit_values(json_t *object, const char *prefix, visit_fn *visit, void *arg)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) {
        char *name;
        if (asprintf(&name, "%s%s%s", prefix, *prefix ? "." : "", key) < 0)
            return;
        if (json_is_object(value) && json_object_size(value) > 0)
            visit_values(value, name, visit, arg);
        else
            visit(arg, name, value);
        free(name);
    }
}

static size_t column_of(const struct words *columns, const char *key)
{
    size_t i = 0;

    while (i < columns->n && strcmp(columns->at[i], key) != 0)
        i++;
    return i;
}

static void collect_column(void *arg, const char *key, json_t *value)
{
    struct words *columns = arg;

    (void)value;
    if (column_of(columns, key) == columns->n)
        words_add(columns, key);
}

struct fill {
    const struct words *columns;
    struct table *table;
    size_t row;
    bool turned;
};

static void fill_cell(void *arg, const char *key, json_t *value)
{
    struct fill *f = arg;
    size_t column = column_of(f->columns, key);
    char *text = value_text(key, value);

    if (f->turned)
        table_set(f->table, column, f->row, text ? text : "");
    else
        table_set(f->table, f->row, column, text ? text : "");
    if (json_is_number(value))
        f->table->right[f->turned ? f->row : column] = true;
    free(text);
}

/* Turned, a column of headings stands at the left and the first row is a row like the others. */
static void show_table(json_t *rows, const struct words *columns, bool turned, FILE *to)
{
    size_t n_rows = json_array_size(rows), i;
    char text[KEY_MAX];
    struct table table;
    json_t *row;

    if (turned)
        table_init(&table, n_rows + 1, columns->n - 1);
    else
        table_init(&table, columns->n, n_rows);
    for (i = 0; i < columns->n; i++)
        table_set(&table, turned ? i : 0, turned ? 0 : i, heading(columns->at[i], text));
    json_array_foreach(rows, i, row) {
        struct fill fill = {.columns = columns, .table = &table, .row = i + 1, .turned = turned};
        visit_values(row, "", fill_cell, &fill);
    }
    table_print(&table, to);
    table_free(&table);
}

static void show_rows(json_t *rows, bool turned, FILE *to)
{
    struct words columns = {0};
    size_t i;
    json_t *row;

    json_array_foreach(rows, i, row)
        visit_values(row, "", collect_column, &columns);
    if (columns.n > 0)
        show_table(rows, &columns, turned || (columns.n > WIDE_COLUMNS && json_array_size(rows) <= LOW_ROWS),
                   to);
    else
        fputs("none\n", to);
    words_free(&columns);
}

void motetctl_show(json_t *data, FILE *to)
{
    bool rows = json_is_array(data);
    size_t i;
    json_t *row;

    json_array_foreach(data, i, row)
        rows = rows && json_is_object(row);
    if (json_is_object(data)) {
        json_t *one = json_pack("[O]", data);
        show_rows(one, true, to);
        json_decref(one);
    } else if (rows) {
        show_rows(data, false, to);
    } else {
        json_dumpf(data, to, JSON_INDENT(2) | JSON_ENCODE_ANY);
        fputc('\n', to);
    }
}
