/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spawned processes (MPI-5.0 chapter 11): the program starts itself again and speaks with what
 * comes. As a child it does what its first argument says; else its arguments are how often, and the
 * hosts of the children. Runs on any library of the standard ABI.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "spawn.c:%d: %s\n", __LINE__, #condition);                             \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)

static int rank, size;
static const char *hosts; /* of the children; NULL: where the parent's root is */

/* Both sides: messages of all sizes between all pairs, in order. */
static void talk(MPI_Comm inter)
{
    static const int sizes[] = {1, 100, 5000, 40000, 300000};
    int n_remote, me;

    MPI_Comm_remote_size(inter, &n_remote);
    MPI_Comm_rank(inter, &me);
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int n = sizes[s];
        int *out = malloc((size_t)n * sizeof *out), *in = malloc((size_t)n * sizeof *in);
        MPI_Request *requests = malloc((size_t)n_remote * sizeof *requests);
        for (int i = 0; i < n; i++)
            out[i] = me * 1000003 + i;
        for (int r = 0; r < n_remote; r++)
            MPI_Isend(out, n, MPI_INT, r, 7, inter, &requests[r]);
        for (int r = 0; r < n_remote; r++) {
            MPI_Status status;
            MPI_Recv(in, n, MPI_INT, r, 7, inter, &status);
            CHECK(status.MPI_SOURCE == r);
            for (int i = 0; i < n; i++)
                CHECK(in[i] == r * 1000003 + i);
        }
        MPI_Waitall(n_remote, requests, MPI_STATUSES_IGNORE);
        free(requests);
        free(in);
        free(out);
    }
}

/* Both sides: collectives between the groups, and over both as one. */
static void together(MPI_Comm inter, int high)
{
    int n_local, n_remote, me, sum = 0, n_all, place, word = 0;
    MPI_Comm all, copy;

    MPI_Comm_size(inter, &n_local);
    MPI_Comm_remote_size(inter, &n_remote);
    MPI_Comm_rank(inter, &me);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == n_remote * (n_remote - 1) / 2);
    MPI_Barrier(inter);
    MPI_Intercomm_merge(inter, high, &all);
    MPI_Comm_size(all, &n_all);
    MPI_Comm_rank(all, &place);
    CHECK(n_all == n_local + n_remote && place == me + (high ? n_remote : 0));
    MPI_Comm_dup(all, &copy);
    for (int root = 0; root < n_all; root++) {
        word = place == root ? 77 + root : -1;
        MPI_Bcast(&word, 1, MPI_INT, root, copy);
        CHECK(word == 77 + root);
    }
    int *everybody = malloc((size_t)n_all * 1000 * sizeof *everybody), mine[1000];
    for (int i = 0; i < 1000; i++)
        mine[i] = place + i;
    MPI_Allgather(mine, 1000, MPI_INT, everybody, 1000, MPI_INT, copy);
    for (int r = 0; r < n_all; r++)
        for (int i = 0; i < 1000; i++)
            CHECK(everybody[r * 1000 + i] == r + i);
    MPI_Allreduce(&place, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(sum == n_all * (n_all - 1) / 2);
    free(everybody);
    MPI_Comm_free(&copy);
    MPI_Comm_disconnect(&all);
}

static void child(MPI_Comm parent, int argc, char **argv)
{
    int *appnum, flag;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag);
    CHECK(flag);
    if (strcmp(argv[1], "multiple") == 0)
        CHECK(*appnum == (rank >= 1) && strcmp(argv[2], rank < 1 ? "one" : "two") == 0);
    CHECK(argc == 3);
    talk(parent);
    if (strcmp(argv[1], "merge") == 0)
        together(parent, 1);
    MPI_Comm_disconnect(&parent);
    MPI_Comm_get_parent(&parent);
    CHECK(parent == MPI_COMM_NULL);
}

static void once(char *program, const char *what, int n)
{
    char *argv[] = {(char *)what, (char *)"one", NULL};
    int *codes = malloc((size_t)n * sizeof *codes), n_children;
    MPI_Info info;
    MPI_Comm inter;

    MPI_Info_create(&info);
    if (hosts)
        MPI_Info_set(info, "host", hosts);
    CHECK(MPI_Comm_spawn(program, argv, n, info, 0, MPI_COMM_WORLD, &inter, codes) == MPI_SUCCESS);
    MPI_Info_free(&info);
    MPI_Comm_remote_size(inter, &n_children);
    CHECK(n_children == n);
    for (int i = 0; i < n; i++)
        CHECK(codes[i] == MPI_SUCCESS);
    talk(inter);
    if (strcmp(what, "merge") == 0)
        together(inter, 0);
    MPI_Comm_disconnect(&inter);
    free(codes);
}

static void several(char *program)
{
    char *commands[] = {program, program};
    char *one[] = {(char *)"multiple", (char *)"one", NULL},
         *two[] = {(char *)"multiple", (char *)"two", NULL};
    char **argvs[] = {one, two};
    int counts[] = {1, 2}, codes[3], last = size - 1;
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;

    CHECK(MPI_Comm_spawn_multiple(2, commands, argvs, counts, infos, last, MPI_COMM_WORLD, &inter,
                                  codes) == MPI_SUCCESS);
    talk(inter);
    MPI_Comm_disconnect(&inter);
}

/* A program that is not there, and one that never calls MPI_Init. */
static void failures(void)
{
    const char *programs[] = {"/no/such/program", "/bin/true"};
    MPI_Comm inter;
    int code;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; i++) {
        int rc = MPI_Comm_spawn(programs[i], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                                &inter, &code),
            class;
        MPI_Error_class(rc, &class);
        CHECK(class == MPI_ERR_SPAWN && code != MPI_SUCCESS);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        child(parent, argc, argv);
    } else {
        int n = argc > 1 ? atoi(argv[1]) : 1;
        hosts = argc > 2 ? argv[2] : NULL;
        for (int i = 0; i < n; i++) {
            once(argv[0], "talk", 1);
            once(argv[0], "talk", 3);
            once(argv[0], "merge", 2);
            several(argv[0]);
        }
        failures();
        if (rank == 0)
            puts("spawn: no errors");
    }
    MPI_Finalize();
    return 0;
}
