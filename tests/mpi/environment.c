/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program can ask about where it runs, before, while and after MPI is there: versions,
 * names, the ABI's sizes, MPI_INFO_ENV, memory. Any number of ranks; uses mpi.h alone.
 */
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) check((condition), #condition, __LINE__)

static void check(int holds, const char *what, int line)
{
    if (holds)
        return;
    fprintf(stderr, "environment.c:%d: %s\n", line, what);
    exit(1);
}

static const char *value_of(MPI_Info info, const char *key)
{
    static char value[MPI_MAX_INFO_VAL];
    int room = sizeof value, found;

    CHECK(MPI_Info_get_string(info, key, &room, value, &found) == MPI_SUCCESS);
    return found ? value : NULL;
}

static int is(MPI_Info info, const char *key, const char *wanted)
{
    const char *value = value_of(info, key);

    return value && strcmp(value, wanted) == 0;
}

/* What may be asked at any time (MPI-5.0 section 11.4.1). */
static void test_at_any_time(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int major = 0, minor = 0, length = 0;
    MPI_Info info;

    CHECK(MPI_Get_version(&major, &minor) == MPI_SUCCESS && major >= 4);
    CHECK(MPI_Get_library_version(text, &length) == MPI_SUCCESS);
    CHECK(length > 0 && strlen(text) == (size_t)length);
    CHECK(MPI_Abi_get_version(&major, &minor) == MPI_SUCCESS);
    CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
    CHECK(MPI_Abi_get_info(&info) == MPI_SUCCESS);
    CHECK(is(info, "mpi_aint_size", "8"));
    CHECK(is(info, "mpi_count_size", "8"));
    CHECK(is(info, "mpi_offset_size", "8"));
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS && info == MPI_INFO_NULL);
}

/* A compiler whose .TRUE. is -1, unless the library knows another one. */
static void test_setting_logicals(void)
{
    int16_t yes = -1, no = 0;
    int64_t wide_yes = 7, wide_no = 7;
    int is_set = -1;

    CHECK(MPI_Abi_set_fortran_booleans(3, &yes, &no) != MPI_SUCCESS);
    if (MPI_Abi_get_fortran_booleans(2, &yes, &no, &is_set) != MPI_SUCCESS)
        return; /* a library that knows of none of two bytes */
    if (is_set) {
        CHECK(MPI_Abi_set_fortran_booleans(2, &yes, &no) != MPI_SUCCESS);
        return;
    }
    CHECK(yes == -1 && no == 0); /* untouched */
    if (MPI_Abi_set_fortran_booleans(2, &yes, &no) != MPI_SUCCESS)
        return; /* a library that wants to hear it earlier */
    yes = no = 9;
    CHECK(MPI_Abi_get_fortran_booleans(2, &yes, &no, &is_set) == MPI_SUCCESS && is_set);
    CHECK(yes == -1 && no == 0);
    if (MPI_Abi_get_fortran_booleans(8, &wide_yes, &wide_no, &is_set) == MPI_SUCCESS && is_set)
        CHECK(wide_yes == -1 && wide_no == 0);
    yes = 1; /* the first call counts */
    CHECK(MPI_Abi_set_fortran_booleans(2, &yes, &no) != MPI_SUCCESS);
    CHECK(MPI_Abi_get_fortran_booleans(2, &yes, &no, &is_set) == MPI_SUCCESS && yes == -1);
}

static void test_fortran(void)
{
    unsigned char yes[16], no[16];
    int sizes[] = {1, 2, 4, 8, 16}, is_set;
    MPI_Info info;

    CHECK(MPI_Abi_get_fortran_info(&info) == MPI_SUCCESS);
    if (info != MPI_INFO_NULL) {
        CHECK(is(info, "mpi_double_precision_size", "8"));
        CHECK(value_of(info, "mpi_logical_size") && value_of(info, "mpi_integer_size"));
        CHECK(value_of(info, "mpi_integer8_supported") && value_of(info, "mpi_real2_supported"));
        MPI_Info_free(&info);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < 5; i++) {
        memset(yes, 0xee, sizeof yes);
        memset(no, 0xee, sizeof no);
        is_set = -1;
        if (MPI_Abi_get_fortran_booleans(sizes[i], yes, no, &is_set) != MPI_SUCCESS) {
            CHECK(sizes[i] != 4); /* not every library knows every size */
            continue;
        }
        CHECK(is_set == 0 || memcmp(yes, no, (size_t)sizes[i]) != 0);
        for (int k = sizes[i]; k < 16; k++)
            CHECK(yes[k] == 0xee && no[k] == 0xee);
    }
    CHECK(MPI_Abi_get_fortran_booleans(3, yes, no, &is_set) != MPI_SUCCESS);
    test_setting_logicals();
}

static void test_information(char **argv)
{
    char name[MPI_MAX_PROCESSOR_NAME];
    int length, n_keys;
    MPI_Info info;

    CHECK(MPI_Get_processor_name(name, &length) == MPI_SUCCESS);
    CHECK(length > 0 && strlen(name) == (size_t)length);
    CHECK(MPI_Info_get_nkeys(MPI_INFO_ENV, &n_keys) == MPI_SUCCESS);
    CHECK(MPI_Info_create_env(1, argv, &info) == MPI_SUCCESS);
    const char *command = value_of(info, "command");
    CHECK(!command || strstr(command, "environment"));
    MPI_Info_free(&info);
    CHECK(MPI_Get_hw_resource_info(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_get_nkeys(info, &n_keys) == MPI_SUCCESS);
    for (int i = 0; i < n_keys; i++) {
        char key[MPI_MAX_INFO_KEY];
        MPI_Info_get_nthkey(info, i, key);
        const char *value = value_of(info, key);
        CHECK(value && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0));
    }
    MPI_Info_free(&info);
}

/* An alignment that is asked for is given; one that is none is refused or passed over. */
static void test_memory(void)
{
    char *memory;
    MPI_Info info;

    CHECK(MPI_Alloc_mem(0, MPI_INFO_NULL, &memory) == MPI_SUCCESS);
    CHECK(MPI_Free_mem(memory) == MPI_SUCCESS);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096");
    CHECK(MPI_Alloc_mem(100000, info, &memory) == MPI_SUCCESS);
    CHECK((uintptr_t)memory % 4096 == 0);
    memset(memory, 1, 100000);
    MPI_Free_mem(memory);
    MPI_Info_free(&info);
    double tick = MPI_Wtick(), start = MPI_Wtime();
    CHECK(tick > 0 && tick < 1 && MPI_Wtime() >= start);
}

int main(int argc, char **argv)
{
    int flag, level;
    MPI_Info info;

    test_at_any_time();
    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Info_create_env(argc, argv, &info) == MPI_SUCCESS);
    MPI_Info_free(&info);
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &level) == MPI_SUCCESS);
    CHECK(level >= MPI_THREAD_SINGLE);
    test_at_any_time();
    test_fortran();
    test_information(argv);
    test_memory();
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && flag);
    test_at_any_time();
    return 0;
}
