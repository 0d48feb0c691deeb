/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * motetctl: looks into the daemon of this node, and through it into the cluster, by the status
 * socket. Prints tables for people or, with --json, the data as they came.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/cli/number.h"
#include "launcher/motetctl/ask.h"
#include "launcher/motetctl/local.h"
#include "launcher/motetctl/report.h"
#include "launcher/motetctl/show.h"
#include "proto/status_views.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

static const char usage_head[] =
    "Usage: motetctl [options] COMMAND\n"
    "Shows the Motet daemon of this node, its cluster, and the jobs that run there.\n\n"
    "Show:\n"
    "  local       without a daemon: versions, ABI, providers, every MOTET_ variable with its "
    "meaning\n";
/* Between them stand the views. */
static const char usage_tail[] =
    "  all         everything above but local\n\n"
    "Find out:\n"
    "  doctor      what is wrong with the nodes, and what to do about it\n"
    "  waits [JOB] who waits for whom in a job that hangs: deadlocks, and messages that do not "
    "match\n"
    "  metrics     this node in the format of Prometheus' textfile collector\n\n"
    "Change:\n"
    "  set wait_mode adaptive|spin|event            how the ranks of a job (--job) or a channel "
    "(--channel) wait\n"
    "  set log_level error|warn|notice|info|debug   the least important lines that the daemon "
    "logs\n"
    "  kill JOB                                     end a job\n\n"
    "Options:\n"
    "  -s, --socket PATH     ask the daemon at this status socket (@NAME: abstract)\n"
    "  -N, --node NODE       show or change another node instead\n"
    "  -j, --job JOB         only this job\n"
    "  -r, --rank RANK       only this rank (in MPI_COMM_WORLD)\n"
    "  -c, --channel NAME    the channel to change\n"
    "  -n, --limit ROWS      show at most so many rows of each node\n"
    "  -o, --output FILE     write metrics into this file, in one step\n"
    "  -J, --json            print the data as JSON instead of tables\n"
    "  -w, --watch SECONDS   show it again every so many seconds\n"
    "  -V, --version         print the version and end\n"
    "  -h, --help            print this text and end\n";

static const struct option long_options[] = {
    {"socket", required_argument, NULL, 's'},  {"node", required_argument, NULL, 'N'},
    {"job", required_argument, NULL, 'j'},     {"rank", required_argument, NULL, 'r'},
    {"channel", required_argument, NULL, 'c'}, {"limit", required_argument, NULL, 'n'},
    {"output", required_argument, NULL, 'o'},  {"json", no_argument, NULL, 'J'},
    {"watch", required_argument, NULL, 'w'},   {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},          {0}};

struct arguments {
    const char *socket, *node, *job, *channel, *output;
    uint32_t rank, limit; /* limit 0: the daemon's */
    bool has_rank, json;
    uint64_t watch_ns; /* 0: once */
    bool with_local;   /* `info` of this node: what needs no daemon belongs to it */
    json_t *request;   /* without id; NULL: `report` asks */
    int (*report)(int fd, const struct report *what);
    char given[64]; /* letters of the options that were given */
};

static void print_usage(void)
{
    fputs(usage_head, stdout);
    for (size_t i = 0; i < STATUS_VIEWS_N; i++)
        if (status_views[i].in_all)
            printf("  %-10s  %s\n", status_views[i].name, status_views[i].help);
    fputs(usage_tail, stdout);
}

static int usage_error(const char *fmt, const char *what)
{
    fprintf(stderr, "motetctl: ");
    fprintf(stderr, fmt, what);
    fprintf(stderr, " (see motetctl --help)\n");
    return EXIT_USAGE;
}

/* Options, wherever they stand. Returns 0 to go on, else the exit code plus one. */
static int parse_options(int argc, char **argv, struct arguments *a)
{
    int opt;

    while ((opt = getopt_long(argc, argv, "s:N:j:r:c:n:o:Jw:Vh", long_options, NULL)) != -1) {
        size_t n_given = strlen(a->given);
        if (n_given + 1 < sizeof a->given)
            a->given[n_given] = (char)opt;
        switch (opt) {
        case 's':
            a->socket = optarg;
            break;
        case 'N':
            a->node = optarg;
            break;
        case 'j':
            a->job = optarg;
            break;
        case 'r':
            if (number_parse(optarg, strlen(optarg), 0, UINT32_MAX, &a->rank) < 0)
                return usage_error("--rank %s: expected a number", optarg) + 1;
            a->has_rank = true;
            break;
        case 'c':
            a->channel = optarg;
            break;
        case 'n':
            if (number_parse(optarg, strlen(optarg), 1, 200000, &a->limit) < 0)
                return usage_error("--limit %s: expected a number from 1 to 200000", optarg) + 1;
            break;
        case 'o':
            a->output = optarg;
            break;
        case 'J':
            a->json = true;
            break;
        case 'w':
            if (number_parse_seconds(optarg, &a->watch_ns) < 0)
                return usage_error("--watch %s: expected seconds", optarg) + 1;
            break;
        case 'V':
            puts("motetctl (Motet) " MOTET_VERSION);
            return 1;
        case 'h':
            print_usage();
            return 1;
        default:
            return EXIT_USAGE + 1;
        }
    }
    return 0;
}

/* Whether the rows that the daemon has of it are all there is to show. */
static bool is_view(const char *word)
{
    const struct status_view *view = status_views_find(word);

    return strcmp(word, "all") == 0 || (view && view->in_all);
}

/* A command that makes one answer of several. 0 or the exit code. */
static int parse_report(int n, char **words, struct arguments *a)
{
    static const struct {
        const char *name, *options; /* those that mean something to it */
        int (*report)(int fd, const struct report *what);
    } reports[] = {{"waits", "sjJw", report_waits},
                   {"doctor", "sNJ", report_doctor},
                   {"metrics", "sNow", report_metrics}};
    char option[2] = "";

    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        if (strcmp(reports[i].name, words[0]) != 0)
            continue;
        a->report = reports[i].report;
        option[0] = a->given[strspn(a->given, reports[i].options)];
    }
    if (!a->report)
        return usage_error("'%s': unknown command", words[0]);
    if (option[0]) {
        fprintf(stderr, "motetctl: %s: the option -%s means nothing here (see motetctl --help)\n",
                words[0], option);
        return EXIT_USAGE;
    }
    int wanted = a->report == report_waits && !a->job ? 2 : 1;
    if (n == 2 && wanted == 2)
        a->job = words[1];
    else if (n > 1)
        return usage_error("'%s': nothing is expected here", words[n > wanted ? wanted : 1]);
    return 0;
}

/* The command's words. 0 or the exit code. */
static int parse_command(int n, char **words, struct arguments *a)
{
    int wanted = 1;

    if (n == 0)
        return usage_error("no command given%s", "");
    if (!is_view(words[0]) && strcmp(words[0], "set") != 0 && strcmp(words[0], "kill") != 0)
        return parse_report(n, words, a);
    if (a->output)
        return usage_error("%s: the option -o means nothing here", words[0]);
    a->request = json_object();
    if (is_view(words[0])) {
        json_object_set_new(a->request, "get", json_string(words[0]));
    } else if (strcmp(words[0], "set") == 0) {
        wanted = 3;
        if (n >= 3) {
            json_object_set_new(a->request, "set", json_string(words[1]));
            json_object_set_new(a->request, "value", json_string(words[2]));
        }
    } else {
        wanted = 2;
        if (n >= 2) {
            json_object_set_new(a->request, "set", json_string("kill"));
            json_object_set_new(a->request, "value",
                                json_string("the job was ended with motetctl"));
            a->job = words[1];
        }
    }
    if (n < wanted)
        return usage_error(wanted == 3 ? "%s: expected a name and a value" : "%s: expected a job",
                           words[0]);
    if (n > wanted)
        return usage_error("'%s': nothing is expected here", words[wanted]);
    if (a->node)
        json_object_set_new(a->request, "node", json_string(a->node));
    if (a->job)
        json_object_set_new(a->request, "job", json_string(a->job));
    if (a->channel)
        json_object_set_new(a->request, "channel", json_string(a->channel));
    if (a->limit)
        json_object_set_new(a->request, "limit", json_integer(a->limit));
    if (a->has_rank)
        json_object_set_new(a->request, "rank", json_integer(a->rank));
    return 0;
}

/* Returns the exit code. */
static int print_tables(json_t *data)
{
    if (show_data(data, stdout) == 0)
        return 0;
    fputs("motetctl: out of memory\n", stderr);
    return EXIT_FAILED;
}

/* What needs no daemon. Returns the exit code. */
static int show_local(bool json)
{
    json_t *data = local_tables();
    int code = 0;

    if (json) {
        json_dumpf(data, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        code = print_tables(data);
    }
    json_decref(data);
    return fflush(stdout) == 0 ? code : EXIT_FAILED;
}

/* The tables of local_tables() as keys of the daemon's row. */
static void add_local(json_t *row)
{
    json_t *local = local_tables(), *part;
    size_t i;

    json_array_foreach(local, i, part) {
        json_t *rows = json_object_get(part, "rows");
        json_object_set(row, json_string_value(json_object_get(part, "subject")),
                        json_array_size(rows) == 1 ? json_array_get(rows, 0) : rows);
    }
    json_decref(local);
}

/* Asks once and prints. Returns the exit code. */
static int main_ask(int fd, const struct arguments *a, json_int_t id)
{
    json_t *request, *answer;
    char text[512] = "";

    if (a->report) {
        struct report what = {.job = a->job, .node = a->node, .file = a->output, .json = a->json};
        int code = a->report(fd, &what);
        return fflush(stdout) == 0 ? code : EXIT_FAILED;
    }
    request = json_copy(a->request);
    json_object_set_new(request, "id", json_integer(id));
    int rc = ask_daemon(fd, request, ASK_LIMIT_NS, &answer, text, sizeof text);
    if (text[0])
        fprintf(stderr, "motetctl: %s\n", text);
    if (rc < 0)
        return EXIT_FAILED;
    json_t *data = json_object_get(answer, "data");
    int code = 0;
    if (a->json) {
        if (a->with_local && json_is_object(json_array_get(data, 0)))
            add_local(json_array_get(data, 0));
        json_dumpf(data, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
        putchar('\n');
    } else {
        code = print_tables(data);
    }
    json_decref(answer);
    return fflush(stdout) == 0 ? code : EXIT_FAILED;
}

static int main_run(const struct arguments *a)
{
    char why[1024];
    FD_AUTO fd = ask_connect(a->socket, why, sizeof why);
    bool clear = a->watch_ns && !a->json && isatty(STDOUT_FILENO);
    int code = 0;

    if (fd < 0) {
        fprintf(stderr, "motetctl: %s\n", why);
        if (a->report == report_doctor)
            fputs("motetctl: to start it: systemctl start motetd; whether its configuration is "
                  "good: motetd --check-config\n",
                  stderr);
        return EXIT_FAILED;
    }
    for (json_int_t id = 1; code == 0; id++) {
        if (clear)
            fputs("\033[H\033[2J", stdout);
        code = main_ask(fd, a, id);
        if (!a->watch_ns)
            break;
        poll(NULL, 0, (int)(a->watch_ns / CLOCK_NS_PER_MS));
    }
    return code;
}

int main(int argc, char **argv)
{
    struct arguments a = {0};
    int rc = parse_options(argc, argv, &a);

    if (rc != 0)
        return rc - 1;
    const bool alone = argc - optind == 1; /* a command of one word */
    if (alone && strcmp(argv[optind], "local") == 0)
        return show_local(a.json);
    a.with_local = alone && strcmp(argv[optind], "info") == 0 && !a.node;
    if (a.with_local && !a.json && !a.watch_ns)
        show_local(false);
    rc = parse_command(argc - optind, argv + optind, &a);
    if (rc == 0)
        rc = main_run(&a);
    json_decref(a.request);
    return rc;
}
