/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lock a short call takes, and which vci a communicator gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/client.h"
#include "client/object/comm.h"
#include "client/object/handle.h"
#include "client/progress/request.h"
#include "client/progress/vci_choose.h"
#include "mpi.h"

#define N_VCIS 4u

static struct client *client, *library;

static int set_up(void **state)
{
    (void)state;
    client = client_new();
    library = client_enter(client);
    lock_init(true);
    return vci_init(N_VCIS);
}

static int tear_down(void **state)
{
    (void)state;
    client_enter(library);
    client_free(client);
    return 0;
}

/* Communicators' ids get vcis as all members of the vote have threads. */
static void take_vcis(unsigned n)
{
    for (uint32_t i = 0; i < n; i++)
        vci_settle(vci_offer(), (2 + i) * 4);
}

static void test_spread(void **state)
{
    (void)state;
    assert_int_equal(vci_n_used(), 1);
    take_vcis(3);
    assert_int_equal(vci_n_used(), N_VCIS);
    for (uint32_t i = 0; i < 3; i++) /* one each, while some have none */
        assert_int_equal(vci_of_context((2 + i) * 4)->index, 1 + i);
    vci_give_back(3 * 4);
    assert_int_equal(vci_of_context(3 * 4)->index, 0);
    vci_settle(vci_offer(), 9 * 4);
    assert_int_equal(vci_of_context(9 * 4)->index, 2); /* the one that became free */
    vci_settle(vci_offer(), 10 * 4);
    assert_int_not_equal(vci_of_context(10 * 4)->index, 0); /* all have one: shared */
    assert_int_equal(vci_of_context(UINT32_MAX)->index, 0);
    /* What is shared is shared evenly. */
    vci_settle(vci_offer(), 11 * 4);
    vci_settle(vci_offer(), 12 * 4);
    for (uint32_t i = 10; i <= 12; i++)
        for (uint32_t k = 10; k < i; k++)
            assert_ptr_not_equal(vci_of_context(i * 4), vci_of_context(k * 4));
    /* The contexts of one communicator go together. */
    assert_int_equal(vci_of_context(9 * 4 + 3)->index, 2);
}

static void test_members_without_threads(void **state)
{
    (void)state;
    vci_settle(0, 8 * 4);
    assert_int_equal(vci_of_context(8 * 4)->index, 0);
    vci_settle(vci_offer() & ~(UINT64_C(1) << 62), 8 * 4);
    assert_int_equal(vci_of_context(8 * 4)->index, 0);
    lock_init(false);
    assert_int_equal(vci_offer(), 0);
}

static void test_number_from_environment(void **state)
{
    (void)state;
    setenv("MOTET_VCIS", "2", 1);
    assert_int_equal(vci_init(N_VCIS), MPI_SUCCESS);
    take_vcis(3);
    assert_int_equal(vci_n_used(), 2);
    setenv("MOTET_VCIS", "9", 1);
    assert_int_equal(vci_init(N_VCIS), MPI_SUCCESS);
    const char *const bad[] = {"0", "-1", "two", "", "3 "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("MOTET_VCIS", bad[i], 1);
        assert_int_equal(vci_init(N_VCIS), MPI_ERR_OTHER);
    }
    unsetenv("MOTET_VCIS");
}

/* ---- locks ---- */

static bool holds_library(void)
{
    return lock_is_mine() && vci_alone() == NULL;
}

static void expect_library(struct vci *entered)
{
    assert_null(entered);
    assert_true(holds_library());
    vci_leave(entered);
    assert_false(lock_is_mine());
}

static void expect_alone(struct vci *entered, uint32_t index)
{
    assert_non_null(entered);
    assert_int_equal(entered->index, index);
    assert_false(lock_is_mine());
    assert_ptr_equal(vci_alone(), entered);
    assert_true(mutex_is_mine(&entered->mutex));
    vci_leave(entered);
    assert_null(vci_alone());
    assert_true(mutex_is_free(&vci_here->table[index].mutex));
}

static void destroy_nothing(struct request *r)
{
    (void)r;
}

static const struct request_ops ops = {.destroy = destroy_nothing};

static uintptr_t make_request(struct request *r, uint32_t vci)
{
    request_init(r, &ops, NULL, false);
    r->vci = &vci_here->table[vci];
    assert_true(handle_new(&r->obj) != 0);
    return r->obj.handle;
}

static void test_requests(void **state)
{
    struct request requests[4];
    uintptr_t common, one, other, one_more;

    (void)state;
    take_vcis(3);
    common = make_request(&requests[0], 0);
    one = make_request(&requests[1], 1);
    other = make_request(&requests[2], 2);
    one_more = make_request(&requests[3], 1);
    uintptr_t null = (uintptr_t)MPI_REQUEST_NULL;

    expect_alone(vci_choose_request(one), 1);
    expect_alone(vci_choose_request(other), 2);
    expect_library(vci_choose_request(common));
    expect_library(vci_choose_request(null));
    expect_library(vci_choose_request(12345678));

    expect_alone(vci_choose_requests((uintptr_t[]){one, one_more}, 2), 1);
    expect_alone(vci_choose_requests((uintptr_t[]){null, one, null, one_more}, 4), 1);
    /* Of two vcis: neither lock alone would do. */
    expect_library(vci_choose_requests((uintptr_t[]){one, other}, 2));
    expect_library(vci_choose_requests((uintptr_t[]){one, one_more, other}, 3));
    expect_library(vci_choose_requests((uintptr_t[]){other, null, one}, 3));
    expect_library(vci_choose_requests((uintptr_t[]){one, common}, 2));
    expect_library(vci_choose_requests((uintptr_t[]){common, one}, 2));
    expect_library(vci_choose_requests((uintptr_t[]){one, 12345678}, 2));
    /* A request that never had a vci, such as a generalized one. */
    requests[0].vci = NULL;
    expect_library(vci_choose_request(common));
    expect_library(vci_choose_requests((uintptr_t[]){one, common}, 2));
    expect_library(vci_choose_requests((uintptr_t[]){common, one}, 2));
    expect_library(vci_choose_requests((uintptr_t[]){null, null}, 2));
    expect_library(vci_choose_requests(NULL, 3));
    expect_library(vci_choose_requests(&one, 0));
    for (int i = 0; i < 4; i++)
        handle_free(&requests[i].obj);
}

static void test_communicators(void **state)
{
    struct comm comm = {.obj = {.refs = 1, .kind = OBJECT_COMM}};

    (void)state;
    take_vcis(3);
    comm.vci = &vci_here->table[3];
    assert_true(handle_new(&comm.obj) != 0);
    expect_alone(vci_choose_comm(comm.obj.handle), 3);
    expect_library(vci_choose_comm((uintptr_t)MPI_COMM_NULL));

    /* Whoever is in the library already stays under its lock. */
    lock_enter();
    struct vci *entered = vci_choose_comm(comm.obj.handle);
    assert_null(entered);
    vci_leave(entered);
    assert_true(lock_is_mine());
    lock_leave();

    /* Out and in again, as deep as before. */
    entered = vci_choose_comm(comm.obj.handle);
    vci_take(entered);
    int depth = vci_step_out(entered);
    assert_null(vci_alone());
    assert_true(mutex_is_free(&entered->mutex));
    vci_step_in(entered, depth);
    assert_ptr_equal(vci_alone(), entered);
    vci_give(entered);
    assert_true(mutex_is_mine(&entered->mutex));
    vci_leave(entered);
    assert_true(mutex_is_free(&vci_here->table[3].mutex));
    handle_free(&comm.obj);
}

/* ---- the dead ---- */

static struct object *buried[4];
static int n_buried;

static void bury(struct object *object)
{
    assert_true(lock_is_mine());
    assert_int_equal(object->handle, 0);
    buried[n_buried++] = object;
}

static void test_last_reference_goes_in_a_vci(void **state)
{
    struct comm comm = {.obj = {.refs = 1, .kind = OBJECT_COMM}};
    struct object dead[2] = {{.refs = 1, .kind = OBJECT_GROUP}, {.refs = 1, .kind = OBJECT_GROUP}};

    (void)state;
    take_vcis(1);
    comm.vci = &vci_here->table[1];
    handle_new(&comm.obj);
    struct vci *entered = vci_choose_comm(comm.obj.handle);
    uint32_t n_done = vci_n_done();
    vci_bury(&dead[0], bury);
    vci_bury(&dead[1], bury);
    assert_int_equal(n_buried, 0);
    assert_int_equal(vci_n_done(), n_done + 2); /* who waits for what this ends looks again */
    vci_leave(entered);
    assert_true(vci_here->has_dead);
    lock_enter();
    vci_bury_now();
    vci_bury_now();
    lock_leave();
    assert_false(vci_here->has_dead);
    assert_int_equal(n_buried, 2);
    assert_true(buried[0] == &dead[1] && buried[1] == &dead[0]);
    handle_free(&comm.obj);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_spread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_members_without_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_number_from_environment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_communicators, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_last_reference_goes_in_a_vci, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
