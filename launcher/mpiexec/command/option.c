/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/command/option.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/near.h"
#include "launcher/cli/file.h"
#include "launcher/cli/number.h"
#include "launcher/mpiexec/command/binding.h"
#include "launcher/mpiexec/command/outfile.h"
#include "launcher/mpiexec/command/soft.h"
#include "launcher/mpiexec/command/split.h"
#include "proto/segment.h"

int option_fail(struct option_parser *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->error->text, sizeof p->error->text, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

static int take_number(struct option_parser *p, const char *name, const char *text, uint32_t high,
                       uint32_t *ret_value)
{
    if (number_parse(text, strlen(text), 1, high, ret_value) < 0)
        return option_fail(p, "%s " OPTION_SHOWN ": expected a whole number from 1 to %u", name,
                           text, high);
    return 0;
}

static int take_choice(struct option_parser *p, const char *name, const char *text,
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
    return option_fail(p, "%s " OPTION_SHOWN ": expected %s", name, text, all);
}

static int keep_text(struct option_parser *p, const char *name, const char *what, const char *text,
                     char **ret_copy)
{
    if (!text[0])
        return option_fail(p, "%s: %s is empty", name, what);
    free(*ret_copy);
    *ret_copy = strdup(text);
    return *ret_copy ? 0 : option_fail(p, "out of memory");
}

/* ---- one function per option (or per kind of option) ---- */

static int take_n(struct option_parser *p, const char *name, const char *const *values)
{
    return take_number(p, name, values[0], OPTIONS_MAX_RANKS, &p->part->n_ranks);
}

static int take_wdir(struct option_parser *p, const char *name, const char *const *values)
{
    return keep_text(p, name, "the directory's name", values[0], &p->part->wdir);
}

static int take_hosts(struct option_parser *p, const char *name, const char *const *values)
{
    struct host_error error;

    if (hosts_parse_list(&p->part->hosts, values[0], &error) < 0)
        return option_fail(p, "%s: %s", name, error.text);
    return 0;
}

static int take_hostfile(struct option_parser *p, const char *name, const char *const *values)
{
    struct host_error error;

    if (hosts_parse_file(&p->o->hosts, values[0], &error) < 0)
        return option_fail(p, "%s: %s", name, error.text);
    return 0;
}

static int take_ppn(struct option_parser *p, const char *name, const char *const *values)
{
    return take_number(p, name, values[0], HOSTS_SLOTS_MAX, &p->o->mapping.ppn);
}

static bool variable_name_ok(const char *name)
{
    return name[0] && !strchr(name, '=');
}

static int set_variable(struct option_parser *p, struct env_options *env, const char *name,
                        const char *const *values)
{
    if (!variable_name_ok(values[0]))
        return option_fail(p,
                           "%s " OPTION_SHOWN
                           ": expected the name of a variable, and its value as the next argument",
                           name, values[0]);
    words_add_pair(&env->set, values[0], values[1]);
    return 0;
}

static int take_env(struct option_parser *p, const char *name, const char *const *values)
{
    return set_variable(p, &p->part->env, name, values);
}

static int take_genv(struct option_parser *p, const char *name, const char *const *values)
{
    return set_variable(p, &p->o->env, name, values);
}

static int list_variables(struct option_parser *p, struct env_options *env, enum env_mode mode,
                          const char *name, const char *text)
{
    words_free(&env->list);
    env->mode = mode;
    for (;;) {
        size_t n = strcspn(text, ",");
        if (n == 0 || memchr(text, '=', n))
            return option_fail(p, "%s: expected names of variables separated by commas", name);
        words_add_n(&env->list, text, n);
        if (!text[n])
            return 0;
        text += n + 1;
    }
}

static int take_envlist(struct option_parser *p, const char *name, const char *const *values)
{
    return list_variables(p, &p->part->env, ENV_LIST, name, values[0]);
}

static int take_genvlist(struct option_parser *p, const char *name, const char *const *values)
{
    return list_variables(p, &p->o->env, ENV_LIST, name, values[0]);
}

static int take_envexcl(struct option_parser *p, const char *name, const char *const *values)
{
    return list_variables(p, &p->part->env, ENV_EXCEPT, name, values[0]);
}

static int take_genvexcl(struct option_parser *p, const char *name, const char *const *values)
{
    return list_variables(p, &p->o->env, ENV_EXCEPT, name, values[0]);
}

static int take_envnone(struct option_parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->part->env.mode = ENV_NONE;
    return 0;
}

static int take_envall(struct option_parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->part->env.mode = ENV_ALL;
    return 0;
}

static int take_genvnone(struct option_parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->env.mode = ENV_NONE;
    return 0;
}

static int take_genvall(struct option_parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->env.mode = ENV_ALL;
    return 0;
}

static int take_export(struct option_parser *p, const char *name, const char *const *values)
{
    const char *equals = strchr(values[0], '=');

    if (!values[0][0] || equals == values[0])
        return option_fail(p, "%s " OPTION_SHOWN ": expected NAME or NAME=value", name, values[0]);
    words_add(equals ? &p->part->env.set : &p->part->env.export, values[0]);
    return 0;
}

static int take_stdin(struct option_parser *p, const char *name, const char *const *values)
{
    static const char *const choices[] = {"0", "none", NULL};
    uint32_t choice = 0;
    int rc = take_choice(p, name, values[0], choices, &choice);

    p->o->stdin_to_rank0 = choice == 0;
    return rc;
}

static int take_bind(struct option_parser *p, const char *name, const char *const *values)
{
    char why[160];

    return binding_parse_to(&p->o->binding, values[0], why, sizeof why) < 0
               ? option_fail(p, "%s " OPTION_SHOWN ": %s", name, values[0], why)
               : 0;
}

static int take_map(struct option_parser *p, const char *name, const char *const *values)
{
    char why[160];

    return binding_parse_map(&p->o->binding, &p->o->mapping, values[0], why, sizeof why) < 0
               ? option_fail(p, "%s " OPTION_SHOWN ": %s", name, values[0], why)
               : 0;
}

static int take_rank_order(struct option_parser *p, const char *name, const char *const *values)
{
    static const char *const choices[] = {"slot", "fill", "node", NULL};
    uint32_t choice = 0;
    int rc = take_choice(p, name, values[0], choices, &choice);

    p->o->mapping.ranks = choice == 2 ? HOSTS_RANKS_BY_NODE : HOSTS_RANKS_BY_SLOT;
    return rc;
}

static int take_report(struct option_parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->binding.report = true;
    return 0;
}

static int take_show_map(struct option_parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->show_map = true;
    return 0;
}

/* "map", "bind" or both, with a comma. */
static int take_display(struct option_parser *p, const char *name, const char *const *values)
{
    for (const char *text = values[0];; text++) {
        size_t n = strcspn(text, ",");
        if (n == 3 && strncmp(text, "map", n) == 0)
            p->o->show_map = true;
        else if (n == 4 && strncmp(text, "bind", n) == 0)
            p->o->binding.report = true;
        else
            return option_fail(p, "%s " OPTION_SHOWN ": expected map, bind or map,bind", name,
                               values[0]);
        text += n;
        if (!*text)
            return 0;
    }
}

static int keep_pattern(struct option_parser *p, const char *name, const char *text,
                        char **ret_copy)
{
    if (outfile_check(text) < 0)
        return option_fail(p, "%s " OPTION_SHOWN ": expected %%r, %%h, %%p, %%g or %%%% after a %%",
                           name, text);
    return keep_text(p, name, "the file's name", text, ret_copy);
}

static int take_out_pattern(struct option_parser *p, const char *name, const char *const *values)
{
    return keep_pattern(p, name, values[0], &p->o->out_pattern);
}

static int take_err_pattern(struct option_parser *p, const char *name, const char *const *values)
{
    return keep_pattern(p, name, values[0], &p->o->err_pattern);
}

/* "DIR" or "DIR:nocopy". */
static int take_out_folder(struct option_parser *p, const char *name, const char *const *values)
{
    static const char nocopy[] = ":nocopy";
    int rc = keep_text(p, name, "the folder's name", values[0], &p->o->out_folder);
    size_t n = strlen(values[0]);

    p->o->out_no_copy =
        n > sizeof nocopy - 1 && strcmp(values[0] + n - (sizeof nocopy - 1), nocopy) == 0;
    if (rc == 0 && p->o->out_no_copy)
        p->o->out_folder[n - (sizeof nocopy - 1)] = '\0';
    return rc;
}

/* Values that are acceptable: MPI-5.0 section 11.5. */
static int take_soft(struct option_parser *p, const char *name, const char *const *values)
{
    if (soft_check(values[0]) < 0)
        return option_fail(p,
                           "%s " OPTION_SHOWN ": expected numbers of ranks as a, a:b or a:b:c, "
                           "separated by commas",
                           name, values[0]);
    return keep_text(p, name, "the list", values[0], &p->part->soft);
}

/* All nodes of a cluster are of one architecture, that of this program. */
static int take_arch(struct option_parser *p, const char *name, const char *const *values)
{
    struct utsname own;

    if (uname(&own) < 0 || strcmp(values[0], own.machine) == 0 ||
        (strcmp(values[0], "amd64") == 0 && strcmp(own.machine, "x86_64") == 0) ||
        (strcmp(values[0], "arm64") == 0 && strcmp(own.machine, "aarch64") == 0))
        return 0;
    return option_fail(p, "%s " OPTION_SHOWN ": the nodes of this cluster are %s", name, values[0],
                       own.machine);
}

static int take_path(struct option_parser *p, const char *name, const char *const *values)
{
    return keep_text(p, name, "the list of folders", values[0], &p->part->path);
}

static int take_errhandler(struct option_parser *p, const char *name, const char *const *values)
{
    static const char *const choices[] = {"mpi_errors_are_fatal", "mpi_errors_abort",
                                          "mpi_errors_return", NULL};
    uint32_t choice = 0;
    int rc = take_choice(p, name, values[0], choices, &choice);

    if (rc == 0)
        words_add_pair(&p->part->env.set, "MOTET_INITIAL_ERRHANDLER", choices[choice]);
    return rc;
}

/* More options of this program, in a file. */
static int take_file(struct option_parser *p, const char *name, const char *const *values)
{
    struct split_lines lines = {0};
    struct words line = {0};
    char *text = NULL;

    if (p->in_file)
        return option_fail(p, "%s: a file of options cannot name another", name);
    int rc = file_read_text(values[0], &text);
    if (rc < 0)
        return option_fail(p, "%s: cannot read '" OPTION_SHOWN "': %s", name, values[0],
                           strerror(-rc));
    lines.text = text;
    p->in_file = true;
    int got = 0;
    while (rc == 0 && (got = split_next_line(&lines, &line)) > 0) {
        rc = p->take_words(p, line.n, (const char *const *)line.at);
        words_free(&line);
    }
    p->in_file = false;
    if (rc == 0 && got < 0)
        rc = option_fail(
            p, got == -ENOMEM ? "%.80s:%u: out of memory" : "%.80s:%u: a quote is not closed",
            values[0], lines.line);
    words_free(&line);
    free(text);
    return rc;
}

/* Parameters of another MPI library. */
static int take_foreign(struct option_parser *p, const char *name, const char *const *values)
{
    char text[160];

    snprintf(text, sizeof text, "%.20s %.60s %.60s", name, values[0], values[1]);
    words_add(&p->o->ignored, text);
    return 0;
}

static int take_wait(struct option_parser *p, const char *name, const char *const *values)
{
    static const char *const choices[] = {[WAIT_ADAPTIVE] = "adaptive",
                                          [WAIT_SPIN] = "spin",
                                          [WAIT_EVENT] = "event",
                                          [WAIT_N_MODES] = NULL};
    return take_choice(p, name, values[0], choices, &p->o->wait_mode);
}

static int take_timeout(struct option_parser *p, const char *name, const char *const *values)
{
    if (number_parse_seconds(values[0], &p->o->timeout_ns) < 0)
        return option_fail(p, "%s " OPTION_SHOWN ": expected seconds, such as 30 or 0.5", name,
                           values[0]);
    return 0;
}

static int take_tag(struct option_parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->tag_output = true;
    return 0;
}

static int take_private(struct option_parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->private_daemon = true;
    return 0;
}

static int take_verbose(struct option_parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->verbose = true;
    return 0;
}

/* For what Motet always does: the answer to the option is yes already. */
static int take_granted(struct option_parser *p, const char *name, const char *const *values)
{
    (void)p, (void)name, (void)values;
    return 0;
}

static int take_help(struct option_parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->action = ACTION_HELP;
    return 0;
}

static int take_version(struct option_parser *p, const char *name, const char *const *values)
{
    (void)name, (void)values;
    p->o->action = ACTION_VERSION;
    return 0;
}

static int take_config(struct option_parser *p, const char *name, const char *const *values)
{
    char *text;
    int rc;

    if (p->in_config)
        return option_fail(p, "%s: a configuration file cannot name another", name);
    rc = file_read_text(values[0], &text);
    if (rc < 0)
        return option_fail(p, "%s: cannot read '" OPTION_SHOWN "': %s", name, values[0],
                           strerror(-rc));
    p->config_read = true;
    rc = p->take_config(p->o, values[0], text, p->error);
    free(text);
    return rc;
}

static const struct option table[] = {
    {"n np c", "N", OF_PART, take_n,
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
    {"envexcl", "A,B,...", OF_PART, take_envexcl, "pass on all variables but these"},
    {"envall", "", OF_PART, take_envall, "pass on all variables to this program"},
    {"path", "A:B:...", OF_PART, take_path, "folders in which the program is looked for"},
    {"soft", "LIST", OF_PART, take_soft,
     "numbers of ranks that will do, as a, a:b or a:b:c: the largest one up to -n is taken"},
    {"arch", "NAME", OF_PART, take_arch, "architecture of the nodes, such as x86_64"},
    {"file", "FILE", OF_PART, take_file, "more options of this program, in a file"},
    {"initial-errhandler", "NAME", OF_PART, take_errhandler,
     "mpi_errors_are_fatal (default), mpi_errors_abort or mpi_errors_return"},
    {"f hostfile machinefile", "FILE", OF_JOB, take_hostfile,
     "file with a host a line: NAME, NAME:SLOTS or NAME slots=N max_slots=N"},
    {"ppn perhost npernode N", "N", OF_JOB, take_ppn,
     "ranks in a row on each host, instead of its slots"},
    {"genv", "NAME VALUE", OF_JOB, take_genv, "set a variable for all programs"},
    {"genvlist", "A,B,...", OF_JOB, take_genvlist, "pass on only these variables"},
    {"genvnone", "", OF_JOB, take_genvnone, "pass on no variables"},
    {"genvexcl", "A,B,...", OF_JOB, take_genvexcl, "pass on all variables but these"},
    {"genvall", "", OF_JOB, take_genvall, "pass on all variables (default)"},
    {"l prepend-rank tag-output", "", OF_JOB, take_tag,
     "begin every line of output with [rank]; lines stay whole"},
    {"s stdin", "0|none", OF_JOB, take_stdin,
     "who reads standard input: rank 0 (default) or nobody"},
    {"map-by", "WHAT[:pe=N]", OF_JOB, take_map,
     "slot: fill each host before the next (default); node: one on each host in turn;\n"
     "ppr:N:node: N on each; core, socket, numa, ...: by slot, and bind the ranks of a node\n"
     "to these in turn; pe=N: N cores for each rank"},
    {"rank-by", "slot|node", OF_JOB, take_rank_order,
     "number the ranks host by host, or one on each host in turn (default: as mapped)"},
    {"bind-to", "WHAT[:N]", OF_JOB, take_bind,
     "bind each rank to N (default 1) of none, hwthread, core, l1cache, l2cache, l3cache,\n"
     "numa, socket, machine (default: none)"},
    {"report-bindings", "", OF_JOB, take_report, "each rank's processors, on its standard error"},
    {"print-rank-map display-map", "", OF_JOB, take_show_map, "which ranks run on which node"},
    {"display", "map,bind", OF_JOB, take_display, "the two before"},
    {"outfile-pattern", "FILE", OF_JOB, take_out_pattern,
     "standard output into files: %r rank, %h node, %p number of the node, %g 0, %% a %"},
    {"errfile-pattern", "FILE", OF_JOB, take_err_pattern, "the same for standard error"},
    {"output-filename", "DIR[:nocopy]", OF_JOB, take_out_folder,
     "both also into DIR/1/rank.N/stdout and stderr; nocopy: only there"},
    {"wait", "adaptive|spin|event", OF_JOB, take_wait,
     "how ranks wait for messages (default: adaptive)"},
    {"timeout", "SECONDS", OF_JOB, take_timeout,
     "end the job with exit code 124 when it runs longer"},
    {"configfile", "FILE", OF_JOB, take_config, "read the parts from a file, a line each"},
    {"private", "", OF_JOB, take_private, "start a daemon for this job even where one runs"},
    {"v verbose", "", OF_JOB, take_verbose, "say what is done"},
    {"oversubscribe", "", OF_JOB, take_granted, "more ranks than cores are always allowed"},
    {"allow-run-as-root", "", OF_JOB, take_granted, "running as root is always allowed"},
    {"mca gmca prtemca pmixmca", "NAME VALUE", OF_JOB, take_foreign,
     "parameters of another MPI library: said to be ignored"},
    {"help h ?", "", OF_JOB, take_help, "this text"},
    {"version V", "", OF_JOB, take_version, "version"},
};

const struct option *option_table(size_t *ret_n)
{
    *ret_n = sizeof table / sizeof *table;
    return table;
}

size_t option_n_arguments(const struct option *option)
{
    size_t n = option->arguments[0] != '\0';

    for (const char *p = option->arguments; *p; p++)
        n += *p == ' ';
    return n;
}

/* The option that has the first n characters of text as a name. */
static const struct option *option_named(const char *text, size_t n)
{
    for (size_t i = 0; n > 0 && i < sizeof table / sizeof *table; i++) {
        for (const char *p = table[i].names; *p;) {
            size_t len = strcspn(p, " ");
            if (len == n && strncmp(p, text, n) == 0)
                return &table[i];
            p += len + (p[len] == ' ');
        }
    }
    return NULL;
}

const struct option *option_find(const char *given, const char **ret_value)
{
    const char *name = given + (given[1] == '-' ? 2 : 1);
    size_t n = strlen(name), n_name = strcspn(name, "=");
    const struct option *option = option_named(name, n);

    *ret_value = NULL;
    if (option)
        return option;
    if (name[n_name] == '=') {
        option = option_named(name, n_name);
        *ret_value = name + n_name + 1;
        return option && option_n_arguments(option) == 1 ? option : NULL;
    }
    n_name = strcspn(name, "0123456789");
    if (!name[n_name] || strspn(name + n_name, "0123456789") != n - n_name)
        return NULL;
    option = option_named(name, n_name);
    *ret_value = name + n_name;
    return option && strcmp(option->arguments, "N") == 0 ? option : NULL;
}

const char *option_near(const char *given)
{
    static char best[32];
    char name[64], other[32];
    unsigned distance = NEAR_NONE;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(given + strspn(given, "-"), "="),
             given + strspn(given, "-"));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        for (const char *p = table[i].names; *p;) {
            size_t len = strcspn(p, " ");
            snprintf(other, sizeof other, "%.*s", (int)len, p);
            unsigned d = near_distance(name, other);
            if (d < distance) {
                distance = d;
                memcpy(best, other, sizeof best);
            }
            p += len + (p[len] == ' ');
        }
    }
    return distance < NEAR_NONE ? best : NULL;
}
