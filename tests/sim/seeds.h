/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of a simulation, and its seeds one after another; a crash names its seed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct seeds {
    const char *program;
    uint32_t max_nodes; /* that may be asked for; 0: no such option */
    uint64_t first, n;
    uint32_t n_nodes; /* 0: the seed decides */
    bool verbose;
};

/* Fills in what the command line says: --first N, --seeds N, --nodes N, --verbose. False: it is
 * wrong, and that was said. */
bool seeds_parse(struct seeds *seeds, int argc, char **argv);
void seeds_run(const struct seeds *seeds, void (*run)(const struct seeds *seeds, uint64_t seed));
