/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file that puts rules before the library's own choice of algorithms (rules.c):
 * MOTET_COLL_TABLE, or collectives.json in the configuration folder if there is one. Read once, at
 * MPI_Init.
 *
 *     { "version": 1,
 *       "rules": { "bcast": [ { "algorithm": "shared", "max_bytes": 65536, "min_ranks": 2,
 *       "max_ranks": 16, "shape": "node" } ] } }
 *
 * The first rule that fits decides; where none does, the library's. All members of a rule but the
 * algorithm may be left out. Nothing is skipped in silence: what is not known is refused with its
 * place in the file. All nodes of a job need the same file, since all ranks must choose alike.
 */
#ifndef MOTET_CLIENT_COLL_CHOICE_TABLE_H
#define MOTET_CLIENT_COLL_CHOICE_TABLE_H

#include "client/coll/choice/rules.h"

struct table {
    struct rule *rules[COLL_FAMILIES];
    int n[COLL_FAMILIES];
};

/* 0, also without any file, or MPI_ERR_OTHER or MPI_ERR_NO_MEM with a text. *t must be zeroed or an
 * earlier table. */
int table_load(struct table *t);

#endif
