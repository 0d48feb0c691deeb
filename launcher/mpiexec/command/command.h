/* SPDX-License-Identifier: BSD-3-Clause */
/* What a command line of mpiexec says: made by options.c, read by whoever carries it out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/cli/words.h"
#include "launcher/mpiexec/command/binding.h"
#include "launcher/mpiexec/command/hosts.h"

/* What of mpiexec's own environment goes to the ranks. */
enum env_mode { ENV_AS_JOB, ENV_ALL, ENV_NONE, ENV_LIST, ENV_EXCEPT };

struct env_options {
    enum env_mode mode;
    struct words list;   /* names, for ENV_LIST and ENV_EXCEPT */
    struct words set;    /* "NAME=value" */
    struct words export; /* names of -x without a value */
};

struct part {
    uint32_t n_ranks; /* 0: not said */
    struct words argv;
    char *wdir; /* NULL: as the job */
    char *path; /* folders to look for the program in; NULL: those of PATH */
    char *soft; /* numbers of ranks that will do; NULL: n_ranks */
    struct env_options env;
    struct host_list hosts; /* of this part alone; none: the job's */
};

enum options_action { ACTION_RUN, ACTION_HELP, ACTION_VERSION };

struct options {
    enum options_action action;
    struct part *parts;
    size_t n_parts;
    struct host_list hosts;
    struct hosts_mapping mapping;
    struct binding_options binding;
    struct env_options env; /* mode is any but ENV_AS_JOB */
    bool tag_output;
    bool stdin_to_rank0;
    bool show_map;
    char *out_pattern, *err_pattern, *out_folder; /* of files for output; NULL: none */
    bool out_no_copy;                             /* with out_folder: not to the terminal too */
    struct words ignored;                         /* what the user is told has no effect */
    bool private_daemon;
    bool verbose;
    uint64_t timeout_ns; /* 0: none */
    uint32_t wait_mode;  /* enum wait_mode */
};

#define OPTIONS_MAX_RANKS (4096u * 256u)

struct options_error {
    char text[400]; /* names the argument */
};
