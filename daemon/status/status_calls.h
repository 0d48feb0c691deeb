/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks do (proto/calls.h), read from the job segments while they run, hang or are stopped.
 * Nothing in a segment is believed. Called by status_view_ranks.c. Control thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/calls.h"

struct job;

/* Appends a row for each call that a thread of this local rank waits in, and each collective that
 * runs. */
void status_calls_rows(const struct job *job, uint32_t local, uint64_t now_ns, uint32_t limit,
                       json_t *rows);
/* Appends a row for each of its communicators. */
void status_calls_communicators(const struct job *job, uint32_t local, uint32_t limit,
                                json_t *rows);

/* The function that a thread of it has waited in for the longest time, and since when; false: none
 * waits. */
bool status_calls_longest(const struct job *job, uint32_t local, char ret_function[CALLS_FUNCTION],
                          uint64_t *ret_since_ns);

/* Adds to a row what the rank's communicator of this context id is called and how many ranks it
 * has. */
void status_calls_name(json_t *row, const struct job *job, uint32_t local, uint32_t context);
