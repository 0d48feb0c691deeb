/* SPDX-License-Identifier: BSD-3-Clause */
/* Credit of destination ranks: stop, trickle, go, silence, refused messages. And the counters'
 * snapshots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/clock.h"
#include "daemon/flow/credit.h"
#include "daemon/port/count.h"

#define MS CLOCK_NS_PER_MS

static struct credit c;

static int setup(void **state)
{
    (void)state;
    memset(&c, 0, sizeof c);
    return 0;
}

static void test_full_credit(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(credit_take(&c, 1, i, MS));
    assert_int_equal(c.n, 0);
}

static void test_stop_and_go(void **state)
{
    (void)state;
    assert_true(credit_stop(&c, 1, 7, MS));
    assert_false(credit_take(&c, 1, 7, MS));
    assert_true(credit_take(&c, 1, 8, MS));
    assert_true(credit_take(&c, 2, 7, MS));
    credit_go(&c, 1, 7);
    assert_true(credit_take(&c, 1, 7, MS));
    assert_int_equal(c.n, 0);
    credit_go(&c, 1, 7); /* nothing to do */
}

/* While stops come, one message in an interval that grows to a tenth of a second. */
static void test_trickle(void **state)
{
    uint32_t n = 0;

    (void)state;
    credit_stop(&c, 1, 7, 0);
    for (uint64_t t = 0; t < 10000 * MS; t += MS) {
        if (credit_take(&c, 1, 7, t)) {
            n++;
            credit_stop(&c, 1, 7, t + MS / 10);
        }
    }
    assert_true(n > 80 && n < 150);
}

static void test_silence(void **state)
{
    uint32_t n = 0;

    (void)state;
    credit_stop(&c, 1, 7, 0);
    for (uint64_t t = 0; t < 100 * MS && n < 100; t += MS / 10)
        n += credit_take(&c, 1, 7, t);
    assert_int_equal(n, 100);
    assert_int_equal(c.n, 0);
    credit_stop(&c, 1, 7, 200 * MS);
    credit_age(&c, 201 * MS);
    assert_int_equal(c.n, 1);
    credit_age(&c, 400 * MS);
    assert_int_equal(c.n, 0);
}

/* Refused messages go first. */
static void test_refused(void **state)
{
    (void)state;
    assert_true(credit_refuse(&c, 1, 7, 0));
    assert_true(credit_refuse(&c, 1, 7, 0));
    credit_go(&c, 1, 7);
    assert_false(credit_take(&c, 1, 7, MS));
    assert_true(credit_take_refused(&c, 1, 7, MS));
    assert_false(credit_take(&c, 1, 7, MS));
    credit_drop_refused(&c, 1, 7);
    assert_true(credit_take(&c, 1, 7, MS));
    assert_int_equal(c.n, 0);
}

static void test_too_many(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < CREDIT_STOPS; i++)
        assert_true(credit_refuse(&c, 1, i, 0));
    assert_false(credit_refuse(&c, 1, CREDIT_STOPS, 0));
    assert_true(credit_take(&c, 1, CREDIT_STOPS, 0));
}

static void test_snapshots(void **state)
{
    static struct count_row row;
    struct count_flow in = {.slot = 3, .window = 17, .resent = 1ull << 40}, out;

    (void)state;
    assert_false(count_row_read(&row, &out, sizeof out));
    count_row_write(&row, &in, sizeof in);
    assert_true(count_row_read(&row, &out, sizeof out));
    assert_memory_equal(&in, &out, sizeof in);
    for (int id = 0; id < COUNT_N; id++)
        assert_true(strlen(count_name((enum count_id)id)) > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_full_credit, setup),
        cmocka_unit_test_setup(test_stop_and_go, setup),
        cmocka_unit_test_setup(test_trickle, setup),
        cmocka_unit_test_setup(test_silence, setup),
        cmocka_unit_test_setup(test_refused, setup),
        cmocka_unit_test_setup(test_too_many, setup),
        cmocka_unit_test(test_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
