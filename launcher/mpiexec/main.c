/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpiexec (also motetrun and mpirun): reads the command line, finds the daemon of this node or
 * starts a private one, submits the job and stays with it (run.c). What it prints on its own
 * account goes to stderr; stdout is the ranks'.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/cli/node_daemon.h"
#include "launcher/cli/number.h"
#include "launcher/mpiexec/command/options.h"
#include "launcher/mpiexec/command/outfile.h"
#include "launcher/mpiexec/command/program.h"
#include "launcher/mpiexec/run.h"
#include "launcher/mpiexec/submit.h"

#define EXIT_USAGE     2
#define EXIT_NO_DAEMON 1

/* Descriptors 0 to 2 must be taken before anything is opened, or a socket would become someone's
 * standard output. */
static void ensure_stdio(void)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            _exit(EXIT_NO_DAEMON);
    }
}

/* The current directory by the name that the user knows it by, if PWD is right: other nodes may see
 * the same link, and not the mount behind it. */
static const char *current_directory(char *room, size_t n)
{
    const char *pwd = getenv("PWD");
    struct stat a, b;

    if (pwd && pwd[0] == '/' && stat(pwd, &a) == 0 && stat(".", &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        return pwd;
    return getcwd(room, n);
}

static bool only_local_hosts(const struct options *o)
{
    if (!hosts_all_local(&o->hosts))
        return false;
    for (size_t i = 0; i < o->n_parts; i++) {
        if (!hosts_all_local(&o->parts[i].hosts))
            return false;
    }
    return true;
}

/* Starts a private daemon. Returns a connection to it, or -1 after a message. */
static int reach_private(const struct options *o, struct node_daemon *daemon)
{
    char why[512] = "";

    if (!only_local_hosts(o)) {
        fprintf(stderr,
                "mpiexec: the job names other nodes, but there is no daemon here that knows them; "
                "start motetd on every node, "
                "or leave out the hosts\n");
        return -1;
    }
    if (node_daemon_start(daemon, why, sizeof why) < 0) {
        fprintf(stderr,
                "mpiexec: no daemon runs on this node, and a private one cannot be started: %s\n",
                why);
        return -1;
    }
    if (o->verbose)
        fprintf(stderr, "mpiexec: started a private daemon (process %d), status socket %s\n",
                (int)daemon->pid, daemon->status);
    int fd = fd_unix_connect(daemon->client);
    if (fd < 0)
        fprintf(stderr, "mpiexec: cannot reach the private daemon at %s: %s\n", daemon->client,
                strerror(-fd));
    return fd < 0 ? -1 : fd;
}

static int reach_daemon(const struct options *o, struct node_daemon *daemon)
{
    char path[NODE_DAEMON_PATH_MAX] = "";

    if (o->private_daemon)
        return reach_private(o, daemon);
    int fd = node_daemon_connect("MOTET_CLIENT_SOCKET", "client.sock", path, sizeof path);
    if (fd >= 0) {
        if (o->verbose)
            fprintf(stderr, "mpiexec: daemon at %s\n", path);
        return fd;
    }
    if (!path[0])
        return reach_private(o, daemon);
    fprintf(stderr, "mpiexec: cannot reach the daemon at %s (from MOTET_CLIENT_SOCKET): %s\n", path,
            strerror(-fd));
    return -1;
}

/* MPIEXEC_TIMEOUT, the variable of other launchers, holds where the command line says nothing. */
static int take_environment(struct options *o)
{
    const char *value = getenv("MPIEXEC_TIMEOUT");

    if (!value || !value[0] || o->timeout_ns)
        return 0;
    if (number_parse_seconds(value, &o->timeout_ns) < 0) {
        fprintf(stderr, "mpiexec: MPIEXEC_TIMEOUT is %.40s: expected seconds, such as 30 or 0.5\n",
                value);
        return -EINVAL;
    }
    return 0;
}

/* Files for the ranks' output, as the options say. The run frees the names. */
static int take_patterns(struct options *o, uint32_t n_ranks, struct run_options *run)
{
    char **given[2] = {&o->out_pattern, &o->err_pattern};

    for (int stream = 0; stream < 2; stream++) {
        run->pattern[stream] = *given[stream];
        *given[stream] = NULL;
        if (run->pattern[stream] || !o->out_folder)
            continue;
        run->pattern[stream] = outfile_pattern_of_folder(o->out_folder, stream, n_ranks);
        if (!run->pattern[stream]) {
            fprintf(stderr, "mpiexec: out of memory\n");
            return -ENOMEM;
        }
    }
    run->copy = o->out_folder && !o->out_no_copy;
    return 0;
}

/* The LD_LIBRARY_PATH that the ranks of a part will have. */
static const char *library_path_of(const struct options *o, const struct part *part)
{
    static const char name[] = "LD_LIBRARY_PATH=";
    const struct words *sets[] = {&part->env.set, &o->env.set};

    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < sets[k]->n; i++)
            if (strncmp(sets[k]->at[i], name, sizeof name - 1) == 0)
                return sets[k]->at[i] + sizeof name - 1;
    return getenv("LD_LIBRARY_PATH");
}

/* Programs that will load another library: said, and started all the same. */
static void check_programs(const struct options *o)
{
    char place[PATH_MAX], library[PATH_MAX], why[1600];

    if (node_daemon_beside(MOTET_LIBDIR_RELATIVE "/libmpi_abi.so.1", "../client/libmpi_abi.so.1",
                           place, sizeof place) < 0 ||
        !realpath(place, library))
        return;
    for (size_t i = 0; i < o->n_parts; i++) {
        const struct part *part = &o->parts[i];
        program_check(part->argv.at[0], part->path, library_path_of(o, part), library, why,
                      sizeof why);
        if (why[0])
            fprintf(stderr, "mpiexec: %s\n", why);
    }
}

static int main_run(struct options *o)
{
    struct run_options run_options = {.tag_output = o->tag_output,
                                      .stdin_to_rank0 = o->stdin_to_rank0,
                                      .verbose = o->verbose,
                                      .show_map = o->show_map,
                                      .timeout_ns = o->timeout_ns};
    struct node_daemon daemon = {.lifeline = -1};
    struct options_error error;
    struct submit submit = {0};
    char room[PATH_MAX];
    const char *wdir = current_directory(room, sizeof room);
    int code = EXIT_NO_DAEMON;

    if (!wdir) {
        fprintf(stderr, "mpiexec: the current directory cannot be read: %s\n", strerror(errno));
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < o->ignored.n; i++)
        fprintf(stderr, "mpiexec: %s: this is for another MPI library, ignoring\n",
                o->ignored.at[i]);
    if (submit_build(o, environ, wdir, stderr, &submit, &error) < 0) {
        fprintf(stderr, "mpiexec: %s\n", error.text);
        return EXIT_USAGE;
    }
    check_programs(o);
    int fd = reach_daemon(o, &daemon);
    run_options.status_socket = daemon.status;
    if (fd >= 0 && take_patterns(o, submit.n_ranks, &run_options) == 0)
        code = run_job(fd, &submit, &run_options);
    node_daemon_stop(&daemon);
    free(submit.body);
    return code;
}

int main(int argc, char **argv)
{
    struct options options;
    struct options_error error;
    int code = 0;

    ensure_stdio();
    if (options_parse(&options, argc > 0 ? (size_t)argc - 1 : 0,
                      (const char *const *)argv + (argc > 0), &error) < 0) {
        fprintf(stderr, "mpiexec: %s\n", error.text);
        code = EXIT_USAGE;
    } else if (options.action == ACTION_HELP) {
        options_print_help(stdout);
    } else if (options.action == ACTION_VERSION) {
        puts("mpiexec (Motet) " MOTET_VERSION);
    } else if (take_environment(&options) < 0) {
        code = EXIT_USAGE;
    } else {
        code = main_run(&options);
    }
    options_free(&options);
    return code;
}
