/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/access/datarep.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/datatype/construct.h"
#include "client/io/access/reshape.h"
#include "client/object/err.h"

enum datarep_kind { DATAREP_NATIVE, DATAREP_INTERNAL, DATAREP_EXTERNAL32, DATAREP_USER };

struct datarep {
    enum datarep_kind kind;
    char name[MPI_MAX_DATAREP_STRING];
    struct datarep *next;
    /* DATAREP_USER; of each pair of conversions one at most is set. */
    MPI_Datarep_conversion_function *read, *write;
    MPI_Datarep_conversion_function_c *read_c, *write_c;
    MPI_Datarep_extent_function *extent;
    void *extra_state;
};

/* Registered ones stay until the end of the process: there is no call that takes one back. */
struct datarep_state {
    struct datarep *registered;
};
static struct datarep_state datarep_first;
static struct datarep_state *datarep_here = &datarep_first;

static void datarep_part_deinit(void)
{
    while (datarep_here->registered) {
        struct datarep *next = datarep_here->registered->next;
        free(datarep_here->registered);
        datarep_here->registered = next;
    }
}
CLIENT_PART(datarep_here, datarep_first, .deinit = datarep_part_deinit);

static const struct datarep predefined[] = {
    {.kind = DATAREP_NATIVE, .name = "native"},
    {.kind = DATAREP_INTERNAL, .name = "internal"},
    {.kind = DATAREP_EXTERNAL32, .name = "external32"},
};

const struct datarep *datarep_native(void)
{
    return &predefined[0];
}

const struct datarep *datarep_find(const char *name)
{
    for (size_t i = 0; i < sizeof predefined / sizeof predefined[0]; i++)
        if (strcmp(name, predefined[i].name) == 0)
            return &predefined[i];
    struct datarep *rep = datarep_here->registered;
    while (rep && strcmp(name, rep->name) != 0)
        rep = rep->next;
    return rep;
}

const char *datarep_name(const struct datarep *rep)
{
    return rep->name;
}

/* Has it sizes of its own? */
static bool same_sizes(const struct datarep *rep)
{
    return rep->kind == DATAREP_NATIVE || rep->kind == DATAREP_INTERNAL;
}

bool datarep_is_plain(const struct datarep *rep, bool write)
{
    if (rep->kind != DATAREP_USER)
        return same_sizes(rep);
    /* MPI_CONVERSION_FN_NULL: memory's form is the file's (MPI-5.0 section 14.5.3). */
    return write ? !rep->write && !rep->write_c : !rep->read && !rep->read_c;
}

int mpi_register_datarep(const char *datarep, MPI_Datarep_conversion_function *read_conversion_fn,
                         MPI_Datarep_conversion_function_c *read_conversion_fn_c,
                         MPI_Datarep_conversion_function *write_conversion_fn,
                         MPI_Datarep_conversion_function_c *write_conversion_fn_c,
                         MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state)
{
    size_t length = strlen(datarep);
    if (length == 0 || length >= MPI_MAX_DATAREP_STRING)
        return err_set(MPI_ERR_ARG, "the name of a data representation has 1 to %d characters",
                       MPI_MAX_DATAREP_STRING - 1);
    if (datarep_find(datarep))
        return err_set(MPI_ERR_DUP_DATAREP, "there is a data representation \"%s\" already",
                       datarep);
    struct datarep *rep = calloc(1, sizeof *rep);
    if (!rep)
        return err_set(MPI_ERR_NO_MEM, "no memory for a data representation");
    rep->kind = DATAREP_USER;
    memcpy(rep->name, datarep, length + 1);
    rep->read = read_conversion_fn;
    rep->read_c = read_conversion_fn_c;
    rep->write = write_conversion_fn;
    rep->write_c = write_conversion_fn_c;
    rep->extent = dtype_file_extent_fn;
    rep->extra_state = extra_state;
    rep->next = datarep_here->registered;
    datarep_here->registered = rep;
    return MPI_SUCCESS;
}

/* ---- sizes ---- */

/* Bytes of a predefined type in the file: for reshape_type(). */
static int basic_size(const void *arg, struct datatype *type, MPI_Count *ret_bytes)
{
    const struct datarep *rep = arg;
    if (rep->kind == DATAREP_EXTERNAL32) {
        *ret_bytes = type->external_size;
        return MPI_SUCCESS;
    }
    MPI_Aint extent = 0;
    int err = rep->extent((MPI_Datatype)type->obj.handle, &extent, rep->extra_state);
    if (err || extent < 0)
        return err_set(MPI_ERR_CONVERSION,
                       "the extent function of data representation \"%s\" failed for %s "
                       "(error %d, extent %lld)",
                       rep->name, datatype_name(type), err, (long long)extent);
    *ret_bytes = extent;
    return MPI_SUCCESS;
}

int datarep_layout(const struct datarep *rep, struct datatype *type, struct datatype **ret_layout)
{
    if (!same_sizes(rep))
        return reshape_type(type, basic_size, rep, ret_layout);
    type_ref(type);
    *ret_layout = type;
    return MPI_SUCCESS;
}

int datarep_size(const struct datarep *rep, struct datatype *type, MPI_Count *ret_bytes)
{
    struct datatype *layout;
    if (same_sizes(rep) || rep->kind == DATAREP_EXTERNAL32) {
        *ret_bytes = same_sizes(rep) ? type->size : type->external_size;
        return MPI_SUCCESS;
    }
    int err = datarep_layout(rep, type, &layout);
    if (err)
        return err;
    *ret_bytes = layout->size;
    type_unref(layout);
    return MPI_SUCCESS;
}

/* ---- conversions ---- */

/* The application's function, in the form that it gave, over all the elements; the small form takes
 * INT_MAX at a time. */
static int convert_by_user(const struct datarep *rep, bool write, struct buffer b, void *file)
{
    MPI_Datarep_conversion_function *small = write ? rep->write : rep->read;
    MPI_Datarep_conversion_function_c *large = write ? rep->write_c : rep->read_c;
    struct datatype *shown; /* the application may have freed the handle of its type by now */
    MPI_Count size = 0, done = 0;
    int err = datarep_size(rep, b.type, &size);
    err = err ? err : type_hand_out(b.type, &shown);
    if (err)
        return err;
    MPI_Datatype type = (MPI_Datatype)shown->obj.handle;
    while (!err && done < b.count) {
        MPI_Count n = b.count - done;
        if (!large && n > INT_MAX)
            n = INT_MAX;
        char *at = (char *)file + done * size;
        int result = large ? large(b.base, type, n, at, done, rep->extra_state)
                           : small(b.base, type, (int)n, at, done, rep->extra_state);
        if (result)
            err = err_set(MPI_ERR_CONVERSION,
                          "the %s conversion of data representation \"%s\" returned error %d",
                          write ? "write" : "read", rep->name, result);
        done += n;
    }
    type_release_handed_out(shown);
    return err;
}

int datarep_write(const struct datarep *rep, struct buffer from, void *file)
{
    MPI_Count position = 0;
    if (rep->kind == DATAREP_USER)
        return convert_by_user(rep, true, from, file);
    return mpi_pack_external("external32", from.base, from.count, from.type, file,
                             from.count * from.type->external_size, &position);
}

int datarep_read(const struct datarep *rep, void *file, MPI_Count n_bytes, struct buffer to)
{
    MPI_Count size = 0, position = 0;
    int err = datarep_size(rep, to.type, &size);
    if (err || size == 0)
        return err;
    to.count = n_bytes / size < to.count ? n_bytes / size : to.count;
    if (rep->kind == DATAREP_USER)
        return convert_by_user(rep, false, to, file);
    return mpi_unpack_external("external32", file, n_bytes, &position, to.base, to.count, to.type);
}
