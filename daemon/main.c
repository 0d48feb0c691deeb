/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * motetd: command line, configuration, the spawner (which must be forked before there are threads),
 * then the node.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/config.h"
#include "daemon/control/journal.h"
#include "daemon/control/netif.h"
#include "daemon/control/node.h"
#include "daemon/control/preflight.h"
#include "daemon/jobs/spawner.h"
#include "daemon/net/net_drivers.h"

#define DEFAULT_CONFIG MOTET_SYSCONFDIR "/motet/motetd.conf"

/* With this the program begins anew; see begin_anew. */
#define AFTER_EPOCH "after-epoch"

static const char usage[] =
    "Usage: motetd [options]\n"
    "Runs the Motet daemon of this node in the foreground.\n\n"
    "  -c, --config FILE    configuration (default " DEFAULT_CONFIG ")\n"
    "      --check-config   check the configuration and end\n"
    "      --print-config   print the configuration with explanations and end\n"
    "  -n, --node NAME      name of this node, instead of the configured one\n"
    "      --private        serve one user's job: no configuration unless --config is given, "
    "abstract\n"
    "                       sockets, printed as 'ready client=... status=...' on standard output\n"
    "      --lifeline FD    with --private: end when this descriptor reaches end of file\n"
    "  -v, --verbose        log more; twice: everything\n"
    "      --providers      print the providers of networks that there are here and end\n"
    "      --version        print the version and end\n"
    "  -h, --help           this text\n";

enum {
    OPT_CHECK = 256,
    OPT_PRINT,
    OPT_PRIVATE,
    OPT_LIFELINE,
    OPT_AFTER_EPOCH,
    OPT_PROVIDERS,
    OPT_VERSION
};

static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                        {"check-config", no_argument, NULL, OPT_CHECK},
                                        {"print-config", no_argument, NULL, OPT_PRINT},
                                        {"node", required_argument, NULL, 'n'},
                                        {"private", no_argument, NULL, OPT_PRIVATE},
                                        {"lifeline", required_argument, NULL, OPT_LIFELINE},
                                        {AFTER_EPOCH, required_argument, NULL, OPT_AFTER_EPOCH},
                                        {"verbose", no_argument, NULL, 'v'},
                                        {"providers", no_argument, NULL, OPT_PROVIDERS},
                                        {"version", no_argument, NULL, OPT_VERSION},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

struct arguments {
    const char *config_path, *node;
    bool check, print, private_mode;
    int lifeline_fd;
    int verbose;
    struct node_again again;
};

static void report(void *ctx, const char *line)
{
    (void)ctx;
    fprintf(stderr, "motetd: %s\n", line);
}

static void print_line(void *ctx, const char *line)
{
    (void)ctx;
    puts(line);
}

/* 0: go on; else the exit code plus 1. */
static int parse_arguments(int argc, char **argv, struct arguments *ret_args)
{
    struct arguments args = {.lifeline_fd = -1};
    int opt;

    while ((opt = getopt_long(argc, argv, "c:n:vh", options, NULL)) != -1) {
        switch (opt) {
        case 'c':
            args.config_path = optarg;
            break;
        case 'n':
            args.node = optarg;
            break;
        case 'v':
            args.verbose++;
            break;
        case OPT_CHECK:
            args.check = true;
            break;
        case OPT_PRINT:
            args.print = true;
            break;
        case OPT_PRIVATE:
            args.private_mode = true;
            break;
        case OPT_LIFELINE: {
            char *end;
            long fd = strtol(optarg, &end, 10);
            if (*end != '\0' || fd < 0 || fd > 65535 || fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0) {
                fprintf(stderr, "motetd: --lifeline %s: expected an open descriptor\n", optarg);
                return 3;
            }
            args.lifeline_fd = (int)fd;
            break;
        }
        case OPT_AFTER_EPOCH: {
            int end = 0;
            if (sscanf(optarg, "%" SCNu32 ",%u%n", &args.again.epoch, &args.again.n, &end) != 2 ||
                optarg[end] != '\0') {
                fprintf(stderr, "motetd: --" AFTER_EPOCH " %s: expected NUMBER,NUMBER\n", optarg);
                return 3;
            }
            break;
        }
        case OPT_PROVIDERS:
            net_drivers_list_providers(print_line, NULL);
            return 1;
        case OPT_VERSION:
            printf("%s\n", NODE_SOFTWARE);
            return 1;
        case 'h':
            fputs(usage, stdout);
            return 1;
        default:
            fputs("Try 'motetd --help'.\n", stderr);
            return 3;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "motetd: '%s': no arguments expected\n", argv[optind]);
        return 3;
    }
    *ret_args = args;
    return 0;
}

/* Reads and completes the configuration. 0 or -EINVAL, complaints printed. Without --config
 * args->config_path becomes the file of the installation, if there is one: what is read again
 * later. */
static int load_config(struct arguments *args, struct config *config)
{
    int rc = 0;

    config_defaults(config);
    if (!args->config_path && !args->private_mode && access(DEFAULT_CONFIG, F_OK) == 0)
        args->config_path = DEFAULT_CONFIG;
    if (args->config_path)
        rc = config_load(config, args->config_path, report, NULL);
    if (rc == 0 && args->node) {
        if (strlen(args->node) == 0 || strlen(args->node) >= sizeof config->name) {
            fprintf(stderr, "motetd: --node %s: expected a name of at most %zu characters\n",
                    args->node, sizeof config->name - 1);
            return -EINVAL;
        }
        snprintf(config->name, sizeof config->name, "%s", args->node);
    }
    if (args->private_mode) {
        snprintf(config->client_socket, sizeof config->client_socket, "@motet-%u-%d-client",
                 (unsigned)geteuid(), (int)getpid());
        snprintf(config->status_socket, sizeof config->status_socket, "@motet-%u-%d-status",
                 (unsigned)geteuid(), (int)getpid());
    }
    if (rc == 0 && args->print) {
        /* As written, not as completed for this host. */
        config_print(config, stdout);
        return 0;
    }
    if (rc == 0)
        rc = config_finish(config, report, NULL);
    if (rc == 0 && config->spawner[0] == '\0') {
        const char *spawner = getenv("MOTET_SPAWNER");
        if (!spawner || !spawner[0])
            spawner = MOTET_LIBEXECDIR "/motet-spawner";
        if (strlen(spawner) >= sizeof config->spawner) {
            fprintf(stderr, "motetd: the spawner's path %s is too long\n", spawner);
            return -EINVAL;
        }
        snprintf(config->spawner, sizeof config->spawner, "%s", spawner);
    }
    return rc;
}

static void to_journal(enum log_level level, const char *line)
{
    journal_line((int)level, line);
}

/* Every rank costs a few descriptors. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* This program in its own place, with the same arguments and a later epoch. Returns only if that
 * fails. */
static int begin_anew(int argc, char **argv, const struct node_again *again)
{
    static char option[] = "--" AFTER_EPOCH;
    char numbers[40];
    char **words = calloc((size_t)argc + 3, sizeof *words);
    int n = 0;

    if (!words)
        return 1;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], option) == 0)
            i++; /* the one of the last time, and its numbers */
        else
            words[n++] = argv[i];
    }
    snprintf(numbers, sizeof numbers, "%" PRIu32 ",%u", again->epoch, again->n);
    words[n++] = option;
    words[n] = numbers;
    execv("/proc/self/exe", words);
    log_error("cannot begin anew: %s", strerror(errno));
    free(words);
    return 1;
}

int main(int argc, char **argv)
{
    struct arguments args;
    static struct config config;
    struct node_start start;
    struct node *node;
    char name[80];

    int rc = parse_arguments(argc, argv, &args);
    if (rc != 0)
        return rc - 1;
    if (load_config(&args, &config) < 0)
        return 1;
    if (args.print)
        return 0;
    snprintf(name, sizeof name, "motetd %s", config.name);
    log_init(name);
    if (journal_open(config.name)) {
        log_set_sink(to_journal);
        log_set_stderr(false);
    }
    enum log_level level = (enum log_level)config.log_level;
    /* A private daemon writes to mpiexec's terminal: what went well is not news there. */
    if (args.private_mode && !args.config_path)
        level = LOG_WARN;
    log_set_level(args.verbose > 1 ? LOG_DEBUG : args.verbose ? LOG_INFO : level);
    rc = netif_resolve(&config, report, NULL);
    if (args.check) {
        int host_rc = preflight(&config, report, NULL);
        if (rc < 0 || host_rc < 0)
            return 1;
        printf("configuration is good\n");
        return 0;
    }
    if (rc < 0)
        return 1;
    if (args.private_mode)
        setpgid(0, 0); /* Ctrl-C is mpiexec's to handle */
    raise_file_limit();
    /* Should the spawner die, what the ranks left behind comes to this process, where the next
     * spawner finds it; nobody waits for these. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGCHLD, SIG_IGN);
    if (spawner_start(config.spawner, false, &start.spawner_pid, &start.spawner_fd) < 0)
        return 1;
    start.again = args.again;
    if (node_new(&config, args.config_path, args.private_mode, args.lifeline_fd, &start, &node) < 0)
        return 1;
    if (args.private_mode) {
        printf("ready client=%s status=%s\n", config.client_socket, config.status_socket);
        fflush(stdout);
    }
    log_notice("node %s (%08x) epoch %u runs, %d channels", node->config.name, node->id,
               node->epoch, node->config.n_channels);
    rc = node_run(node);
    bool again = node_again(node, &args.again);
    node_free(node);
    if (again)
        return begin_anew(argc, argv, &args.again);
    log_notice("ended");
    return rc;
}
