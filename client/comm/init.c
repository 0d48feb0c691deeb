/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Init, MPI_Init_thread, MPI_Finalize: the order in which the parts of the library come up and go down. */
#include "client/abi/semantics.h"
#include "client/coll/coll.h"
#include "client/coll/select.h"
#include "client/comm/context.h"
#include "client/core/attr.h"
#include "client/core/comm.h"
#include "client/core/env.h"
#include "client/core/err.h"
#include "client/core/group.h"
#include "client/core/handle.h"
#include "client/core/job.h"
#include "client/core/lock.h"
#include "client/core/phase.h"
#include "client/p2p/p2p.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* MOTET_THREAD_LEVEL=single|funneled|serialized|multiple raises what the program asks for. */
static int level_from_environment(int *ret_level)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = {
        { "single", MPI_THREAD_SINGLE },
        { "funneled", MPI_THREAD_FUNNELED },
        { "serialized", MPI_THREAD_SERIALIZED },
        { "multiple", MPI_THREAD_MULTIPLE },
    };
    const char *value = getenv("MOTET_THREAD_LEVEL");
    if (!value || !*value)
        return MPI_SUCCESS;
    if (strncasecmp(value, "MPI_THREAD_", 11) == 0)
        value += 11;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcasecmp(value, levels[i].name) == 0) {
            *ret_level = levels[i].level;
            return MPI_SUCCESS;
        }
    }
    return err_set(MPI_ERR_OTHER, "MOTET_THREAD_LEVEL is %s, not single, funneled, serialized or multiple", value);
}

static int make_predefined(struct group *group, uint32_t context_id, MPI_Comm handle, const char *name,
                           struct comm **ret_comm)
{
    int err = comm_new(context_id, group, NULL, ret_comm);
    group_unref(group);
    if (err)
        return err;
    strcpy((*ret_comm)->name, name);
    handle_set_predefined((uintptr_t)handle, &(*ret_comm)->obj);
    return MPI_SUCCESS;
}

static int make_world_and_self(void)
{
    struct group *group;
    int err = group_new_row(0, job_size(), &group);
    if (!err)
        err = make_predefined(group, COMM_CONTEXT_WORLD, MPI_COMM_WORLD, "MPI_COMM_WORLD", &comm_world);
    if (!err)
        err = group_new_row(job_rank(), 1, &group);
    if (!err)
        err = make_predefined(group, COMM_CONTEXT_SELF, MPI_COMM_SELF, "MPI_COMM_SELF", &comm_self);
    return err;
}

static int start(int level, const char *argv0)
{
    int err = level_from_environment(&level);
    if (!err)
        err = datatype_init();
    if (!err)
        err = op_init();
    if (!err)
        err = select_init();
    if (!err)
        err = job_attach();
    if (err)
        return err;
    lock_init(level == MPI_THREAD_MULTIPLE);
    group_set_own_proc(job_rank());
    err = env_init(level, argv0);
    if (!err)
        err = p2p_init();
    if (err)
        return err;
    coll_init();
    context_init();
    return make_world_and_self();
}

int mpi_init_thread(int *argc, char ***argv, int required, int *provided)
{
    if (phase_now() != PHASE_BEFORE)
        return err_set(MPI_ERR_OTHER, "MPI was initialized before%s",
                       phase_now() == PHASE_FINALIZED ? " and is finalized" : "");
    int level = MPI_THREAD_SINGLE;
    if (required >= MPI_THREAD_MULTIPLE)
        level = MPI_THREAD_MULTIPLE;
    else if (required >= MPI_THREAD_SERIALIZED)
        level = MPI_THREAD_SERIALIZED;
    else if (required >= MPI_THREAD_FUNNELED)
        level = MPI_THREAD_FUNNELED;
    int err = start(level, argc && argv && *argc > 0 && *argv ? (*argv)[0] : NULL);
    if (err)
        return err;
    phase_set(PHASE_ACTIVE);
    return provided ? mpi_query_thread(provided) : MPI_SUCCESS;
}

int mpi_init(int *argc, char ***argv)
{
    return mpi_init_thread(argc, argv, MPI_THREAD_SINGLE, NULL);
}

static void drop_predefined(struct comm **comm)
{
    handle_set_predefined((*comm)->obj.handle, NULL);
    (*comm)->obj.predefined = false;
    (*comm)->obj.handle = 0;
    comm_unref(*comm);
    *comm = NULL;
}

int mpi_finalize(void)
{
    /* First of all, as if MPI_COMM_SELF were freed, while everything still works (MPI-5.0 section 11.2.4). */
    int err = attr_delete_all(&comm_self->attrs, ATTR_COMM, comm_self->obj.handle);
    if (!err)
        err = attr_delete_all(&comm_world->attrs, ATTR_COMM, comm_world->obj.handle);
    if (!err)
        err = mpi_barrier(comm_world);
    if (err)
        return err;
    phase_set(PHASE_FINALIZED);
    drop_predefined(&comm_self);
    drop_predefined(&comm_world);
    p2p_deinit();
    job_detach();
    return MPI_SUCCESS;
}

/* ---- what dynamic processes will extend ------------------------------------------------------------------------------- */

int mpi_comm_get_parent(struct comm **ret_parent)
{
    *ret_parent = NULL; /* this process was not spawned */
    return MPI_SUCCESS;
}

int mpi_comm_disconnect(struct comm **comm)
{
    /* The barrier is what tells it from MPI_Comm_free: nothing is under way afterwards (MPI-5.0 section 11.10.4). */
    int err = mpi_barrier(*comm);
    return err ? err : mpi_comm_free(comm);
}
