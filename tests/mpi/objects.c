/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators, groups, attributes, info and error handlers: semantics that other people's
 * programs rely on and that broke once, a function each. Uses mpi.h alone, so the same binary runs
 * on any library of the standard ABI.
 */
#include "tests/topo/check.h"

#include <string.h>

/* A key that was freed can still be used to find and to delete what is left under it (MPI-5.0
 * section 7.7.2). */
static void check_freed_key(void)
{
    int key, kept, value, flag, *found;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    kept = key;
    MPI_Comm_set_attr(comm, key, &value);
    MPI_Comm_free_keyval(&key);
    CHECK(key == MPI_KEYVAL_INVALID, "%d", key);
    MPI_Comm_get_attr(comm, kept, &found, &flag);
    CHECK(flag && found == &value, "flag %d", flag);
    MPI_Comm_delete_attr(comm, kept);
    MPI_Comm_free(&comm);
}

/* Programs from before MPI-4.0 set the error handler of MPI_COMM_WORLD and expect it for errors
 * that belong to no communicator; and an object that was not made is null. */
static void check_errors_of_old_programs(void)
{
    int dims[] = {1 << 20}, periods[] = {0}, ranks[] = {0};
    MPI_Datatype type = MPI_INT;
    MPI_Group group, made;
    MPI_Comm cart = MPI_COMM_WORLD;

    MPI_Comm_group(MPI_COMM_WORLD, &group);
    made = group;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(MPI_Type_contiguous(-1, MPI_INT, &type) != MPI_SUCCESS && type == MPI_DATATYPE_NULL,
          "a type of -1 elements");
    CHECK(MPI_Group_incl(group, -1, ranks, &made) != MPI_SUCCESS && made == MPI_GROUP_NULL,
          "a group of -1 members");
    CHECK(MPI_Group_translate_ranks(group, 1, ranks, group, NULL) != MPI_SUCCESS,
          "no room for the result");
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart) != MPI_SUCCESS &&
              cart == MPI_COMM_NULL,
          "too large");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Group_free(&group);
}

/* What is split without guidance says by what; each step is smaller than the one before. */
static void check_unguided(void)
{
    MPI_Comm comm, part;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (;;) {
        int n, n_part, length = 0, flag;
        MPI_Info info;

        MPI_Info_create(&info);
        MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &part);
        MPI_Comm_size(comm, &n);
        MPI_Comm_free(&comm);
        MPI_Info_get_string(info, "mpi_hw_resource_type", &length, NULL, &flag);
        MPI_Info_free(&info);
        if (part == MPI_COMM_NULL)
            break;
        MPI_Comm_size(part, &n_part);
        CHECK(flag && n_part < n, "%d of %d processes", n_part, n);
        comm = part;
    }
}

/* The environment is the same before and after MPI_Init. */
static void check_env(MPI_Info before, char **argv)
{
    static const char *const keys[] = {"command", "maxprocs", "soft", "host", "arch", "wdir"};
    MPI_Info after;

    MPI_Info_create_env(1, argv, &after);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char old[256] = "", new[256] = "";
        int n_old = sizeof old, n_new = sizeof new, flag;
        MPI_Info_get_string(before, keys[i], &n_old, old, &flag);
        MPI_Info_get_string(after, keys[i], &n_new, new, &flag);
        CHECK(strcmp(old, new) == 0, "%s: \"%s\", \"%s\"", keys[i], old, new);
    }
    MPI_Info_free(&after);
    MPI_Info_free(&before);
}

/* So many duplicates in the making at once that some of them want the same ids, and have to try
 * again. */
static void check_many_duplicates(void)
{
    enum { N = 300 };
    MPI_Comm copies[N];
    MPI_Request requests[N];
    int size, one = 1;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < N; i++)
        MPI_Comm_idup(MPI_COMM_WORLD, &copies[i], &requests[i]);
    MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < N; i++) {
        int sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copies[i]);
        CHECK(sum == size, "communicator %d adds up to %d", i, sum);
        MPI_Comm_free(&copies[i]);
    }
}

/* More splits that leave this process out than there are ids: none may be used up. */
static void check_ids_come_back(void)
{
    MPI_Comm part = MPI_COMM_SELF;

    for (int i = 0; i < 70000; i++) {
        MPI_Comm_split(MPI_COMM_SELF, MPI_UNDEFINED, 0, &part);
        if (part != MPI_COMM_NULL) {
            CHECK(0, "split %d", i);
            return;
        }
    }
    MPI_Comm_split(MPI_COMM_SELF, 1, 0, &part);
    CHECK(part != MPI_COMM_NULL, "after the splits that leave this process out");
    MPI_Comm_free(&part);
}

int main(int argc, char **argv)
{
    MPI_Info before;

    MPI_Info_create_env(argc, argv, &before);
    MPI_Init(&argc, &argv);
    check_env(before, argv);
    check_freed_key();
    check_errors_of_old_programs();
    check_unguided();
    check_many_duplicates();
    check_ids_come_back();
    MPI_Finalize();
    return 0;
}
