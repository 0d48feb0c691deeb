/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Pack, MPI_Unpack, MPI_Pack_size (MPI-5.0 section 5.2). The packed form is the stream of the
 * cursor, without any header, the same for all communicators.
 */
#include "client/abi/semantics.h"
#include "client/datatype/datatype.h"
#include "client/object/err.h"

int mpi_pack_size(MPI_Count incount, struct datatype *datatype, struct comm *comm,
                  MPI_Count *ret_size)
{
    (void)comm;
    if (__builtin_mul_overflow(incount, datatype->size, ret_size))
        return err_set(MPI_ERR_VALUE_TOO_LARGE,
                       "%lld elements of %s do not fit into 63 bits of bytes", (long long)incount,
                       datatype_name(datatype));
    return MPI_SUCCESS;
}

/* Does a packed buffer of `buffer_bytes` hold the elements from `position` on? */
static int check_room(MPI_Count count, struct datatype *type, const char *argument,
                      const void *buffer, MPI_Count buffer_bytes, MPI_Count position)
{
    MPI_Count needed;
    int rc = mpi_pack_size(count, type, NULL, &needed);
    if (rc != MPI_SUCCESS)
        return rc;
    if (position < 0 || position > buffer_bytes)
        return err_set(MPI_ERR_ARG, "position %lld is not in 0..%lld", (long long)position,
                       (long long)buffer_bytes);
    if (buffer_bytes - position < needed)
        return err_set(MPI_ERR_TRUNCATE,
                       "%lld elements of %s are %lld bytes, but %lld are left in the packed buffer",
                       (long long)count, datatype_name(type), (long long)needed,
                       (long long)(buffer_bytes - position));
    if (needed > 0 && !buffer)
        return err_set(MPI_ERR_BUFFER, "%s is a null pointer", argument);
    return MPI_SUCCESS;
}

int mpi_pack(const void *inbuf, MPI_Count incount, struct datatype *datatype, void *outbuf,
             MPI_Count outsize, MPI_Count *position, struct comm *comm)
{
    (void)comm;
    int rc = check_room(incount, datatype, "outbuf", outbuf, outsize, *position);
    if (rc != MPI_SUCCESS)
        return rc;
    struct type_cursor cursor;
    type_cursor_init(&cursor, datatype, incount, inbuf);
    *position +=
        (MPI_Count)type_cursor_pack(&cursor, (char *)outbuf + *position, (size_t)cursor.total);
    return MPI_SUCCESS;
}

int mpi_unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
               MPI_Count outcount, struct datatype *datatype, struct comm *comm)
{
    (void)comm;
    int rc = check_room(outcount, datatype, "inbuf", inbuf, insize, *position);
    if (rc != MPI_SUCCESS)
        return rc;
    struct type_cursor cursor;
    type_cursor_init(&cursor, datatype, outcount, outbuf);
    *position += (MPI_Count)type_cursor_unpack(&cursor, (const char *)inbuf + *position,
                                               (size_t)cursor.total);
    return MPI_SUCCESS;
}
