/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups made of groups, without a job: ranges of every direction against a count by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "client/object/group.h"

enum { N = 12 };

static struct group *group_of_all(void)
{
    int procs[N];
    struct group *group;

    for (int i = 0; i < N; i++)
        procs[i] = i;
    assert_int_equal(group_new(N, procs, &group), MPI_SUCCESS);
    return group;
}

/* First, last and stride of either sign: a range that runs the other way is empty, none is
 * passed. */
static void ranges_run_both_ways(void **state)
{
    struct group *all = group_of_all(), *made;
    (void)state;

    for (int first = 0; first < N; first++) {
        for (int last = 0; last < N; last++) {
            for (int stride = -4; stride <= 4; stride++) {
                int ranges[1][3] = {{first, last, stride}}, expected[N], n = 0;
                if (stride == 0)
                    continue;
                for (int rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride)
                    expected[n++] = rank;
                assert_int_equal(mpi_group_range_incl(all, 1, ranges, &made), MPI_SUCCESS);
                assert_int_equal(made->size, n);
                for (int i = 0; i < n; i++)
                    assert_int_equal(made->procs[i], expected[i]);
                if (n > 0)
                    assert_int_equal(mpi_group_free(&made), MPI_SUCCESS);
                assert_int_equal(mpi_group_range_excl(all, 1, ranges, &made), MPI_SUCCESS);
                assert_int_equal(made->size, N - n);
                if (n < N)
                    assert_int_equal(mpi_group_free(&made), MPI_SUCCESS);
            }
        }
    }
}

static void ranks_come_once(void **state)
{
    struct group *all = group_of_all(), *made;
    int twice[] = {1, 2, 1}, ranges[2][3] = {{0, 4, 2}, {4, 4, 1}}, still[1][3] = {{0, 1, 0}};
    (void)state;

    assert_int_equal(mpi_group_incl(all, 3, twice, &made), MPI_ERR_RANK);
    assert_int_equal(mpi_group_excl(all, 3, twice, &made), MPI_ERR_RANK);
    assert_int_equal(mpi_group_range_incl(all, 2, ranges, &made), MPI_ERR_RANK);
    assert_int_equal(mpi_group_range_excl(all, 2, ranges, &made), MPI_ERR_RANK);
    assert_int_equal(mpi_group_range_incl(all, 1, still, &made), MPI_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_run_both_ways),
        cmocka_unit_test(ranks_come_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
