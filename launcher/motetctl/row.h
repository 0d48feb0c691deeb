/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of the status socket's rows, which may be of any kind: what does not fit is as if it were
 * not there. Used by motetctl. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* "" and 0 where there is none. */
const char *row_text(const json_t *row, const char *key);
json_int_t row_number(const json_t *row, const char *key);
/* Whether both have something there, and the same. */
bool row_same(const json_t *a, const json_t *b, const char *key);
/* Whether it is of a collective operation. */
bool row_is_collective(const json_t *row);
