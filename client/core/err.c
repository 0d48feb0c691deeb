/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/core/err.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* The initial-exec model would need static TLS space when the library is opened by dlopen (Python does), so the text
 * stays in the default model: errors are rare. */
static _Thread_local struct {
    struct comm *blamed;
    int mpi_class;
    char text[ERR_DETAIL_BYTES];
} detail;

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
