/* SPDX-License-Identifier: BSD-3-Clause */
/* Several clients in one process: what one does is not seen by the others, but for messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/object/handle.h"
#include "mpi.h"
#include "tests/client/ranks.h"

static void test_messages(void **state)
{
    struct ranks *r = ranks_new(3, MPI_THREAD_SINGLE);
    MPI_Request receives[2], send;
    int got[2] = {0, 0}, done, n = 0;
    MPI_Status statuses[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        MPI_Irecv(&got[i], 1, MPI_INT, i + 1, 7, MPI_COMM_WORLD, &receives[i]);
    for (uint32_t rank = 1; rank < 3; rank++) {
        int value = 100 + (int)rank, size, own;
        ranks_turn(r, rank);
        MPI_Comm_rank(MPI_COMM_WORLD, &own);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        assert_int_equal(own, rank);
        assert_int_equal(size, 3);
        MPI_Isend(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &send);
        MPI_Wait(&send, MPI_STATUS_IGNORE); /* it has left */
    }
    ranks_turn(r, 0);
    do
        MPI_Testall(2, receives, &done, statuses);
    while (!done && n++ < 10);
    assert_true(done);
    assert_int_equal(got[0], 101);
    assert_int_equal(got[1], 102);
    assert_int_equal(statuses[1].MPI_SOURCE, 2);
    ranks_free(r);
}

/* A rendezvous needs both sides' turns, one after the other. */
static void test_long_message(void **state)
{
    struct ranks *r = ranks_new(2, MPI_THREAD_SINGLE);
    static int out[100000], in[100000];
    MPI_Request send, receive;
    int sent = 0, received = 0;

    (void)state;
    for (int i = 0; i < 100000; i++)
        out[i] = i * 3;
    MPI_Isend(out, 100000, MPI_INT, 1, 7, MPI_COMM_WORLD, &send);
    ranks_turn(r, 1);
    MPI_Irecv(in, 100000, MPI_INT, 0, 7, MPI_COMM_WORLD, &receive);
    for (int n = 0; n < 100 && !(sent && received); n++) {
        ranks_turn(r, 0);
        if (!sent)
            MPI_Test(&send, &sent, MPI_STATUS_IGNORE);
        ranks_turn(r, 1);
        if (!received)
            MPI_Test(&receive, &received, MPI_STATUS_IGNORE);
    }
    assert_true(sent && received);
    assert_memory_equal(in, out, sizeof in);
    ranks_free(r);
}

static void test_handles_are_apart(void **state)
{
    struct ranks *r = ranks_new(2, MPI_THREAD_SINGLE);
    MPI_Group group;
    int keyval, flag, tag = 5;
    void *value;
    char name[MPI_MAX_OBJECT_NAME];

    (void)state;
    size_t n_handles = handle_count(); /* of predefined objects without a constant value */
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &tag);
    MPI_Comm_set_name(MPI_COMM_WORLD, "mine");
    MPI_Type_set_name(MPI_INT, "whole");
    assert_int_equal(handle_count(), n_handles + 1);
    ranks_turn(r, 1);
    assert_int_equal(handle_count(), n_handles);
    assert_null(handle_object((uintptr_t)group));
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &flag);
    assert_string_equal(name, "MPI_COMM_WORLD");
    MPI_Type_get_name(MPI_INT, name, &flag);
    assert_string_equal(name, "MPI_INT");
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &flag, NULL);
    assert_int_equal(flag, keyval); /* the same number, another keyval */
    MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag);
    assert_false(flag);
    ranks_turn(r, 0);
    MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag);
    assert_true(flag);
    assert_ptr_equal(value, &tag);
    MPI_Group_free(&group);
    ranks_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_long_message),
        cmocka_unit_test(test_handles_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
