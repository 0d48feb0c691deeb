/* SPDX-License-Identifier: BSD-3-Clause */
/* The info keys of windows (MPI-5.0 section 12.2): what was given, checked, and what is in force.
 */
#ifndef MOTET_CLIENT_RMA_HINTS_H
#define MOTET_CLIENT_RMA_HINTS_H

#include <stdbool.h>
#include <stddef.h>

struct info;

struct win_hints {
    bool no_locks; /* nobody locks: targets need no progress of their own */
    bool same_size, same_disp_unit;
    bool same_op_only;     /* accumulate_ops=same_op; else same_op_no_op */
    bool noncontig;        /* alloc_shared_noncontig: parts begin on pages of their own */
    unsigned ordering;     /* HINTS_RAR ... that the user asks for; the library keeps all of them */
    size_t alignment;      /* mpi_minimum_memory_alignment; 0: none asked */
    long long granularity; /* mpi_accumulate_granularity; 0: not given */
};

#define HINTS_RAR 1u
#define HINTS_RAW 2u
#define HINTS_WAR 4u
#define HINTS_WAW 8u
#define HINTS_ALL 15u

void hints_init(struct win_hints *hints);
/* Takes over what info has of the keys that are known; MPI_ERR_INFO_VALUE names key and value.
 * `info` may be NULL. created: the window's memory is there, and lies as it does. */
int hints_take(struct win_hints *hints, const struct info *info, bool created);
/* The keys in force as an info object with a handle. */
int hints_show(const struct win_hints *hints, struct info **ret_info);

#endif
