/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/init/env.h"

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/init/version.h"
#include "client/object/comm.h"
#include "client/object/err.h"
#include "client/object/errcode.h"
#include "client/object/handle.h"
#include "client/object/info.h"
#include "client/process/hardware.h"
#include "client/process/job.h"
#include "client/process/phase.h"
#include "client/process/setting.h"
#include "client/transport/end.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

struct env {
    int thread_level;
    pthread_t main_thread;
    int tag_ub, io, host, wtime_is_global, universe_size, appnum;
};
static struct env env_first;
static struct env *env_here = &env_first;

static void env_part_init(void)
{
    *env_here = (struct env){
        .thread_level = MPI_THREAD_SINGLE,
        .tag_ub = ENV_TAG_UB,
        .io = MPI_ANY_SOURCE,  /* every rank has the language's input and output */
        .host = MPI_PROC_NULL, /* there is no host process */
        .universe_size = MPI_UNDEFINED,
        .appnum = MPI_UNDEFINED,
    };
}
CLIENT_PART(env_here, env_first, .init = env_part_init);

const int *env_attr(int keyval)
{
    switch (keyval) {
    case MPI_TAG_UB:
        return &env_here->tag_ub;
    case MPI_IO:
        return &env_here->io;
    case MPI_HOST:
        return &env_here->host;
    case MPI_WTIME_IS_GLOBAL:
        return &env_here->wtime_is_global;
    case MPI_APPNUM:
        return &env_here->appnum;
    case MPI_LASTUSEDCODE:
        return &errcode_here->last_used;
    case MPI_UNIVERSE_SIZE:
        return &env_here->universe_size;
    default:
        return NULL;
    }
}

/* A number from the environment, or `otherwise` when it is not set or not one. */
static int number_of(const char *variable, int otherwise)
{
    const char *text = setting_of(variable);
    char *end;
    if (!text || !*text)
        return otherwise;
    long value = strtol(text, &end, 10);
    return *end || value < 0 || value > INT32_MAX ? otherwise : (int)value;
}

/* The keys of MPI-5.0 section 11.2.1 as far as they are known here: the same before MPI_Init, by
 * the environment of the rank. */
static int fill_info(struct info *info, const char *command)
{
    char text[512];
    int err = MPI_SUCCESS;
    if (command)
        err = info_put(info, "command", command);
    snprintf(text, sizeof text, "%d", job_attached() ? job_size() : number_of("MOTET_SIZE", 1));
    if (!err)
        err = info_put(info, "maxprocs", text);
    if (!err)
        err = info_put(info, "soft", text);
    if (!err && gethostname(text, sizeof text) == 0)
        err = info_put(info, "host", text);
    struct utsname machine;
    if (!err && uname(&machine) == 0)
        err = info_put(info, "arch", machine.machine);
    if (!err && getcwd(text, sizeof text))
        err = info_put(info, "wdir", text);
    const char *level =
        setting_of("MOTET_THREAD_LEVEL"); /* what was asked for before the program started */
    if (!err && level)
        err = info_put(info, "thread_level", level);
    return err;
}

int env_set_world(int level, const char *argv0)
{
    env_here->thread_level = level;
    env_here->main_thread = pthread_self();
    return argv0 ? info_put(&info_here->env, "command", argv0) : MPI_SUCCESS;
}

int env_init(int level, const char *argv0)
{
    env_here->thread_level = level;
    env_here->main_thread = pthread_self();
    env_here->universe_size = number_of("MOTET_UNIVERSE_SIZE", job_size());
    char n_nodes[16];
    env_here->appnum = number_of("MOTET_APPNUM", job_attached() && job_id() ? 0 : MPI_UNDEFINED);
    int err = fill_info(&info_here->env, argv0);
    snprintf(n_nodes, sizeof n_nodes, "%d", job_n_nodes());
    return err ? err : info_put(&info_here->env, "motet_nodes", n_nodes);
}

/* ---- MPI functions ---- */

int mpi_get_version(int *version, int *subversion)
{
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}

int mpi_get_library_version(char *version, int *resultlen)
{
    *resultlen =
        snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Motet %s, MPI %d.%d, standard ABI %d.%d",
                 VERSION_TEXT, MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
    return MPI_SUCCESS;
}

int mpi_get_processor_name(char *name, int *resultlen)
{
    snprintf(name, MPI_MAX_PROCESSOR_NAME, "%s", job_node_name(job_node_of(job_rank())));
    *resultlen = (int)strlen(name);
    return MPI_SUCCESS;
}

int mpi_initialized(int *flag)
{
    *flag = phase_here->world != PHASE_BEFORE;
    return MPI_SUCCESS;
}

int mpi_finalized(int *flag)
{
    *flag = phase_here->world == PHASE_FINALIZED;
    return MPI_SUCCESS;
}

int mpi_query_thread(int *provided)
{
    *provided = env_here->thread_level;
    return MPI_SUCCESS;
}

int mpi_is_thread_main(int *flag)
{
    *flag = pthread_equal(pthread_self(), env_here->main_thread) != 0;
    return MPI_SUCCESS;
}

/* The level has no meaning here: there is no profiler to control (MPI-5.0 section 15.2.4 allows
 * any). */
int mpi_pcontrol(int level)
{
    (void)level;
    return MPI_SUCCESS;
}

double mpi_wtime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double mpi_wtick(void)
{
    struct timespec resolution;
    if (clock_getres(CLOCK_MONOTONIC, &resolution))
        return 1e-9;
    return (double)resolution.tv_sec + 1e-9 * (double)resolution.tv_nsec;
}

int mpi_abort(struct comm *comm, int errorcode)
{
    char text[160];
    snprintf(text, sizeof text, "MPI_Abort(%s, %d)", comm->name[0] ? comm->name : "a communicator",
             errorcode);
    if (!job_id()) {
        fflush(stdout);
        fprintf(stderr, "motet: rank %d called %s\n", job_rank(), text);
    }
    end_job(errorcode, text);
}

int mpi_alloc_mem(MPI_Aint size, struct info *info, void *baseptr)
{
    (void)info; /* every hint may be ignored; alignment is above what any type needs */
    void *memory = NULL;
    const char *asked = info_get(info, "mpi_minimum_memory_alignment");
    size_t align = 64;
    if (asked) {
        char *end;
        unsigned long value = strtoul(asked, &end, 10);
        if (*end || value == 0 || (value & (value - 1)))
            return err_set(MPI_ERR_INFO_VALUE,
                           "mpi_minimum_memory_alignment is %s, not a power of two", asked);
        if (value > align)
            align = value;
    }
    if (posix_memalign(&memory, align, size ? (size_t)size : 1))
        return err_set(MPI_ERR_NO_MEM, "no memory for %lld bytes", (long long)size);
    *(void **)baseptr = memory;
    return MPI_SUCCESS;
}

int mpi_free_mem(void *base)
{
    free(base);
    return MPI_SUCCESS;
}

int mpi_info_create_env(int argc, char *argv[], struct info **ret_info)
{
    (void)argc;
    struct info *info;
    int err = info_copy(&info_here->env, &info);
    if (err)
        return err;
    const char *command = argv ? argv[0] : NULL;
    if (info_here->env.n_pairs == 0) /* before MPI_Init */
        err = fill_info(info, command);
    else if (command)
        err = info_put(info, "command", command);
    return info_publish(err, info, ret_info);
}

/* The resource types by which MPI_Comm_split_type can split here (MPI-5.0 section 11.2.1); "true":
 * this process is restricted to one of that type. */
int mpi_get_hw_resource_info(struct info **ret_hw_info)
{
    struct info *info;
    int err = info_new(&info);
    if (err)
        return err;
    for (int type = 0; !err && type < HARDWARE_TYPES; type++)
        if (hardware_has(type))
            err = info_put(info, hardware_uri(type),
                           hardware_place(type) == HARDWARE_NONE ? "false" : "true");
    return info_publish(err, info, ret_hw_info);
}
