/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreeing on context ids, the votes of several members played in one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/comm/context.h"
#include "client/object/comm.h"

static uint32_t agree_alone(uint32_t parent_id, int tag)
{
    struct context_try t;
    int rc;

    context_begin(&t, parent_id, tag);
    do
        context_offer(&t);
    while ((rc = context_settle(&t)) == CONTEXT_AGAIN);
    assert_int_equal(rc, MPI_SUCCESS);
    return t.id;
}

/* The contexts of one communicator are its id and the next three. */
static void ids_are_apart(void **state)
{
    uint32_t ids[200];
    (void)state;

    for (int i = 0; i < 200; i++) {
        ids[i] = agree_alone(0, 7);
        assert_true(ids[i] >= COMM_CONTEXT_FIRST);
        for (int k = 0; k < i; k++)
            assert_true(ids[i] >= ids[k] + 4 || ids[k] >= ids[i] + 4);
    }
    for (int i = 0; i < 200; i++)
        context_give_back(ids[i]);
}

/* Two agreements at a time, of two threads or two nonblocking calls: what one offers the other does
 * not, and afterwards everything is on offer again. */
static void one_word_is_offered_once(void **state)
{
    struct context_try first, second;
    (void)state;

    for (int round = 0; round < 3; round++) {
        context_begin(&first, 0, 7);
        context_begin(&second, 0, 7);
        context_offer(&first);
        context_offer(&second);
        assert_int_equal(first.word, second.word);
        assert_true(first.holds && first.vote[0] != 0);
        assert_false(second.holds);
        assert_true(second.vote[0] == 0);
        assert_int_equal(context_settle(&second), CONTEXT_AGAIN);
        assert_int_equal(context_settle(&first), MPI_SUCCESS);
        context_offer(&second);
        assert_true(second.holds);
        context_withdraw(&second);
        context_give_back(first.id);
    }
}

/* What is given back is given out again. */
static void ids_come_back(void **state)
{
    uint32_t id = agree_alone(4, 1);
    (void)state;

    assert_true(agree_alone(4, 1) != id);
    context_give_back(id);
    assert_int_equal(agree_alone(4, 1), id);
}

static int set_up(void **state)
{
    (void)state;
    context_init();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_apart),
        cmocka_unit_test(one_word_is_offered_once),
        cmocka_unit_test(ids_come_back),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
