/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/fault.h"

#include <errno.h>
#include <string.h>

#include "mpi.h"

#include "client/object/err.h"

int fault_class(int errnum)
{
    switch (errnum) {
    case ENOENT:
        return MPI_ERR_NO_SUCH_FILE;
    case EEXIST:
        return MPI_ERR_FILE_EXISTS;
    case EACCES:
    case EPERM:
        return MPI_ERR_ACCESS;
    case EROFS:
        return MPI_ERR_READ_ONLY;
    case ENOSPC:
        return MPI_ERR_NO_SPACE;
    case EDQUOT:
        return MPI_ERR_QUOTA;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
        return MPI_ERR_BAD_FILE;
    case EBUSY:
    case ETXTBSY:
        return MPI_ERR_FILE_IN_USE;
    case ENOMEM:
        return MPI_ERR_NO_MEM;
    case ENOTSUP:
    case ESPIPE:
    case ENOSYS:
        return MPI_ERR_UNSUPPORTED_OPERATION;
    default:
        return MPI_ERR_IO;
    }
}

int fault_say(const char *name, const char *what, int errnum)
{
    return err_set(fault_class(errnum), "%s: %s: %s", name, what, strerrordesc_np(errnum));
}
