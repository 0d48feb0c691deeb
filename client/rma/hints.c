/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/rma/hints.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/object/err.h"
#include "client/object/info.h"

void hints_init(struct win_hints *hints)
{
    *hints = (struct win_hints){.ordering = HINTS_ALL};
}

static int refuse(const char *key, const char *value, const char *wanted)
{
    return err_set(MPI_ERR_INFO_VALUE, "info key %s is %s, not %s", key, value, wanted);
}

static int take_bool(const struct info *info, const char *key, bool *ret_value)
{
    const char *value = info_get(info, key);
    if (!value)
        return MPI_SUCCESS;
    bool yes = strcmp(value, "true") == 0;
    if (!yes && strcmp(value, "false") != 0)
        return refuse(key, value, "true or false");
    *ret_value = yes;
    return MPI_SUCCESS;
}

static int take_number(const struct info *info, const char *key, bool power, long long *ret_value)
{
    const char *value = info_get(info, key);
    if (!value)
        return MPI_SUCCESS;
    char *end;
    long long number = strtoll(value, &end, 10);
    if (end == value || *end || number < 0 || (power && (number == 0 || (number & (number - 1)))))
        return refuse(key, value, power ? "a power of two" : "a number of bytes");
    *ret_value = number;
    return MPI_SUCCESS;
}

static const struct {
    const char *name;
    unsigned bit;
} orders[] = {{"rar", HINTS_RAR}, {"raw", HINTS_RAW}, {"war", HINTS_WAR}, {"waw", HINTS_WAW}};

/* "none", or a list of rar, war, raw and waw with commas. */
static int take_ordering(const struct info *info, unsigned *ret_ordering)
{
    const char *value = info_get(info, "accumulate_ordering"), *at = value;
    unsigned ordering = 0;
    if (!value)
        return MPI_SUCCESS;
    while (*at && strcmp(value, "none") != 0) {
        size_t n = strcspn(at, ","), i = 0;
        while (i < 4 && (n != 3 || strncmp(at, orders[i].name, 3) != 0))
            i++;
        if (i == 4)
            return refuse("accumulate_ordering", value, "none or a list of rar,war,raw,waw");
        ordering |= orders[i].bit;
        at += n + (at[n] == ',');
    }
    *ret_ordering = ordering;
    return MPI_SUCCESS;
}

static int take_ops(const struct info *info, bool *ret_same_op)
{
    const char *value = info_get(info, "accumulate_ops");
    if (!value)
        return MPI_SUCCESS;
    *ret_same_op = strcmp(value, "same_op") == 0;
    return *ret_same_op || strcmp(value, "same_op_no_op") == 0
               ? MPI_SUCCESS
               : refuse("accumulate_ops", value, "same_op or same_op_no_op");
}

int hints_take(struct win_hints *hints, const struct info *info, bool created)
{
    struct win_hints h = *hints;
    long long alignment = (long long)h.alignment;
    int err = take_bool(info, "no_locks", &h.no_locks);
    err = err ? err : take_bool(info, "alloc_shared_noncontig", &h.noncontig);
    err = err ? err : take_ordering(info, &h.ordering);
    err = err ? err : take_ops(info, &h.same_op_only);
    if (!created)
        err = err ? err : take_number(info, "mpi_minimum_memory_alignment", true, &alignment);
    err = err ? err : take_bool(info, "same_size", &h.same_size);
    err = err ? err : take_bool(info, "same_disp_unit", &h.same_disp_unit);
    err = err ? err : take_number(info, "mpi_accumulate_granularity", false, &h.granularity);
    if (err)
        return err;
    h.alignment = (size_t)alignment;
    *hints = h;
    return MPI_SUCCESS;
}

static void ordering_text(unsigned ordering, char text[20])
{
    text[0] = '\0';
    for (size_t i = 0; i < 4; i++)
        if (ordering & orders[i].bit) {
            if (text[0])
                strcat(text, ",");
            strcat(text, orders[i].name);
        }
    if (!text[0])
        strcpy(text, "none");
}

int hints_show(const struct win_hints *hints, struct info **ret_info)
{
    struct info *info;
    int err = info_new(&info);
    if (err)
        return err;
    char ordering[20], number[24];
    ordering_text(hints->ordering, ordering);
    const char *yes_no[] = {"false", "true"};
    err = info_put(info, "no_locks", yes_no[hints->no_locks]);
    err = err ? err : info_put(info, "accumulate_ordering", ordering);
    err = err ? err
              : info_put(info, "accumulate_ops", hints->same_op_only ? "same_op" : "same_op_no_op");
    err = err ? err : info_put(info, "same_size", yes_no[hints->same_size]);
    err = err ? err : info_put(info, "same_disp_unit", yes_no[hints->same_disp_unit]);
    err = err ? err : info_put(info, "alloc_shared_noncontig", yes_no[hints->noncontig]);
    snprintf(number, sizeof number, "%lld", hints->granularity);
    err = err ? err : info_put(info, "mpi_accumulate_granularity", number);
    snprintf(number, sizeof number, "%zu", hints->alignment);
    if (!err && hints->alignment)
        err = info_put(info, "mpi_minimum_memory_alignment", number);
    return info_publish(err, info, ret_info);
}
