/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/tools/category.h"

#include <stddef.h>
#include <string.h>

#include "client/abi/semantics.h"
#include "client/tools/cvar.h"
#include "client/tools/event.h"
#include "client/tools/pvar.h"
#include "client/tools/tools.h"

static const struct {
    const char *name, *desc;
} categories[CATEGORIES] = {
    [CATEGORY_ALL] = {"motet", "all variables and events"},
    [CATEGORY_START] = {"motet_start", "what is decided when MPI starts"},
    [CATEGORY_CHECKING] = {"motet_checking", "help in finding mistakes of a program"},
    [CATEGORY_MESSAGES] = {"motet_messages", "messages: queues, paths, what holds them up"},
    [CATEGORY_COLLECTIVES] = {"motet_collectives", "choice of collective algorithms"},
    [CATEGORY_WAITING] = {"motet_waiting", "waiting and progress"},
    [CATEGORY_WINDOWS] = {"motet_windows", "one-sided communication"},
};

/* What a category can have. Each kind: how many there are, and the category of one. */
enum member { MEMBER_CVAR, MEMBER_PVAR, MEMBER_EVENT, MEMBER_CATEGORY };

static int member_n(enum member kind)
{
    return kind == MEMBER_CVAR    ? cvar_n()
           : kind == MEMBER_PVAR  ? pvar_n
           : kind == MEMBER_EVENT ? event_n
                                  : CATEGORIES;
}

static enum category_index member_category(enum member kind, int i)
{
    if (kind == MEMBER_CVAR)
        return cvar_at(i)->category;
    if (kind == MEMBER_PVAR)
        return pvar_table[i].category;
    return kind == MEMBER_EVENT ? event_table[i].category : CATEGORY_ALL;
}

/* Members of a category; the first `len` of them in `indices`, which may be NULL. */
static int category_list(int category, enum member kind, int len, int *indices)
{
    int n = 0;

    for (int i = 0; i < member_n(kind); i++) {
        if ((int)member_category(kind, i) != category ||
            (kind == MEMBER_CATEGORY && i == CATEGORY_ALL))
            continue;
        if (n < len && indices)
            indices[n] = i;
        n++;
    }
    return n;
}

static bool category_exists(int i)
{
    return i >= 0 && i < CATEGORIES;
}

static int category_give(int category, enum member kind, int len, int *indices)
{
    if (!category_exists(category))
        return MPI_T_ERR_INVALID_INDEX;
    if (len < 0 || (len > 0 && !indices))
        return MPI_T_ERR_INVALID;
    category_list(category, kind, len, indices);
    return MPI_SUCCESS;
}

/* ---- MPI functions ---- */

int mpi_t_category_get_num(int *num_cat)
{
    *num_cat = CATEGORIES;
    return MPI_SUCCESS;
}

int mpi_t_category_get_info(int cat_index, char *name, int *name_len, char *desc, int *desc_len,
                            int *num_cvars, int *num_pvars, int *num_categories)
{
    if (!category_exists(cat_index))
        return MPI_T_ERR_INVALID_INDEX;
    tools_give_text(categories[cat_index].name, name, name_len);
    tools_give_text(categories[cat_index].desc, desc, desc_len);
    tools_give_int(num_cvars, category_list(cat_index, MEMBER_CVAR, 0, NULL));
    tools_give_int(num_pvars, category_list(cat_index, MEMBER_PVAR, 0, NULL));
    tools_give_int(num_categories, category_list(cat_index, MEMBER_CATEGORY, 0, NULL));
    return MPI_SUCCESS;
}

int mpi_t_category_get_num_events(int cat_index, int *num_events)
{
    if (!category_exists(cat_index))
        return MPI_T_ERR_INVALID_INDEX;
    *num_events = category_list(cat_index, MEMBER_EVENT, 0, NULL);
    return MPI_SUCCESS;
}

int mpi_t_category_get_index(const char *name, int *cat_index)
{
    for (int i = 0; i < CATEGORIES; i++)
        if (strcmp(categories[i].name, name) == 0) {
            *cat_index = i;
            return MPI_SUCCESS;
        }
    return MPI_T_ERR_INVALID_NAME;
}

int mpi_t_category_get_cvars(int cat_index, int len, int indices[])
{
    return category_give(cat_index, MEMBER_CVAR, len, indices);
}

int mpi_t_category_get_pvars(int cat_index, int len, int indices[])
{
    return category_give(cat_index, MEMBER_PVAR, len, indices);
}

int mpi_t_category_get_events(int cat_index, int len, int indices[])
{
    return category_give(cat_index, MEMBER_EVENT, len, indices);
}

int mpi_t_category_get_categories(int cat_index, int len, int indices[])
{
    return category_give(cat_index, MEMBER_CATEGORY, len, indices);
}

/* Nothing changes, so the first number stays the last. */
int mpi_t_category_changed(int *update_number)
{
    *update_number = 0;
    return MPI_SUCCESS;
}
