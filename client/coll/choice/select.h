/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of an algorithm for a call: what the environment forces, else the rules of the file
 * (table.h), else the library's own (rules.h).
 *
 * MOTET_COLL_<FAMILY>=<name> (MOTET_COLL_BCAST=pipeline) forces an algorithm wherever it is
 * applicable, for tests and measurements. A family or name that does not exist is refused.
 */
#ifndef MOTET_CLIENT_COLL_CHOICE_SELECT_H
#define MOTET_CLIENT_COLL_CHOICE_SELECT_H

#include "client/coll/choice/rules.h"
#include "client/coll/schedule/schedule.h"

/* For coll_init. */
const struct algorithm *select_algorithm(enum coll_family family, const struct schedule *s,
                                         MPI_Count n_bytes, bool regular);

/* From now on this algorithm (NULL: by the rules) wherever it is applicable, for all communicators.
 * To be called on all ranks between the same collectives. */
void select_force(enum coll_family family, const char *algorithm);

/* Reads MOTET_COLL_* and the file. MPI_ERR_OTHER with a text for what does not exist. */
int select_init(void);

#endif
