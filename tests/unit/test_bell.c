/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/bell: bits, the sleeping word, and who wakes whom. The races are tests/race's and
 * tests/model's matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/thread.h"
#include "proto/bell.h"

static struct bell bell;
static _Atomic uint32_t is_active;

static int clean(void **state)
{
    (void)state;
    memset(&bell, 0, sizeof bell);
    atomic_store(&is_active, 0);
    return 0;
}

static void bits_are_taken_once(void **state)
{
    (void)state;
    const uint32_t bits[] = {0, 5, 63, 64, 300, 511};

    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        struct bell_ref ref = {.bell = &bell, .bit = bits[i], .event_fd = -1};
        bell_notify(&ref, &is_active);
        bell_notify(&ref, &is_active);
    }
    assert_true(bell_collect(&bell, 0) == (1ull << 0 | 1ull << 5 | 1ull << 63));
    assert_true(bell_collect(&bell, 0) == 0);
    assert_true(bell_collect(&bell, 1) == 1);
    assert_true(bell_collect(&bell, 300 / 64) == 1ull << 300 % 64);
    assert_true(bell_collect(&bell, 7) == 1ull << 63);
}

/* A word may be shared by consumers: each takes the bits of its own rings. */
static void bits_of_others_stay(void **state)
{
    (void)state;
    for (uint32_t bit = 0; bit < 6; bit++) {
        struct bell_ref ref = {.bell = &bell, .bit = bit, .event_fd = -1};
        bell_notify(&ref, &is_active);
    }
    assert_true(bell_collect_of(&bell, 0, 0x0f) == 0x0f);
    assert_true(bell_collect_of(&bell, 0, 0x0f) == 0);
    assert_true(bell_collect_of(&bell, 0, 0xf0) == 0x30);
    assert_true(bell_collect(&bell, 0) == 0);
}

static void active_rings_do_not_ring(void **state)
{
    (void)state;
    struct bell_ref ref = {.bell = &bell, .bit = 9, .event_fd = -1};

    atomic_store(&is_active, 1);
    bell_notify(&ref, &is_active);
    assert_true(bell_collect(&bell, 0) == 0);
}

static void only_the_first_producer_writes_the_event(void **state)
{
    (void)state;
    FD_AUTO event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct bell_ref ref = {.bell = &bell, .bit = 1, .event_fd = event};
    uint64_t value = 0;

    bell_notify(&ref, &is_active); /* nobody sleeps */
    assert_int_equal(read(event, &value, sizeof value), -1);
    bell_sleep_begin(&bell, true);
    assert_int_equal(atomic_load(&bell.sleeping), 1);
    bell_notify(&ref, &is_active);
    bell_notify(&ref, &is_active);
    bell_notify(&ref, &is_active);
    assert_int_equal(atomic_load(&bell.sleeping), 0);
    bell_wake(&ref); /* a producer that saw the sleeper, but came second */
    assert_int_equal(read(event, &value, sizeof value), sizeof value);
    assert_int_equal(value, 1);
    bell_sleep_end(&bell);
}

static void sleep_ends_with_its_time(void **state)
{
    (void)state;
    for (int fenced = 0; fenced < 2; fenced++) {
        bell_sleep_begin(&bell, fenced);
        uint64_t begin_ns = clock_now_ns();
        bell_sleep(&bell, 30 * CLOCK_NS_PER_MS);
        assert_true(clock_now_ns() - begin_ns >= 29 * CLOCK_NS_PER_MS);
        bell_sleep_end(&bell);
        assert_int_equal(atomic_load(&bell.sleeping), 0);
    }
}

static void woken_before_sleeping_does_not_sleep(void **state)
{
    (void)state;
    struct bell_ref ref = {.bell = &bell, .bit = 1, .event_fd = -1};

    bell_sleep_begin(&bell, true);
    bell_notify(&ref, &is_active);
    uint64_t begin_ns = clock_now_ns();
    bell_sleep(&bell, 10 * CLOCK_NS_PER_S);
    assert_true(clock_now_ns() - begin_ns < 5 * CLOCK_NS_PER_S);
    bell_sleep_end(&bell);
}

static void *ring_later(void *arg)
{
    struct bell_ref ref = {.bell = &bell, .bit = 1, .event_fd = -1};
    uint64_t deadline_ns = clock_now_ns() + 10 * CLOCK_NS_PER_S;
    (void)arg;

    while (atomic_load(&bell.sleeping) == 0 && clock_now_ns() < deadline_ns)
        thread_pause();
    bell_notify(&ref, &is_active);
    return NULL;
}

static void futex_sleeper_is_woken(void **state)
{
    pthread_t thread;
    (void)state;

    assert_int_equal(pthread_create(&thread, NULL, ring_later, NULL), 0);
    bell_sleep_begin(&bell, true);
    uint64_t begin_ns = clock_now_ns();
    bell_sleep(&bell, 10 * CLOCK_NS_PER_S);
    assert_true(clock_now_ns() - begin_ns < 8 * CLOCK_NS_PER_S);
    bell_sleep_end(&bell);
    pthread_join(thread, NULL);
    assert_true(bell_collect(&bell, 0) == 2);
}

static void futex_wait_tells_why_it_ended(void **state)
{
    _Atomic uint32_t word = 3;
    (void)state;

    assert_int_equal(thread_futex_wait(&word, 4, UINT64_MAX), 0);
    assert_int_equal(thread_futex_wait(&word, 3, 1000), -ETIMEDOUT);
    assert_true(thread_n_cores() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bits_are_taken_once, clean),
        cmocka_unit_test_setup(bits_of_others_stay, clean),
        cmocka_unit_test_setup(active_rings_do_not_ring, clean),
        cmocka_unit_test_setup(only_the_first_producer_writes_the_event, clean),
        cmocka_unit_test_setup(sleep_ends_with_its_time, clean),
        cmocka_unit_test_setup(woken_before_sleeping_does_not_sleep, clean),
        cmocka_unit_test_setup(futex_sleeper_is_woken, clean),
        cmocka_unit_test_setup(futex_wait_tells_why_it_ended, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
