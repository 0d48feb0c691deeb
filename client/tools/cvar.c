/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/tools/cvar.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/abi/semantics.h"
#include "client/process/setting.h"
#include "client/tools/tools.h"

struct cvar_handle {
    const struct cvar *cvar;
};

/* ---- values ---- */

static int cvar_item_of(const struct cvar *cvar, const char *text)
{
    if (strncasecmp(text, "MPI_THREAD_", 11) == 0)
        text += 11;
    for (int i = 0; i < cvar->items->n; i++)
        if (strcasecmp(cvar->items->items[i], text) == 0)
            return i;
    return cvar->otherwise;
}

int cvar_number(const struct cvar *cvar)
{
    const char *text = setting_of(cvar->name);
    char *end;

    if (!text || !*text)
        return cvar->otherwise;
    if (cvar->kind == CVAR_ITEM)
        return cvar_item_of(cvar, text);
    errno = 0;
    long number = strtol(text, &end, 10);
    return errno || *end || number < 0 || number > INT_MAX ? cvar->otherwise : (int)number;
}

/* What holds where nothing is set is written as nothing. */
static int cvar_put_number(const struct cvar *cvar, int number)
{
    char text[16] = "";

    if (number != cvar->otherwise && number < 0)
        return MPI_T_ERR_INVALID;
    if (cvar->kind == CVAR_ITEM && number >= cvar->items->n)
        return MPI_T_ERR_INVALID;
    if (number != cvar->otherwise && cvar->kind == CVAR_NUMBER)
        snprintf(text, sizeof text, "%d", number);
    return setting_put(cvar->name, number != cvar->otherwise && cvar->kind == CVAR_ITEM
                                       ? cvar->items->items[number]
                                       : text);
}

static int cvar_put_text(const struct cvar *cvar, const char *text)
{
    if (strnlen(text, (size_t)cvar->n_chars) == (size_t)cvar->n_chars)
        return MPI_T_ERR_INVALID;
    return setting_put(cvar->name, text);
}

/* ---- MPI functions ---- */

int mpi_t_cvar_get_num(int *num_cvar)
{
    *num_cvar = cvar_n();
    return MPI_SUCCESS;
}

int mpi_t_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity,
                        MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len,
                        int *bind, int *scope)
{
    const struct cvar *cvar = cvar_at(cvar_index);

    if (!cvar)
        return MPI_T_ERR_INVALID_INDEX;
    tools_give_text(cvar->name, name, name_len);
    tools_give_text(cvar->desc, desc, desc_len);
    tools_give_int(verbosity, cvar->verbosity);
    tools_give_int(bind, MPI_T_BIND_NO_OBJECT);
    tools_give_int(scope, cvar->scope);
    if (datatype)
        *datatype = cvar->kind == CVAR_TEXT ? MPI_CHAR : MPI_INT;
    if (enumtype)
        *enumtype = enumeration_handle(cvar->items);
    return MPI_SUCCESS;
}

int mpi_t_cvar_get_index(const char *name, int *cvar_index)
{
    for (int i = 0; i < cvar_n(); i++)
        if (strcmp(cvar_at(i)->name, name) == 0) {
            *cvar_index = i;
            return MPI_SUCCESS;
        }
    return MPI_T_ERR_INVALID_NAME;
}

int mpi_t_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle, int *count)
{
    const struct cvar *cvar = cvar_at(cvar_index);

    (void)obj_handle;
    if (!cvar)
        return MPI_T_ERR_INVALID_INDEX;
    if (!handle)
        return MPI_T_ERR_INVALID;
    struct cvar_handle *h = malloc(sizeof *h);
    if (!h)
        return MPI_T_ERR_OUT_OF_HANDLES;
    h->cvar = cvar;
    MPI_T_cvar_handle made = tools_add(REGISTRY_CVAR, h);
    if (!made) {
        free(h);
        return MPI_T_ERR_OUT_OF_HANDLES;
    }
    *handle = made;
    tools_give_int(count, cvar->kind == CVAR_TEXT ? cvar->n_chars : 1);
    return MPI_SUCCESS;
}

int mpi_t_cvar_handle_free(MPI_T_cvar_handle *handle)
{
    struct cvar_handle *h = handle ? tools_get(REGISTRY_CVAR, *handle) : NULL;

    if (!h)
        return MPI_T_ERR_INVALID_HANDLE;
    tools_remove(REGISTRY_CVAR, *handle);
    free(h);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}

int mpi_t_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
    const struct cvar_handle *h = tools_get(REGISTRY_CVAR, handle);

    if (!h)
        return MPI_T_ERR_INVALID_HANDLE;
    if (!buf)
        return MPI_T_ERR_INVALID;
    if (h->cvar->kind == CVAR_TEXT) {
        const char *text = setting_of(h->cvar->name);
        snprintf(buf, (size_t)h->cvar->n_chars, "%s", text ? text : "");
    } else {
        int number = cvar_number(h->cvar);
        memcpy(buf, &number, sizeof number);
    }
    return MPI_SUCCESS;
}

int mpi_t_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
    const struct cvar_handle *h = tools_get(REGISTRY_CVAR, handle);
    int number, err;

    if (!h)
        return MPI_T_ERR_INVALID_HANDLE;
    if (!buf)
        return MPI_T_ERR_INVALID;
    if (!h->cvar->may_write)
        return MPI_T_ERR_CVAR_SET_NEVER;
    if (!h->cvar->may_write())
        return MPI_T_ERR_CVAR_SET_NOT_NOW;
    if (h->cvar->kind == CVAR_TEXT) {
        err = cvar_put_text(h->cvar, buf);
    } else {
        memcpy(&number, buf, sizeof number);
        err = cvar_put_number(h->cvar, number);
    }
    if (err == MPI_ERR_NO_MEM)
        return MPI_T_ERR_MEMORY;
    if (!err && h->cvar->written)
        h->cvar->written(h->cvar);
    return err;
}
