/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the command line to the message Submit: which rank runs where, and with which environment.
 * Called once by mpiexec.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "launcher/mpiexec/command/options.h"

/* The packed message. */
struct submit {
    uint8_t *body;
    uint32_t n;
    uint32_t n_ranks;
};

/*
 * Builds the message. `environment` is mpiexec's own. Warnings about things that are ignored go
 * to `warnings`. 0, or -EINVAL with the text. ret_submit->body is to be freed.
 */
int submit_build(struct options *o, char *const *environment, const char *wdir, FILE *warnings,
                 struct submit *ret_submit, struct options_error *ret_error);
