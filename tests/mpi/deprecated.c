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
    if (rank == 0)
        printf("deprecated: as their successors\n");
    MPI_Finalize();
    return 0;
}
