/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaves handles behind: leaks world|session|nothing. What is said of them is looked at by
 * leaks.py. */
#include "mpi.h"

#include <string.h>

/* All from one call, whatever the compiler makes of the loop. */
__attribute__((noinline)) static void leave_types(int n)
{
    MPI_Datatype type;
#pragma GCC unroll 1
    for (int i = 0; i < n; i++)
        MPI_Type_contiguous(i + 1, MPI_INT, &type);
}

static void free_everything(void)
{
    MPI_Comm comm;
    MPI_Request request;
    MPI_Datatype type;
    int number = 0;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Isend(&number, 1, MPI_INT, 0, 0, comm, &request);
    MPI_Recv(&number, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    MPI_Type_create_f90_integer(4, &type); /* predefined: nothing to free */
}

static int with_session(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    return MPI_Session_finalize(&session);
}

/* A send that the program never waits for. */
static void forget_send(void)
{
    int rank, word = 0;
    MPI_Request request;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Isend(&word, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request);
    MPI_Recv(&word, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    if (argc > 1 && strcmp(argv[1], "session") == 0)
        return with_session();
    MPI_Init(&argc, &argv);
    free_everything();
    if (argc > 1 && strcmp(argv[1], "world") == 0) {
        leave_types(argc + 1);
        forget_send();
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_name(comm, "left over");
    }
    MPI_Finalize();
    return 0;
}
