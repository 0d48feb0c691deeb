/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control variables (MPI-5.0 section 15.3.6): the variables MOTET_* that the library reads, under
 * their own names. What one is worth is what the environment says or a tool has written
 * (client/process/setting.h). Each can be written as long as that has an effect: most until MPI
 * starts, some always; later a write is refused.
 */
#ifndef MOTET_CLIENT_TOOLS_CVAR_H
#define MOTET_CLIENT_TOOLS_CVAR_H

#include <stdbool.h>

#include "client/tools/category.h"
#include "client/tools/enumeration.h"

enum cvar_kind { CVAR_ITEM, CVAR_NUMBER, CVAR_TEXT };

struct cvar {
    const char *name, *desc;
    enum category_index category;
    enum cvar_kind kind;
    int verbosity, scope;
    const struct enumeration *items; /* CVAR_ITEM */
    int otherwise;                   /* item or number while nothing is set */
    int n_chars;                     /* CVAR_TEXT: room for the value and a null */
    bool (*may_write)(void);         /* now? NULL: never */
    void (*written)(
        const struct cvar *cvar); /* makes it take effect; NULL: it is read when needed */
};

int cvar_n(void);
const struct cvar *cvar_at(int i);
/* The item or number that holds now. */
int cvar_number(const struct cvar *cvar);

#endif
