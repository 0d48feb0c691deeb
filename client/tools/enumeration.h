/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Enumerations: the names of what a variable of type MPI_INT can be (MPI-5.0 section 15.3.5). The
 * value of an item is its index. They are constants of the tables of variables, and an MPI_T_enum
 * is the address of one.
 */
#ifndef MOTET_CLIENT_TOOLS_ENUMERATION_H
#define MOTET_CLIENT_TOOLS_ENUMERATION_H

#include "mpi.h"

struct enumeration {
    const char *name;
    int n;
    const char *const *items;
};

static inline MPI_T_enum enumeration_handle(const struct enumeration *e)
{
    return (MPI_T_enum)(uintptr_t)e;
}

#endif
