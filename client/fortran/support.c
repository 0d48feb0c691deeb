/* SPDX-License-Identifier: BSD-3-Clause */
/* See support.h. */
#include "client/fortran/support.h"

#include <string.h>

FORTRAN_API MPI_Fint mpi_fortran_bottom_, mpi_fortran_in_place_, mpi_fortran_buffer_automatic_;
FORTRAN_API MPI_Fint mpi_fortran_status_ignore_[8], mpi_fortran_statuses_ignore_[8];
FORTRAN_API MPI_Fint mpi_fortran_f08_status_ignore_[8], mpi_fortran_f08_statuses_ignore_[8];
FORTRAN_API MPI_Fint mpi_fortran_unweighted_[1], mpi_fortran_weights_empty_[1];
FORTRAN_API MPI_Fint mpi_fortran_errcodes_ignore_[1];
FORTRAN_API char mpi_fortran_argv_null_[1], mpi_fortran_argvs_null_[1];

void *fortran_handles_open(struct fortran_handles *a, MPI_Count n)
{
    a->heap = NULL;
    a->n = n < 0 ? 0 : n;
    if (a->n <= (MPI_Count)(sizeof a->small / sizeof a->small[0]))
        return a->small;
    a->heap = malloc((size_t)a->n * sizeof(void *));
    if (!a->heap)
        a->n = 0;
    return a->heap;
}

void fortran_handles_close(struct fortran_handles *a)
{
    free(a->heap);
}

int fortran_peers(MPI_Comm comm)
{
    int inter = 0, n = 0;
    if (MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
        return 0;
    int err = inter ? MPI_Comm_remote_size(comm, &n) : MPI_Comm_size(comm, &n);
    return err == MPI_SUCCESS ? n : 0;
}

bool fortran_at_root(MPI_Comm comm, int root)
{
    int inter = 0, rank = MPI_PROC_NULL;
    if (root == MPI_ROOT)
        return true;
    if (root < 0 || MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
        return false;
    return MPI_Comm_rank(comm, &rank) == MPI_SUCCESS && rank == root;
}

int fortran_dims(MPI_Comm comm)
{
    int kind = MPI_UNDEFINED, n = 0;
    if (MPI_Topo_test(comm, &kind) != MPI_SUCCESS || kind != MPI_CART)
        return 0;
    return MPI_Cartdim_get(comm, &n) == MPI_SUCCESS ? n : 0;
}

int fortran_neighbors(MPI_Comm comm, bool destinations)
{
    int kind = MPI_UNDEFINED, rank, n = 0, in = 0, out = 0, weighted;
    if (MPI_Topo_test(comm, &kind) != MPI_SUCCESS)
        return 0;
    if (kind == MPI_CART)
        return 2 * fortran_dims(comm);
    if (kind == MPI_GRAPH)
        return MPI_Comm_rank(comm, &rank) == MPI_SUCCESS &&
                       MPI_Graph_neighbors_count(comm, rank, &n) == MPI_SUCCESS
                   ? n
                   : 0;
    if (kind == MPI_DIST_GRAPH)
        MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    return destinations ? out : in;
}

static char *fortran_copy(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == ' ')
        length--;
    char *copy = malloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *fortran_string(const char *text, size_t length)
{
    return fortran_copy(text, length);
}

char *fortran_trimmed(const char *text, size_t length)
{
    for (; length > 0 && *text == ' '; length--)
        text++;
    return fortran_copy(text, length);
}

void fortran_fill(char *target, size_t length, const char *text)
{
    size_t n = strlen(text);
    if (n > length)
        n = length;
    memcpy(target, text, n);
    memset(target + n, ' ', length - n);
}
