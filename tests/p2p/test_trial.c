/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of a method for large messages within a node: what is faster is found and kept, trials
 * are rare, and nothing that a sender does or leaves wedges one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rand.h"
#include "client/p2p/method/trial.h"

#define ALL   ((1u << METHOD_RINGS) | (1u << METHOD_READ) | (1u << METHOD_BOTH))
#define BYTES 65536u

/* A program that sends messages one by one; each takes what its method takes. */
struct program {
    struct trial trial;
    uint64_t ns[METHOD_N];
    uint64_t n_messages, n_in_trials, n_by[METHOD_N], spent_ns;
};

static void program_init(struct program *p, uint64_t rings_ns, uint64_t read_ns, uint64_t both_ns)
{
    *p = (struct program){.ns = {rings_ns, read_ns, both_ns}};
    trial_init(&p->trial, ALL, METHOD_ALONE);
}

static void program_send(struct program *p)
{
    struct trial *t = &p->trial;
    bool timed = t->trying;
    enum method method = (enum method)t->method;

    p->n_messages++;
    p->n_in_trials += timed;
    p->n_by[method]++;
    p->spent_ns += p->ns[method];
    trial_message(t, BYTES);
    if (timed)
        trial_sample(t, method, BYTES, p->ns[method]);
}

static void program_run(struct program *p, int n)
{
    while (n-- > 0)
        program_send(p);
}

static void test_the_fastest_is_kept(void **state)
{
    (void)state;
    for (enum method best = METHOD_RINGS; best < METHOD_N; best++) {
        struct program p;
        program_init(&p, 4000, 4000, 4000);
        p.ns[best] = 1000;
        program_run(&p, 200);
        assert_false(p.trial.trying);
        assert_true(p.trial.tried);
        assert_int_equal(p.trial.method, best);
        assert_in_range(p.trial.mb_per_s[best], 65000, 66000);
    }
}

/* The first messages go through the rings untimed: a program that sends a few pays for no trial. */
static void test_few_messages_are_not_tried(void **state)
{
    struct program p;

    (void)state;
    program_init(&p, 4000, 1000, 1000);
    program_run(&p, TRIAL_FIRST_MESSAGES);
    assert_int_equal(p.n_by[METHOD_RINGS], TRIAL_FIRST_MESSAGES);
    assert_int_equal(p.n_in_trials, 0);
}

/* Whatever the methods cost, trials take a small part of the time in the long run. */
static void test_trials_are_rare(void **state)
{
    (void)state;
    for (uint64_t slow = 1; slow <= 100; slow *= 10) {
        struct program p;
        program_init(&p, 1000, 1000 * slow, 500 * slow + 500);
        program_run(&p, 3000000);
        assert_true(p.n_in_trials > 0);
        assert_true(p.spent_ns < 3000000ull * 1000 * 103 / 100);
    }
}

/* A machine changes: the next trial finds out. */
static void test_a_later_trial_changes_the_choice(void **state)
{
    struct program p;

    (void)state;
    program_init(&p, 1000, 1500, 1500);
    program_run(&p, 1000);
    assert_int_equal(p.trial.method, METHOD_RINGS);
    p.ns[METHOD_RINGS] = 3000;
    program_run(&p, 20000);
    assert_int_equal(p.trial.settled, METHOD_READ);
}

/* Who is as good stays. */
static void test_a_small_gain_changes_nothing(void **state)
{
    struct program p;

    (void)state;
    program_init(&p, 1000, 970, 1000);
    program_run(&p, 1000);
    assert_int_equal(p.trial.settled, METHOD_RINGS);
}

/* The last round leaves out a method that is far behind; one slow round leaves out nobody. */
static void test_a_slow_method_is_left_out(void **state)
{
    struct program p;

    (void)state;
    program_init(&p, 1000, 10000, 1200);
    program_run(&p, 200);
    assert_true(p.trial.tried);
    assert_int_equal(p.n_by[METHOD_READ], TRIAL_SAMPLES * TRIAL_ALL_ROUNDS);
    assert_int_equal(p.n_by[METHOD_BOTH], TRIAL_SAMPLES * TRIAL_ROUNDS);
    program_init(&p, 10000, 3000, 3000);
    program_run(&p, TRIAL_FIRST_MESSAGES + 2 * TRIAL_SAMPLES);
    p.ns[METHOD_RINGS] = 1000;
    program_run(&p, 100);
    assert_int_equal(p.trial.settled, METHOD_RINGS);
}

/* One slow message in a round spoils neither the method nor the choice. */
static void test_a_disturbance_is_forgotten(void **state)
{
    struct program p;

    (void)state;
    for (unsigned at = 0; at < 60; at++) {
        program_init(&p, 1000, 600, 1000);
        for (unsigned i = 0; i < 200; i++) {
            uint64_t before = p.ns[METHOD_READ];
            if (i == at)
                p.ns[METHOD_READ] = 1100;
            program_send(&p);
            p.ns[METHOD_READ] = before;
        }
        assert_int_equal(p.trial.settled, METHOD_READ);
    }
}

/* A sender that goes on by another method than asked (its data has gaps) does not hold a trial up
 * for ever, and what it cannot use is not chosen. */
static void test_a_method_that_nobody_uses(void **state)
{
    struct trial t;

    (void)state;
    trial_init(&t, ALL, METHOD_ALONE);
    for (int i = 0; i < 20000; i++) {
        bool timed = t.trying;
        trial_message(&t, BYTES);
        if (timed)
            trial_sample(&t, METHOD_RINGS, BYTES, 1000);
    }
    assert_true(t.tried);
    assert_int_equal(t.settled, METHOD_RINGS);
    assert_int_equal(t.mb_per_s[METHOD_READ], 0);
    assert_int_equal(t.mb_per_s[METHOD_BOTH], 0);
}

/* Samples that nobody asked for, or of another method, count nothing. */
static void test_strange_samples(void **state)
{
    struct trial t;

    (void)state;
    trial_init(&t, ALL, METHOD_ALONE);
    assert_false(trial_sample(&t, METHOD_RINGS, BYTES, 1));
    for (unsigned i = 0; i < TRIAL_FIRST_MESSAGES; i++)
        trial_message(&t, BYTES);
    assert_true(t.trying);
    for (unsigned i = 0; i < 100; i++)
        assert_false(trial_sample(&t, METHOD_BOTH, BYTES, 1));
    assert_int_equal(t.method, METHOD_RINGS);
    /* No time at all, and for ever. */
    for (unsigned i = 0; i < TRIAL_SAMPLES; i++)
        trial_sample(&t, METHOD_RINGS, UINT64_MAX / 8192, 0);
    assert_int_equal(t.mb_per_s[METHOD_RINGS], UINT32_MAX);
    for (unsigned i = 0; i < TRIAL_SAMPLES; i++)
        trial_sample(&t, METHOD_READ, 1, UINT64_MAX / 64);
    assert_int_equal(t.mb_per_s[METHOD_READ], 1);
}

/* Of a window, whose first messages tell little, more of them count. */
static void test_windows_take_longer(void **state)
{
    struct trial t;

    (void)state;
    for (uint64_t bytes = BYTES; bytes <= 16u << 20; bytes *= 256) {
        trial_init(&t, ALL, METHOD_WINDOW);
        for (unsigned i = 0; i < TRIAL_FIRST_MESSAGES; i++)
            trial_message(&t, bytes);
        unsigned most = bytes == BYTES ? TRIAL_WINDOW_SAMPLES : TRIAL_SAMPLES;
        for (unsigned i = 1; i < most; i++)
            assert_false(trial_sample(&t, METHOD_RINGS, bytes, 1000));
        assert_true(trial_sample(&t, METHOD_RINGS, bytes, 1000));
        assert_int_equal(t.method, METHOD_READ);
    }
}

/* The kernel refuses in the middle of anything: from then on the rings alone. */
static void test_forbidden(void **state)
{
    (void)state;
    for (int when = 0; when < 100; when++) {
        struct program p;
        program_init(&p, 4000, 1000, 2000);
        program_run(&p, when);
        trial_forbid(&p.trial, 1u << METHOD_RINGS);
        uint64_t before = p.n_by[METHOD_RINGS];
        program_run(&p, 5000);
        assert_int_equal(p.n_by[METHOD_RINGS], before + 5000);
    }
}

/* By chance, whatever comes: the method in use is always a permitted one. */
static void test_by_chance(void **state)
{
    struct rand r;

    (void)state;
    for (uint64_t seed = 1; seed < 200; seed++) {
        struct trial t;
        r.state = seed;
        uint8_t permitted = (uint8_t)(rand_below(&r, 8) | 1);
        trial_init(&t, permitted, (enum method_kind)(seed % METHOD_KINDS));
        for (int i = 0; i < 3000; i++) {
            trial_message(&t, rand_below(&r, 1 << 20));
            if (rand_below(&r, 3))
                trial_sample(&t, (enum method)rand_below(&r, METHOD_N), rand_below(&r, 1 << 20),
                             rand_below(&r, 10000));
            if (rand_below(&r, 500) == 0)
                trial_forbid(&t, permitted &= (uint8_t)(rand_below(&r, 8) | 1));
            assert_true(permitted >> t.method & 1);
            assert_true(permitted >> t.settled & 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_fastest_is_kept),
        cmocka_unit_test(test_few_messages_are_not_tried),
        cmocka_unit_test(test_trials_are_rare),
        cmocka_unit_test(test_a_later_trial_changes_the_choice),
        cmocka_unit_test(test_a_small_gain_changes_nothing),
        cmocka_unit_test(test_a_slow_method_is_left_out),
        cmocka_unit_test(test_a_disturbance_is_forgotten),
        cmocka_unit_test(test_a_method_that_nobody_uses),
        cmocka_unit_test(test_strange_samples),
        cmocka_unit_test(test_windows_take_longer),
        cmocka_unit_test(test_forbidden),
        cmocka_unit_test(test_by_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
