/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/comm/connect.h"

#include "client/object/err.h"
#include "client/progress/progress.h"
#include "mpi.h"

#include <errno.h>

int connect_wait(struct foreign_request *request)
{
    struct progress_wait wait;

    progress_wait_begin(&wait);
    while (!request->done)
        progress_wait_step(&wait);
    progress_wait_end(&wait);
    return MPI_SUCCESS;
}

int connect_claim(uint64_t number, struct foreign **ret_foreign)
{
    struct foreign_request request;

    int err = foreign_claim(number, &request) < 0
                  ? err_set(MPI_ERR_OTHER, "the daemon cannot be asked for a connection")
                  : connect_wait(&request);
    if (err)
        return err;
    if (request.claimed.error)
        return err_set(MPI_ERR_OTHER, "no way to the other job: %s", request.claimed.text);
    *ret_foreign = foreign_claimed(&request);
    return *ret_foreign ? MPI_SUCCESS
                        : err_set(MPI_ERR_NO_MEM, "no memory for a connection with another job");
}
