/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/abi/semantics.h"
#include "client/coll/op/op.h"
#include "client/datatype/datatype.h"
#include "client/io/aggregators.h"
#include "client/io/fault.h"
#include "client/object/err.h"
#include "client/object/errcode.h"
#include "client/object/errhandler.h"
#include "client/object/group.h"
#include "client/object/raise.h"

int raise_on_file(struct file *file, int err, const char *function)
{
    if (file)
        return raise_on_comm(file->comm, err, function);
    return errhandler_raise_on(errhandler_here->file, ERRHANDLER_FILE, (uintptr_t)MPI_FILE_NULL,
                               "MPI_FILE_NULL", err, function);
}

int file_check_access(const struct file *file, bool write)
{
    if (write && (file->amode & MPI_MODE_RDONLY))
        return err_set(MPI_ERR_READ_ONLY, "%s was opened with MPI_MODE_RDONLY", file->name);
    if (!write && (file->amode & MPI_MODE_WRONLY))
        return err_set(MPI_ERR_ACCESS, "%s was opened with MPI_MODE_WRONLY", file->name);
    return MPI_SUCCESS;
}

int file_check_random(const struct file *file)
{
    if (file->amode & MPI_MODE_SEQUENTIAL)
        return err_set(
            MPI_ERR_UNSUPPORTED_OPERATION,
            "%s was opened with MPI_MODE_SEQUENTIAL: it has the shared file pointer alone",
            file->name);
    return MPI_SUCCESS;
}

int file_size(const struct file *file, MPI_Offset *ret_size)
{
    struct stat st;
    if (fstat(file->fd, &st) != 0)
        return fault_say(file->name, "cannot ask for the size", errno);
    *ret_size = st.st_size;
    return MPI_SUCCESS;
}

int file_agree(struct file *file, int err, const char *what)
{
    int worst = err;
    int failed = mpi_allreduce(MPI_IN_PLACE, &worst, 1, datatype_predefined(MPI_INT),
                               op_predefined(MPI_MAX), file->comm);
    if (err || failed)
        return err ? err : failed;
    return worst ? err_set(worst, "%s: another rank %s", file->name, what) : MPI_SUCCESS;
}

/* Everybody has given the same number; what waits for all others besides. */
static int check_same(struct file *file, const char *what, MPI_Offset value)
{
    int64_t bounds[2] = {value, -value};
    int err = mpi_allreduce(MPI_IN_PLACE, bounds, 2, datatype_predefined(MPI_INT64_T),
                            op_predefined(MPI_MAX), file->comm);
    if (err || bounds[0] == -bounds[1])
        return err;
    return err_set(MPI_ERR_NOT_SAME, "%s: the ranks gave %s between %lld and %lld", file->name,
                   what, (long long)-bounds[1], (long long)bounds[0]);
}

/* ---- size ---- */

int mpi_file_get_size(struct file *fh, MPI_Offset *ret_size)
{
    return file_size(fh, ret_size);
}

static int check_size(struct file *file, MPI_Offset size)
{
    int err = check_same(file, "sizes", size);
    err = err ? err : file_check_access(file, true);
    if (!err && size < 0)
        err = err_set(MPI_ERR_ARG, "size is %lld", (long long)size);
    return err;
}

int mpi_file_set_size(struct file *fh, MPI_Offset size)
{
    int err = check_size(fh, size);
    if (err)
        return err;
    if (fh->comm->rank == 0 && ftruncate(fh->fd, size) != 0)
        err = fault_say(fh->name, "cannot set the size", errno);
    return file_agree(fh, err, "could not set its size");
}

int mpi_file_preallocate(struct file *fh, MPI_Offset size)
{
    int err = check_size(fh, size);
    if (err)
        return err;
    int errnum = fh->comm->rank == 0 && size > 0 ? posix_fallocate(fh->fd, 0, size) : 0;
    if (errnum)
        err = fault_say(fh->name, "cannot preallocate", errnum);
    return file_agree(fh, err, "could not preallocate it");
}

/* What other ranks wrote before they called is on storage too when it returns (MPI-5.0 section
 * 14.6.1), if they are on this node: the system's cache is theirs as well. */
int mpi_file_sync(struct file *fh)
{
    int err = MPI_SUCCESS;
    if (!(fh->amode & MPI_MODE_RDONLY) && fsync(fh->fd) != 0 && errno != EINVAL)
        err = fault_say(fh->name, "cannot synchronize", errno);
    return file_agree(fh, err, "could not synchronize it");
}

/* ---- what it tells of itself ---- */

int mpi_file_get_amode(struct file *fh, int *amode)
{
    *amode = fh->amode;
    return MPI_SUCCESS;
}

int mpi_file_get_group(struct file *fh, struct group **ret_group)
{
    group_ref(fh->comm->group);
    return group_publish(fh->comm->group, ret_group);
}

int mpi_file_set_atomicity(struct file *fh, int flag)
{
    int err = check_same(fh, "atomicity", flag != 0);
    if (!err)
        fh->atomic = flag != 0;
    return err;
}

int mpi_file_get_atomicity(struct file *fh, int *flag)
{
    *flag = fh->atomic;
    return MPI_SUCCESS;
}

int mpi_file_set_info(struct file *fh, struct info *info)
{
    struct file_hints hints = fh->hints;
    int err = file_agree(fh, file_hints_take(&hints, info), "gave a hint that is refused");
    err = err ? err : file_hints_agree(&hints, fh->comm);
    err = err ? err : aggregators_choose(&fh->aggregators, fh->comm, hints.cb_nodes);
    if (!err)
        fh->hints = hints;
    return err;
}

int mpi_file_get_info(struct file *fh, struct info **ret_info_used)
{
    return file_hints_show(&fh->hints, fh->aggregators.n, ret_info_used);
}

/* ---- error handlers ---- */

int mpi_file_set_errhandler(struct file *file, struct errhandler *errhandler)
{
    return errhandler_assign(file ? &file->comm->errhandler : &errhandler_here->file, errhandler,
                             ERRHANDLER_FILE);
}

int mpi_file_get_errhandler(struct file *file, struct errhandler **ret_errhandler)
{
    return errhandler_publish(file ? file->comm->errhandler : errhandler_here->file,
                              ret_errhandler);
}

int mpi_file_call_errhandler(struct file *fh, int errorcode)
{
    if (!errcode_text(errorcode))
        return err_set(MPI_ERR_ARG, "%d is no error code", errorcode);
    err_clear();
    raise_on_file(fh, errorcode, "MPI_File_call_errhandler");
    return MPI_SUCCESS;
}
