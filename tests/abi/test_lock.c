/* SPDX-License-Identifier: BSD-3-Clause */
/* The library lock: exclusion, recursion, and that a pause lets a waiting thread in. */
#include "client/lock/lock.h"
#include "client/object/err.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { THREADS = 4, ROUNDS = 20000 };

static int counter;
static bool told;

static void *add(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        lock_enter();
        lock_enter();
        counter++;
        lock_leave();
        counter++;
        if (i % 64 == 0)
            lock_pause();
        lock_leave();
    }
    return NULL;
}

static void test_exclusion(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    lock_init(true);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(counter, 2 * THREADS * ROUNDS);
}

static void *tell(void *arg)
{
    (void)arg;
    lock_enter();
    told = true;
    lock_leave();
    return NULL;
}

/* A thread that polls with pauses must see what another one does under the lock, also when it holds
 * it twice. */
static void test_pause_lets_in(void **state)
{
    pthread_t thread;

    (void)state;
    lock_init(true);
    lock_enter();
    lock_enter();
    told = false;
    assert_int_equal(pthread_create(&thread, NULL, tell, NULL), 0);
    while (!told)
        lock_pause();
    lock_leave();
    lock_leave();
    pthread_join(thread, NULL);
}

static void test_release_and_resume(void **state)
{
    pthread_t thread;
    int depth;

    (void)state;
    lock_init(true);
    told = false;
    lock_enter();
    depth = lock_release();
    assert_int_equal(depth, 1);
    assert_int_equal(pthread_create(&thread, NULL, tell, NULL), 0);
    pthread_join(thread, NULL);
    lock_resume(depth);
    assert_true(told);
    lock_leave();
}

static void test_unthreaded(void **state)
{
    (void)state;
    lock_init(false);
    lock_enter();
    lock_pause();
    assert_int_equal(lock_release(), 0);
    lock_resume(0);
    lock_leave();
}

static void test_err(void **state)
{
    struct comm *somebody = (struct comm *)&counter;

    (void)state;
    assert_int_equal(err_set(7, "rank %d", 12), 7);
    assert_string_equal(err_detail(7), "rank 12");
    assert_string_equal(err_detail(8), "");
    err_blame(somebody);
    assert_ptr_equal(err_take_blame(), somebody);
    assert_null(err_take_blame());
    err_blame(somebody);
    err_set(3, "new");
    assert_null(err_take_blame()); /* a new error blames nobody yet */
    err_clear();
    assert_string_equal(err_detail(3), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unthreaded),    cmocka_unit_test(test_exclusion),
        cmocka_unit_test(test_pause_lets_in), cmocka_unit_test(test_release_and_resume),
        cmocka_unit_test(test_err),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
