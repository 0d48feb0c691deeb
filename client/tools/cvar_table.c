/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of control variables, and what writing one does. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "client/client.h"
#include "client/coll/choice/name.h"
#include "client/coll/choice/select.h"
#include "client/process/phase.h"
#include "client/progress/async.h"
#include "client/tools/cvar.h"

#define N_OF(array) ((int)(sizeof(array) / sizeof *(array)))

static const char *const check_items[] = {"0", "1", "collectives"};
static const struct enumeration check_enum = {"MOTET_CHECK", N_OF(check_items), check_items};
static const char *const level_items[] = {"as asked for", "single", "funneled", "serialized",
                                          "multiple"};
static const struct enumeration level_enum = {"MOTET_THREAD_LEVEL", N_OF(level_items), level_items};
static const char *const progress_items[] = {"helper", "none"};
static const struct enumeration progress_enum = {"MOTET_PROGRESS", N_OF(progress_items),
                                                 progress_items};
static const char *const copy_items[] = {"auto", "rings", "read", "both"};
static const struct enumeration copy_enum = {"MOTET_COPY", N_OF(copy_items), copy_items};
static const char *const handler_items[] = {"mpi_errors_are_fatal", "mpi_errors_abort",
                                            "mpi_errors_return"};
static const struct enumeration handler_enum = {"MOTET_INITIAL_ERRHANDLER", N_OF(handler_items),
                                                handler_items};
static const char *const singleton_items[] = {"no", "yes"};
static const struct enumeration singleton_enum = {"MOTET_SINGLETON", N_OF(singleton_items),
                                                  singleton_items};

static bool cvar_always(void)
{
    return true;
}

static bool cvar_before_mpi(void)
{
    return phase_now() == PHASE_BEFORE;
}

static bool cvar_before_helper(void)
{
    return phase_now() != PHASE_FINALIZED && async_here->state == ASYNC_NONE;
}

static void check_written(const struct cvar *cvar)
{
    (void)cvar;
    phase_read_checks();
}

static const struct cvar cvar_fixed[] = {
    {.name = "MOTET_CHECK",
     .desc = "0: arguments are not checked; collectives: calls that do not fit together are found",
     .category = CATEGORY_CHECKING,
     .verbosity = MPI_T_VERBOSITY_USER_BASIC,
     .scope = MPI_T_SCOPE_ALL_EQ,
     .items = &check_enum,
     .otherwise = 1,
     .may_write = cvar_always,
     .written = check_written},
    {.name = "MOTET_DEBUG",
     .desc = "words separated by commas; handles: list the handles that a program has not freed",
     .category = CATEGORY_CHECKING,
     .kind = CVAR_TEXT,
     .verbosity = MPI_T_VERBOSITY_USER_BASIC,
     .scope = MPI_T_SCOPE_READONLY,
     .n_chars = 512},
    {.name = "MOTET_THREAD_LEVEL",
     .desc = "the thread level that programs get, whatever they ask for",
     .category = CATEGORY_START,
     .verbosity = MPI_T_VERBOSITY_USER_DETAIL,
     .scope = MPI_T_SCOPE_LOCAL,
     .items = &level_enum,
     .may_write = cvar_before_mpi},
    {.name = "MOTET_INITIAL_ERRHANDLER",
     .desc = "the error handler of MPI_COMM_WORLD and MPI_COMM_SELF before the program says so",
     .category = CATEGORY_START,
     .verbosity = MPI_T_VERBOSITY_USER_DETAIL,
     .scope = MPI_T_SCOPE_LOCAL,
     .items = &handler_enum,
     .may_write = cvar_before_mpi},
    {.name = "MOTET_SINGLETON",
     .desc = "yes: a process that another launcher started as one of several is a job of its own",
     .category = CATEGORY_START,
     .verbosity = MPI_T_VERBOSITY_USER_DETAIL,
     .scope = MPI_T_SCOPE_LOCAL,
     .items = &singleton_enum,
     .may_write = cvar_before_mpi},
    {.name = "MOTET_UNIVERSE_SIZE",
     .desc = "value of the attribute MPI_UNIVERSE_SIZE; -1: the size of the job",
     .category = CATEGORY_START,
     .kind = CVAR_NUMBER,
     .verbosity = MPI_T_VERBOSITY_USER_ALL,
     .scope = MPI_T_SCOPE_ALL_EQ,
     .otherwise = -1,
     .may_write = cvar_before_mpi},
    {.name = "MOTET_APPNUM",
     .desc = "value of the attribute MPI_APPNUM; -1: as the job says",
     .category = CATEGORY_START,
     .kind = CVAR_NUMBER,
     .verbosity = MPI_T_VERBOSITY_USER_ALL,
     .scope = MPI_T_SCOPE_LOCAL,
     .otherwise = -1,
     .may_write = cvar_before_mpi},
    {.name = "MOTET_PROGRESS",
     .desc = "none: no helper thread advances transfers while the program computes; until the "
             "first is needed",
     .category = CATEGORY_WAITING,
     .verbosity = MPI_T_VERBOSITY_TUNER_BASIC,
     .scope = MPI_T_SCOPE_LOCAL,
     .items = &progress_enum,
     .may_write = cvar_before_helper},
    {.name = "MOTET_VCIS",
     .desc = "sets of rings for threads of different communicators, 1: the common one alone; 0: as "
             "many as the job has",
     .category = CATEGORY_MESSAGES,
     .kind = CVAR_NUMBER,
     .verbosity = MPI_T_VERBOSITY_TUNER_DETAIL,
     .scope = MPI_T_SCOPE_LOCAL,
     .may_write = cvar_before_mpi},
    {.name = "MOTET_COPY",
     .desc = "how large messages within a node are copied: through shared memory, read by the "
             "receiver, by both ranks, or by what is the fastest",
     .category = CATEGORY_MESSAGES,
     .verbosity = MPI_T_VERBOSITY_TUNER_BASIC,
     .scope = MPI_T_SCOPE_ALL_EQ,
     .items = &copy_enum,
     .may_write = cvar_before_mpi},
    {.name = "MOTET_COLL_TABLE",
     .desc = "file with rules for the choice of collective algorithms",
     .category = CATEGORY_COLLECTIVES,
     .kind = CVAR_TEXT,
     .verbosity = MPI_T_VERBOSITY_TUNER_BASIC,
     .scope = MPI_T_SCOPE_ALL_EQ,
     .n_chars = PATH_MAX,
     .may_write = cvar_before_mpi},
};

/* ---- MOTET_COLL_*: the algorithms of each collective, from their table ---- */

struct cvar_family {
    char name[32];
    struct cvar cvar;
    struct enumeration items;
    const char *texts[ALGORITHMS + 1];
};
struct cvar_families {
    struct cvar_family at[COLL_FAMILIES];
};
static struct cvar_families cvar_families_first;
static struct cvar_families *cvar_families_here = &cvar_families_first;

static void family_written(const struct cvar *cvar)
{
    int item = cvar_number(cvar);

    select_force((enum coll_family)name_find_family(cvar->name + strlen("MOTET_COLL_")),
                 item > 0 ? cvar->items->items[item] : NULL);
}

static void family_fill(struct cvar_family *f, enum coll_family family)
{
    snprintf(f->name, sizeof f->name, "MOTET_COLL_%s", name_of_family(family));
    f->texts[f->items.n++] = "by the rules";
    for (int i = 0; i < ALGORITHMS; i++)
        if (algorithm_table[i].family == family)
            f->texts[f->items.n++] = algorithm_table[i].name;
    f->items.name = f->name;
    f->items.items = f->texts;
    f->cvar = (struct cvar){
        .name = f->name,
        .desc = "the algorithm of this collective where it is applicable; the same on all ranks",
        .category = CATEGORY_COLLECTIVES,
        .verbosity = MPI_T_VERBOSITY_TUNER_DETAIL,
        .scope = MPI_T_SCOPE_ALL_EQ,
        .items = &f->items,
        .may_write = cvar_always,
        .written = family_written};
}

static void cvar_families_init(void)
{
    for (int family = 0; family < COLL_FAMILIES; family++)
        family_fill(&cvar_families_here->at[family], (enum coll_family)family);
}
CLIENT_PART(cvar_families_here, cvar_families_first, .init = cvar_families_init);

int cvar_n(void)
{
    return N_OF(cvar_fixed) + COLL_FAMILIES;
}

const struct cvar *cvar_at(int i)
{
    if (i < 0 || i >= cvar_n())
        return NULL;
    return i < N_OF(cvar_fixed) ? &cvar_fixed[i]
                                : &cvar_families_here->at[i - N_OF(cvar_fixed)].cvar;
}
