/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cli/file.h"
#include "launcher/cli/number.h"
#include "launcher/mpiexec/split.h"
#include "proto/segment.h"

struct parser {
    struct options *o;
    struct part *part;
    struct options_error *error;
    bool in_config; /* a configuration file does not name another */
    bool config_read;
};

static int options_fail(struct parser *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int options_fail(struct parser *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->error->text, sizeof p->error->text, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

/* Values may be long (an environment, a file name); a message shows their beginning. */
#define SHOWN "%.120s"

static int take_number(struct parser *p, const char *name, const char *text, uint32_t high,
                       uint32_t *ret_value)
{
    if (number_parse(text, strlen(text), 1, high, ret_value) < 0)
        return options_fail(p, "%s " SHOWN ": expected a whole number from 1 to %u", name, text,
                            high);
    return 0;
}

static int take_choice(struct parser *p, const char *name, const char *text,
                       const char *const *choices, uint32_t *ret_index)
{
    char all[128] = "";

    for (uint32_t i = 0; choices[i]; i++) {
        if (strcmp(text, choices[i]) == 0) {
            *ret_index = i;
            return 0;
        }
        size_t n = strlen(all);
        snprintf(all + n, sizeof all - n, "%s%s", n ? (choices[i + 1] ? ", " : " or ") : "",
                 choices[i]);
    }
    return options_fail(p, "%s " SHOWN ": expected %s", name, text, all);
}

/* ---- one function per option (or per kind of option) ---- */

typedef int take_fn(struct parser *p, const char *name, const char *const *values);

static int take_n(struct parser *p, const char *name, const char *const *values)
{
    return take_number(p, name, values[0], OPTIONS_MAX_RANKS, &p->part->n_ranks);
}

static int take_wdir(struct parser *p, const char *name, const char *const *values)
{
    if (!values[0][0])
        return options_fail(p, "%s: the directory's name is empty", name);
    free(p->part->wdir);
    p->part->wdir = strdup(values[0]);
    return p->part->wdir ? 0 : options_fail(p, "out of memory");
}

static int take_hosts(struct parser *p, const char *name, const char *const *values)
{
    struct host_error error;

    if (hosts_parse_list(&p->part->hosts, values[0], &error) < 0)
        return options_fail(p, "%s: %s", name, error.text);
    return 0;
}

static int take_hostfile(struct parser *p, const char *name, const char *const *values)
{
    struct host_error error;

    if (hosts_parse_file(&p->o->hosts, values[0], &error) < 0)
        return options_fail(p, "%s: %s", name, error.text);
    return 0;
}

static int take_ppn(struct parser *p, const char *name, const char *const *values)
{
    return take_number(p, name, values[0], HOSTS_SLOTS_MAX, &p->o->ppn);
}

static bool variable_name_ok(const char *name)
{
    return name[0] && !strchr(name, '=');
}

static int set_variable(struct parser *p, struct env_options *env, const char *name,
                        const char *const *values)
{
    if (!variable_name_ok(values[0]))
        return options_fail(
            p, "%s " SHOWN ": expected the name of a variable, and its value as the next argument",
            name, values[0]);
    words_add_pair(&env->set, values[0], values[1]);
    return 0;
}

static int take_env(struct parser *p, const char *name, const char *const *values)
{
    return set_variable(p, &p->part->env, name, values);
}

static int take_genv(struct parser *p, const char *name, const char *const *values)
{
    return set_variable(p, &p->o->env, name, values);
}

static int list_variables(struct parser *p, struct env_options *env, const char *name,
                          const char *text)
{
    env->mode = ENV_LIST;
    for (;;) {
        size_t n = strcspn(text, ",");
        if (n == 0 || memchr(text, '=', n))
            return options_fail(p, "%s: expected names of variables separated by commas", name);
        words_add_n(&env->list, text, n);
        if (!text[n])
            return 0;
        text += n + 1;
    }
}

static int take_envlist(struct parser *p, const char *name, const char *const *values)
{
    return list_variables(p, &p->part->env, name, values[0]);
}

static int take_genvlist(struct parser *p, const char *name, const char *const *values)
{
    return list_variables(p, &p->o->env, name, values[0]);
}

static int take_envnone(struct parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->part->env.mode = ENV_NONE;
    return 0;
}

static int take_envall(struct parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->part->env.mode = ENV_ALL;
    return 0;
}

static int take_genvnone(struct parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->env.mode = ENV_NONE;
    return 0;
}

static int take_genvall(struct parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->env.mode = ENV_ALL;
    return 0;
}

static int take_export(struct parser *p, const char *name, const char *const *values)
{
    const char *equals = strchr(values[0], '=');

    if (!values[0][0] || equals == values[0])
        return options_fail(p, "%s " SHOWN ": expected NAME or NAME=value", name, values[0]);
    words_add(equals ? &p->part->env.set : &p->part->env.export, values[0]);
    return 0;
}

static int take_stdin(struct parser *p, const char *name, const char *const *values)
{
    static const char *const choices[] = {"0", "none", NULL};
    uint32_t choice = 0;
    int rc = take_choice(p, name, values[0], choices, &choice);

    p->o->stdin_to_rank0 = choice == 0;
    return rc;
}

static int take_bind(struct parser *p, const char *name, const char *const *values)
{
    static const char *const choices[] = {"none", "core", NULL};
    uint32_t choice = 0;
    int rc = take_choice(p, name, values[0], choices, &choice);

    p->o->bind_core = choice == 1;
    return rc;
}

static int take_wait(struct parser *p, const char *name, const char *const *values)
{
    static const char *const choices[] = {[WAIT_ADAPTIVE] = "adaptive",
                                          [WAIT_SPIN] = "spin",
                                          [WAIT_EVENT] = "event",
                                          [WAIT_N_MODES] = NULL};
    return take_choice(p, name, values[0], choices, &p->o->wait_mode);
}

static int take_timeout(struct parser *p, const char *name, const char *const *values)
{
    if (number_parse_seconds(values[0], &p->o->timeout_ns) < 0)
        return options_fail(p, "%s " SHOWN ": expected seconds, such as 30 or 0.5", name,
                            values[0]);
    return 0;
}

static int take_tag(struct parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->tag_output = true;
    return 0;
}

static int take_private(struct parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->private_daemon = true;
    return 0;
}

static int take_verbose(struct parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->verbose = true;
    return 0;
}

/* For what Motet always does: the answer to the option is yes already. */
static int take_granted(struct parser *p, const char *name, const char *const *values)
{
    (void)p, (void)name, (void)values;
    return 0;
}

static int take_help(struct parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->action = ACTION_HELP;
    return 0;
}

static int take_version(struct parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->action = ACTION_VERSION;
    return 0;
}

static int take_config(struct parser *p, const char *name, const char *const *values)
{
    char *text;
    int rc;

    if (p->in_config)
        return options_fail(p, "%s: a configuration file cannot name another", name);
    rc = file_read_text(values[0], &text);
    if (rc < 0)
        return options_fail(p, "%s: cannot read '" SHOWN "': %s", name, values[0], strerror(-rc));
    p->config_read = true;
    rc = options_parse_config(p->o, values[0], text, p->error);
    free(text);
    return rc;
}

enum place { OF_PART, OF_JOB };

struct option {
    const char *names;     /* separated by spaces, without dashes */
    const char *arguments; /* separated by spaces; "" none */
    enum place place;
    take_fn *take;
    const char *help; /* lines separated by \n */
};

static const struct option table[] = {
    {"n np", "N", OF_PART, take_n,
     "start N ranks of this program (default: one per slot of the hosts given, else 1)"},
    {"wdir wd", "DIR", OF_PART, take_wdir,
     "working directory of the ranks (default: the current one)"},
    {"host hosts H", "A,B:2,...", OF_PART, take_hosts,
     "nodes to run on, each with the number of ranks it takes in its turn (default 1);\n"
     "in the first part: for all parts that name none"},
    {"env", "NAME VALUE", OF_PART, take_env, "set a variable for this program"},
    {"x", "NAME[=VALUE]", OF_PART, take_export, "pass on or set a variable for this program"},
    {"envlist", "A,B,...", OF_PART, take_envlist, "pass on only these variables to this program"},
    {"envnone", "", OF_PART, take_envnone, "pass on no variables to this program"},
    {"envall", "", OF_PART, take_envall, "pass on all variables to this program"},
    {"f hostfile machinefile", "FILE", OF_JOB, take_hostfile,
     "file with a host a line: NAME, NAME:SLOTS or NAME slots=N max_slots=N"},
    {"ppn perhost npernode N", "N", OF_JOB, take_ppn,
     "ranks in a row on each host, instead of its slots"},
    {"genv", "NAME VALUE", OF_JOB, take_genv, "set a variable for all programs"},
    {"genvlist", "A,B,...", OF_JOB, take_genvlist, "pass on only these variables"},
    {"genvnone", "", OF_JOB, take_genvnone, "pass on no variables"},
    {"genvall", "", OF_JOB, take_genvall, "pass on all variables (default)"},
    {"l prepend-rank tag-output", "", OF_JOB, take_tag,
     "begin every line of output with [rank]; lines stay whole"},
    {"s stdin", "0|none", OF_JOB, take_stdin,
     "who reads standard input: rank 0 (default) or nobody"},
    {"bind-to", "core|none", OF_JOB, take_bind, "bind each rank to a core (default: none)"},
    {"wait", "adaptive|spin|event", OF_JOB, take_wait,
     "how ranks wait for messages (default: adaptive)"},
    {"timeout", "SECONDS", OF_JOB, take_timeout,
     "end the job with exit code 124 when it runs longer"},
    {"configfile", "FILE", OF_JOB, take_config, "read the parts from a file, a line each"},
    {"private", "", OF_JOB, take_private, "start a daemon for this job even where one runs"},
    {"v verbose", "", OF_JOB, take_verbose, "say what is done"},
    {"oversubscribe", "", OF_JOB, take_granted, "more ranks than cores are always allowed"},
    {"allow-run-as-root", "", OF_JOB, take_granted, "running as root is always allowed"},
    {"help h ?", "", OF_JOB, take_help, "this text"},
    {"version V", "", OF_JOB, take_version, "version"},
};

static bool has_name(const struct option *option, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = option->names; *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && strncmp(p, name, n) == 0)
            return true;
        p += len + (p[len] == ' ');
    }
    return false;
}

static const struct option *find_option(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (*name && has_name(&table[i], name))
            return &table[i];
    }
    return NULL;
}

static size_t n_arguments(const struct option *option)
{
    size_t n = option->arguments[0] != '\0';

    for (const char *p = option->arguments; *p; p++)
        n += *p == ' ';
    return n;
}

static int add_part(struct parser *p)
{
    struct part *parts = realloc(p->o->parts, (p->o->n_parts + 1) * sizeof *parts);

    if (!parts)
        return options_fail(p, "out of memory");
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

/* The options of one part and its program. Leaves *at behind the part. */
static int parse_part(struct parser *p, size_t argc, const char *const *argv, size_t *at)
{
    size_t i = *at;

    for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], ":") != 0; i++) {
        const char *given = argv[i];
        if (strcmp(given, "--") == 0) {
            i++;
            break;
        }
        const struct option *option = find_option(given + (given[1] == '-' ? 2 : 1));
        if (!option)
            return options_fail(p, SHOWN ": unknown option (see mpiexec --help)", given);
        if (option->place == OF_JOB && p->o->n_parts > 1)
            return options_fail(
                p, "%s: this option is for the whole job and must stand before the first program",
                given);
        size_t n = n_arguments(option);
        if (argc - i - 1 < n)
            return options_fail(p, "%s: expected %s after it", given, option->arguments);
        int rc = option->take(p, given, argv + i + 1);
        if (rc < 0 || p->o->action != ACTION_RUN || p->config_read) {
            *at = i + n + 1;
            return rc;
        }
        i += n;
    }
    for (; i < argc && strcmp(argv[i], ":") != 0; i++)
        words_add(&p->part->argv, argv[i]);
    *at = i;
    if (part_failed(p->part) || env_failed(&p->o->env))
        return options_fail(p, "out of memory");
    if (p->part->argv.n == 0)
        return p->o->n_parts == 1 && i == argc
                   ? options_fail(p, "no program given (see mpiexec --help)")
                   : options_fail(p, "part %zu between colons names no program", p->o->n_parts);
    if (!p->part->argv.at[0][0])
        return options_fail(p, "the program's name is empty");
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
    free_env(&part->env);
    hosts_free(&part->hosts);
}

/* The parts of a configuration file replace the one that named it, which has only options of the
 * job. */
static int check_before_config(struct parser *p)
{
    const struct part *part = &p->o->parts[0];

    if (part->n_ranks || part->wdir || part->env.mode || part->env.set.n || part->env.export.n)
        return options_fail(
            p, "-configfile: options of a program belong into the file, not before it");
    return 0;
}

static int parse_parts(struct parser *p, size_t argc, const char *const *argv)
{
    size_t at = 0;

    for (;;) {
        int rc = add_part(p);
        if (rc == 0)
            rc = parse_part(p, argc, argv, &at);
        if (rc < 0 || p->o->action != ACTION_RUN)
            return rc;
        if (p->config_read)
            return at < argc
                       ? options_fail(p, SHOWN ": nothing may follow -configfile FILE", argv[at])
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
    struct parser p = {.o = ret_options, .error = ret_error};

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
    struct parser p = {.o = o, .error = ret_error, .in_config = true};
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
            rc = options_fail(&p, "a line is one program: ':' is for the command line");
        p.error = ret_error;
        if (rc < 0) {
            rc = options_fail(&p, "%.80s:%u: %.300s", name, lines.line, error.text);
            break;
        }
        words_free(&line);
        n_lines++;
        if (o->action != ACTION_RUN)
            break;
    }
    if (rc < 0 && !line.n)
        rc = options_fail(
            &p, rc == -ENOMEM ? "%.80s:%u: out of memory" : "%.80s:%u: a quote is not closed", name,
            lines.line);
    words_free(&line);
    if (rc == 0 && n_lines == 0)
        rc = options_fail(&p, "%.80s: there is no program in this file", name);
    return rc < 0 ? rc : 0;
}

void options_free(struct options *o)
{
    for (size_t i = 0; i < o->n_parts; i++)
        free_part(&o->parts[i]);
    free(o->parts);
    free_env(&o->env);
    hosts_free(&o->hosts);
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
        enum place place;
        const char *title;
    } groups[] = {{OF_PART, "Options of a program:"},
                  {OF_JOB, "Options of the job, before the first program:"}};

    fputs("Usage: mpiexec [options] program [arguments] [: [options] program [arguments]] ...\n"
          "Starts an MPI program on this node or on nodes of its cluster. Options take one dash or "
          "two.\n",
          to);
    for (size_t g = 0; g < 2; g++) {
        fprintf(to, "\n%s\n", groups[g].title);
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
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
