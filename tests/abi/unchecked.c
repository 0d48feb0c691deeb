/* SPDX-License-Identifier: BSD-3-Clause */
/* unchecked on|off: a wrong tag to nobody is refused by default, and goes unnoticed with
 * MOTET_CHECK=0. */
#include "mpi.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int number = 0, err;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    err = MPI_Send(&number, 1, MPI_INT, MPI_PROC_NULL, -5, MPI_COMM_WORLD);
    MPI_Finalize();
    int wanted = argc > 1 && strcmp(argv[1], "off") == 0 ? MPI_SUCCESS : MPI_ERR_TAG;
    if (err != wanted)
        printf("error %d instead of %d\n", err, wanted);
    return err != wanted;
}
