/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Init, MPI_Init_thread, MPI_Finalize, and the order in which the parts of the library come up
 * and go down.
 *
 * The world model and the sessions share one instance of the library, which the first of them
 * starts. It ends with MPI_Finalize in a program without sessions. After a session it stays until
 * the process exits: another session may follow, and a rank that has left its job cannot come back.
 * It leaves in atexit() then, so a program that had sessions and ends by _exit() looks like one
 * that died.
 */
#include "client/init/init.h"

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/coll/choice/select.h"
#include "client/coll/family/coll.h"
#include "client/comm/context.h"
#include "client/dynamic/dynamic.h"
#include "client/init/env.h"
#include "client/init/leak.h"
#include "client/io/worker.h"
#include "client/lock/lock.h"
#include "client/object/attr.h"
#include "client/object/comm.h"
#include "client/object/err.h"
#include "client/object/errhandler.h"
#include "client/object/group.h"
#include "client/object/handle.h"
#include "client/p2p/p2p.h"
#include "client/process/job.h"
#include "client/process/launcher.h"
#include "client/process/phase.h"
#include "client/process/setting.h"
#include "client/progress/async.h"
#include "client/progress/notice.h"
#include "client/transport/transport.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int init_level_of(const char *name)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = {
        {"single", MPI_THREAD_SINGLE},
        {"funneled", MPI_THREAD_FUNNELED},
        {"serialized", MPI_THREAD_SERIALIZED},
        {"multiple", MPI_THREAD_MULTIPLE},
    };
    if (strncasecmp(name, "MPI_THREAD_", 11) == 0)
        name += 11;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (strcasecmp(name, levels[i].name) == 0)
            return levels[i].level;
    return -1;
}

/* MOTET_THREAD_LEVEL=single|funneled|serialized|multiple takes the place of what the program asks
 * for. */
static int level_from_environment(int *ret_level)
{
    const char *value = setting_of("MOTET_THREAD_LEVEL");
    if (!value || !*value)
        return MPI_SUCCESS;
    int level = init_level_of(value);
    if (level < 0)
        return err_set(MPI_ERR_OTHER,
                       "MOTET_THREAD_LEVEL is %s, not single, funneled, serialized or multiple",
                       value);
    *ret_level = level;
    return MPI_SUCCESS;
}

static int make_predefined(struct group *group, uint32_t context_id, const char *name,
                           struct comm **ret_comm)
{
    int err = comm_new(context_id, group, NULL, ret_comm);
    group_unref(group);
    if (err)
        return err;
    strcpy((*ret_comm)->name, name);
    calls_comm_name(*ret_comm);
    return MPI_SUCCESS;
}

/* mpiexec -initial-errhandler (MPI-5.0 section 11.5), which comes by the environment. */
static int set_initial_errhandlers(void)
{
    const struct {
        const char *name;
        struct errhandler *handler;
    } known[] = {{"mpi_errors_are_fatal", &errhandler_here->fatal},
                 {"mpi_errors_abort", &errhandler_here->abort},
                 {"mpi_errors_return", &errhandler_here->ret}};
    const char *value = setting_of("MOTET_INITIAL_ERRHANDLER");

    if (!value || !*value)
        return MPI_SUCCESS;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(value, known[i].name) != 0)
            continue;
        int err =
            errhandler_assign(&comm_here->world->errhandler, known[i].handler, ERRHANDLER_COMM);
        return err ? err
                   : errhandler_assign(&comm_here->self->errhandler, known[i].handler,
                                       ERRHANDLER_COMM);
    }
    return err_set(MPI_ERR_OTHER,
                   "MOTET_INITIAL_ERRHANDLER is %s, not mpi_errors_are_fatal, mpi_errors_abort or "
                   "mpi_errors_return",
                   value);
}

/* Without handles: a program that has only sessions may not name them, the library works with
 * them. */
static int make_world_and_self(void)
{
    struct group *group;
    int err = group_new_row(0, job_size(), &group);
    if (!err)
        err = make_predefined(group, COMM_CONTEXT_WORLD, "MPI_COMM_WORLD", &comm_here->world);
    if (!err)
        err = group_new_row(job_rank(), 1, &group);
    if (!err)
        err = make_predefined(group, COMM_CONTEXT_SELF, "MPI_COMM_SELF", &comm_here->self);
    return err ? err : set_initial_errhandlers();
}

static int attach(void)
{
    char why[320];
    if (launcher_is_foreign(why, sizeof why))
        return err_set(MPI_ERR_OTHER, "%s", why);
    int rc = job_attach();
    return rc == 0
               ? MPI_SUCCESS
               : err_set(rc == -ENOMEM ? MPI_ERR_NO_MEM : MPI_ERR_OTHER, "%s", transport_reason());
}

static int start(int level, const char *argv0)
{
    int err = leak_check_environment();
    if (!err)
        err = datatype_init();
    if (!err)
        err = op_init();
    if (!err)
        err = select_init();
    if (!err)
        err = attach();
    if (err)
        return err;
    group_set_own_proc(job_rank());
    err = env_init(level, argv0);
    if (!err)
        err = p2p_init();
    if (err)
        return err;
    coll_init(select_algorithm);
    context_init();
    if (notice_here->begin)
        notice_here->begin();
    err = make_world_and_self();
    return err ? err : dynamic_start();
}

static void stop(void)
{
    async_stop();
    worker_stop();
    if (notice_here->end)
        notice_here->end();
    dynamic_stop();
    comm_unref(comm_here->self);
    comm_unref(comm_here->world);
    comm_here->self = comm_here->world = NULL;
    p2p_deinit();
    job_detach();
}

/* ---- who uses the library ---- */

/* Two threads may both open the first session. */
struct init_state {
    pthread_mutex_t starting;
    int n_users; /* the world model and every session */
    bool running, lingers;
};
static struct init_state init_first;
static struct init_state *init_here = &init_first;

static void init_part_init(void)
{
    pthread_mutex_init(&init_here->starting, NULL);
}
CLIENT_PART(init_here, init_first, .init = init_part_init);

static void stop_at_exit(void)
{
    if (init_here->running && init_here->n_users == 0)
        stop();
}

int init_acquire(int *level, const char *argv0)
{
    pthread_mutex_lock(&init_here->starting);
    int err = level_from_environment(level);
    if (!err && !init_here->running) {
        if (phase_now() == PHASE_FINALIZED)
            err = err_set(MPI_ERR_OTHER,
                          "this process left its job in MPI_Finalize and cannot come back");
        else
            err = start(*level, argv0);
        init_here->running = !err;
    }
    if (!err) {
        if (*level == MPI_THREAD_MULTIPLE)
            lock_init(true);
        init_here->n_users++;
        phase_set(PHASE_ACTIVE);
    }
    pthread_mutex_unlock(&init_here->starting);
    return err;
}

void init_linger(void)
{
    if (!init_here->lingers)
        atexit(stop_at_exit);
    init_here->lingers = true;
}

void init_release(void)
{
    pthread_mutex_lock(&init_here->starting);
    if (--init_here->n_users == 0) {
        leak_report();
        phase_set(PHASE_FINALIZED);
        if (!init_here->lingers) {
            stop();
            init_here->running = false;
        }
    }
    pthread_mutex_unlock(&init_here->starting);
}

/* ---- the world model ---- */

int mpi_init_thread(int *argc, char ***argv, int required, int *provided)
{
    if (phase_here->world != PHASE_BEFORE)
        return err_set(MPI_ERR_OTHER, "MPI was initialized before%s",
                       phase_here->world == PHASE_FINALIZED ? " and is finalized" : "");
    int level = MPI_THREAD_SINGLE;
    if (required >= MPI_THREAD_MULTIPLE)
        level = MPI_THREAD_MULTIPLE;
    else if (required >= MPI_THREAD_SERIALIZED)
        level = MPI_THREAD_SERIALIZED;
    else if (required >= MPI_THREAD_FUNNELED)
        level = MPI_THREAD_FUNNELED;
    const char *argv0 = argc && argv && *argc > 0 && *argv ? (*argv)[0] : NULL;
    int err = init_acquire(&level, argv0);
    if (!err)
        err = env_set_world(level, argv0);
    if (err)
        return err;
    handle_set_predefined((uintptr_t)MPI_COMM_WORLD, &comm_here->world->obj);
    handle_set_predefined((uintptr_t)MPI_COMM_SELF, &comm_here->self->obj);
    phase_here->world = PHASE_ACTIVE;
    return provided ? mpi_query_thread(provided) : MPI_SUCCESS;
}

int mpi_init(int *argc, char ***argv)
{
    return mpi_init_thread(argc, argv, MPI_THREAD_SINGLE, NULL);
}

static void withdraw(struct comm *comm)
{
    handle_set_predefined(comm->obj.handle, NULL);
    comm->obj.predefined = false;
    comm->obj.handle = 0;
}

int mpi_finalize(void)
{
    if (phase_here->world != PHASE_ACTIVE)
        return err_set(MPI_ERR_OTHER, "MPI_Init has not been called, or MPI is finalized");
    /* First of all, as if MPI_COMM_SELF were freed, while everything still works (MPI-5.0 section
     * 11.2.4). */
    int err = attr_delete_all(&comm_here->self->attrs, ATTR_COMM, comm_here->self->obj.handle);
    if (!err)
        err = attr_delete_all(&comm_here->world->attrs, ATTR_COMM, comm_here->world->obj.handle);
    if (!err)
        err = mpi_barrier(comm_here->world);
    if (err)
        return err;
    phase_here->world = PHASE_FINALIZED;
    withdraw(comm_here->self);
    withdraw(comm_here->world);
    init_release();
    return MPI_SUCCESS;
}
