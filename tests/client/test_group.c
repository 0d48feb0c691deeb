/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups against what sets of numbers must give, small and large, rows and scattered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/object/group.h"
#include "client/object/handle.h"

static struct client *client, *library;

static int set_up(void **state)
{
    (void)state;
    client = client_new();
    library = client_enter(client);
    group_set_own_proc(5);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    size_t n = handle_count();
    client_enter(library);
    client_free(client);
    return n != 0; /* everything was freed */
}

static struct group *make(int size, const int *procs)
{
    struct group *group;

    assert_int_equal(group_new(size, procs, &group), MPI_SUCCESS);
    assert_int_equal(group_publish(group, &group), MPI_SUCCESS);
    return group;
}
#define MAKE(...)                                                                                  \
    make((int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (const int[]){__VA_ARGS__})

static void expect(struct group *group, int size, const int *procs)
{
    assert_int_equal(group->size, size);
    for (int i = 0; i < size; i++)
        assert_int_equal(group->procs[i], procs[i]);
    mpi_group_free(&group);
}
#define EXPECT(group, ...)                                                                         \
    expect(group, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (const int[]){__VA_ARGS__})

static void test_sets(void **state)
{
    struct group *a = MAKE(7, 3, 5, 1), *b = MAKE(2, 5, 7, 9), *r;

    (void)state;
    /* Members of the first in its order, then the others of the second (MPI-5.0 section 7.3.2). */
    assert_int_equal(mpi_group_union(a, b, &r), MPI_SUCCESS);
    EXPECT(r, 7, 3, 5, 1, 2, 9);
    assert_int_equal(mpi_group_intersection(a, b, &r), MPI_SUCCESS);
    EXPECT(r, 7, 5);
    assert_int_equal(mpi_group_intersection(b, a, &r), MPI_SUCCESS);
    EXPECT(r, 5, 7);
    assert_int_equal(mpi_group_difference(a, b, &r), MPI_SUCCESS);
    EXPECT(r, 3, 1);
    assert_int_equal(mpi_group_difference(a, a, &r), MPI_SUCCESS);
    assert_ptr_equal(r, &group_here->empty);
    mpi_group_free(&r);
    mpi_group_free(&a);
    mpi_group_free(&b);
}

static void test_ranks(void **state)
{
    struct group *a = MAKE(10, 5, 11, 12), *r;
    int out[4];

    (void)state;
    assert_int_equal(a->rank, 1);
    assert_int_equal(mpi_group_incl(a, 3, (int[]){3, 0, 1}, &r), MPI_SUCCESS);
    assert_int_equal(r->rank, 2);
    assert_int_equal(mpi_group_translate_ranks(a, 4, (int[]){0, MPI_PROC_NULL, 2, 3}, r, out),
                     MPI_SUCCESS);
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], MPI_PROC_NULL);
    assert_int_equal(out[2], MPI_UNDEFINED);
    assert_int_equal(out[3], 0);
    assert_int_equal(mpi_group_translate_ranks(a, 1, (int[]){4}, r, out), MPI_ERR_RANK);
    EXPECT(r, 12, 10, 5);
    assert_int_equal(mpi_group_excl(a, 2, (int[]){2, 0}, &r), MPI_SUCCESS);
    EXPECT(r, 5, 12);
    assert_int_equal(mpi_group_incl(a, 0, NULL, &r), MPI_SUCCESS);
    assert_int_equal(r->rank, MPI_UNDEFINED);
    mpi_group_free(&r);
    assert_int_equal(mpi_group_incl(a, 2, (int[]){1, 1}, &r), MPI_ERR_RANK);
    assert_int_equal(mpi_group_incl(a, 1, (int[]){4}, &r), MPI_ERR_RANK);
    assert_int_equal(mpi_group_excl(a, 1, (int[]){-1}, &r), MPI_ERR_RANK);
    mpi_group_free(&a);
}

static void test_ranges(void **state)
{
    struct group *a, *r;

    (void)state;
    assert_int_equal(group_new_row(100, 10, &a), MPI_SUCCESS);
    assert_int_equal(group_publish(a, &a), MPI_SUCCESS);
    assert_int_equal(mpi_group_range_incl(a, 2, (int[][3]){{9, 5, -2}, {0, 4, 3}}, &r),
                     MPI_SUCCESS);
    EXPECT(r, 109, 107, 105, 100, 103);
    assert_int_equal(mpi_group_range_excl(a, 2, (int[][3]){{9, 5, -1}, {0, 3, 2}}, &r),
                     MPI_SUCCESS);
    EXPECT(r, 101, 103, 104);
    assert_int_equal(mpi_group_range_incl(a, 1, (int[][3]){{0, 9, 0}}, &r), MPI_ERR_ARG);
    assert_int_equal(mpi_group_range_incl(a, 2, (int[][3]){{0, 2, 1}, {2, 3, 1}}, &r),
                     MPI_ERR_RANK);
    assert_int_equal(mpi_group_range_incl(a, 1, (int[][3]){{8, 10, 1}}, &r), MPI_ERR_RANK);
    mpi_group_free(&a);
}

static void test_comparison(void **state)
{
    struct group *a = MAKE(4, 5, 6), *same = MAKE(4, 5, 6), *turned = MAKE(6, 5, 4),
                 *other = MAKE(4, 5, 7), *shorter = MAKE(4, 5);

    (void)state;
    assert_int_equal(group_compare(a, a), MPI_IDENT);
    assert_int_equal(group_compare(a, same), MPI_IDENT);
    assert_int_equal(group_compare(a, turned), MPI_SIMILAR);
    assert_int_equal(group_compare(turned, a), MPI_SIMILAR);
    assert_int_equal(group_compare(a, other), MPI_UNEQUAL);
    assert_int_equal(group_compare(a, shorter), MPI_UNEQUAL);
    assert_int_equal(group_compare(&group_here->empty, &group_here->empty), MPI_IDENT);
    struct group *all[] = {a, same, turned, other, shorter};
    for (int i = 0; i < 5; i++)
        mpi_group_free(&all[i]);
}

/* Rows compute, small groups search, larger ones make a map: all the same answers. */
static void test_looking_up(void **state)
{
    enum { N = 200 };
    int procs[N], where[3 * N + 10];

    (void)state;
    for (int size = 1; size <= N; size += 7) {
        for (int kind = 0; kind < 3; kind++) { /* a row; every third; from above */
            for (int p = 0; p < 3 * N + 10; p++)
                where[p] = MPI_UNDEFINED;
            for (int i = 0; i < size; i++) {
                procs[i] = kind == 0 ? 10 + i : kind == 1 ? 2 + 3 * i : 3 * (size - i);
                where[procs[i]] = i;
            }
            struct group *group;
            assert_int_equal(group_new(size, procs, &group), MPI_SUCCESS);
            for (int p = 0; p < 3 * N + 10; p++)
                assert_int_equal(group_rank_of(group, p), where[p]);
            assert_int_equal(group_rank_of(group, -1), MPI_UNDEFINED);
            assert_int_equal(group->rank, where[5]);
            group_unref(group);
        }
    }
}

/* One handle however often it was asked for, gone with the last of those. */
static void test_handles(void **state)
{
    struct group *a = MAKE(1, 2), *again = a;
    uintptr_t handle = a->obj.handle;

    (void)state;
    group_ref(a);
    assert_int_equal(group_publish(a, &again), MPI_SUCCESS);
    assert_ptr_equal(again, a);
    assert_int_equal(a->obj.handle, handle);
    mpi_group_free(&again);
    assert_ptr_equal(handle_object(handle), &a->obj);
    mpi_group_free(&a);
    assert_null(handle_object(handle));
    assert_int_equal(handle_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ranks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ranges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_comparison, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_looking_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_handles, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
