/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point semantics that other people's programs rely on and that broke once, a function
 * each. Uses mpi.h alone, so the same binary runs on any library of the standard ABI.
 */
#include "tests/topo/check.h"

#include <string.h>

/* Ten messages to a process that has not asked for them yet, from a buffer without room for ten
 * times MPI_BSEND_OVERHEAD: many programs size their buffer by what they saw libraries take. */
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
        CHECK(got[0] == i * 100 && got[N_WORDS - 1] == i * 100 + N_WORDS - 1,
              "message %d begins with %d", i, got[0]);
    }
    MPI_Buffer_detach(&address, &n);
    CHECK(address == memory && n == (int)sizeof memory, "%p, %d", address, n);
}

static int is_mpich(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;

    MPI_Get_library_version(version, &n);
    return strstr(version, "MPICH") != NULL;
}

/* A message that ends within an element of the receive's type with gaps is no message of that type:
 * the receive says so, however the message comes. Without gaps libraries take the bytes. */
static void check_partial_element(void)
{
    enum { LARGE = 100000 };
    static char bytes[4 * LARGE + 3];
    static int into[3 * LARGE];
    const MPI_Aint ends[] = {0, 1, 3, 4, 7, 4 * LARGE + 3};
    int rank, size;
    MPI_Datatype gaps;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_vector(LARGE + 1, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        MPI_Request request;
        MPI_Status status;
        int n = 0, is = 0;
        MPI_Isend(bytes, (int)ends[i], MPI_BYTE, (rank + 1) % size, 0, MPI_COMM_WORLD, &request);
        int err = MPI_Recv(into, 1, gaps, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Error_class(err, &is);
        MPI_Get_elements(&status, MPI_BYTE, &n);
        if (ends[i] > LARGE &&
            is_mpich()) /* it looks only at what comes by way of its own buffers */
            continue;
        CHECK(is == (ends[i] % 4 ? MPI_ERR_TYPE : MPI_SUCCESS), "%d bytes: class %d", (int)ends[i],
              is);
        CHECK(ends[i] % 4 || n == ends[i], "%d bytes: %d in the status", (int)ends[i], n);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Type_free(&gaps);
}

/* MPI_DATATYPE_NULL where nothing is sent. */
static void check_no_type(void)
{
    int rank, size, n = -1;
    MPI_Request request;
    MPI_Status status;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Isend(NULL, 0, MPI_DATATYPE_NULL, (rank + 1) % size, 7, MPI_COMM_WORLD, &request);
    MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, (rank + size - 1) % size, 7, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Get_count(&status, MPI_BYTE, &n);
    CHECK(n == 0 && status.MPI_TAG == 7, "%d bytes, tag %d", n, status.MPI_TAG);
}

/* Short sends that are over when they return, whose requests a library may share: each is a request
 * of its own all the same, in every call that takes one. */
static void check_finished_sends(void)
{
    enum { N = 8 };
    int rank, size, got[N], index, n_some, indices[N], flag = 0, words[N];
    MPI_Request requests[N];
    MPI_Status status, statuses[N];

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < N; i++) {
        words[i] = 100 * rank + i;
        MPI_Isend(&words[i], 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < N; i++) {
        MPI_Recv(&got[i], 1, MPI_INT, (rank + size - 1) % size, i, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        CHECK(got[i] == 100 * ((rank + size - 1) % size) + i, "message %d is %d", i, got[i]);
    }
    MPI_Request_free(&requests[0]);
    CHECK(requests[0] == MPI_REQUEST_NULL, "a freed request keeps its handle");
    while (!flag)
        MPI_Request_get_status(requests[1], &flag, &status);
    CHECK(requests[1] != MPI_REQUEST_NULL, "MPI_Request_get_status takes the request");
    MPI_Cancel(&requests[1]);
    MPI_Wait(&requests[1], &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(!flag && requests[1] == MPI_REQUEST_NULL, "a send that was received is cancelled: %d",
          flag);
    for (flag = 0; !flag;)
        MPI_Test(&requests[2], &flag, &status);
    MPI_Waitany(N, requests, &index, &status);
    CHECK(index >= 3 && index < N && requests[index] == MPI_REQUEST_NULL, "MPI_Waitany gives %d",
          index);
    MPI_Waitsome(N, requests, &n_some, indices, statuses);
    CHECK(n_some >= 1 && n_some <= N - 4, "MPI_Waitsome gives %d", n_some);
    MPI_Waitall(N, requests, statuses);
    for (int i = 0; i < N; i++)
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d is left", i);
    MPI_Testany(N, requests, &index, &flag, &status);
    CHECK(flag && index == MPI_UNDEFINED, "MPI_Testany finds %d among none", index);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    check_tight_buffer();
    check_partial_element();
    check_no_type();
    check_finished_sends();
    MPI_Finalize();
    return 0;
}
