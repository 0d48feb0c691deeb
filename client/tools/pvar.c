/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/tools/pvar.h"

#include <stdlib.h>
#include <string.h>

#include "client/abi/semantics.h"
#include "client/tools/counts.h"

struct pvar_session {
    MPI_T_pvar_session handle;
};

struct pvar_handle {
    const struct pvar *pvar;
    const struct pvar_session *session;
    struct tools_bound bound;
    bool running;
    union pvar_value sum;  /* before it was last started; of a watermark: the most */
    union pvar_value from; /* the variable's value when it was */
};

static bool pvar_is_mark(const struct pvar *v)
{
    return v->class == MPI_T_PVAR_CLASS_HIGHWATERMARK;
}

/* Counts from a beginning, and can be stopped. */
static bool pvar_is_sum(const struct pvar *v)
{
    return v->class == MPI_T_PVAR_CLASS_COUNTER || v->class == MPI_T_PVAR_CLASS_AGGREGATE ||
           v->class == MPI_T_PVAR_CLASS_TIMER;
}

static bool pvar_is_continuous(const struct pvar *v)
{
    return !pvar_is_mark(v) && !pvar_is_sum(v);
}

static size_t pvar_size(const struct pvar *v)
{
    return v->datatype == MPI_INT      ? sizeof(int)
           : v->datatype == MPI_DOUBLE ? sizeof(double)
                                       : sizeof(unsigned long long);
}

/* ---- watermarks ---- */

static void mark_fold(void *object, void *arg)
{
    struct pvar_handle *h = object;
    union pvar_value high;

    (void)arg;
    if (h->running && pvar_is_mark(h->pvar) && h->pvar->read(&h->bound, &high) && high.n > h->sum.n)
        h->sum = high;
}

static void mark_count(void *object, void *arg)
{
    const struct pvar_handle *h = object;
    int *n = arg;

    *n += h->running && pvar_is_mark(h->pvar);
}

/* The tables begin to note their length anew, after all who watch have what was noted so far. */
static void mark_again(void)
{
    int n = 0;

    tools_each(REGISTRY_PVAR, mark_fold, NULL);
    tools_each(REGISTRY_PVAR, mark_count, &n);
    counts_watch(n > 0);
}

void pvar_mpi_changes(void)
{
    mark_again();
}

void pvar_stop(void)
{
    counts_watch(false);
}

/* ---- values ---- */

static int pvar_now(struct pvar_handle *h, union pvar_value *ret_value)
{
    union pvar_value now;

    if (h->pvar->read && !h->pvar->read(&h->bound, &now))
        return MPI_T_ERR_INVALID_HANDLE;
    if (pvar_is_mark(h->pvar)) {
        mark_fold(h, NULL);
        now = h->sum;
    } else if (pvar_is_sum(h->pvar)) {
        union pvar_value sum = h->sum;
        if (h->running && h->pvar->datatype == MPI_DOUBLE)
            sum.real += now.real - h->from.real;
        else if (h->running)
            sum.n += now.n - h->from.n;
        now = sum;
    }
    *ret_value = now;
    return MPI_SUCCESS;
}

static int pvar_set(struct pvar_handle *h, const union pvar_value *value)
{
    if (h->running && !h->pvar->read(&h->bound, &h->from))
        return MPI_T_ERR_INVALID_HANDLE;
    h->sum = *value;
    return MPI_SUCCESS;
}

static int pvar_start(struct pvar_handle *h)
{
    if (h->running)
        return MPI_SUCCESS;
    if (!h->pvar->read(&h->bound, &h->from))
        return MPI_T_ERR_INVALID_HANDLE;
    if (pvar_is_mark(h->pvar)) {
        mark_again();
        h->running = true;
        counts_watch(true);
        mark_fold(h, NULL);
    }
    h->running = true;
    return MPI_SUCCESS;
}

static int pvar_halt(struct pvar_handle *h)
{
    union pvar_value value;

    if (!h->running)
        return MPI_SUCCESS;
    int err = pvar_now(h, &value);
    if (err)
        return err;
    h->sum = value;
    h->running = false;
    if (pvar_is_mark(h->pvar))
        mark_again();
    return MPI_SUCCESS;
}

static int pvar_reset(struct pvar_handle *h)
{
    const union pvar_value zero = {0};
    int err = pvar_set(h, &zero);

    if (!err && pvar_is_mark(h->pvar) && h->running) {
        /* Not what was noted for it so far, but for the others. */
        h->running = false;
        mark_again();
        h->running = true;
        counts_watch(true);
        mark_fold(h, NULL);
    }
    return err;
}

/* ---- what there is ---- */

int mpi_t_pvar_get_num(int *num_pvar)
{
    *num_pvar = pvar_n;
    return MPI_SUCCESS;
}

int mpi_t_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity, int *var_class,
                        MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len,
                        int *bind, int *readonly, int *continuous, int *atomic)
{
    if (pvar_index < 0 || pvar_index >= pvar_n)
        return MPI_T_ERR_INVALID_INDEX;
    const struct pvar *v = &pvar_table[pvar_index];
    bool fixed = pvar_is_continuous(v);
    tools_give_text(v->name, name, name_len);
    tools_give_text(v->desc, desc, desc_len);
    tools_give_int(verbosity, v->verbosity);
    tools_give_int(var_class, v->class);
    tools_give_int(bind, v->bind);
    tools_give_int(readonly, fixed);
    tools_give_int(continuous, fixed);
    tools_give_int(atomic, !fixed); /* of what cannot be reset there is nothing to do at once */
    if (datatype)
        *datatype = v->datatype;
    if (enumtype)
        *enumtype = enumeration_handle(v->items);
    return MPI_SUCCESS;
}

int mpi_t_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
    for (int i = 0; i < pvar_n; i++)
        if (pvar_table[i].class == var_class && strcmp(pvar_table[i].name, name) == 0) {
            *pvar_index = i;
            return MPI_SUCCESS;
        }
    return MPI_T_ERR_INVALID_NAME;
}

/* ---- sessions and handles ---- */

int mpi_t_pvar_session_create(MPI_T_pvar_session *session)
{
    if (!session)
        return MPI_T_ERR_INVALID;
    struct pvar_session *s = malloc(sizeof *s);
    if (!s)
        return MPI_T_ERR_OUT_OF_SESSIONS;
    s->handle = tools_add(REGISTRY_SESSION, s);
    if (!s->handle) {
        free(s);
        return MPI_T_ERR_OUT_OF_SESSIONS;
    }
    *session = s->handle;
    return MPI_SUCCESS;
}

/* Applies fn to one handle of a session, or to all of it for which `suits` holds. */
static int pvar_apply(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                      int (*fn)(struct pvar_handle *h), int unsuitable)
{
    const struct pvar_session *s = tools_get(REGISTRY_SESSION, session);
    const struct registry *all = &tools_here->handles[REGISTRY_PVAR];

    if (!s)
        return MPI_T_ERR_INVALID_SESSION;
    if (handle != MPI_T_PVAR_ALL_HANDLES) {
        struct pvar_handle *h = tools_get(REGISTRY_PVAR, handle);
        if (!h || h->session != s)
            return MPI_T_ERR_INVALID_HANDLE;
        return pvar_is_continuous(h->pvar) ? unsuitable : fn(h);
    }
    int err = MPI_SUCCESS;
    for (uint32_t i = 0; i < all->n; i++) {
        struct pvar_handle *h = all->entries[i].object;
        if (h && h->session == s && !pvar_is_continuous(h->pvar) && fn(h))
            err = unsuitable;
    }
    return err;
}

static void pvar_free(struct pvar_handle *h, const void *handle)
{
    bool marks = h->running && pvar_is_mark(h->pvar);

    tools_remove(REGISTRY_PVAR, handle);
    free(h);
    if (marks)
        mark_again();
}

int mpi_t_pvar_session_free(MPI_T_pvar_session *session)
{
    struct pvar_session *s = session ? tools_get(REGISTRY_SESSION, *session) : NULL;
    const struct registry *all = &tools_here->handles[REGISTRY_PVAR];

    if (!s)
        return MPI_T_ERR_INVALID_SESSION;
    for (uint32_t i = 0; i < all->n; i++) {
        struct pvar_handle *h = all->entries[i].object;
        if (h && h->session == s)
            pvar_free(h, (void *)registry_handle(all, REGISTRY_PVAR, i));
    }
    tools_remove(REGISTRY_SESSION, *session);
    free(s);
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
}

int mpi_t_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle,
                            MPI_T_pvar_handle *handle, int *count)
{
    const struct pvar_session *s = tools_get(REGISTRY_SESSION, session);
    struct tools_bound bound;

    if (!s)
        return MPI_T_ERR_INVALID_SESSION;
    if (pvar_index < 0 || pvar_index >= pvar_n)
        return MPI_T_ERR_INVALID_INDEX;
    if (!handle)
        return MPI_T_ERR_INVALID;
    int err = tools_bind(pvar_table[pvar_index].bind, obj_handle, &bound);
    if (err)
        return err;
    struct pvar_handle *h = calloc(1, sizeof *h);
    if (!h)
        return MPI_T_ERR_OUT_OF_HANDLES;
    *h = (struct pvar_handle){.pvar = &pvar_table[pvar_index], .session = s, .bound = bound};
    MPI_T_pvar_handle made = tools_add(REGISTRY_PVAR, h);
    if (!made) {
        free(h);
        return MPI_T_ERR_OUT_OF_HANDLES;
    }
    *handle = made;
    tools_give_int(count, 1);
    return MPI_SUCCESS;
}

/* The handle if it is one of the session; *ret_err tells what is wrong otherwise. */
static struct pvar_handle *pvar_handle_in(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                                          int *ret_err)
{
    const struct pvar_session *s = tools_get(REGISTRY_SESSION, session);
    struct pvar_handle *h = s ? tools_get(REGISTRY_PVAR, handle) : NULL;

    *ret_err = !s                        ? MPI_T_ERR_INVALID_SESSION
               : (!h || h->session != s) ? MPI_T_ERR_INVALID_HANDLE
                                         : MPI_SUCCESS;
    return *ret_err ? NULL : h;
}

int mpi_t_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle)
{
    int err;
    struct pvar_handle *h =
        pvar_handle_in(session, handle ? *handle : MPI_T_PVAR_HANDLE_NULL, &err);

    if (!h)
        return err;
    pvar_free(h, *handle);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}

int mpi_t_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return pvar_apply(session, handle, pvar_start, MPI_T_ERR_PVAR_NO_STARTSTOP);
}

int mpi_t_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return pvar_apply(session, handle, pvar_halt, MPI_T_ERR_PVAR_NO_STARTSTOP);
}

int mpi_t_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return pvar_apply(session, handle, pvar_reset, MPI_T_ERR_PVAR_NO_WRITE);
}

int mpi_t_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    union pvar_value value;
    int err;
    struct pvar_handle *h = pvar_handle_in(session, handle, &err);

    if (!h)
        return err;
    if (!buf)
        return MPI_T_ERR_INVALID;
    err = pvar_now(h, &value);
    if (!err)
        memcpy(buf, &value, pvar_size(h->pvar));
    return err;
}

int mpi_t_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf)
{
    union pvar_value value = {0};
    int err;
    struct pvar_handle *h = pvar_handle_in(session, handle, &err);

    if (!h)
        return err;
    if (!buf)
        return MPI_T_ERR_INVALID;
    if (pvar_is_continuous(h->pvar))
        return MPI_T_ERR_PVAR_NO_WRITE;
    err = pvar_reset(h);
    memcpy(&value, buf, pvar_size(h->pvar));
    return err ? err : pvar_set(h, &value);
}

int mpi_t_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    int err;
    struct pvar_handle *h = pvar_handle_in(session, handle, &err);

    if (!h)
        return err;
    if (pvar_is_continuous(h->pvar))
        return MPI_T_ERR_PVAR_NO_ATOMIC;
    err = mpi_t_pvar_read(session, handle, buf);
    return err ? err : pvar_reset(h);
}
