/* SPDX-License-Identifier: BSD-3-Clause */
/* Every environment variable of Motet, in one table: what `motetctl local` prints and motet(7)
 * explains. A test compares the table with the sources and the manual. */
#pragma once

#include <stddef.h>

struct variable {
    const char *name;      /* a name that ends in '*' stands for several */
    const char *reader;    /* "library", a command, or "programs" for what is set for them */
    const char *otherwise; /* what holds where it is not set */
    const char *meaning;
};

extern const struct variable variables[];
extern const size_t n_variables;
