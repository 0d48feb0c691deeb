/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading and writing at the shared pointer: in any order, or in that of the ranks (MPI-5.0 section
 * 14.4.4). */
#include "client/abi/semantics.h"
#include "client/coll/op/op.h"
#include "client/datatype/datatype.h"
#include "client/io/calls_collective.h"
#include "client/io/file.h"
#include "client/io/fileop.h"
#include "client/io/pointer.h"
#include "client/object/err.h"
#include "client/progress/request.h"

/* Takes the next part of the file for this call. */
static int claim(struct fileop_call *call)
{
    MPI_Offset n;
    int err = fileop_etypes(call, &n);
    return err ? err : pointer_add(call->file, n, &call->offset);
}

static int shared_now(struct file *fh, struct buffer buffer, bool write, MPI_Status *status)
{
    struct fileop_call call = {.file = fh, .write = write, .buffer = buffer};
    MPI_Offset moved;
    int err = claim(&call);
    return err ? err : fileop_now(&call, status, &moved);
}

static int shared_later(struct file *fh, struct buffer buffer, bool write,
                        struct request **ret_request)
{
    struct fileop_call call = {.file = fh, .write = write, .buffer = buffer};
    int err = claim(&call);
    err = err ? err : fileop_start(&call, ret_request);
    return request_publish(err, ret_request);
}

/* The ranks' parts follow one another; the last rank, who knows how long they are together, moves
 * the pointer. An error of one rank is one of all. */
static int claim_in_order(struct fileop_call *call)
{
    struct file *file = call->file;
    struct comm *comm = file->comm;
    struct datatype *int64 = datatype_predefined(MPI_INT64_T);
    MPI_Offset n = 0;
    int64_t sums[2], base = 0;
    int err = fileop_etypes(call, &n);
    int64_t mine[2] = {n, err != MPI_SUCCESS};
    int failed = mpi_scan(mine, sums, 2, int64, op_predefined(MPI_SUM), comm);
    if (!failed && comm->rank == comm->size - 1) {
        MPI_Offset before = 0;
        failed = sums[1] ? MPI_SUCCESS : pointer_add(file, sums[0], &before);
        base = sums[1] || failed ? -1 : before;
    }
    int told = mpi_bcast(&base, 1, int64, comm->size - 1, comm);
    if (err || failed || told)
        return err ? err : failed ? failed : told;
    if (base < 0)
        return err_set(MPI_ERR_IO, "%s: another rank's part of an ordered access is refused",
                       file->name);
    call->offset = base + sums[0] - n;
    return MPI_SUCCESS;
}

static int ordered_now(struct file *fh, struct buffer buffer, bool write, MPI_Status *status)
{
    struct fileop_call call = {.file = fh, .write = write, .collective = true, .buffer = buffer};
    MPI_Offset moved;
    int err = claim_in_order(&call);
    return err ? err : fileop_now(&call, status, &moved);
}

static int ordered_begin(struct file *fh, struct buffer buffer, bool write)
{
    struct fileop_call call = {.file = fh, .write = write, .collective = true, .buffer = buffer};
    struct request *request = NULL;
    int err = split_check_none(fh);
    err = err ? err : claim_in_order(&call);
    err = err ? err : fileop_start(&call, &request);
    return split_begun(fh, write ? SPLIT_WRITE_ORDERED : SPLIT_READ_ORDERED, err, request);
}

int mpi_file_read_shared(struct file *fh, void *buf, MPI_Count count, struct datatype *datatype,
                         MPI_Status *status)
{
    return shared_now(fh, buffer_of(buf, count, datatype), false, status);
}

int mpi_file_write_shared(struct file *fh, const void *buf, MPI_Count count,
                          struct datatype *datatype, MPI_Status *status)
{
    return shared_now(fh, buffer_of(buf, count, datatype), true, status);
}

int mpi_file_iread_shared(struct file *fh, void *buf, MPI_Count count, struct datatype *datatype,
                          struct request **ret_request)
{
    return shared_later(fh, buffer_of(buf, count, datatype), false, ret_request);
}

int mpi_file_iwrite_shared(struct file *fh, const void *buf, MPI_Count count,
                           struct datatype *datatype, struct request **ret_request)
{
    return shared_later(fh, buffer_of(buf, count, datatype), true, ret_request);
}

int mpi_file_read_ordered(struct file *fh, void *buf, MPI_Count count, struct datatype *datatype,
                          MPI_Status *status)
{
    return ordered_now(fh, buffer_of(buf, count, datatype), false, status);
}

int mpi_file_write_ordered(struct file *fh, const void *buf, MPI_Count count,
                           struct datatype *datatype, MPI_Status *status)
{
    return ordered_now(fh, buffer_of(buf, count, datatype), true, status);
}

int mpi_file_read_ordered_begin(struct file *fh, void *buf, MPI_Count count,
                                struct datatype *datatype)
{
    return ordered_begin(fh, buffer_of(buf, count, datatype), false);
}

int mpi_file_read_ordered_end(struct file *fh, void *buf, MPI_Status *status)
{
    (void)buf; /* that of the beginning */
    return split_end(fh, SPLIT_READ_ORDERED, status);
}

int mpi_file_write_ordered_begin(struct file *fh, const void *buf, MPI_Count count,
                                 struct datatype *datatype)
{
    return ordered_begin(fh, buffer_of(buf, count, datatype), true);
}

int mpi_file_write_ordered_end(struct file *fh, const void *buf, MPI_Status *status)
{
    (void)buf; /* that of the beginning */
    return split_end(fh, SPLIT_WRITE_ORDERED, status);
}
