/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of mpiexec, one by one: a table gives every option's spellings, argument, place and
 * help, and the function that takes it. Called by options.c, which reads the command line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/mpiexec/command/command.h"

struct option_parser {
    struct options *o;
    struct part *part;
    struct options_error *error;
    bool in_config; /* a configuration file does not name another */
    bool in_file;   /* nor a file of options */
    /* Takes words that are all options. */
    int (*take_words)(struct option_parser *p, size_t n, const char *const *words);
    /* Takes the text of a configuration file. */
    int (*take_config)(struct options *o, const char *name, const char *text,
                       struct options_error *ret_error);
    bool config_read;
};

/* Always -EINVAL, with the text. */
int option_fail(struct option_parser *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Values may be long (an environment, a file name); a message shows their beginning. */
#define OPTION_SHOWN "%.120s"

enum option_place { OF_PART, OF_JOB };

typedef int option_take_fn(struct option_parser *p, const char *name, const char *const *values);

struct option {
    const char *names;     /* separated by spaces, without dashes */
    const char *arguments; /* separated by spaces; "" none */
    enum option_place place;
    option_take_fn *take;
    const char *help; /* lines separated by \n */
};

/* All, in the order of the help text. */
const struct option *option_table(size_t *ret_n);
size_t option_n_arguments(const struct option *option);

/* An argument that begins with a dash, as it was typed. Returns its option; NULL: there is none.
 * `ret_value`: what stands in the same word ("-n2", "--np=2"), NULL if the values follow it. */
const struct option *option_find(const char *given, const char **ret_value);
/* The name of an option that could have been meant, without dashes; NULL: none is near. The text
 * stays valid until the next call. */
const char *option_near(const char *given);
