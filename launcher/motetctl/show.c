/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/show.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "launcher/cli/bytes.h"
#include "launcher/cli/words.h"
#include "launcher/motetctl/human.h"
#include "launcher/motetctl/table.h"

/* A table of few rows that is wider than the terminal is easier to read turned. */
#define LOW_ROWS    16
#define USUAL_WIDTH 200 /* where the output is no terminal */
#define KEY_MAX     128

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

    if (strcmp(last ? last + 1 : key, "bytes") == 0 ||
        strncmp(last ? last + 1 : key, "bytes_", 6) == 0)
        return UNIT_BYTES;
    return suffix ? suffix->unit : UNIT_NONE;
}

/* The key without its unit, which the values show. */
static size_t bare_length(const char *key)
{
    const struct suffix *suffix = suffix_of(key);

    return strlen(key) - (suffix && suffix->dropped ? strlen(suffix->text) : 0);
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

/* The words as one text, to be freed; NULL: no memory. Frees the words. */
static char *words_joined(struct words *parts, const char *between)
{
    struct bytes text = {0};

    for (size_t i = 0; i < parts->n; i++) {
        if (i > 0)
            bytes_append(&text, between, strlen(between));
        bytes_append(&text, parts->at[i], strlen(parts->at[i]));
    }
    bytes_append(&text, "", 1);
    if (text.failed || parts->failed)
        bytes_free(&text);
    words_free(parts);
    return text.at; /* Nothing was dropped, so the queue begins at its start. */
}

static char *value_text(const char *key, json_t *value);

/* An object within a list: "key=value key=value". */
static char *object_text(json_t *object)
{
    struct words parts = {0};
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) {
        char *text = value_text(key, value), *part;
        if (asprintf(&part, "%.*s=%s", (int)bare_length(key), key, text ? text : "") >= 0) {
            words_add(&parts, part);
            free(part);
        }
        free(text);
    }
    return words_joined(&parts, " ");
}

/* The value of a cell, to be freed. */
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
    if (json_is_object(value))
        return object_text(value);
    if (json_array_size(value) == 0)
        return strdup("-");
    /* A list reads better without its punctuation. */
    struct words parts = {0};
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item) {
        char *part = value_text(key, item);
        words_add(&parts, part ? part : "");
        free(part);
    }
    return words_joined(&parts, json_is_object(json_array_get(value, 0)) ? ", " : ",");
}

/* Calls `visit` with every plain value of an object; those of inner objects are named
 * "outer.inner". */
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

/* What to call a column: the last part of its key, unless another one ends so too. */
static const char *short_key(const struct words *columns, size_t column)
{
    const char *dot = strrchr(columns->at[column], '.'),
               *last = dot ? dot + 1 : columns->at[column];
    size_t n_same = 0;

    for (size_t i = 0; i < columns->n; i++) {
        const char *other = strrchr(columns->at[i], '.');
        n_same += strcmp(other ? other + 1 : columns->at[i], last) == 0;
    }
    return n_same == 1 ? last : columns->at[column];
}

/* What stands above a column: its key in capitals, without the unit; with a word for it where
 * another column is called so. */
static void column_heading(const struct words *columns, size_t column, char text[KEY_MAX])
{
    const char *key = short_key(columns, column), *word = "";
    size_t n = bare_length(key);

    for (size_t i = 0; i < columns->n && n < strlen(key); i++) {
        if (i != column && strlen(columns->at[i]) == n && strncmp(columns->at[i], key, n) == 0)
            word = unit_of(key) == UNIT_BYTES ? "_bytes" : "_time";
    }
    snprintf(text, KEY_MAX, "%.*s%s", (int)n, key, word);
    for (char *p = text; *p; p++)
        *p = *p == '_' ? ' ' : (char)toupper((unsigned char)*p);
}

/* Turned, a column of headings stands at the left and the first row is a row like the others. */
static int make_table(json_t *rows, const struct words *columns, bool turned,
                      struct table *ret_table)
{
    size_t n_rows = json_array_size(rows), i;
    char text[KEY_MAX];
    json_t *row;

    int rc = turned ? table_init(ret_table, n_rows + 1, columns->n - 1)
                    : table_init(ret_table, columns->n, n_rows);
    if (rc < 0)
        return rc;
    for (i = 0; i < columns->n; i++) {
        column_heading(columns, i, text);
        table_set(ret_table, turned ? i : 0, turned ? 0 : i, text);
    }
    json_array_foreach(rows, i, row) {
        struct fill fill = {.columns = columns, .table = ret_table, .row = i + 1, .turned = turned};
        visit_values(row, "", fill_cell, &fill);
    }
    return 0;
}

static size_t width_limit(FILE *to)
{
    struct winsize size;

    return isatty(fileno(to)) && ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0
               ? size.ws_col
               : USUAL_WIDTH;
}

/* The table that is easier to read: rows that are wide and few stand beside one another. */
static int choose_table(json_t *rows, const struct words *columns, bool turned, size_t limit,
                        struct table *ret_table)
{
    struct table other;
    int rc = make_table(rows, columns, turned, ret_table);

    if (rc < 0 || turned || json_array_size(rows) > LOW_ROWS || table_width(ret_table) <= limit ||
        make_table(rows, columns, true, &other) < 0)
        return rc;
    if (table_width(&other) < table_width(ret_table)) {
        struct table narrow = other;
        other = *ret_table;
        *ret_table = narrow;
    }
    table_free(&other);
    return 0;
}

static int show_rows(json_t *rows, bool turned, FILE *to)
{
    struct words columns = {0};
    struct table table;
    size_t i;
    json_t *row;
    int rc = 0;

    json_array_foreach(rows, i, row)
        visit_values(row, "", collect_column, &columns);
    if (columns.failed) {
        rc = -ENOMEM;
    } else if (columns.n == 0) {
        fputs("none\n", to);
    } else if ((rc = choose_table(rows, &columns, turned, width_limit(to), &table)) == 0) {
        table_print(&table, to);
        table_free(&table);
    }
    words_free(&columns);
    return rc;
}

/* How many of the row's keys the other one has. */
static size_t common_keys(json_t *row, json_t *other)
{
    const char *key;
    json_t *value;
    size_t n = 0;

    json_object_foreach(row, key, value)
        n += json_object_get(other, key) != NULL;
    return n;
}

/* Rows that share less than half of their keys are things of different kinds (flows beside
 * receives): a table for each kind, in the order in which they come. Returns an array of arrays of
 * rows. */
static json_t *split_kinds(json_t *rows)
{
    json_t *kinds = json_array(), *row, *kind;
    size_t i, k;

    json_array_foreach(rows, i, row) {
        json_array_foreach(kinds, k, kind) {
            if (2 * common_keys(row, json_array_get(kind, 0)) >= json_object_size(row))
                break;
        }
        if (k == json_array_size(kinds))
            json_array_append_new(kinds, json_array());
        json_array_append(json_array_get(kinds, k), row);
    }
    return kinds;
}

static int show_kinds(json_t *rows, FILE *to)
{
    json_t *kinds = split_kinds(rows), *kind;
    size_t k;
    int rc = 0;

    if (json_array_size(kinds) == 0)
        rc = show_rows(rows, false, to);
    json_array_foreach(kinds, k, kind) {
        if (k > 0)
            fputc('\n', to);
        rc = rc < 0 ? rc : show_rows(kind, false, to);
    }
    json_decref(kinds);
    return rc;
}

/* Whether each object has an array of "rows": a list of tables, named by the other values. */
static bool are_tables(json_t *data)
{
    size_t i;
    json_t *part;

    json_array_foreach(data, i, part) {
        if (!json_is_array(json_object_get(part, "rows")))
            return false;
    }
    return json_array_size(data) > 0;
}

static void show_title(json_t *part, FILE *to)
{
    const char *key, *between = "";
    json_t *value;

    json_object_foreach(part, key, value) {
        char *text = strcmp(key, "rows") == 0 ? NULL : value_text(key, value);
        if (text)
            fprintf(to, "%s%s %s", between, key, text);
        between = text ? ", " : between;
        free(text);
    }
    fputs(":\n", to);
}

int show_data(json_t *data, FILE *to)
{
    bool rows = json_is_array(data);
    size_t i;
    json_t *row;
    int rc = 0;

    json_array_foreach(data, i, row)
        rows = rows && json_is_object(row);
    if (json_is_object(data)) {
        json_t *one = json_pack("[O]", data);
        rc = show_rows(one, true, to);
        json_decref(one);
    } else if (rows && are_tables(data)) {
        json_array_foreach(data, i, row) {
            show_title(row, to);
            rc = rc < 0 ? rc : show_data(json_object_get(row, "rows"), to);
            fputs("\n", to);
        }
    } else if (rows) {
        rc = show_kinds(data, to);
    } else {
        json_dumpf(data, to, JSON_INDENT(2) | JSON_ENCODE_ANY);
        fputc('\n', to);
    }
    return rc;
}
