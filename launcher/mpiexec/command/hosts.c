/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/command/hosts.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cli/file.h"
#include "launcher/cli/number.h"

static int hosts_fail(struct host_error *error, int rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int hosts_fail(struct host_error *error, int rc, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(error->text, sizeof error->text, fmt, ap);
    va_end(ap);
    return rc;
}

/* NULL: no memory. */
static struct host *hosts_add(struct host_list *list, const char *name, size_t n)
{
    if (list->n == list->room) {
        size_t room = list->room ? list->room * 2 : 8;
        struct host *at = realloc(list->at, room * sizeof *at);
        if (!at)
            return NULL;
        list->at = at;
        list->room = room;
    }
    char *copy = strndup(name, n);
    if (!copy)
        return NULL;
    list->at[list->n] = (struct host){.name = copy, .slots = 1};
    return &list->at[list->n++];
}

/* What a node may be called: also what could be an address. */
static bool name_ok(const char *name, size_t n)
{
    if (n == 0 || n > HOSTS_NAME_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("-_.", name[i]))
            return false;
    }
    return name[0] != '-';
}

/* "name" or "name:slots", n characters. */
static int parse_host(struct host_list *list, const char *text, size_t n, struct host_error *error)
{
    const char *colon = memchr(text, ':', n);
    size_t name_n = colon ? (size_t)(colon - text) : n;
    uint32_t slots = 1;

    if (!name_ok(text, name_n))
        return hosts_fail(error, -EINVAL, "'%.*s' is not a host name",
                          (int)(name_n > 100 ? 100 : name_n), text);
    if (colon && number_parse(colon + 1, n - name_n - 1, 1, HOSTS_SLOTS_MAX, &slots) < 0)
        return hosts_fail(error, -EINVAL,
                          "'%.*s': expected a number of ranks from 1 to %u after ':'",
                          (int)(n > 100 ? 100 : n), text, HOSTS_SLOTS_MAX);
    struct host *host = hosts_add(list, text, name_n);
    if (!host)
        return hosts_fail(error, -ENOMEM, "out of memory");
    host->slots = slots;
    return 0;
}

int hosts_parse_list(struct host_list *list, const char *text, struct host_error *ret_error)
{
    for (;;) {
        size_t n = strcspn(text, ",");
        int rc = parse_host(list, text, n, ret_error);
        if (rc < 0 || !text[n])
            return rc;
        text += n + 1;
    }
}

/* A word of a host file after the host: slots=N or max_slots=N. */
static int parse_property(struct host *host, const char *word, size_t n, struct host_error *error)
{
    static const struct {
        const char *name;
        size_t offset;
    } properties[] = {{"slots=", offsetof(struct host, slots)},
                      {"max_slots=", offsetof(struct host, max_slots)},
                      {"max-slots=", offsetof(struct host, max_slots)}};

    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        size_t len = strlen(properties[i].name);
        uint32_t value;
        if (n < len || strncmp(word, properties[i].name, len) != 0)
            continue;
        if (number_parse(word + len, n - len, 1, HOSTS_SLOTS_MAX, &value) < 0)
            return hosts_fail(error, -EINVAL, "'%.*s': expected a number from 1 to %u",
                              (int)(n > 100 ? 100 : n), word, HOSTS_SLOTS_MAX);
        memcpy((char *)host + properties[i].offset, &value, sizeof value);
        return 0;
    }
    return hosts_fail(error, -EINVAL, "'%.*s': expected slots=N or max_slots=N",
                      (int)(n > 100 ? 100 : n), word);
}

static int parse_line(struct host_list *list, const char *line, size_t n, struct host_error *error)
{
    struct host *host = NULL;
    const char *end = line + n;

    while (line < end) {
        if (isspace((unsigned char)*line)) {
            line++;
            continue;
        }
        const char *word = line;
        while (line < end && !isspace((unsigned char)*line))
            line++;
        size_t word_n = (size_t)(line - word);
        int rc = host ? parse_property(host, word, word_n, error)
                      : parse_host(list, word, word_n, error);
        if (rc < 0)
            return rc;
        host = &list->at[list->n - 1];
    }
    return 0;
}

int hosts_parse_text(struct host_list *list, const char *name, const char *text,
                     struct host_error *ret_error)
{
    size_t before = list->n;

    for (unsigned line = 1; *text; line++) {
        size_t n = strcspn(text, "\n"), used = strcspn(text, "#\n");
        struct host_error error;
        if (parse_line(list, text, used, &error) < 0)
            return hosts_fail(ret_error, -EINVAL, "%.80s:%u: %.160s", name, line, error.text);
        text += n + (text[n] == '\n');
    }
    return list->n > before
               ? 0
               : hosts_fail(ret_error, -EINVAL, "%.200s: there is no host in this file", name);
}

int hosts_parse_file(struct host_list *list, const char *path, struct host_error *ret_error)
{
    char *text;
    int rc = file_read_text(path, &text);

    if (rc < 0)
        return hosts_fail(ret_error, rc, "cannot read '%.180s': %s", path, strerror(-rc));
    rc = hosts_parse_text(list, path, text, ret_error);
    free(text);
    return rc;
}

void hosts_free(struct host_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->at[i].name);
    free(list->at);
    *list = (struct host_list){0};
}

/* Ranks in a row before the next host has its turn. */
static uint32_t turn_of(const struct host *host, uint32_t ppn)
{
    uint32_t turn = ppn ? ppn : host->slots;
    return host->max_slots && host->max_slots < turn ? host->max_slots : turn;
}

uint64_t hosts_n_slots(const struct host_list *list, uint32_t ppn)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < list->n; i++)
        sum += turn_of(&list->at[i], ppn);
    return sum;
}

uint64_t hosts_room(const struct host_list *list)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < list->n; i++) {
        if (!list->at[i].max_slots)
            return UINT64_MAX;
        sum += list->at[i].max_slots - list->at[i].taken;
    }
    return sum;
}

/* ---- placing ---- */

/* Ranks in a row on one host. */
struct host_run {
    size_t host;
    uint32_t count;
};

struct host_runs {
    struct host_run *at;
    size_t n, room;
    bool failed; /* for want of memory */
};

static void runs_add(struct host_runs *runs, size_t host, uint32_t count)
{
    if (count == 0)
        return;
    if (runs->n > 0 && runs->at[runs->n - 1].host == host) {
        runs->at[runs->n - 1].count += count;
        return;
    }
    if (runs->n == runs->room) {
        size_t room = runs->room ? runs->room * 2 : 16;
        struct host_run *at = realloc(runs->at, room * sizeof *at);
        if (!at) {
            runs->failed = true;
            return;
        }
        runs->at = at;
        runs->room = room;
    }
    runs->at[runs->n++] = (struct host_run){host, count};
}

static uint32_t hosts_left(const struct host *host)
{
    return host->max_slots ? host->max_slots - host->taken : UINT32_MAX;
}

/* Fills each host before the next. Returns how many ranks found no place. */
static uint32_t hosts_map_by_slot(struct host_list *list, uint32_t ppn, uint32_t n,
                                  struct host_runs *runs)
{
    size_t full_hosts = 0; /* hosts passed in a row without placing anything */

    while (n > 0 && !runs->failed) {
        struct host *host = &list->at[list->cursor];
        uint32_t turn = turn_of(host, ppn), room = turn > list->in_turn ? turn - list->in_turn : 0;
        if (room > hosts_left(host))
            room = hosts_left(host);
        uint32_t count = room < n ? room : n;
        runs_add(runs, list->cursor, count);
        host->taken += count;
        list->in_turn += count;
        n -= count;
        if (count > 0)
            full_hosts = 0;
        else if (list->in_turn == 0 && ++full_hosts == list->n)
            return n;
        if (count == room || count == 0) {
            list->cursor = (list->cursor + 1) % list->n;
            list->in_turn = 0;
        }
    }
    return 0;
}

/* One on each host in turn: first on those that have slots left, then on any. */
static uint32_t hosts_map_by_node(struct host_list *list, uint32_t ppn, uint32_t n,
                                  struct host_runs *runs)
{
    size_t passed = 0; /* hosts in a row that had nothing left */
    bool any = false;

    while (n > 0 && !runs->failed) {
        struct host *host = &list->at[list->cursor];
        if (hosts_left(host) > 0 && (any || host->taken < turn_of(host, ppn))) {
            runs_add(runs, list->cursor, 1);
            host->taken++;
            n--;
            passed = 0;
        } else if (++passed == list->n) {
            if (any)
                return n;
            any = true;
            passed = 0;
        }
        list->cursor = (list->cursor + 1) % list->n;
    }
    return 0;
}

static void add_run(struct words *runs, const struct host *host, uint32_t count)
{
    char text[HOSTS_NAME_MAX + 16];

    /* The daemon's node may have a name of its own. */
    snprintf(text, sizeof text, "%s:%u", hosts_is_local(host->name) ? "localhost" : host->name,
             count);
    words_add(runs, text);
}

/* The same ranks with other numbers: all of a host in a row, or one of each host in turn. */
static void hosts_renumber(const struct host_list *list, bool by_node, struct host_runs *runs)
{
    struct host_runs new = {0};
    uint32_t *left = calloc(list->n, sizeof *left);
    bool more = left != NULL;

    for (size_t i = 0; left && i < runs->n; i++)
        left[runs->at[i].host] += runs->at[i].count;
    while (more && !new.failed) {
        more = false;
        for (size_t i = 0; i < list->n; i++) {
            uint32_t count = by_node && left[i] > 1 ? 1 : left[i];
            runs_add(&new, i, count);
            left[i] -= count;
            more |= left[i] > 0;
        }
    }
    new.failed |= !left || runs->failed;
    free(left);
    free(runs->at);
    *runs = new;
}

int hosts_place(struct host_list *list, const struct hosts_mapping *mapping, uint32_t n,
                struct words *ret_runs, struct host_error *ret_error)
{
    struct host_runs runs = {0};
    uint32_t over = mapping->by_node ? hosts_map_by_node(list, mapping->ppn, n, &runs)
                                     : hosts_map_by_slot(list, mapping->ppn, n, &runs);

    if (mapping->ranks != HOSTS_RANKS_AS_MAPPED)
        hosts_renumber(list, mapping->ranks == HOSTS_RANKS_BY_NODE, &runs);
    for (size_t i = 0; i < runs.n; i++)
        add_run(ret_runs, &list->at[runs.at[i].host], runs.at[i].count);
    free(runs.at);
    if (over > 0)
        return hosts_fail(ret_error, -ENOSPC,
                          "all hosts have their max_slots, and %u more ranks are to be placed",
                          over);
    return runs.failed || ret_runs->failed ? hosts_fail(ret_error, -ENOMEM, "out of memory") : 0;
}

bool hosts_is_local(const char *name)
{
    char own[256] = "";

    if (strcmp(name, "localhost") == 0 || strncmp(name, "127.", 4) == 0)
        return true;
    if (gethostname(own, sizeof own - 1) < 0)
        return false;
    size_t own_n = strcspn(own, "."), name_n = strcspn(name, ".");
    /* With or without the domain, but not in another one. */
    return own_n == name_n && strncasecmp(own, name, own_n) == 0 &&
           (!own[own_n] || !name[name_n] || strcasecmp(own, name) == 0);
}

bool hosts_all_local(const struct host_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (!hosts_is_local(list->at[i].name))
            return false;
    }
    return true;
}
