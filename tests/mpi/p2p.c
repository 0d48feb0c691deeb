/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point semantics that other people's programs rely on and that broke once, a function each. Uses mpi.h alone, so the same
 * binary runs on any library of the standard ABI.
 */
#include "tests/topo/check.h"

#include <string.h>

/* Ten messages to a process that has not asked for them yet, from a buffer without room for ten times MPI_BSEND_OVERHEAD: many programs
 * size their buffer by what they saw libraries take. */
static void check_tight_buffer(void)
{
    enum { N = 10, N_WORDS = 10 };
    static char memory[2000];
    int rank, words[N_WORDS], got[N_WORDS], n;
    void *address;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Buffer_attach(memory, sizeof memory);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N_WORDS; k++)
            words[k] = i * 100 + k;
        MPI_Bsend(words, N_WORDS, MPI_INT, rank, i, MPI_COMM_WORLD);
    }
    for (int i = N - 1; i >= 0; i--) {
        MPI_Recv(got, N_WORDS, MPI_INT, rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(got[0] == i * 100 && got[N_WORDS - 1] == i * 100 + N_WORDS - 1, "message %d begins with %d", i, got[0]);
    }
    MPI_Buffer_detach(&address, &n);
    CHECK(address == memory && n == (int)sizeof memory, "%p, %d", address, n);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    check_tight_buffer();
    MPI_Finalize();
    return 0;
}
