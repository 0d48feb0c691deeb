/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's ATTACH_SPAWN as an order for its home: everything is checked here, before any of it
 * travels. Pure function; control thread, tests and fuzzers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/control.pb-c.h"

struct job;

struct spawn_request {
    uint32_t number; /* also when the rest is not valid; 0: not even that */
    Motet__Submit submit;
    /* What it points to, beside the body. */
    char *body;
    Motet__App *apps;
    char **strings;
    char **hosts;
    size_t n_hosts;
};

/* Environment, user and the like are those of the rank's job. 0, or negative errno and a reason in
 * error. */
int spawn_request_parse(const uint8_t *body, uint32_t len, const struct job *job, uint32_t local,
                        struct spawn_request *ret_request, char *error, size_t error_size);
void spawn_request_free(struct spawn_request *request);
