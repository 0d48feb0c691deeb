/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program learns of an error that it gets back: its class, and from MPI_Error_string what
 * exactly was wrong. Uses mpi.h alone, so the same binary runs on any library of the standard ABI.
 */
#include "tests/topo/check.h"

#include <string.h>

#define WRONG_RANK 4711

static const char *text_of(int code)
{
    static char text[MPI_MAX_ERROR_STRING];
    int n = -1;

    CHECK(MPI_Error_string(code, text, &n) == MPI_SUCCESS, "code %d", code);
    CHECK(n == (int)strlen(text), "length %d of '%s'", n, text);
    return text;
}

static int class_of(int code)
{
    int is = -1;

    CHECK(MPI_Error_class(code, &is) == MPI_SUCCESS, "code %d", code);
    return is;
}

/* The function and the value, and an error of another class afterwards takes neither away. */
static void check_details(void)
{
    int word = 0, bad_rank = MPI_Send(&word, 1, MPI_INT, WRONG_RANK, 0, MPI_COMM_WORLD);
    int bad_count = MPI_Recv(&word, -12345, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    CHECK(class_of(bad_rank) == MPI_ERR_RANK && class_of(bad_count) == MPI_ERR_COUNT, "%d, %d",
          bad_rank, bad_count);
    CHECK(strstr(text_of(bad_rank), "MPI_Send") && strstr(text_of(bad_rank), "4711"), "%s",
          text_of(bad_rank));
    CHECK(strstr(text_of(bad_count), "MPI_Recv") && strstr(text_of(bad_count), "-12345"), "%s",
          text_of(bad_count));
}

static char heard[MPI_MAX_ERROR_STRING];

static void listen(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    strcpy(heard, text_of(*code));
}

/* The error handler of the application knows as much, also where the program hands an error on to
 * it. */
static void check_handler(void)
{
    int word = 0;
    MPI_Errhandler handler;

    MPI_Comm_create_errhandler(listen, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    int code = MPI_Send(&word, 1, MPI_INT, WRONG_RANK, 0, MPI_COMM_WORLD);
    CHECK(strstr(heard, "4711"), "%s", heard);
    if (code != MPI_SUCCESS) { /* what MPICH returns once the handler has returned */
        heard[0] = '\0';
        MPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
        CHECK(strstr(heard, "4711"), "%s", heard);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

/* One of two receives is too small: the codes in the statuses, and the text of the one. */
static void check_statuses(void)
{
    int words[2] = {1, 2}, got[2], rank;
    MPI_Request requests[2];
    MPI_Status statuses[2];

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Irecv(got, 2, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(got, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[1]);
    for (int tag = 0; tag < 2; tag++)
        MPI_Send(words, 2, MPI_INT, rank, tag, MPI_COMM_WORLD);
    int code = MPI_Waitall(2, requests, statuses);
    CHECK(code == MPI_ERR_IN_STATUS, "code %d", code);
    CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS &&
              class_of(statuses[1].MPI_ERROR) == MPI_ERR_TRUNCATE,
          "codes %d and %d", statuses[0].MPI_ERROR, statuses[1].MPI_ERROR);
    CHECK(strstr(text_of(statuses[1].MPI_ERROR), " 8"), "%s", text_of(statuses[1].MPI_ERROR));
}

/* MPI_Reduce_local from a buffer into itself. */
static void check_same_buffer(void)
{
    int words[2] = {1, 2};

    CHECK(class_of(MPI_Reduce_local(words, words, 2, MPI_INT, MPI_SUM)) == MPI_ERR_BUFFER,
          "words are %d and %d", words[0], words[1]);
}

/* A text of the application stays as it was given. */
static void check_own_codes(void)
{
    int own_class, own_code;

    MPI_Add_error_class(&own_class);
    MPI_Add_error_code(own_class, &own_code);
    MPI_Add_error_string(own_code, "the soup is cold");
    MPI_Comm_call_errhandler(MPI_COMM_WORLD, own_code);
    CHECK(strcmp(text_of(own_code), "the soup is cold") == 0, "%s", text_of(own_code));
    CHECK(class_of(own_code) == own_class, "class %d", class_of(own_code));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check_details();
    check_handler();
    check_statuses();
    check_same_buffer();
    check_own_codes();
    MPI_Finalize();
    return 0;
}
