/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is wrong with the cluster: each node's own findings (subject "doctor"), and what only a
 * comparison of nodes shows. Used by motetctl; knows no socket.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Adds rows to those of the nodes: nodes that did not answer (`errors`, may be NULL), versions and
 * clocks that differ. asked_ms and answered_ms: wall clock before and after the question. */
void doctor_compare(json_t *rows, const json_t *errors, int64_t asked_ms, int64_t answered_ms);
/* Prints a line for each row. Returns how many things have failed. */
size_t doctor_show(const json_t *rows, FILE *to);
/* How many have failed. */
size_t doctor_failed(const json_t *rows);
