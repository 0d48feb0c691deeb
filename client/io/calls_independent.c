/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading and writing by one rank, at an offset or at its own pointer (MPI-5.0 sections 14.4.2 and
 * 14.4.3). */
#include "client/abi/semantics.h"
#include "client/io/file.h"
#include "client/io/fileop.h"
#include "client/progress/request.h"

static int at_now(struct file *fh, MPI_Offset offset, struct buffer buffer, bool write,
                  MPI_Status *status)
{
    struct fileop_call call = {.file = fh, .write = write, .offset = offset, .buffer = buffer};
    MPI_Offset moved;
    int err = file_check_random(fh);
    return err ? err : fileop_now(&call, status, &moved);
}

static int at_later(struct file *fh, MPI_Offset offset, struct buffer buffer, bool write,
                    struct request **ret_request)
{
    struct fileop_call call = {.file = fh, .write = write, .offset = offset, .buffer = buffer};
    int err = file_check_random(fh);
    err = err ? err : fileop_start(&call, ret_request);
    return request_publish(err, ret_request);
}

/* The pointer moves behind what was moved. */
static int here_now(struct file *fh, struct buffer buffer, bool write, MPI_Status *status)
{
    struct fileop_call call = {
        .file = fh, .write = write, .offset = fh->position, .buffer = buffer};
    MPI_Offset moved = 0;
    int err = file_check_random(fh);
    err = err ? err : fileop_now(&call, status, &moved);
    fh->position = call.offset + moved;
    return err;
}

/* The pointer moves behind what is to be moved. */
static int here_later(struct file *fh, struct buffer buffer, bool write,
                      struct request **ret_request)
{
    struct fileop_call call = {
        .file = fh, .write = write, .offset = fh->position, .buffer = buffer};
    MPI_Offset n = 0;
    int err = file_check_random(fh);
    err = err ? err : fileop_etypes(&call, &n);
    err = err ? err : fileop_start(&call, ret_request);
    err = request_publish(err, ret_request);
    if (!err)
        fh->position += n;
    return err;
}

int mpi_file_read_at(struct file *fh, MPI_Offset offset, void *buf, MPI_Count count,
                     struct datatype *datatype, MPI_Status *status)
{
    return at_now(fh, offset, buffer_of(buf, count, datatype), false, status);
}

int mpi_file_write_at(struct file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
                      struct datatype *datatype, MPI_Status *status)
{
    return at_now(fh, offset, buffer_of(buf, count, datatype), true, status);
}

int mpi_file_iread_at(struct file *fh, MPI_Offset offset, void *buf, MPI_Count count,
                      struct datatype *datatype, struct request **ret_request)
{
    return at_later(fh, offset, buffer_of(buf, count, datatype), false, ret_request);
}

int mpi_file_iwrite_at(struct file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
                       struct datatype *datatype, struct request **ret_request)
{
    return at_later(fh, offset, buffer_of(buf, count, datatype), true, ret_request);
}

int mpi_file_read(struct file *fh, void *buf, MPI_Count count, struct datatype *datatype,
                  MPI_Status *status)
{
    return here_now(fh, buffer_of(buf, count, datatype), false, status);
}

int mpi_file_write(struct file *fh, const void *buf, MPI_Count count, struct datatype *datatype,
                   MPI_Status *status)
{
    return here_now(fh, buffer_of(buf, count, datatype), true, status);
}

int mpi_file_iread(struct file *fh, void *buf, MPI_Count count, struct datatype *datatype,
                   struct request **ret_request)
{
    return here_later(fh, buffer_of(buf, count, datatype), false, ret_request);
}

int mpi_file_iwrite(struct file *fh, const void *buf, MPI_Count count, struct datatype *datatype,
                    struct request **ret_request)
{
    return here_later(fh, buffer_of(buf, count, datatype), true, ret_request);
}
