/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the file that is its argument, together, and prints what the library says about it. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_File file;
    int rank, error_class, n;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int err = MPI_File_open(MPI_COMM_WORLD, argv[argc - 1], MPI_MODE_CREATE | MPI_MODE_RDWR,
                            MPI_INFO_NULL, &file);
    MPI_Error_class(err, &error_class);
    MPI_Error_string(err, text, &n);
    printf("rank %d: class %d: %s\n", rank, error_class, text);
    if (!err)
        MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
