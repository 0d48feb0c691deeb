/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/choice/name.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const family_names[COLL_FAMILIES] = {
    [COLL_BARRIER] = "BARRIER",
    [COLL_BCAST] = "BCAST",
    [COLL_GATHER] = "GATHER",
    [COLL_SCATTER] = "SCATTER",
    [COLL_ALLGATHER] = "ALLGATHER",
    [COLL_ALLTOALL] = "ALLTOALL",
    [COLL_REDUCE] = "REDUCE",
    [COLL_ALLREDUCE] = "ALLREDUCE",
    [COLL_REDUCE_SCATTER] = "REDUCE_SCATTER",
    [COLL_SCAN] = "SCAN",
};

const char *name_of_family(enum coll_family family)
{
    return family_names[family];
}

int name_find_family(const char *name)
{
    for (int family = 0; family < COLL_FAMILIES; family++)
        if (strcasecmp(family_names[family], name) == 0)
            return family;
    return -1;
}

int name_find(enum coll_family family, const char *name)
{
    for (int i = 0; i < ALGORITHMS; i++)
        if (algorithm_table[i].family == family && strcmp(algorithm_table[i].name, name) == 0)
            return i;
    return -1;
}

static size_t name_append(char *out, size_t at, size_t size, const char *name)
{
    if (at < size)
        at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", name);
    return at;
}

void name_list(enum coll_family family, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < ALGORITHMS; i++)
        if (algorithm_table[i].family == family)
            at = name_append(out, at, size, algorithm_table[i].name);
}

void name_list_families(char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (int family = 0; family < COLL_FAMILIES; family++)
        at = name_append(out, at, size, family_names[family]);
}
