/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/command/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/mpiexec/command/option.h"
#include "launcher/mpiexec/command/split.h"
#include "proto/segment.h"

static int add_part(struct option_parser *p)
{
    struct part *parts = realloc(p->o->parts, (p->o->n_parts + 1) * sizeof *parts);

    if (!parts)
        return option_fail(p, "out of memory");
    p->o->parts = parts;
    p->part = &parts[p->o->n_parts++];
    *p->part = (struct part){0};
    return 0;
}

/* Whether something of it could not be kept for want of memory. */
static bool env_failed(const struct env_options *env)
{
    return env->list.failed || env->set.failed || env->export.failed;
}

static bool part_failed(const struct part *part)
{
    return part->argv.failed || env_failed(&part->env);
}

/* Options from *at on, which is left at the first word that is none. */
static int parse_options(struct option_parser *p, size_t argc, const char *const *argv, size_t *at)
{
    while (*at < argc && argv[*at][0] == '-' && !p->config_read) {
        const char *given = argv[(*at)++], *value;
        if (strcmp(given, "--") == 0)
            return 0;
        const struct option *option = option_find(given, &value);
        if (!option) {
            const char *near = option_near(given);
            return near ? option_fail(p, OPTION_SHOWN ": unknown option; did you mean -%s?", given,
                                      near)
                        : option_fail(p, OPTION_SHOWN ": unknown option (see mpiexec --help)",
                                      given);
        }
        if (option->place == OF_JOB && p->o->n_parts > 1)
            return option_fail(
                p, "%s: this option is for the whole job and must stand before the first program",
                given);
        size_t n = value ? 0 : option_n_arguments(option);
        if (argc - *at < n)
            return option_fail(p, "%s: expected %s after it", given, option->arguments);
        int rc = option->take(p, given, value ? &value : argv + *at);
        *at += n;
        if (rc < 0 || p->o->action != ACTION_RUN)
            return rc;
    }
    return 0;
}

static int parse_words(struct option_parser *p, size_t n, const char *const *words)
{
    size_t at = 0;
    int rc = parse_options(p, n, words, &at);

    return rc == 0 && at < n && p->o->action == ACTION_RUN
               ? option_fail(p, OPTION_SHOWN ": expected only options in a file of options",
                             words[at])
               : rc;
}

/* The options of one part and its program. Leaves *at behind the part. */
static int parse_part(struct option_parser *p, size_t argc, const char *const *argv, size_t *at)
{
    int rc = parse_options(p, argc, argv, at);
    size_t i = *at;

    if (rc < 0 || p->o->action != ACTION_RUN || p->config_read)
        return rc;
    for (; i < argc && strcmp(argv[i], ":") != 0; i++)
        words_add(&p->part->argv, argv[i]);
    *at = i;
    if (part_failed(p->part) || env_failed(&p->o->env))
        return option_fail(p, "out of memory");
    if (p->part->argv.n == 0)
        return p->o->n_parts == 1 && i == argc
                   ? option_fail(p, "no program given (see mpiexec --help)")
                   : option_fail(p, "part %zu between colons names no program", p->o->n_parts);
    if (!p->part->argv.at[0][0])
        return option_fail(p, "the program's name is empty");
    return 0;
}

static void free_env(struct env_options *env)
{
    words_free(&env->list);
    words_free(&env->set);
    words_free(&env->export);
}

static void free_part(struct part *part)
{
    words_free(&part->argv);
    free(part->wdir);
    free(part->path);
    free(part->soft);
    free_env(&part->env);
    hosts_free(&part->hosts);
}

/* The parts of a configuration file replace the one that named it, which has only options of the
 * job. */
static int check_before_config(struct option_parser *p)
{
    const struct part *part = &p->o->parts[0];

    if (part->n_ranks || part->wdir || part->path || part->soft || part->env.mode ||
        part->env.set.n || part->env.export.n)
        return option_fail(p,
                           "-configfile: options of a program belong into the file, not before it");
    return 0;
}

static int parse_parts(struct option_parser *p, size_t argc, const char *const *argv)
{
    size_t at = 0;

    for (;;) {
        int rc = add_part(p);
        if (rc == 0)
            rc = parse_part(p, argc, argv, &at);
        if (rc < 0 || p->o->action != ACTION_RUN)
            return rc;
        if (p->config_read)
            return at < argc ? option_fail(p, OPTION_SHOWN ": nothing may follow -configfile FILE",
                                           argv[at])
                             : 0;
        if (at == argc)
            return 0;
        at++; /* the colon */
    }
}

/* The hosts of the first part serve those that have none; a single list is the job's. */
static void share_hosts(struct options *o)
{
    struct host_list *first = &o->parts[0].hosts;

    if (o->hosts.n > 0 || first->n == 0)
        return;
    o->hosts = *first;
    *first = (struct host_list){0};
}

int options_parse(struct options *ret_options, size_t argc, const char *const *argv,
                  struct options_error *ret_error)
{
    struct option_parser p = {.o = ret_options,
                              .error = ret_error,
                              .take_words = parse_words,
                              .take_config = options_parse_config};

    *ret_options =
        (struct options){.stdin_to_rank0 = true, .wait_mode = WAIT_ADAPTIVE, .env.mode = ENV_ALL};
    int rc = parse_parts(&p, argc, argv);
    if (rc == 0 && ret_options->action == ACTION_RUN)
        share_hosts(ret_options);
    return rc;
}

int options_parse_config(struct options *o, const char *name, const char *text,
                         struct options_error *ret_error)
{
    struct option_parser p = {
        .o = o, .error = ret_error, .in_config = true, .take_words = parse_words};
    struct options_error error;
    struct split_lines lines = {.text = text};
    struct words line = {0};
    size_t n_lines = 0;
    int rc;

    if (o->n_parts > 0) {
        rc = check_before_config(&p);
        if (rc < 0)
            return rc;
        o->hosts = o->hosts.n ? o->hosts : o->parts[0].hosts;
        if (o->hosts.at == o->parts[0].hosts.at)
            o->parts[0].hosts = (struct host_list){0};
        free_part(&o->parts[0]);
        o->n_parts = 0;
    }
    while ((rc = split_next_line(&lines, &line)) > 0) {
        size_t at = 0;
        p.error = &error;
        rc = add_part(&p);
        if (rc == 0)
            rc = parse_part(&p, line.n, (const char *const *)line.at, &at);
        if (rc == 0 && at < line.n)
            rc = option_fail(&p, "a line is one program: ':' is for the command line");
        p.error = ret_error;
        if (rc < 0) {
            rc = option_fail(&p, "%.80s:%u: %.300s", name, lines.line, error.text);
            break;
        }
        words_free(&line);
        n_lines++;
        if (o->action != ACTION_RUN)
            break;
    }
    if (rc < 0 && !line.n)
        rc = option_fail(
            &p, rc == -ENOMEM ? "%.80s:%u: out of memory" : "%.80s:%u: a quote is not closed", name,
            lines.line);
    words_free(&line);
    if (rc == 0 && n_lines == 0)
        rc = option_fail(&p, "%.80s: there is no program in this file", name);
    return rc < 0 ? rc : 0;
}

void options_free(struct options *o)
{
    for (size_t i = 0; i < o->n_parts; i++)
        free_part(&o->parts[i]);
    free(o->parts);
    free_env(&o->env);
    hosts_free(&o->hosts);
    words_free(&o->ignored);
    free(o->out_pattern);
    free(o->err_pattern);
    free(o->out_folder);
    *o = (struct options){0};
}

static void print_option(FILE *to, const struct option *option)
{
    char left[96] = "  ";
    size_t n = 2;

    for (const char *p = option->names; *p && n < sizeof left;) {
        size_t len = strcspn(p, " ");
        n += (size_t)snprintf(left + n, sizeof left - n, "%s-%.*s", n > 2 ? ", " : "", (int)len, p);
        p += len + (p[len] == ' ');
    }
    if (option->arguments[0] && n < sizeof left)
        snprintf(left + n, sizeof left - n, " %s", option->arguments);
    const char *line = option->help;
    if (strlen(left) < 38)
        fprintf(to, "%-38s", left);
    else
        fprintf(to, "%s\n%38s", left, "");
    for (;;) {
        size_t len = strcspn(line, "\n");
        fprintf(to, "%.*s\n", (int)len, line);
        if (!line[len])
            return;
        line += len + 1;
        fprintf(to, "%38s", "");
    }
}

void options_print_help(FILE *to)
{
    static const struct {
        enum option_place place;
        const char *title;
    } groups[] = {{OF_PART, "Options of a program:"},
                  {OF_JOB, "Options of the job, before the first program:"}};

    size_t n;
    const struct option *table = option_table(&n);

    fputs("Usage: mpiexec [options] program [arguments] [: [options] program [arguments]] ...\n"
          "Starts an MPI program on this node or on nodes of its cluster. Options take one dash or "
          "two.\n",
          to);
    for (size_t g = 0; g < 2; g++) {
        fprintf(to, "\n%s\n", groups[g].title);
        for (size_t i = 0; i < n; i++) {
            if (table[i].place == groups[g].place)
                print_option(to, &table[i]);
        }
    }
    fputs("\nThe exit code is that of the first rank that failed, or 128 and the number of the "
          "signal that "
          "killed it.\n"
          "INT, TERM, USR1, USR2, TSTP and CONT go to all ranks; a second INT or TERM kills them "
          "at once.\n",
          to);
}
