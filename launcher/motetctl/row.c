/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/row.h"

const char *row_text(const json_t *row, const char *key)
{
    const char *s = json_string_value(json_object_get(row, key));
    return s ? s : "";
}

json_int_t row_number(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

bool row_same(const json_t *a, const json_t *b, const char *key)
{
    return json_equal(json_object_get(a, key), json_object_get(b, key));
}

bool row_is_collective(const json_t *row)
{
    return json_is_true(json_object_get(row, "collective"));
}
