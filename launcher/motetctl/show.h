/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Status data as tables for people. Nothing here knows what a node or queue is: columns are the
 * keys that come, in the order in which they come, and the unit at the end of a key's name
 * (`_bytes`, `_ns`, ...) says how to write its values. So whatever a newer daemon adds is shown.
 * Used by motetctl.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* Prints an array of objects as a table (turned by 90 degrees when it would be wide and low;
 * several tables when the objects are of different kinds), an object as a list of keys and values,
 * and anything else as JSON. 0 or -ENOMEM. */
int show_data(json_t *data, FILE *to);
