/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of families and algorithms, as environment and file know them ("bcast", "pipeline").
 */
#ifndef MOTET_CLIENT_COLL_CHOICE_NAME_H
#define MOTET_CLIENT_COLL_CHOICE_NAME_H

#include "client/coll/algorithms/algorithms.h"

/* In capitals. */
const char *name_of_family(enum coll_family family);
/* In any case; -1: there is none. */
int name_find_family(const char *name);
/* enum algorithm_name; -1: there is none. */
int name_find(enum coll_family family, const char *name);
/* The names of a family's algorithms, and those of all families, "a, b, c", for messages. */
void name_list(enum coll_family family, char *out, size_t size);
void name_list_families(char *out, size_t size);

#endif
