/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of mpiexec: parts separated by ':' (one program each), whose options stand
 * before the program. One table in option.c gives every option's spellings, argument, place and
 * help; `--help` is printed from it. Every option may be written with one dash or two.
 *
 * Options of the whole job stand in the first part; options of one program in any.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "launcher/mpiexec/command/command.h"

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
