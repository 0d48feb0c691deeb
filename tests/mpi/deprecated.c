/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What other tests do not call: the deprecated forms do what their successors do, and handles of
 * kinds without objects convert. Any number of ranks; uses mpi.h alone.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) check((condition), #condition, __LINE__)

static void check(int holds, const char *what, int line)
{
    if (holds)
        return;
    fprintf(stderr, "deprecated.c:%d: %s\n", line, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int n_copied, n_deleted;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm;
    (void)keyval;
    n_copied += extra == &n_copied;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete (MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm;
    (void)keyval;
    (void)value;
    n_deleted += extra == &n_copied;
    return MPI_SUCCESS;
}

static void test_attributes(void)
{
    int keyval, flag, value = 7, *found = NULL;
    MPI_Comm duplicate;
    MPI_Keyval_create(copy, delete, &keyval, &n_copied);
    MPI_Attr_put(MPI_COMM_SELF, keyval, &value);
    MPI_Comm_dup(MPI_COMM_SELF, &duplicate);
    MPI_Attr_get(duplicate, keyval, &found, &flag);
    CHECK(flag && found == &value && n_copied == 1);
    MPI_Attr_delete(duplicate, keyval);
    MPI_Attr_get(duplicate, keyval, &found, &flag);
    CHECK(!flag && n_deleted == 1);
    MPI_Comm_free(&duplicate);
    MPI_Attr_delete(MPI_COMM_SELF, keyval);
    MPI_Keyval_free(&keyval);
    CHECK(keyval == MPI_KEYVAL_INVALID && n_deleted == 2);
}

static void test_types(void)
{
    MPI_Datatype type;
    MPI_Count lb, extent, size, n;
    MPI_Status status;
    memset(&status, 0, sizeof status);
    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_get_extent_x(type, &lb, &extent);
    CHECK(lb == 0 && extent == 20);
    MPI_Type_get_true_extent_x(type, &lb, &extent);
    CHECK(lb == 0 && extent == 20);
    MPI_Type_size_x(type, &size);
    CHECK(size == 12);
    MPI_Status_set_elements_x(&status, type, 7);
    MPI_Get_elements_x(&status, type, &n);
    CHECK(n == 7);
    MPI_Type_free(&type);
}

static void test_info(void)
{
    MPI_Info info;
    char value[16] = "";
    int flag, length;
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "a long value");
    MPI_Info_get_valuelen(info, "key", &length, &flag);
    CHECK(flag && length == 12);
    MPI_Info_get(info, "key", 15, value,
                 &flag); /* less room: cut, says the standard; MPICH 5.0.2 raises an error */
    CHECK(flag && strcmp(value, "a long value") == 0);
    MPI_Info_get(info, "other", 15, value, &flag);
    CHECK(!flag);
    MPI_Info_free(&info);
}

static int file_error, win_error;

static void on_file_error(MPI_File *file, int *code, ...)
{
    file_error = *file == MPI_FILE_NULL ? *code : -1;
}

static void on_win_error(MPI_Win *win, int *code, ...)
{
    (void)win;
    win_error = *code;
}

static int delete_of_window(MPI_Win win, int keyval, void *value, void *extra)
{
    (void)win;
    (void)keyval;
    (void)value;
    (void)extra;
    return MPI_SUCCESS;
}

static void test_files_and_windows(void)
{
    MPI_Errhandler handler, before, now;
    int keyval;
    MPI_File_get_errhandler(MPI_FILE_NULL, &before);
    CHECK(before == MPI_ERRORS_RETURN);
    MPI_File_create_errhandler(on_file_error, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    MPI_File_get_errhandler(MPI_FILE_NULL, &now);
    CHECK(now == handler);
    MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_NO_SPACE);
    CHECK(file_error == MPI_ERR_NO_SPACE);
    MPI_File_set_errhandler(MPI_FILE_NULL, before);
    MPI_Errhandler_free(&handler);
    MPI_Errhandler_free(&now);
    MPI_Win_create_errhandler(on_win_error, &handler);
    MPI_Errhandler_free(&handler);
    CHECK(handler == MPI_ERRHANDLER_NULL && win_error == 0);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_of_window, &keyval, NULL);
    MPI_Win_free_keyval(&keyval);
    CHECK(keyval == MPI_KEYVAL_INVALID);
    CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
    CHECK(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
}

static void test_environment(void)
{
    int flag, is_set;
    unsigned char yes[4] = {9, 9, 9, 9}, no[4] = {9, 9, 9, 9};
    MPI_Is_thread_main(&flag);
    CHECK(flag);
    CHECK(MPI_Abi_get_fortran_booleans(4, yes, no, &is_set) == MPI_SUCCESS);
    CHECK(!is_set || memcmp(yes, no, 4) != 0);
}

/* In no header any more; what was built before still asks for them. */
int MPI_Address(void *location, MPI_Aint *address);
int MPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler);
int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);
int MPI_Type_extent(MPI_Datatype type, MPI_Aint *extent);
int MPI_Type_hindexed(int count, int lengths[], MPI_Aint displacements[], MPI_Datatype old_type,
                      MPI_Datatype *new_type);
int MPI_Type_hvector(int count, int length, MPI_Aint stride, MPI_Datatype old_type,
                     MPI_Datatype *new_type);
int MPI_Type_lb(MPI_Datatype type, MPI_Aint *lb);
int MPI_Type_struct(int count, int lengths[], MPI_Aint displacements[], MPI_Datatype old_types[],
                    MPI_Datatype *new_type);
int MPI_Type_ub(MPI_Datatype type, MPI_Aint *ub);

static int comm_error;

static void on_comm_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    comm_error = *code;
}

static void test_removed(void)
{
    int lengths[2] = {1, 2};
    MPI_Aint address, of_pair, at[2] = {8, 16}, lb, ub, extent;
    MPI_Datatype vector, indexed, mixed, types[2] = {MPI_INT, MPI_SHORT};
    MPI_Errhandler handler, before, now;
    MPI_Address(lengths, &address);
    MPI_Get_address(lengths, &of_pair);
    CHECK(address == of_pair);
    MPI_Type_hvector(2, 1, 12, MPI_INT, &vector);
    MPI_Type_extent(vector, &extent);
    CHECK(extent == 16);
    MPI_Type_hindexed(2, lengths, at, MPI_INT, &indexed);
    MPI_Type_lb(indexed, &lb);
    MPI_Type_ub(indexed, &ub);
    CHECK(lb == 8 && ub == 24);
    MPI_Type_struct(2, lengths, at, types, &mixed);
    MPI_Type_ub(mixed, &ub);
    CHECK(ub == 20);
    MPI_Type_free(&vector);
    MPI_Type_free(&indexed);
    MPI_Type_free(&mixed);
    MPI_Errhandler_get(MPI_COMM_SELF, &before);
    MPI_Errhandler_create(on_comm_error, &handler);
    MPI_Errhandler_set(MPI_COMM_SELF, handler);
    MPI_Errhandler_get(MPI_COMM_SELF, &now);
    CHECK(now == handler);
    MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER);
    CHECK(comm_error == MPI_ERR_OTHER);
    MPI_Errhandler_set(MPI_COMM_SELF, before);
    MPI_Errhandler_free(&handler);
    MPI_Errhandler_free(&now);
    MPI_Errhandler_free(&before);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    test_attributes();
    test_types();
    test_info();
    test_files_and_windows();
    test_environment();
    test_removed();
    if (rank == 0)
        printf("deprecated: as their successors\n");
    MPI_Finalize();
    return 0;
}
