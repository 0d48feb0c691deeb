/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/object/err.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/client.h"
#include "mpi.h"

/* The calling thread's. Made at its first error, and found by a key: as soon as one variable of the
 * library is in the static block of thread-local memory, all are, and Python's dlopen finds little
 * room there. */
struct detail {
    struct comm *blamed;
    int mpi_class;
    char text[ERR_DETAIL_BYTES];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static void make_key(void)
{
    has_key = pthread_key_create(&key, free) == 0;
}

static struct detail *err_find(void)
{
    pthread_once(&once, make_key);
    return has_key ? pthread_getspecific(key) : NULL;
}

/* NULL: no memory; the error then has its class alone. */
static struct detail *find_or_make(void)
{
    struct detail *d = err_find();

    if (!d && has_key && (d = calloc(1, sizeof *d)) != NULL && pthread_setspecific(key, d) != 0) {
        free(d);
        d = NULL;
    }
    return d;
}

/* The last errors that the application got, of all threads. */
#define N_KEPT     32
#define KEPT_BYTES (ERR_DETAIL_BYTES + 256) /* the function's and the object's name besides */

struct err_state {
    pthread_mutex_t kept_lock;
    struct {
        int mpi_class; /* 0: none */
        pthread_t thread;
        char text[KEPT_BYTES];
    } kept[N_KEPT];
    unsigned n_kept; /* the next one is written at n_kept % N_KEPT */
    /* Those that one thread found and another is to have; with kept_lock. */
    struct {
        uint32_t number; /* 0: none */
        char text[ERR_DETAIL_BYTES];
    } stowed[N_KEPT];
    uint32_t n_stowed; /* the number of the last */
};
static struct err_state err_first;
static struct err_state *err_here = &err_first;

static void err_part_init(void)
{
    pthread_mutex_init(&err_here->kept_lock, NULL);
}
CLIENT_PART(err_here, err_first, .init = err_part_init);

void err_record(int mpi_class, const char *fmt, ...)
{
    struct detail *d = find_or_make();
    va_list args;

    if (!d)
        return;
    va_start(args, fmt);
    vsnprintf(d->text, sizeof(d->text), fmt, args);
    va_end(args);
    d->mpi_class = mpi_class;
    d->blamed = NULL;
}

const char *err_detail(int mpi_class)
{
    const struct detail *d = err_find();

    return d && d->mpi_class == mpi_class ? d->text : "";
}

void err_keep(int code, const char *function, const char *object_name)
{
    const struct detail *d = err_find();

    if (!d || !d->text[0] || (code != d->mpi_class && code != MPI_ERR_IN_STATUS))
        return;
    pthread_mutex_lock(&err_here->kept_lock);
    unsigned i = err_here->n_kept++ % N_KEPT;
    err_here->kept[i].mpi_class = d->mpi_class;
    err_here->kept[i].thread = pthread_self();
    snprintf(err_here->kept[i].text, sizeof(err_here->kept[i].text), "%s%s%s: %s", function,
             *object_name ? " on " : "", object_name, d->text);
    pthread_mutex_unlock(&err_here->kept_lock);
}

bool err_kept(int mpi_class, char *text, size_t n_bytes)
{
    bool found = false;

    pthread_mutex_lock(&err_here->kept_lock);
    for (unsigned back = 1; back <= N_KEPT && mpi_class != MPI_SUCCESS && !found; back++) {
        unsigned i = (err_here->n_kept - back) % N_KEPT;
        found = err_here->kept[i].mpi_class == mpi_class &&
                pthread_equal(err_here->kept[i].thread, pthread_self());
        if (found)
            snprintf(text, n_bytes, "%s", err_here->kept[i].text);
    }
    pthread_mutex_unlock(&err_here->kept_lock);
    return found;
}

void err_stow(int mpi_class, uint32_t *detail)
{
    const char *text = err_detail(mpi_class);

    if (*detail != 0 || !*text)
        return;
    pthread_mutex_lock(&err_here->kept_lock);
    if (++err_here->n_stowed == 0)
        err_here->n_stowed = 1;
    err_here->stowed[err_here->n_stowed % N_KEPT].number = err_here->n_stowed;
    snprintf(err_here->stowed[err_here->n_stowed % N_KEPT].text, ERR_DETAIL_BYTES, "%s", text);
    *detail = err_here->n_stowed;
    pthread_mutex_unlock(&err_here->kept_lock);
}

void err_unstow(int mpi_class, uint32_t *detail)
{
    if (*detail == 0)
        return;
    pthread_mutex_lock(&err_here->kept_lock);
    if (err_here->stowed[*detail % N_KEPT].number == *detail)
        err_record(mpi_class, "%s", err_here->stowed[*detail % N_KEPT].text);
    pthread_mutex_unlock(&err_here->kept_lock);
    *detail = 0;
}

void err_blame(struct comm *comm)
{
    struct detail *d = find_or_make();

    if (d)
        d->blamed = comm;
}

struct comm *err_take_blame(void)
{
    struct detail *d = err_find();
    struct comm *comm = d ? d->blamed : NULL;

    if (d)
        d->blamed = NULL;
    return comm;
}

void err_clear(void)
{
    struct detail *d = err_find();

    if (d)
        *d = (struct detail){.mpi_class = 0};
}
