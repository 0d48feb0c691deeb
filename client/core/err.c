/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/core/err.h"

#include <pthread.h>
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

/* The last errors that the application got, of all threads. No thread-local memory: as soon as one variable of the library is in the static
 * block of that, all are, and Python's dlopen finds little room there. */
#define N_KEPT     32
#define KEPT_BYTES (ERR_DETAIL_BYTES + 256) /* the function's and the object's name besides */

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int mpi_class; /* 0: none */
    pthread_t thread;
    char text[KEPT_BYTES];
} kept[N_KEPT];
static unsigned n_kept; /* the next one is written at n_kept % N_KEPT */

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
    pthread_mutex_lock(&kept_lock);
    unsigned i = n_kept++ % N_KEPT;
    kept[i].mpi_class = detail.mpi_class;
    kept[i].thread = pthread_self();
    snprintf(kept[i].text, sizeof(kept[i].text), "%s%s%s: %s", function, *object_name ? " on " : "", object_name, detail.text);
    pthread_mutex_unlock(&kept_lock);
}

bool err_kept(int mpi_class, char *text, size_t n_bytes)
{
    bool found = false;

    pthread_mutex_lock(&kept_lock);
    for (unsigned back = 1; back <= N_KEPT && mpi_class != MPI_SUCCESS && !found; back++) {
        unsigned i = (n_kept - back) % N_KEPT;
        found = kept[i].mpi_class == mpi_class && pthread_equal(kept[i].thread, pthread_self());
        if (found)
            snprintf(text, n_bytes, "%s", kept[i].text);
    }
    pthread_mutex_unlock(&kept_lock);
    return found;
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
