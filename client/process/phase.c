/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/process/phase.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "client/process/setting.h"
#include "client/transport/end.h"

static struct phase_state phase_first;
struct phase_state *phase_here = &phase_first;

/* The environment decides before main(), so that checks of functions that may be called before
 * MPI_Init obey, too. */
static void phase_part_init(void)
{
    *phase_here = (struct phase_state){.now = PHASE_BEFORE, .world = PHASE_BEFORE};
    phase_read_checks();
}
CLIENT_PART(phase_here, phase_first, .init = phase_part_init);

void phase_read_checks(void)
{
    const char *value = setting_of("MOTET_CHECK");

    phase_here->checks = !value || strcmp(value, "0") != 0;
    phase_here->check_collectives = value && strcmp(value, "collectives") == 0;
}

void phase_set(enum phase phase)
{
    phase_here->now = (uint8_t)phase;
}

void phase_refuse(const char *function)
{
    if (phase_now() == PHASE_ACTIVE)
        return;
    char text[128];
    snprintf(text, sizeof text, "%s was called %s", function,
             phase_now() == PHASE_BEFORE ? "before MPI_Init"
                                         : "after MPI_Finalize and the last session");
    fflush(stdout);
    fprintf(stderr, "motet: %s\n", text);
    /* No communicator and no error handler exists: as with MPI_ERRORS_ARE_FATAL the process ends,
     * and the launcher ends the job (MPI-5.0 section 9.3). */
    end_job(EXIT_FAILURE, text);
}
