/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/near.h"
#include "daemon/config_seed.h"
#include "daemon/config_table.h"
#include "daemon/seal/seal.h"
#include "proto/segment.h"

/* A [channel NAME] that this file has opened. */
struct config_section {
    char name[64];
    int line;
};

struct config_parse_state {
    struct config *config;
    const char *file;
    int line;
    int n_errors;
    /* What this file has already: lines of keys, by channel (the last row: other sections). */
    int seen[CONFIG_MAX_CHANNELS + 1][CONFIG_NODE_KEYS];
    struct config_section sections[2 * CONFIG_MAX_CHANNELS];
    int n_sections;
    config_report_fn *report;
    void *report_ctx;
    /* Source. */
    FILE *stream;
    const char *text;
    size_t n_left;
};

static void config_complain(struct config_parse_state *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void config_complain(struct config_parse_state *p, const char *fmt, ...)
{
    char line[1024];
    int n = p->line > 0 ? snprintf(line, sizeof line, "%s:%d: ", p->file, p->line)
                        : snprintf(line, sizeof line, "%s: ", p->file);
    va_list ap;

    if (n < 0 || (size_t)n >= sizeof line)
        n = 0;
    va_start(ap, fmt);
    vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
    va_end(ap);
    /* One broken file should not fill a journal. */
    if (p->n_errors++ < 20)
        p->report(p->report_ctx, line);
}

static const struct config_entry *find_entry(const char *section, const char *key)
{
    for (size_t i = 0; i < config_n_entries; i++)
        if (strcmp(config_entries[i].section, section) == 0 &&
            strcmp(config_entries[i].key, key) == 0)
            return &config_entries[i];
    return NULL;
}

static struct config_origin *origin_at(struct config *c, struct config_channel *channel,
                                       const struct config_entry *e)
{
    size_t i = (size_t)(e - config_entries), first = 0;

    while (strcmp(config_entries[first].section, "channel") != 0)
        first++;
    return channel ? &channel->origins[i - first] : &c->origins[i];
}

const struct config_origin *config_origin(const struct config *c,
                                          const struct config_channel *channel, const char *key)
{
    static const struct config_origin nowhere = {.file = "configuration"};

    for (size_t i = 0; i < config_n_entries; i++)
        if (strcmp(config_entries[i].key, key) == 0 &&
            (strcmp(config_entries[i].section, "channel") == 0) == (channel != NULL))
            return origin_at((struct config *)c, (struct config_channel *)channel,
                             &config_entries[i]);
    return &nowhere;
}

/* " (did you mean NAME?)", or the section to which the key belongs; "" where nothing is near. */
static void hint_key(const char *kind, const char *key, char *out, size_t size)
{
    unsigned best = NEAR_NONE;

    out[0] = '\0';
    for (size_t i = 0; i < config_n_entries; i++) {
        const struct config_entry *e = &config_entries[i];
        unsigned distance = near_distance(key, e->key);
        if (strcmp(e->section, kind) == 0 && distance < best) {
            best = distance;
            snprintf(out, size, " (did you mean %s?)", e->key);
        }
    }
    for (size_t i = 0; best == NEAR_NONE && i < config_n_entries; i++)
        if (strcmp(config_entries[i].key, key) == 0)
            snprintf(out, size, " (it belongs to [%s%s])", config_entries[i].section,
                     strcmp(config_entries[i].section, "channel") == 0 ? " NAME" : "");
}

static void hint_section(const char *section, char *out, size_t size)
{
    unsigned best = NEAR_NONE;

    out[0] = '\0';
    for (size_t i = 0; i < config_n_entries; i++) {
        unsigned distance = near_distance(section, config_entries[i].section);
        if (distance < best) {
            best = distance;
            snprintf(out, size, " (did you mean [%s%s]?)", config_entries[i].section,
                     strcmp(config_entries[i].section, "channel") == 0 ? " NAME" : "");
        }
    }
}

static bool section_known(const char *section)
{
    for (size_t i = 0; i < config_n_entries; i++)
        if (strcmp(config_entries[i].section, section) == 0)
            return true;
    return false;
}

static void list_keys(const char *section, char *out, size_t size)
{
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < config_n_entries; i++) {
        if (strcmp(config_entries[i].section, section) != 0)
            continue;
        int n = snprintf(out + at, size - at, "%s%s", at ? ", " : "", config_entries[i].key);
        if (n < 0 || (size_t)n >= size - at)
            break;
        at += (size_t)n;
    }
}

static bool name_valid(const char *s)
{
    size_t n = strlen(s);

    if (n == 0 || n >= CONFIG_NAME_BYTES || s[0] == '-' || s[0] == '.')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("._-", s[i]))
            return false;
    return true;
}

struct unit {
    const char *word;
    uint64_t factor;
};
static const struct unit size_units[] = {
    {"B", 1}, {"", 1}, {"KiB", KIB}, {"MiB", MIB}, {"GiB", 1024 * MIB}, {0}};
static const struct unit time_units[] = {{"ns", 1},  {"us", 1000},      {"ms", MS},
                                         {"s", SEC}, {"min", 60 * SEC}, {0}};
static const struct unit count_units[] = {{"", 1}, {0}};

/* "16KiB" with the units of its type. 0, -EINVAL, -ERANGE. */
static int parse_number(const char *text, const struct unit *units, uint64_t *ret_value)
{
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return -EINVAL;
    errno = 0;
    uint64_t n = strtoull(text, &end, 10);
    if (errno != 0)
        return -ERANGE;
    while (*end == ' ')
        end++;
    for (; units->word; units++) {
        if (strcmp(end, units->word) != 0)
            continue;
        if (n > UINT64_MAX / units->factor)
            return -ERANGE;
        *ret_value = n * units->factor;
        return 0;
    }
    return -EINVAL;
}

/* Writes a number with the largest unit that leaves it whole. */
static void format_number(uint64_t n, const struct unit *units, char *out, size_t size)
{
    const struct unit *best = NULL;

    for (const struct unit *u = units; u->word; u++)
        if (n % u->factor == 0 && (!best || u->factor > best->factor) && (n > 0 || !best))
            best = u;
    snprintf(out, size, "%llu%s", (unsigned long long)(best ? n / best->factor : n),
             best ? best->word : "");
}

static const struct unit *units_of(enum config_type type)
{
    return type == TYPE_SIZE ? size_units : type == TYPE_TIME ? time_units : count_units;
}

static void store_text(void *object, const struct config_entry *e, const char *value)
{
    snprintf((char *)object + e->offset, e->size, "%s", value);
}

static void store_number(void *object, const struct config_entry *e, uint64_t value)
{
    memcpy((char *)object + e->offset, &value, sizeof value);
}

static uint64_t load_number(const void *object, const struct config_entry *e)
{
    uint64_t value;
    memcpy(&value, (const char *)object + e->offset, sizeof value);
    return value;
}

static const char *load_text(const void *object, const struct config_entry *e)
{
    return (const char *)object + e->offset;
}

static void check_seeds(struct config_parse_state *p, const char *seeds)
{
    const char *at = seeds, *why;
    struct config_seed seed;
    int rc;

    do {
        const char *begin = at + strspn(at, ", \t");
        rc = config_seed_next(&at, 1, &seed, &why);
        if (rc < 0)
            config_complain(p, "seeds: %.*s: %s", (int)(at - begin), begin, why);
    } while (rc != 0);
}

/* Checks one value and stores it; complains with what was expected. */
static void set_value(struct config_parse_state *p, void *object, const struct config_entry *e,
                      const char *value)
{
    uint64_t n = 0;

    switch (e->type) {
    case TYPE_NAME:
        if (value[0] != '\0' && !name_valid(value)) {
            config_complain(p,
                            "%s = %s: expected a name of 1 to %d letters, digits, '.', '_' or '-'",
                            e->key, value, CONFIG_NAME_BYTES - 1);
            return;
        }
        store_text(object, e, value);
        return;
    case TYPE_TEXT:
    case TYPE_SEEDS:
        if (strlen(value) >= e->size) {
            config_complain(p, "%s: the value has %zu characters, expected at most %zu", e->key,
                            strlen(value), e->size - 1);
            return;
        }
        if (e->type == TYPE_SEEDS)
            check_seeds(p, value);
        store_text(object, e, value);
        return;
    case TYPE_CHOICE: {
        char words[128] = "";
        for (const struct config_choice *c = e->choices; c->word; c++) {
            if (strcmp(c->word, value) == 0) {
                store_number(object, e, c->value);
                return;
            }
            size_t at = strlen(words);
            snprintf(words + at, sizeof words - at, "%s%s", at ? ", " : "", c->word);
        }
        config_complain(p, "%s = %s: expected one of %s", e->key, value, words);
        return;
    }
    case TYPE_MODE: {
        char *end;
        errno = 0;
        n = strtoull(value, &end, 8);
        if (errno != 0 || !isdigit((unsigned char)value[0]) || *end != '\0' || n > e->max) {
            config_complain(p, "%s = %s: expected permission bits in octal, 0000 to 0777", e->key,
                            value);
            return;
        }
        store_number(object, e, n);
        return;
    }
    case TYPE_COUNT:
    case TYPE_SIZE:
    case TYPE_TIME: {
        const struct unit *units = units_of(e->type);
        int rc = parse_number(value, units, &n);
        if (rc == 0 && n >= e->min && n <= e->max) {
            store_number(object, e, n);
            return;
        }
        char low[32], high[32];
        format_number(e->min, units, low, sizeof low);
        format_number(e->max, units, high, sizeof high);
        config_complain(p, "%s = %s: expected %s from %s to %s", e->key, value,
                        e->type == TYPE_SIZE   ? "a size like 64KiB"
                        : e->type == TYPE_TIME ? "a time like 200ms"
                                               : "a number",
                        low, high);
        return;
    }
    }
}

static struct config_channel *channel_at(struct config_parse_state *p, const char *name)
{
    struct config *c = p->config;

    for (int i = 0; i < c->n_channels; i++)
        if (strcmp(c->channels[i].name, name) == 0)
            return &c->channels[i];
    if (c->n_channels == CONFIG_MAX_CHANNELS) {
        config_complain(p, "[channel %s]: expected at most %d channels", name, CONFIG_MAX_CHANNELS);
        return NULL;
    }
    struct config_channel *ch = &c->channels[c->n_channels++];
    memset(ch, 0, sizeof *ch);
    snprintf(ch->name, sizeof ch->name, "%s", name);
    snprintf(ch->origin.file, sizeof ch->origin.file, "%s", p->file);
    ch->origin.line = p->line;
    struct config_parse_state quiet = *p;
    for (size_t i = 0; i < config_n_entries; i++)
        if (strcmp(config_entries[i].section, "channel") == 0)
            set_value(&quiet, ch, &config_entries[i], config_entries[i].initial);
    return ch;
}

static int on_setting(void *user, const char *section, const char *key, const char *value)
{
    struct config_parse_state *p = user;
    const char *kind = section;
    void *object = p->config;
    struct config_channel *channel = NULL;
    char keys[512], hint[128];

    if (section[0] == '\0') {
        config_complain(p,
                        "%s: a key before any section; expected [node], [mesh], [transport], "
                        "[jobs] or [channel NAME] above it",
                        key);
        return 1;
    }
    if (strncmp(section, "channel", 7) == 0 && (section[7] == ' ' || section[7] == '\0')) {
        const char *name = section + 7;
        while (*name == ' ')
            name++;
        if (!name_valid(name) || strlen(section) >= 49) {
            config_complain(
                p, "[%s]: expected [channel NAME] with a name of letters, digits, '.', '_' or '-'",
                section);
            return 1;
        }
        kind = "channel";
        object = channel = channel_at(p, name);
        if (!object)
            return 1;
    } else if (!section_known(section)) {
        hint_section(section, hint, sizeof hint);
        config_complain(
            p, "[%s]: unknown section%s; expected node, mesh, transport, jobs or channel NAME",
            section, hint);
        return 1;
    }
    const struct config_entry *e = find_entry(kind, key);
    if (!e) {
        list_keys(kind, keys, sizeof keys);
        hint_key(kind, key, hint, sizeof hint);
        config_complain(p, "%s: unknown key in [%s]%s; expected one of %s", key, section, hint,
                        keys);
        return 1;
    }
    int *seen =
        &p->seen[channel ? channel - p->config->channels : CONFIG_MAX_CHANNELS][e - config_entries];
    if (*seen > 0)
        config_complain(p, "%s: given twice in this file, first in line %d", key, *seen);
    *seen = p->line;
    struct config_origin *origin = origin_at(p->config, channel, e);
    snprintf(origin->file, sizeof origin->file, "%s", p->file);
    origin->line = p->line;
    set_value(p, object, e, value);
    if (channel && (strcmp(key, "interface") == 0 || strcmp(key, "cidr") == 0)) {
        snprintf(channel->origin.file, sizeof channel->origin.file, "%s", p->file);
        channel->origin.line = p->line;
    }
    return 1;
}

/* A line that begins a section: channels stand once in a file. */
static void note_section(struct config_parse_state *p, const char *line)
{
    size_t n = strcspn(line, "]");

    if (line[0] != '[' || line[n] != ']' || strncmp(line, "[channel", 8) != 0 ||
        n >= sizeof p->sections[0].name)
        return;
    for (int i = 0; i < p->n_sections; i++) {
        const struct config_section *before = &p->sections[i];
        if (strlen(before->name) == n && memcmp(before->name, line, n) == 0) {
            config_complain(p, "%.*s]: given twice in this file, first in line %d", (int)n, line,
                            before->line);
            return;
        }
    }
    if (p->n_sections == (int)(sizeof p->sections / sizeof p->sections[0]))
        return;
    struct config_section *s = &p->sections[p->n_sections++];
    memcpy(s->name, line, n);
    s->name[n] = '\0';
    s->line = p->line;
}

/* Gives inih one line and counts it: the library tells its callback no line numbers. Blanks at the
 * beginning go, or the library would take the line for the rest of the one before. */
static char *read_line(char *out, int size, void *stream)
{
    struct config_parse_state *p = stream;
    bool any = false;
    int n = 0;

    while (n < size - 1) {
        int c;
        if (p->stream) {
            c = getc(p->stream);
        } else if (p->n_left > 0) {
            c = (unsigned char)*p->text++;
            p->n_left--;
        } else {
            c = EOF;
        }
        if (c == EOF)
            break;
        p->line += !any;
        any = true;
        if (c == '\0')
            c = ' ';
        if (n == 0 && (c == ' ' || c == '\t'))
            continue;
        out[n++] = (char)c;
        if (c == '\n')
            break;
    }
    out[n] = '\0';
    if (n == size - 1 && out[n - 1] != '\n') {
        config_complain(p, "line is too long; expected at most %d characters", size - 2);
        /* The rest would be taken for lines of their own. */
        for (;;) {
            int c = p->stream       ? getc(p->stream)
                    : p->n_left > 0 ? (p->n_left--, (unsigned char)*p->text++)
                                    : EOF;
            if (c == EOF || c == '\n')
                break;
        }
        out[0] = '\n';
        out[1] = '\0';
        return out;
    }
    note_section(p, out);
    return any ? out : NULL;
}

static int parse_source(struct config_parse_state *p)
{
    int rc = ini_parse_stream(read_line, p, on_setting, p);

    if (rc > 0) {
        p->line = rc;
        config_complain(p, "expected [section], key = value, or a comment after # or ;");
    } else if (rc < 0) {
        p->line = 0;
        config_complain(p, "out of memory");
    }
    return p->n_errors > 0 ? -EINVAL : 0;
}

int config_parse(struct config *c, const char *text, size_t n, const char *name,
                 config_report_fn *report, void *ctx)
{
    struct config_parse_state p = {
        .config = c, .file = name, .report = report, .report_ctx = ctx, .text = text, .n_left = n};

    return parse_source(&p);
}

static int load_one(struct config *c, const char *path, config_report_fn *report, void *ctx)
{
    struct config_parse_state p = {.config = c, .file = path, .report = report, .report_ctx = ctx};

    p.stream = fopen(path, "re");
    if (!p.stream) {
        config_complain(&p, "%s", strerror(errno));
        return -EINVAL;
    }
    struct stat st;
    if (fstat(fileno(p.stream), &st) == 0 && S_ISDIR(st.st_mode)) {
        config_complain(&p, "is a folder, expected a file");
        fclose(p.stream);
        return -EINVAL;
    }
    int rc = parse_source(&p);
    fclose(p.stream);
    return rc;
}

static int is_conf(const struct dirent *d)
{
    size_t n = strlen(d->d_name);
    return n > 5 && d->d_name[0] != '.' && strcmp(d->d_name + n - 5, ".conf") == 0;
}

int config_load(struct config *c, const char *path, config_report_fn *report, void *ctx)
{
    char dir[PATH_MAX], file[PATH_MAX + 300];
    struct dirent **list = NULL;
    int rc = load_one(c, path, report, ctx);

    snprintf(dir, sizeof dir, "%s.d", path);
    int n = scandir(dir, &list, is_conf, alphasort);
    if (n < 0 && errno != ENOENT) {
        struct config_parse_state p = {.file = dir, .report = report, .report_ctx = ctx};
        config_complain(&p, "expected a folder with drop-ins: %s", strerror(errno));
        rc = -EINVAL;
    }
    for (int i = 0; i < n; i++) {
        snprintf(file, sizeof file, "%s/%s", dir, list[i]->d_name);
        int one = load_one(c, file, report, ctx);
        rc = rc < 0 ? rc : one;
        free(list[i]);
    }
    free(list);
    return rc;
}

static void report_line(void *ctx, const char *line)
{
    (void)ctx;
    log_error("%s", line);
}

void config_defaults(struct config *c)
{
    struct config_parse_state p = {.config = c, .file = "built-in defaults", .report = report_line};

    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < config_n_entries; i++)
        if (strcmp(config_entries[i].section, "channel") != 0)
            set_value(&p, c, &config_entries[i], config_entries[i].initial);
}

static void default_name(struct config *c)
{
    char host[256] = "";

    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    host[CONFIG_NAME_BYTES - 1] = '\0';
    snprintf(c->name, sizeof c->name, "%.*s", CONFIG_NAME_BYTES - 1,
             name_valid(host) ? host : "localhost");
}

/* Channels of one network guard it in the same way. */
static void config_check_protect(const struct config *c, int i, struct config_parse_state *p)
{
    const struct config_channel *ch = &c->channels[i];

    for (int before = 0; before < i; before++)
        if (strcmp(c->channels[before].network, ch->network) == 0 &&
            c->channels[before].protect != ch->protect)
            config_complain(p,
                            "[channel %s]: protect = %s, but [channel %s] of the same network %s "
                            "has %s",
                            ch->name, seal_mode_name((uint32_t)ch->protect),
                            c->channels[before].name, ch->network,
                            seal_mode_name((uint32_t)c->channels[before].protect));
}

/* Complaints from now on are about this key. */
static void config_about(struct config_parse_state *p, const struct config *c,
                         const struct config_channel *channel, const char *key)
{
    const struct config_origin *origin = config_origin(c, channel, key);

    p->file = origin->line > 0 ? origin->file : "configuration";
    p->line = origin->line;
}

int config_finish(struct config *c, config_report_fn *report, void *ctx)
{
    struct config_parse_state p = {
        .config = c, .file = "configuration", .report = report, .report_ctx = ctx};

    if (c->name[0] == '\0')
        default_name(c);
    if (c->runtime_dir[0] == '\0') {
        const char *xdg = getenv("XDG_RUNTIME_DIR");
        if (geteuid() == 0)
            snprintf(c->runtime_dir, sizeof c->runtime_dir, "/run/motet");
        else if (xdg && strlen(xdg) < 60)
            snprintf(c->runtime_dir, sizeof c->runtime_dir, "%s/motet", xdg);
        else
            snprintf(c->runtime_dir, sizeof c->runtime_dir, "/tmp/motet-%u", (unsigned)geteuid());
    }
    config_about(&p, c, NULL, "runtime_dir");
    if (strlen(c->runtime_dir) > 80)
        config_complain(
            &p, "runtime_dir = %s: expected at most 80 characters, since socket paths are short",
            c->runtime_dir);
    if (c->client_socket[0] == '\0')
        snprintf(c->client_socket, sizeof c->client_socket, "%.80s/client.sock", c->runtime_dir);
    if (c->status_socket[0] == '\0')
        snprintf(c->status_socket, sizeof c->status_socket, "%.80s/status.sock", c->runtime_dir);
    config_about(&p, c, NULL, "packet_bytes");
    if (c->packet_bytes % 64 != 0)
        config_complain(&p, "packet_bytes = %llu: expected a multiple of 64",
                        (unsigned long long)c->packet_bytes);
    config_about(&p, c, NULL,
                 config_origin(c, NULL, "dead_after")->line > 0 ? "dead_after" : "heartbeat");
    if (c->dead_after_ns < 2 * c->heartbeat_ns)
        config_complain(
            &p,
            "dead_after: expected at least twice heartbeat, or live links would be taken for dead");
    for (int i = 0; i < c->n_channels; i++) {
        struct config_channel *ch = &c->channels[i];
        p.file = ch->origin.file;
        p.line = ch->origin.line;
        if (ch->network[0] == '\0')
            snprintf(ch->network, sizeof ch->network, "%s", ch->name);
        if ((ch->interface[0] == '\0') == (ch->cidr[0] == '\0'))
            config_complain(&p, "[channel %s]: expected either interface or cidr", ch->name);
        config_check_protect(c, i, &p);
        config_about(&p, c, ch, "data_port");
        if (ch->data_port == ch->port && strcmp(ch->provider, "udp") != 0)
            config_complain(&p, "[channel %s]: data_port = %llu is its port for control as well",
                            ch->name, (unsigned long long)ch->data_port);
    }
    if (c->n_channels > 0 && c->key_file[0] == '\0') {
        p.file = c->channels[0].origin.file;
        p.line = c->channels[0].origin.line;
        config_complain(&p, "key_file in [node] is missing: channels need the cluster key");
    }
    return p.n_errors > 0 ? -EINVAL : 0;
}

static void print_entry(FILE *out, const void *object, const struct config_entry *e)
{
    char number[32];
    const char *help = e->help;

    /* Help, wrapped at 100 columns. */
    while (*help) {
        size_t n = strlen(help);
        if (n > 98) {
            n = 98;
            while (n > 0 && help[n] != ' ')
                n--;
        }
        fprintf(out, "# %.*s\n", (int)n, help);
        help += n;
        while (*help == ' ')
            help++;
    }
    switch (e->type) {
    case TYPE_NAME:
    case TYPE_TEXT:
    case TYPE_SEEDS:
        fprintf(out, "%s = %s\n", e->key, object ? load_text(object, e) : e->initial);
        break;
    case TYPE_MODE:
        if (object)
            fprintf(out, "%s = %04llo\n", e->key, (unsigned long long)load_number(object, e));
        else
            fprintf(out, "%s = %s\n", e->key, e->initial);
        break;
    case TYPE_CHOICE:
        fprintf(out, "# One of:");
        for (const struct config_choice *ch = e->choices; ch->word; ch++)
            fprintf(out, " %s", ch->word);
        fprintf(out, "\n");
        for (const struct config_choice *ch = e->choices; object && ch->word; ch++)
            if (ch->value == load_number(object, e))
                fprintf(out, "%s = %s\n", e->key, ch->word);
        if (!object)
            fprintf(out, "%s = %s\n", e->key, e->initial);
        break;
    default:
        if (object) {
            format_number(load_number(object, e), units_of(e->type), number, sizeof number);
            fprintf(out, "%s = %s\n", e->key, number);
        } else {
            fprintf(out, "%s = %s\n", e->key, e->initial);
        }
        break;
    }
    fprintf(out, "\n");
}

void config_print(const struct config *c, FILE *out)
{
    const char *section = "";

    fprintf(out, "# Configuration of motetd. Drop-ins: *.conf in the directory named like this "
                 "file with .d after it.\n"
                 "# Times: ns, us, ms, s, min. Sizes: B, KiB, MiB, GiB.\n\n");
    for (size_t i = 0; i < config_n_entries; i++) {
        if (strcmp(config_entries[i].section, "channel") == 0)
            continue;
        if (strcmp(section, config_entries[i].section) != 0)
            fprintf(out, "[%s]\n", config_entries[i].section);
        section = config_entries[i].section;
        print_entry(out, c, &config_entries[i]);
    }
    fprintf(
        out,
        "# One section [channel NAME] for each network card that carries messages, at most %d.\n",
        CONFIG_MAX_CHANNELS);
    for (int ch = 0; ch < c->n_channels; ch++) {
        fprintf(out, "[channel %s]\n", c->channels[ch].name);
        for (size_t i = 0; i < config_n_entries; i++)
            if (strcmp(config_entries[i].section, "channel") == 0)
                print_entry(out, &c->channels[ch], &config_entries[i]);
    }
    if (c->n_channels > 0)
        return;
    /* No channel: show the keys, commented out, so that the file is complete and still valid. */
    char *text = NULL;
    size_t size = 0;
    FILE *mem = open_memstream(&text, &size);
    if (!mem)
        return;
    for (size_t i = 0; i < config_n_entries; i++)
        if (strcmp(config_entries[i].section, "channel") == 0)
            print_entry(mem, NULL, &config_entries[i]);
    fclose(mem);
    fprintf(out, "#\n#[channel left]\n");
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        next = next ? (*next = '\0', next + 1) : line + strlen(line);
        if (line[0] == '#')
            fprintf(out, "%s\n", line);
        else
            fprintf(out, "#%s\n", line);
    }
    free(text);
}

static bool values_differ(const void *a, const void *b, const struct config_entry *e)
{
    if (e->type == TYPE_NAME || e->type == TYPE_TEXT || e->type == TYPE_SEEDS)
        return strcmp(load_text(a, e), load_text(b, e)) != 0;
    return load_number(a, e) != load_number(b, e);
}

int config_diff(const struct config *c, const struct config *fresh, config_report_fn *report,
                void *ctx)
{
    struct config_parse_state p = {.file = "file", .report = report, .report_ctx = ctx};

    if (c->n_channels != fresh->n_channels)
        config_complain(&p, "it has %d channels, the daemon runs with %d: restart",
                        fresh->n_channels, c->n_channels);
    for (size_t i = 0; i < config_n_entries; i++) {
        const struct config_entry *e = &config_entries[i];
        bool of_channel = strcmp(e->section, "channel") == 0;
        for (int ch = 0;
             ch < (of_channel ? c->n_channels : 1) && ch < (of_channel ? fresh->n_channels : 1);
             ch++) {
            const void *ours = of_channel ? (const void *)&c->channels[ch] : c;
            const void *theirs = of_channel ? (const void *)&fresh->channels[ch] : fresh;
            if (values_differ(ours, theirs, e))
                config_complain(&p, "%s in [%s%s%s] is not what the daemon runs with: %s", e->key,
                                e->section, of_channel ? " " : "",
                                of_channel ? c->channels[ch].name : "",
                                e->reloadable ? "reload" : "restart");
        }
    }
    return p.n_errors;
}

int config_reload(struct config *c, const struct config *fresh, config_report_fn *report, void *ctx)
{
    struct config_parse_state p = {.file = "reload", .report = report, .report_ctx = ctx};

    for (size_t i = 0; i < config_n_entries; i++) {
        const struct config_entry *e = &config_entries[i];
        if (strcmp(e->section, "channel") == 0 || !values_differ(c, fresh, e))
            continue;
        if (e->reloadable)
            store_number(c, e, load_number(fresh, e));
        else
            config_complain(&p, "%s in [%s] changed; it takes effect after a restart", e->key,
                            e->section);
    }
    if (c->n_channels != fresh->n_channels)
        config_complain(&p, "the number of channels changed; it takes effect after a restart");
    for (int ch = 0; ch < c->n_channels && ch < fresh->n_channels; ch++) {
        for (size_t i = 0; i < config_n_entries; i++) {
            const struct config_entry *e = &config_entries[i];
            if (strcmp(e->section, "channel") != 0 ||
                !values_differ(&c->channels[ch], &fresh->channels[ch], e))
                continue;
            if (e->reloadable)
                store_number(&c->channels[ch], e, load_number(&fresh->channels[ch], e));
            else
                config_complain(&p, "%s in [channel %s] changed; it takes effect after a restart",
                                e->key, c->channels[ch].name);
        }
    }
    return p.n_errors;
}
