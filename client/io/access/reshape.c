/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/access/reshape.h"

#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/datatype/contents.h"
#include "client/datatype/datatype.h"
#include "client/object/err.h"
#include "client/object/handle.h"

/* Reads the record of a constructor's call in the order of its arguments. */
struct record_reader {
    const struct type_contents *contents;
    size_t next_int, next_address, next_large;
};

static MPI_Count next_int(struct record_reader *r)
{
    return r->contents->integers.values[r->next_int++];
}

static MPI_Count next_count(struct record_reader *r)
{
    return r->contents->large ? r->contents->large_counts.values[r->next_large++] : next_int(r);
}

static MPI_Count next_address(struct record_reader *r)
{
    return r->contents->large ? r->contents->large_counts.values[r->next_large++]
                              : r->contents->addresses.values[r->next_address++];
}

/* The next n values of one kind, where they lie: the array is the record's. */
static struct intvec next_counts(struct record_reader *r, MPI_Count n)
{
    const struct number_list *list =
        r->contents->large ? &r->contents->large_counts : &r->contents->integers;
    size_t *at = r->contents->large ? &r->next_large : &r->next_int;
    struct intvec v = intvec_of_count(list->values + *at);
    *at += (size_t)n;
    return v;
}

static struct intvec next_addresses(struct record_reader *r, MPI_Count n)
{
    const struct number_list *list =
        r->contents->large ? &r->contents->large_counts : &r->contents->addresses;
    size_t *at = r->contents->large ? &r->next_large : &r->next_address;
    struct intvec v = intvec_of_count(list->values + *at);
    *at += (size_t)n;
    return v;
}

static int *next_ints(struct record_reader *r, MPI_Count n)
{
    int *values = malloc((size_t)n * sizeof *values + 1);
    for (MPI_Count i = 0; values && i < n; i++)
        values[i] = (int)next_int(r);
    return values;
}

static int rebuild_indexed(struct record_reader *r, struct datatype *child,
                           struct datatype **ret_type)
{
    MPI_Count count = next_count(r), len;
    struct intvec lens;
    switch (r->contents->combiner) {
    case MPI_COMBINER_INDEXED:
        lens = next_counts(r, count);
        return mpi_type_indexed(count, lens, next_counts(r, count), child, ret_type, true);
    case MPI_COMBINER_HINDEXED:
        lens = next_counts(r, count);
        return mpi_type_create_hindexed(count, lens, next_addresses(r, count), child, ret_type,
                                        true);
    case MPI_COMBINER_INDEXED_BLOCK:
        len = next_count(r);
        return mpi_type_create_indexed_block(count, len, next_counts(r, count), child, ret_type,
                                             true);
    default:
        len = next_count(r);
        return mpi_type_create_hindexed_block(count, len, next_addresses(r, count), child, ret_type,
                                              true);
    }
}

static int rebuild_array(struct record_reader *r, struct datatype *child,
                         struct datatype **ret_type)
{
    if (r->contents->combiner == MPI_COMBINER_SUBARRAY) {
        MPI_Count n = next_int(r);
        struct intvec sizes = next_counts(r, n), subsizes = next_counts(r, n);
        struct intvec starts = next_counts(r, n);
        return mpi_type_create_subarray((int)n, sizes, subsizes, starts, (int)next_int(r), child,
                                        ret_type, true);
    }
    MPI_Count size = next_int(r), rank = next_int(r), n = next_int(r);
    struct intvec gsizes = next_counts(r, n);
    int *distribs = next_ints(r, n), *dargs = next_ints(r, n), *psizes = next_ints(r, n);
    int err = err_set(MPI_ERR_NO_MEM, "no memory for a datatype");
    if (distribs && dargs && psizes)
        err = mpi_type_create_darray((int)size, (int)rank, (int)n, gsizes, distribs, dargs, psizes,
                                     (int)next_int(r), child, ret_type, true);
    free(distribs);
    free(dargs);
    free(psizes);
    return err;
}

static int rebuild_over(struct record_reader *r, struct datatype *child, struct datatype **ret_type)
{
    MPI_Count count, len;
    switch (r->contents->combiner) {
    case MPI_COMBINER_DUP:
        return mpi_type_dup(child, ret_type);
    case MPI_COMBINER_CONTIGUOUS:
        return mpi_type_contiguous(next_count(r), child, ret_type, true);
    case MPI_COMBINER_VECTOR:
        count = next_count(r);
        len = next_count(r);
        return mpi_type_vector(count, len, next_count(r), child, ret_type, true);
    case MPI_COMBINER_HVECTOR:
        count = next_count(r);
        len = next_count(r);
        return mpi_type_create_hvector(count, len, next_address(r), child, ret_type, true);
    case MPI_COMBINER_RESIZED:
        count = next_address(r);
        return mpi_type_create_resized(child, count, next_address(r), ret_type, true);
    case MPI_COMBINER_SUBARRAY:
    case MPI_COMBINER_DARRAY:
        return rebuild_array(r, child, ret_type);
    default:
        return rebuild_indexed(r, child, ret_type);
    }
}

static int reshape_inner(struct datatype *type, reshape_size *size, const void *arg,
                         struct datatype **ret_type);

static int reshape_struct(struct record_reader *r, reshape_size *size, const void *arg,
                          struct datatype **ret_type)
{
    size_t n = r->contents->n_types;
    struct datatype **children = calloc(n + 1, sizeof *children);
    MPI_Datatype *handles = calloc(n + 1, sizeof *handles);
    int err =
        children && handles ? MPI_SUCCESS : err_set(MPI_ERR_NO_MEM, "no memory for a datatype");
    for (size_t i = 0; !err && i < n; i++) {
        if (!r->contents->types[i])
            continue;
        err = reshape_inner(r->contents->types[i], size, arg, &children[i]);
        if (!err)
            handles[i] = (MPI_Datatype)children[i]->obj.handle;
    }
    if (!err) {
        MPI_Count count = next_count(r);
        struct intvec lens = next_counts(r, count);
        err =
            mpi_type_create_struct(count, lens, next_addresses(r, count), handles, ret_type, true);
    }
    for (size_t i = 0; children && i < n; i++)
        if (children[i])
            mpi_type_free(&children[i]);
    free(children);
    free(handles);
    return err;
}

/* With a handle, to be freed by mpi_type_free(). */
static int reshape_inner(struct datatype *type, reshape_size *size, const void *arg,
                         struct datatype **ret_type)
{
    struct record_reader r = {.contents = type->contents};
    if (r.contents && r.contents->combiner == MPI_COMBINER_STRUCT)
        return reshape_struct(&r, size, arg, ret_type);
    if (!r.contents || r.contents->n_types == 0) {
        /* Predefined, or of MPI_Type_create_f90_real and its like, which are as basic. */
        MPI_Count bytes;
        int err = size(arg, type, &bytes);
        return err ? err
                   : mpi_type_contiguous(bytes, datatype_predefined(MPI_BYTE), ret_type, true);
    }
    struct datatype *child;
    int err = reshape_inner(r.contents->types[0], size, arg, &child);
    if (err)
        return err;
    err = rebuild_over(&r, child, ret_type);
    mpi_type_free(&child);
    return err;
}

int reshape_type(struct datatype *type, reshape_size *size, const void *arg,
                 struct datatype **ret_type)
{
    struct datatype *made, *held;
    int err = reshape_inner(type, size, arg, &made);
    if (err)
        return err;
    err = mpi_type_commit(&made);
    held = made;
    type_ref(held);
    mpi_type_free(&made); /* the handle */
    if (err)
        type_unref(held);
    else
        *ret_type = held;
    return err;
}
