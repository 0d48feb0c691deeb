/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/seeds.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t current_seed;

static void on_crash(int sig)
{
    char text[64];
    int n = snprintf(text, sizeof text, "seed %" PRIu64 ": signal %d\n", current_seed, sig);

    fwrite(text, 1, (size_t)n, stderr);
    signal(sig, SIG_DFL);
    raise(sig);
}

/* True: argv[*i] is this option, and its number the word behind it, which is passed over. */
static bool takes_number(const char *option, int argc, char **argv, int *i, uint64_t *ret_number)
{
    if (strcmp(argv[*i], option) != 0 || *i + 1 >= argc)
        return false;
    *ret_number = strtoull(argv[++*i], NULL, 0);
    return true;
}

bool seeds_parse(struct seeds *seeds, int argc, char **argv)
{
    uint64_t n_nodes = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            seeds->verbose = true;
        } else if (!takes_number("--seeds", argc, argv, &i, &seeds->n) &&
                   !takes_number("--first", argc, argv, &i, &seeds->first) &&
                   !(seeds->max_nodes > 0 && takes_number("--nodes", argc, argv, &i, &n_nodes))) {
            fprintf(stderr, "usage: %s [--seeds N] [--first N]%s [--verbose]\n", seeds->program,
                    seeds->max_nodes > 0 ? " [--nodes N]" : "");
            return false;
        }
    }
    if (n_nodes > seeds->max_nodes) {
        fprintf(stderr, "%s: at most %u nodes\n", seeds->program, seeds->max_nodes);
        return false;
    }
    seeds->n_nodes = (uint32_t)n_nodes;
    return true;
}

void seeds_run(const struct seeds *seeds, void (*run)(const struct seeds *seeds, uint64_t seed))
{
    signal(SIGABRT, on_crash);
    signal(SIGSEGV, on_crash);
    for (uint64_t i = 0; i < seeds->n; i++) {
        current_seed = seeds->first + i;
        run(seeds, current_seed);
    }
}
