/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/tools/enumeration.h"

#include <stddef.h>

#include "client/abi/semantics.h"
#include "client/tools/cvar.h"
#include "client/tools/pvar.h"
#include "client/tools/tools.h"

/* The enumeration behind a handle, which is believed only if a variable has it. */
static const struct enumeration *enumeration_of(MPI_T_enum handle)
{
    if (handle == MPI_T_ENUM_NULL)
        return NULL;
    for (int i = 0; i < cvar_n(); i++)
        if (enumeration_handle(cvar_at(i)->items) == handle)
            return cvar_at(i)->items;
    for (int i = 0; i < pvar_n; i++)
        if (enumeration_handle(pvar_table[i].items) == handle)
            return pvar_table[i].items;
    return NULL;
}

int mpi_t_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
    const struct enumeration *e = enumeration_of(enumtype);

    if (!e)
        return MPI_T_ERR_INVALID_HANDLE;
    tools_give_int(num, e->n);
    tools_give_text(e->name, name, name_len);
    return MPI_SUCCESS;
}

int mpi_t_enum_get_item(MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len)
{
    const struct enumeration *e = enumeration_of(enumtype);

    if (!e)
        return MPI_T_ERR_INVALID_HANDLE;
    if (indx < 0 || indx >= e->n)
        return MPI_T_ERR_INVALID_INDEX;
    tools_give_int(value, indx);
    tools_give_text(e->items[indx], name, name_len);
    return MPI_SUCCESS;
}
