/* SPDX-License-Identifier: BSD-3-Clause */
/* What -bind-to and -map-by say. Called by the parser of the command line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/mpiexec/command/hosts.h"
#include "proto/binding.h"

struct binding_options {
    bool to_given;  /* by -bind-to, which then holds beside -map-by */
    uint32_t to;    /* enum binding_level; each rank gets `width` of these */
    uint32_t width; /* 0: one */
    uint32_t over;  /* the ranks of a node are dealt to these in turn; BINDING_NONE: to what they
                       are bound to */
    bool report;
};

/* "LEVEL" or "LEVEL:N". 0, or -EINVAL with what was expected. */
int binding_parse_to(struct binding_options *b, const char *text, char *why, size_t room);
/* "slot", "node", "ppr:N:node" or a level, and modifiers such as ":pe=N". 0, or -EINVAL with what
 * was expected. */
int binding_parse_map(struct binding_options *b, struct hosts_mapping *m, const char *text,
                      char *why, size_t room);
