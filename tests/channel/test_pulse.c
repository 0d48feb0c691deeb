/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pulse of a link: two of them face to face over a wire that the test plays, each with its own
 * direction that loses everything, what is large, or a share. How soon a fault is seen and named,
 * how soon its end is, and what is no fault.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/rand.h"
#include "daemon/port/pulse.h"

#define MS         CLOCK_NS_PER_MS
#define FULL_BYTES 16464u
#define WIRE_MAX   256u

struct sent {
    uint64_t due_ns;
    uint32_t to, epoch, n_bytes;
    bool echo;
    struct wire_probe probe;
};

struct end {
    struct pulse pulse;
    uint32_t lose_percent; /* of what leaves */
    uint32_t lose_above;   /* bytes */
    bool stuck;            /* stream: something that is lost holds up all behind it */
    bool large_stuck;      /* the same where large packets have a stream of their own */
    bool refused;          /* the network says that it cannot send */
    bool frozen;           /* its thread does not run */
    uint32_t epoch;        /* of its connection */
    uint32_t n_alive;      /* times that it came alive */
};

static struct end ends[2];
static struct sent wire[WIRE_MAX];
static uint32_t n_wire;
static uint64_t now_ns, delay_ns;
static bool stream, split; /* split: a stream for what is small, one for what is large */
static struct rand chance;
static struct pulse_use use;

static void start_as(bool is_stream, bool is_split)
{
    stream = is_stream;
    split = is_split;
    now_ns = 5 * CLOCK_NS_PER_S;
    delay_ns = 50000;
    n_wire = 0;
    chance.state = 4711;
    use = (struct pulse_use){.every_ns = 250 * MS};
    memset(ends, 0, sizeof ends);
    struct pulse_config config = {.full_bytes = FULL_BYTES,
                                  .stream = stream,
                                  .split = split,
                                  .renew_every_ns = stream ? 500 * MS : UINT64_MAX};
    for (int i = 0; i < 2; i++) {
        ends[i].lose_above = UINT32_MAX;
        pulse_start(&ends[i].pulse, &config, now_ns);
    }
}

static void start(bool is_stream)
{
    start_as(is_stream, false);
}

static void put(uint32_t from, const struct wire_probe *probe, bool echo)
{
    struct end *e = &ends[from];
    uint32_t n_bytes = echo ? WIRE_PROBE_BYTES : probe->n_bytes;
    bool lost = n_bytes > e->lose_above || rand_below(&chance, 100) < e->lose_percent;

    bool *stuck = split && n_bytes > WIRE_PROBE_BYTES ? &e->large_stuck : &e->stuck;

    if (stream && lost)
        *stuck = true;
    if (lost || *stuck)
        return;
    assert_true(n_wire < WIRE_MAX);
    wire[n_wire++] = (struct sent){.due_ns = now_ns + delay_ns,
                                   .to = 1 - from,
                                   .n_bytes = n_bytes,
                                   .echo = echo,
                                   .probe = *probe};
}

static void ask(uint32_t i, bool large)
{
    struct pulse *p = &ends[i].pulse;
    /* Two clocks are never quite the same. */
    struct wire_probe probe = {.stamp_ns = now_ns + i,
                               .n_bytes = large ? p->try_bytes : WIRE_PROBE_BYTES,
                               .n_missed = p->n_missed + (p->asked_ns != 0)};

    if (ends[i].refused) {
        pulse_on_break(p, -ECONNREFUSED, now_ns);
        return;
    }
    put(i, &probe, false);
    pulse_sent(p, large, now_ns + i);
}

static void deliver(const struct sent *s)
{
    struct end *e = &ends[s->to];

    if (s->echo) {
        bool alive = e->pulse.verdict == LINK_ALIVE;
        pulse_on_echo(&e->pulse, &s->probe, now_ns - s->probe.stamp_ns, now_ns);
        e->n_alive += !alive && e->pulse.verdict == LINK_ALIVE;
        return;
    }
    pulse_on_probe(&e->pulse, &s->probe, now_ns);
    put(s->to, &s->probe, true);
}

static void step_end(uint32_t i)
{
    uint32_t todo = pulse_step(&ends[i].pulse, &use, now_ns);

    if (todo & PULSE_RENEW)
        /* Both directions begin anew. */
        ends[0].stuck = ends[1].stuck = ends[0].large_stuck = ends[1].large_stuck = false;
    if (todo & PULSE_SEND_SMALL)
        ask(i, false);
    if (todo & PULSE_SEND_LARGE)
        ask(i, true);
}

static void run_ms(uint32_t n_ms)
{
    for (uint64_t end_ns = now_ns + n_ms * MS; now_ns < end_ns; now_ns += MS / 10) {
        for (uint32_t i = 0; i < n_wire;) {
            if (wire[i].due_ns > now_ns || ends[wire[i].to].frozen) {
                i++;
                continue;
            }
            struct sent s = wire[i];
            wire[i] = wire[--n_wire];
            deliver(&s);
        }
        for (uint32_t i = 0; i < 2; i++)
            if (!ends[i].frozen)
                step_end(i);
    }
}

/* Until both ends have found this; milliseconds. */
static uint32_t until(enum link_verdict first, enum link_verdict second, uint32_t limit_ms)
{
    for (uint32_t ms = 0; ms < limit_ms; ms++) {
        if (ends[0].pulse.verdict == first && ends[1].pulse.verdict == second)
            return ms;
        run_ms(1);
    }
    return limit_ms;
}

static void test_up(void **state)
{
    (void)state;
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        start(is_stream);
        assert_true(until(LINK_ALIVE, LINK_ALIVE, 100) < 20);
        run_ms(60000);
        assert_int_equal(ends[0].n_alive, 1);
        assert_int_equal(ends[1].n_alive, 1);
    }
}

/* One end asks, the other one is content with that. */
static void test_rest(void **state)
{
    uint32_t n_probes = 0;

    (void)state;
    start(true);
    until(LINK_ALIVE, LINK_ALIVE, 100);
    use.every_ns = 8 * CLOCK_NS_PER_S;
    run_ms(20000);
    for (int s = 0; s < 80; s++) {
        uint64_t sent_ns[2] = {ends[0].pulse.sent_ns, ends[1].pulse.sent_ns};
        uint64_t answered_ns[2] = {ends[0].pulse.answered_ns, ends[1].pulse.answered_ns};
        run_ms(1000);
        for (int i = 0; i < 2; i++)
            n_probes +=
                ends[i].pulse.sent_ns != sent_ns[i] && ends[i].pulse.answered_ns != answered_ns[i];
    }
    assert_in_range(n_probes, 9, 11);
    assert_int_equal(ends[0].n_alive + ends[1].n_alive, 2);
}

static void test_silence(void **state)
{
    (void)state;
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        start(is_stream);
        until(LINK_ALIVE, LINK_ALIVE, 100);
        run_ms(3000);
        ends[0].lose_percent = ends[1].lose_percent = 100;
        assert_in_range(until(LINK_SILENT, LINK_SILENT, 2000), 300, 900);
        run_ms(7000);
        ends[0].lose_percent = ends[1].lose_percent = 0;
        assert_true(until(LINK_ALIVE, LINK_ALIVE, 2000) < 900);
    }
}

static void test_one_way(void **state)
{
    (void)state;
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        start(is_stream);
        until(LINK_ALIVE, LINK_ALIVE, 100);
        run_ms(3000);
        ends[0].lose_percent = 100;
        assert_true(until(LINK_ONE_WAY, LINK_SILENT, 3000) < 1200);
        run_ms(5000);
        assert_int_equal(ends[0].pulse.verdict, LINK_ONE_WAY);
        assert_int_equal(ends[1].pulse.verdict, LINK_SILENT);
        ends[0].lose_percent = 0;
        assert_true(until(LINK_ALIVE, LINK_ALIVE, 2000) < 900);
    }
}

/* Only what is large is lost, one way: that end says so, and to which size packets pass. */
static void test_large(void **state)
{
    (void)state;
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        start(is_stream);
        until(LINK_ALIVE, LINK_ALIVE, 100);
        use.large = true;
        run_ms(3000);
        ends[0].lose_above = 1400;
        if (stream)
            ends[0].stuck = true; /* a packet of somebody's */
        uint32_t ms = 0;
        for (; ends[0].pulse.verdict != LINK_LARGE; ms++)
            run_ms(1);
        assert_true(ms < (stream ? 2000 : 900));
        run_ms(20000);
        /* Over a stream the other end hears nothing while a large one is stuck. */
        assert_true(stream || ends[1].pulse.verdict == LINK_ALIVE);
        assert_int_equal(ends[0].pulse.verdict, LINK_LARGE);
        assert_in_range(ends[0].pulse.good_bytes, 1400 - 64, 1400);
        ends[0].lose_above = UINT32_MAX;
        assert_true(until(LINK_ALIVE, LINK_ALIVE, 3000) < 1200);
    }
}

/* The same where small packets have a stream of their own, so that nothing holds them up: at rest
 * nobody notices, with large packets or a doubt at once. */
static void test_large_of_two_streams(void **state)
{
    (void)state;
    for (int doubt = 0; doubt < 2; doubt++) {
        start_as(true, true);
        until(LINK_ALIVE, LINK_ALIVE, 100);
        run_ms(3000);
        ends[0].lose_above = 1400;
        run_ms(3000);
        assert_int_equal(ends[0].pulse.verdict, LINK_ALIVE);
        ends[0].large_stuck = true;
        use.large = !doubt;
        uint32_t ms = 0;
        for (; ends[0].pulse.verdict != LINK_LARGE && ms < 5000; ms++) {
            if (doubt && ms % 100 == 0)
                pulse_doubt(&ends[0].pulse, now_ns);
            run_ms(1);
        }
        assert_true(ms < 900);
        run_ms(20000);
        assert_int_equal(ends[1].pulse.verdict, LINK_ALIVE);
        assert_int_equal(ends[0].pulse.verdict, LINK_LARGE);
        assert_in_range(ends[0].pulse.good_bytes, 1400 - 64, 1400);
        ends[0].lose_above = UINT32_MAX;
        assert_true(until(LINK_ALIVE, LINK_ALIVE, 3000) < 1200);
    }
}

/* A long queue of large packets that moves puts the decision off, one of small ones does not. */
static void test_progress_of_each_size(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++) {
        start_as(true, true);
        until(LINK_ALIVE, LINK_ALIVE, 100);
        use.large = true;
        ends[0].lose_above = 1400;
        for (int i = 0; i < 200; i++) {
            run_ms(10);
            pulse_on_progress(&ends[0].pulse, large, now_ns);
        }
        assert_int_equal(ends[0].pulse.verdict, large ? LINK_ALIVE : LINK_LARGE);
    }
}

/* So from the beginning: the link never comes up. */
static void test_large_from_the_start(void **state)
{
    (void)state;
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        start(is_stream);
        ends[0].lose_above = ends[1].lose_above = 9000;
        run_ms(20000);
        assert_int_equal(ends[0].pulse.verdict, LINK_LARGE);
        assert_int_equal(ends[1].pulse.verdict, LINK_LARGE);
        assert_int_equal(ends[0].n_alive + ends[1].n_alive, 0);
        assert_in_range(ends[0].pulse.good_bytes, 9000 - 64, 9000);
    }
}

static void test_refused(void **state)
{
    (void)state;
    start(true);
    until(LINK_ALIVE, LINK_ALIVE, 100);
    run_ms(1000);
    ends[0].refused = true;
    assert_true(until(LINK_BROKEN, LINK_ALIVE, 1000) < 500);
    assert_int_equal(ends[0].pulse.error, -ECONNREFUSED);
    run_ms(3000);
    assert_int_equal(ends[0].pulse.verdict, LINK_BROKEN);
    ends[0].refused = false;
    assert_true(until(LINK_ALIVE, LINK_ALIVE, 1000) < 900);
    /* One error alone, and what comes back with it, costs nothing. */
    run_ms(1000);
    for (int i = 0; i < 10; i++)
        pulse_on_break(&ends[0].pulse, -ECONNRESET, now_ns);
    run_ms(1000);
    assert_int_equal(ends[0].n_alive, 2);
}

/* One packet in ten is lost on both ways, for an hour. */
static void test_loss_is_no_silence(void **state)
{
    (void)state;
    start(false);
    until(LINK_ALIVE, LINK_ALIVE, 100);
    ends[0].lose_percent = ends[1].lose_percent = 10;
    run_ms(3600 * 1000);
    assert_true(ends[0].n_alive <= 2);
    assert_true(ends[1].n_alive <= 2);
}

/* A wire that comes and goes is used less and less. */
static void test_flapping(void **state)
{
    (void)state;
    start(false);
    until(LINK_ALIVE, LINK_ALIVE, 100);
    for (int i = 0; i < 20; i++) {
        ends[0].lose_percent = ends[1].lose_percent = 100;
        run_ms(1200);
        ends[0].lose_percent = ends[1].lose_percent = 0;
        run_ms(1200);
    }
    assert_true(ends[0].n_alive < 6);
    assert_true(until(LINK_ALIVE, LINK_ALIVE, 4000) < 3500);
}

/* The neighbour's thread hangs: silence. The own one does: nothing was listened to, and nothing
 * follows from that. */
static void test_threads_that_hang(void **state)
{
    (void)state;
    start(true);
    until(LINK_ALIVE, LINK_ALIVE, 100);
    run_ms(2000);
    ends[1].frozen = true;
    run_ms(1000);
    assert_int_equal(ends[0].pulse.verdict, LINK_SILENT);
    ends[1].frozen = false;
    assert_true(until(LINK_ALIVE, LINK_ALIVE, 2000) < 1500);
    assert_int_equal(ends[1].n_alive, 1);
}

/* Long queues: answers come late and later, and all the same no link falls, as long as something
 * shows that packets get on. */
static void test_long_queues(void **state)
{
    (void)state;
    start(true);
    until(LINK_ALIVE, LINK_ALIVE, 100);
    for (delay_ns = 20 * MS; delay_ns < 700 * MS; delay_ns += 20 * MS)
        run_ms(500);
    assert_int_equal(ends[0].n_alive, 1);
    run_ms(3000);
    delay_ns = 3 * CLOCK_NS_PER_S;
    for (int i = 0; i < 600; i++) {
        run_ms(10);
        for (int k = 0; k < 2; k++)
            if (ends[k].pulse.asked_ns)
                pulse_on_progress(&ends[k].pulse, false, now_ns);
    }
    assert_int_equal(ends[0].n_alive, 1);
    assert_int_equal(ends[0].pulse.verdict, LINK_ALIVE);
}

/* Something is not acknowledged: asked at once, and not again and again. */
static void test_doubt(void **state)
{
    (void)state;
    start(false);
    until(LINK_ALIVE, LINK_ALIVE, 100);
    use.every_ns = 8 * CLOCK_NS_PER_S;
    run_ms(20000);
    ends[0].lose_percent = ends[1].lose_percent = 100;
    uint64_t begin_ns = now_ns;
    while (ends[0].pulse.verdict == LINK_ALIVE) {
        assert_true(now_ns - begin_ns < 2 * CLOCK_NS_PER_S);
        pulse_doubt(&ends[0].pulse, now_ns);
        run_ms(5);
    }
    assert_true(now_ns - begin_ns < 600 * MS);
    ends[0].lose_percent = ends[1].lose_percent = 0;
    until(LINK_ALIVE, LINK_ALIVE, 10000);
    uint64_t n = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t sent_ns = ends[0].pulse.sent_ns;
        pulse_doubt(&ends[0].pulse, now_ns);
        run_ms(1);
        n += ends[0].pulse.sent_ns != sent_ns;
    }
    assert_true(n <= 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_up),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_one_way),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_large_from_the_start),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_loss_is_no_silence),
        cmocka_unit_test(test_flapping),
        cmocka_unit_test(test_threads_that_hang),
        cmocka_unit_test(test_long_queues),
        cmocka_unit_test(test_doubt),
        cmocka_unit_test(test_large_of_two_streams),
        cmocka_unit_test(test_progress_of_each_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
