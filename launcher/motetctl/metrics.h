/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Status data of one node in Prometheus' text format (exposition format 0.0.4), as the textfile
 * collector of its node exporter reads it. Used by motetctl; knows no socket.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* The rows of these subjects as the node tells them. */
struct metrics_rows {
    const char *node;
    const json_t *counters, *nodes, *links, *ranks;
};

void metrics_print(const struct metrics_rows *rows, FILE *to);
