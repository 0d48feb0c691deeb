/* SPDX-License-Identifier: BSD-3-Clause */
/* base: list, hash, rand, log, clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/log.h"
#include "base/rand.h"
#include "base/stranger.h"

struct item {
    int value;
    struct list link;
};

static void list_keeps_order(void **state)
{
    struct list head;
    struct item items[5];
    int expected[] = {3, 0, 1, 2, 4}, n = 0;
    (void)state;

    list_init(&head);
    assert_true(list_empty(&head));
    assert_null(list_first(&head));
    for (int i = 0; i < 5; i++) {
        items[i].value = i;
        list_init(&items[i].link);
        if (i == 3)
            list_prepend(&head, &items[i].link);
        else
            list_append(&head, &items[i].link);
    }
    list_foreach(it, &head)
        assert_int_equal(list_entry(it, struct item, link)->value, expected[n++]);
    assert_int_equal(n, 5);
    assert_ptr_equal(list_first(&head), &items[3].link);
}

static void list_survives_removal(void **state)
{
    struct list head;
    struct item items[6];
    int n = 0;
    (void)state;

    list_init(&head);
    for (int i = 0; i < 6; i++) {
        items[i].value = i;
        list_append(&head, &items[i].link);
    }
    list_foreach_safe(it, &head) {
        if (list_entry(it, struct item, link)->value % 2 == 0)
            list_remove(it);
    }
    list_foreach(it, &head)
        assert_int_equal(list_entry(it, struct item, link)->value, 2 * n++ + 1);
    assert_int_equal(n, 3);
    list_remove(&items[1].link);
    list_remove(&items[1].link); /* twice is harmless */
    assert_true(list_empty(&items[1].link));
    list_remove(&items[3].link);
    list_remove(&items[5].link);
    assert_true(list_empty(&head));
}

static void hashes_have_their_published_values(void **state)
{
    (void)state;
    assert_int_equal(hash_fnv1a("", 0), 0x811c9dc5);
    assert_int_equal(hash_fnv1a("a", 1), 0xe40c292c);
    assert_int_equal(hash_fnv1a("foobar", 6), 0xbf9cf968);
    assert_true(hash_mix64(0) == 0);
    assert_true(hash_mix64(1) == 0xb456bcfc34c2cb2cull);
    assert_true(hash_mix64(1ull << 40) == 0xe80f632ed2f232f6ull);
}

static void random_numbers_are_reproducible(void **state)
{
    struct rand a = {0}, b = {1234567};
    (void)state;

    /* First numbers of SplitMix64 for the seeds 0 and 1234567. */
    assert_true(rand_next(&a) == 0xe220a8397b1dcdafull);
    assert_true(rand_next(&a) == 0x6e789e6aa1b965f4ull);
    assert_true(rand_next(&b) == 6457827717110365317ull);
    assert_true(rand_next(&b) == 3203168211198807973ull);
    for (int i = 0; i < 1000; i++)
        assert_true(rand_below(&a, 7) < 7);
}

static enum log_level last_level;
static char last_line[4096];

static void remember(enum log_level level, const char *line)
{
    last_level = level;
    strncpy(last_line, line, sizeof last_line - 1);
}

static void log_lines_are_bounded_and_filtered(void **state)
{
    enum log_level level = LOG_ERROR;
    char big[5000];
    (void)state;

    /* The lines themselves go nowhere. */
    int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDERR_FILENO);
    log_init("unit");
    log_set_sink(remember);
    errno = 77;
    log_warn("node %s", "n1");
    assert_int_equal(errno, 77);
    assert_string_equal(last_line, "node n1");
    assert_int_equal(last_level, LOG_WARN);
    log_debug("not shown");
    assert_string_equal(last_line, "node n1");
    assert_int_equal(log_set_level(LOG_DEBUG), LOG_NOTICE);
    log_debug("shown");
    assert_string_equal(last_line, "shown");
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = '\0';
    log_error("%s", big);
    assert_true(strlen(last_line) < 2048);
    log_set_sink(NULL);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(null);
    assert_int_equal(log_level_parse("debug", &level), 0);
    assert_int_equal(level, LOG_DEBUG);
    assert_int_equal(log_level_parse("loud", &level), -EINVAL);
    assert_int_equal(level, LOG_DEBUG);
}

static void clocks_move_forward(void **state)
{
    (void)state;
    uint64_t a = clock_now_ns(), b = clock_now_ns();
    assert_true(b >= a);
    assert_true(clock_now_ns() + 50 * CLOCK_NS_PER_MS > clock_coarse_ns());
}

static void strangers_are_avoided_for_longer_and_longer(void **state)
{
    struct stranger s = {0};
    uint64_t now_ns = 1000 * CLOCK_NS_PER_S;
    (void)state;

    assert_false(stranger_near(&s, now_ns));
    stranger_met(&s, now_ns);
    assert_true(s.window_ns == STRANGER_MIN_NS);
    assert_true(stranger_near(&s, now_ns + STRANGER_MIN_NS - 1));
    assert_false(stranger_near(&s, now_ns + STRANGER_MIN_NS));
    /* Again soon after: twice as long, up to the limit. */
    for (uint64_t window_ns = STRANGER_MIN_NS; window_ns < 4 * STRANGER_MAX_NS; window_ns *= 2) {
        assert_true(s.window_ns == (window_ns < STRANGER_MAX_NS ? window_ns : STRANGER_MAX_NS));
        now_ns = s.until_ns + s.window_ns - 1;
        stranger_met(&s, now_ns);
    }
    /* After a good while an accident again. */
    stranger_met(&s, s.until_ns + s.window_ns);
    assert_true(s.window_ns == STRANGER_MIN_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_keeps_order),
        cmocka_unit_test(list_survives_removal),
        cmocka_unit_test(hashes_have_their_published_values),
        cmocka_unit_test(random_numbers_are_reproducible),
        cmocka_unit_test(log_lines_are_bounded_and_filtered),
        cmocka_unit_test(clocks_move_forward),
        cmocka_unit_test(strangers_are_avoided_for_longer_and_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
