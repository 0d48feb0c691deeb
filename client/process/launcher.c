/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/process/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/process/setting.h"

/* Slurm's steps from here on are no programs of srun: the batch script, an interactive shell. */
#define LAUNCHER_SLURM_SPECIAL_STEP 4294967290ul

static unsigned long launcher_number(const char *variable)
{
    const char *value = getenv(variable);

    return value ? strtoul(value, NULL, 10) : 0;
}

bool launcher_is_foreign(char *why, size_t room)
{
    static const struct {
        const char *size, *launcher;
    } launchers[] = {
        {"OMPI_COMM_WORLD_SIZE", "Open MPI's mpiexec"},
        {"PMI_SIZE", "the mpiexec of MPICH or Intel MPI"},
        {"SLURM_STEP_NUM_TASKS", "srun"},
    };
    const char *wanted = setting_of("MOTET_SINGLETON");

    if (getenv("MOTET_SOCKET") || getenv("MOTET_JOB") || (wanted && strcmp(wanted, "yes") == 0))
        return false;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        unsigned long n = launcher_number(launchers[i].size);
        if (n < 2 || (launchers[i].size[0] == 'S' &&
                      (!getenv("SLURM_PROCID") ||
                       launcher_number("SLURM_STEP_ID") >= LAUNCHER_SLURM_SPECIAL_STEP)))
            continue;
        snprintf(why, room,
                 "%s has started this process as one of %lu (%s), but its MPI library is Motet's: "
                 "start it with Motet's mpiexec (MOTET_SINGLETON=yes: every process is a job of "
                 "its own)",
                 launchers[i].launcher, n, launchers[i].size);
        return true;
    }
    return false;
}
