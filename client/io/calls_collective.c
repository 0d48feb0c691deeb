/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading and writing by all ranks together, in one call or in two halves (MPI-5.0 sections 14.4.2,
 * 14.4.3 and 14.4.5). */
#include "client/io/calls_collective.h"

#include "client/abi/semantics.h"
#include "client/io/fileop.h"
#include "client/object/err.h"
#include "client/progress/request.h"
#include "client/progress/status.h"

static struct fileop_call call_at(struct file *fh, MPI_Offset offset, struct buffer buffer,
                                  bool write)
{
    return (struct fileop_call){
        .file = fh, .write = write, .collective = true, .offset = offset, .buffer = buffer};
}

static int all_at_now(struct file *fh, MPI_Offset offset, struct buffer buffer, bool write,
                      MPI_Status *status)
{
    struct fileop_call call = call_at(fh, offset, buffer, write);
    MPI_Offset moved;
    int err = file_check_random(fh);
    return err ? err : fileop_now(&call, status, &moved);
}

static int all_here_now(struct file *fh, struct buffer buffer, bool write, MPI_Status *status)
{
    struct fileop_call call = call_at(fh, fh->position, buffer, write);
    MPI_Offset moved = 0;
    int err = file_check_random(fh);
    err = err ? err : fileop_now(&call, status, &moved);
    fh->position = call.offset + moved;
    return err;
}

static int start_at(struct file *fh, MPI_Offset offset, struct buffer buffer, bool write,
                    struct request **ret_request)
{
    struct fileop_call call = call_at(fh, offset, buffer, write);
    int err = file_check_random(fh);
    return err ? err : fileop_start(&call, ret_request);
}

/* At the rank's pointer, which moves behind what is to be moved. */
static int start_here(struct file *fh, struct buffer buffer, bool write,
                      struct request **ret_request)
{
    struct fileop_call call = call_at(fh, fh->position, buffer, write);
    MPI_Offset n = 0;
    int err = file_check_random(fh);
    if (err)
        return err;
    /* An error of this rank's alone is one of the call, which the others hear of. */
    int mine = fileop_etypes(&call, &n);
    err = fileop_start(&call, ret_request);
    if (!err && !mine)
        fh->position += n;
    return err;
}

/* ---- split collectives ---- */

static const char *const split_names[] = {
    "",
    "MPI_File_read_all",
    "MPI_File_read_at_all",
    "MPI_File_read_ordered",
    "MPI_File_write_all",
    "MPI_File_write_at_all",
    "MPI_File_write_ordered",
};

int split_check_none(const struct file *file)
{
    if (!file->split)
        return MPI_SUCCESS;
    return err_set(MPI_ERR_REQUEST, "%s: %s_begin has not been ended", file->name,
                   split_names[file->split_form]);
}

int split_begun(struct file *file, enum split_form form, int err, struct request *request)
{
    if (err)
        return err;
    file->split_form = form;
    file->split = request;
    return MPI_SUCCESS;
}

int split_end(struct file *file, enum split_form form, MPI_Status *status)
{
    if (!file->split || file->split_form != form)
        return err_set(MPI_ERR_REQUEST, "%s: %s_begin has not been called", file->name,
                       split_names[form]);
    struct request *request = file->split;
    file->split = NULL;
    file->split_form = SPLIT_NONE;
    return request_wait(request, status);
}

static int split_at(struct file *fh, MPI_Offset offset, struct buffer buffer, bool write)
{
    struct request *request = NULL;
    int err = split_check_none(fh);
    err = err ? err : start_at(fh, offset, buffer, write, &request);
    return split_begun(fh, write ? SPLIT_WRITE_AT : SPLIT_READ_AT, err, request);
}

static int split_here(struct file *fh, struct buffer buffer, bool write)
{
    struct request *request = NULL;
    int err = split_check_none(fh);
    err = err ? err : start_here(fh, buffer, write, &request);
    return split_begun(fh, write ? SPLIT_WRITE : SPLIT_READ, err, request);
}

int mpi_file_read_all_begin(struct file *fh, void *buf, MPI_Count count, struct datatype *datatype)
{
    return split_here(fh, buffer_of(buf, count, datatype), false);
}

int mpi_file_read_all_end(struct file *fh, void *buf, MPI_Status *status)
{
    (void)buf; /* that of the beginning */
    return split_end(fh, SPLIT_READ, status);
}

int mpi_file_write_all_begin(struct file *fh, const void *buf, MPI_Count count,
                             struct datatype *datatype)
{
    return split_here(fh, buffer_of(buf, count, datatype), true);
}

int mpi_file_write_all_end(struct file *fh, const void *buf, MPI_Status *status)
{
    (void)buf; /* that of the beginning */
    return split_end(fh, SPLIT_WRITE, status);
}

int mpi_file_read_at_all_begin(struct file *fh, MPI_Offset offset, void *buf, MPI_Count count,
                               struct datatype *datatype)
{
    return split_at(fh, offset, buffer_of(buf, count, datatype), false);
}

int mpi_file_read_at_all_end(struct file *fh, void *buf, MPI_Status *status)
{
    (void)buf; /* that of the beginning */
    return split_end(fh, SPLIT_READ_AT, status);
}

int mpi_file_write_at_all_begin(struct file *fh, MPI_Offset offset, const void *buf,
                                MPI_Count count, struct datatype *datatype)
{
    return split_at(fh, offset, buffer_of(buf, count, datatype), true);
}

int mpi_file_write_at_all_end(struct file *fh, const void *buf, MPI_Status *status)
{
    (void)buf; /* that of the beginning */
    return split_end(fh, SPLIT_WRITE_AT, status);
}

/* ---- the others ---- */

int mpi_file_read_at_all(struct file *fh, MPI_Offset offset, void *buf, MPI_Count count,
                         struct datatype *datatype, MPI_Status *status)
{
    return all_at_now(fh, offset, buffer_of(buf, count, datatype), false, status);
}

int mpi_file_write_at_all(struct file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
                          struct datatype *datatype, MPI_Status *status)
{
    return all_at_now(fh, offset, buffer_of(buf, count, datatype), true, status);
}

int mpi_file_read_all(struct file *fh, void *buf, MPI_Count count, struct datatype *datatype,
                      MPI_Status *status)
{
    return all_here_now(fh, buffer_of(buf, count, datatype), false, status);
}

int mpi_file_write_all(struct file *fh, const void *buf, MPI_Count count, struct datatype *datatype,
                       MPI_Status *status)
{
    return all_here_now(fh, buffer_of(buf, count, datatype), true, status);
}

int mpi_file_iread_at_all(struct file *fh, MPI_Offset offset, void *buf, MPI_Count count,
                          struct datatype *datatype, struct request **ret_request)
{
    int err = start_at(fh, offset, buffer_of(buf, count, datatype), false, ret_request);
    return request_publish(err, ret_request);
}

int mpi_file_iwrite_at_all(struct file *fh, MPI_Offset offset, const void *buf, MPI_Count count,
                           struct datatype *datatype, struct request **ret_request)
{
    int err = start_at(fh, offset, buffer_of(buf, count, datatype), true, ret_request);
    return request_publish(err, ret_request);
}

int mpi_file_iread_all(struct file *fh, void *buf, MPI_Count count, struct datatype *datatype,
                       struct request **ret_request)
{
    int err = start_here(fh, buffer_of(buf, count, datatype), false, ret_request);
    return request_publish(err, ret_request);
}

int mpi_file_iwrite_all(struct file *fh, const void *buf, MPI_Count count,
                        struct datatype *datatype, struct request **ret_request)
{
    int err = start_here(fh, buffer_of(buf, count, datatype), true, ret_request);
    return request_publish(err, ret_request);
}
