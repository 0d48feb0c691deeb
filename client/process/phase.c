/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/process/phase.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct phase_state phase_state = {.now = PHASE_BEFORE, .checks = true, .world = PHASE_BEFORE};

/* The environment decides before main(), so that checks of functions that may be called before
 * MPI_Init obey, too. */
__attribute__((constructor)) static void read_environment(void)
{
    const char *value = getenv("MOTET_CHECK");

    if (value && strcmp(value, "0") == 0)
        phase_state.checks = false;
    if (value && strcmp(value, "collectives") == 0)
        phase_state.check_collectives = true;
}

void phase_set(enum phase phase)
{
    phase_state.now = (uint8_t)phase;
}

void phase_refuse(const char *function)
{
    if (phase_now() == PHASE_ACTIVE)
        return;
    fflush(stdout);
    fprintf(stderr, "motet: %s was called %s\n", function,
            phase_now() == PHASE_BEFORE ? "before MPI_Init"
                                        : "after MPI_Finalize and the last session");
    /* No communicator and no error handler exists: as with MPI_ERRORS_ARE_FATAL the process ends,
     * and the launcher ends the job (MPI-5.0 section 9.3). */
    exit(EXIT_FAILURE);
}
