/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of mpiexec: parts separated by ':' (one program each), whose options stand
 * before the program. One table in options.c gives every option's spellings, argument, place and
 * help; `--help` is printed from it. Every option may be written with one dash or two.
 *
 * Options of the whole job stand in the first part; options of one program in any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "launcher/cli/words.h"
#include "launcher/mpiexec/hosts.h"

/* What of mpiexec's own environment goes to the ranks. */
enum env_mode { ENV_AS_JOB, ENV_ALL, ENV_NONE, ENV_LIST };

struct env_options {
    enum env_mode mode;
    struct words list;   /* names, for ENV_LIST */
    struct words set;    /* "NAME=value" */
    struct words export; /* names of -x without a value */
};

struct part {
    uint32_t n_ranks; /* 0: not said */
    struct words argv;
    char *wdir; /* NULL: as the job */
    struct env_options env;
    struct host_list hosts; /* of this part alone; none: the job's */
};

enum options_action { ACTION_RUN, ACTION_HELP, ACTION_VERSION };

struct options {
    enum options_action action;
    struct part *parts;
    size_t n_parts;
    struct host_list hosts;
    uint32_t ppn;           /* 0: not said */
    struct env_options env; /* mode is ENV_ALL, ENV_NONE or ENV_LIST */
    bool tag_output;
    bool stdin_to_rank0;
    bool bind_core;
    bool private_daemon;
    bool verbose;
    uint64_t timeout_ns; /* 0: none */
    uint32_t wait_mode;  /* enum wait_mode */
};

#define OPTIONS_MAX_RANKS (4096u * 256u)

struct options_error {
    char text[400]; /* names the argument */
};

/* argv without the program's name. 0, or -EINVAL with the text; ret_options is to be freed either
 * way. */
int options_parse(struct options *ret_options, size_t argc, const char *const *argv,
                  struct options_error *ret_error);
/* The contents of a -configfile: a line is a part, '#' begins a comment line, '\' joins lines,
 * quotes as in a shell. */
int options_parse_config(struct options *o, const char *name, const char *text,
                         struct options_error *ret_error);
void options_free(struct options *o);

void options_print_help(FILE *to);
