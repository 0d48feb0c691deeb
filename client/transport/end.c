/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/transport/end.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "client/transport/transport.h"
#include "mpi.h"

/* The daemon ends every rank, this one too, within this time or not at all. */
#define END_WAIT_S 5

void end_job(int code, const char *text)
{
    fflush(NULL);
    if (transport_abort(code, text)) {
        /* Exiting first would look like a rank that fell over by itself. */
        struct timespec wait = {.tv_sec = END_WAIT_S};
        nanosleep(&wait, NULL);
    }
    _exit(code ? code : EXIT_FAILURE);
}

void end_no_memory(const char *function, const char *what, size_t n_bytes)
{
    char text[200];

    snprintf(text, sizeof text, "no memory for %s: %s wanted %zu bytes", what, function, n_bytes);
    fflush(stdout);
    fprintf(stderr, "motet: rank %u: %s, ending the job\n", transport_here->world_rank, text);
    end_job(MPI_ERR_NO_MEM, text);
}
