/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/core/err.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "mpi.h"

/* The initial-exec model would need static TLS space when the library is opened by dlopen (Python does), so the text
 * stays in the default model: errors are rare. */
static _Thread_local struct {
    struct comm *blamed;
    int mpi_class;
    char text[ERR_DETAIL_BYTES];
} detail;

/* The last errors of this thread that the application got, of different classes. */
#define N_KEPT     4
#define KEPT_BYTES (ERR_DETAIL_BYTES + 256) /* the function's and the object's name besides */

static _Thread_local struct {
    int mpi_class; /* 0: none */
    char text[KEPT_BYTES];
} kept[N_KEPT];
static _Thread_local unsigned n_kept;

void err_record(int mpi_class, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(detail.text, sizeof(detail.text), fmt, args);
    va_end(args);
    detail.mpi_class = mpi_class;
    detail.blamed = NULL;
}

const char *err_detail(int mpi_class)
{
    return detail.mpi_class == mpi_class ? detail.text : "";
}

void err_keep(int code, const char *function, const char *object_name)
{
    if (!detail.text[0] || (code != detail.mpi_class && code != MPI_ERR_IN_STATUS))
        return;
    unsigned i = 0;
    while (i < N_KEPT && kept[i].mpi_class != detail.mpi_class)
        i++;
    if (i == N_KEPT)
        i = n_kept++ % N_KEPT;
    kept[i].mpi_class = detail.mpi_class;
    snprintf(kept[i].text, sizeof(kept[i].text), "%s%s%s: %s", function, *object_name ? " on " : "", object_name, detail.text);
}

const char *err_kept(int mpi_class)
{
    for (unsigned i = 0; i < N_KEPT; i++) {
        if (mpi_class != MPI_SUCCESS && kept[i].mpi_class == mpi_class)
            return kept[i].text;
    }
    return NULL;
}

void err_blame(struct comm *comm)
{
    detail.blamed = comm;
}

struct comm *err_take_blame(void)
{
    struct comm *comm = detail.blamed;

    detail.blamed = NULL;
    return comm;
}

void err_clear(void)
{
    detail.mpi_class = 0;
    detail.text[0] = '\0';
    detail.blamed = NULL;
}
