/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Performance variables (MPI-5.0 section 15.3.7). What one is worth is read from the rooms below
 * (counts.h) when a tool asks, so a handle that runs costs nothing in between; the exception are
 * watermarks, which have the match tables note how long they get (client/p2p/match.h).
 *
 *  - Counters, sums and timers count from 0 for each handle, while it runs.
 *  - Watermarks: the most while the handle ran; beginning with what there was then.
 *  - Levels, sizes, states and percentages are as they are: continuous and read-only.
 */
#ifndef MOTET_CLIENT_TOOLS_PVAR_H
#define MOTET_CLIENT_TOOLS_PVAR_H

#include <stdbool.h>
#include <stdint.h>

#include "client/tools/category.h"
#include "client/tools/enumeration.h"
#include "client/tools/tools.h"

/* As the variable's type is: MPI_UNSIGNED_LONG_LONG, MPI_DOUBLE or MPI_INT. */
union pvar_value {
    unsigned long long n;
    double real;
    int item;
};

struct pvar {
    const char *name, *desc;
    enum category_index category;
    int verbosity, class, bind;
    MPI_Datatype datatype;
    const struct enumeration *items;
    /* The value now; of a counter since the beginning of MPI, of a watermark since the last
     * counts_watch. False: the object that it is bound to is gone. */
    bool (*read)(const struct tools_bound *bound, union pvar_value *ret_value);
};

extern const struct pvar pvar_table[];
extern const int pvar_n;

/* MPI begins or ends. */
void pvar_mpi_changes(void);
/* The tool interface ends: nothing is watched any more. */
void pvar_stop(void);

#endif
