/* SPDX-License-Identifier: BSD-3-Clause */
/* Mail between two nodes over a wire that loses, doubles and reorders: everything arrives once and
 * in order; restarts and given-up nodes do not wedge it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rand.h"
#include "daemon/cluster/mail.h"

#define WIRE_SLOTS 4096

struct end {
    uint32_t id, epoch, other_epoch;
    struct mail *mail;
    struct end *other;
    uint32_t next_expected, n_received, n_local;
    bool cut;
    /* Frames on their way to the other. */
    uint8_t *frames[WIRE_SLOTS];
    uint32_t lens[WIRE_SLOTS];
    uint32_t n_frames;
};

static int forward(void *ctx, uint32_t dst, const uint8_t *frame, uint32_t len)
{
    struct end *e = ctx;

    (void)dst;
    if (e->cut)
        return -1;
    if (e->n_frames == WIRE_SLOTS)
        return 0;
    e->frames[e->n_frames] = malloc(len);
    memcpy(e->frames[e->n_frames], frame, len);
    e->lens[e->n_frames++] = len;
    return 0;
}

static void deliver(void *ctx, uint32_t src, uint16_t type, const uint8_t *body, uint32_t len,
                    uint64_t now_ns)
{
    (void)now_ns;
    struct end *e = ctx;
    uint32_t n;

    assert_int_equal(type, 77);
    assert_int_equal(len, sizeof n);
    memcpy(&n, body, sizeof n);
    if (src == e->id) {
        e->n_local++;
        return;
    }
    if (n != e->next_expected)
        fail_msg("got message %u, expected %u", n, e->next_expected);
    e->next_expected++;
    e->n_received++;
}

static uint32_t epoch_of(void *ctx, uint32_t node)
{
    struct end *e = ctx;
    return node == e->id ? e->epoch : e->other_epoch;
}

static void wake(void *ctx)
{
    (void)ctx;
}

static const struct mail_ops ops = {
    .forward = forward, .deliver = deliver, .epoch_of = epoch_of, .wake = wake};

static void end_init(struct end *e, uint32_t id, uint32_t epoch, struct end *other)
{
    *e = (struct end){.id = id, .epoch = epoch, .other = other, .next_expected = 0};
    e->mail = mail_new(id, epoch, 1 << 20, &ops, e);
    assert_non_null(e->mail);
}

static void end_deinit(struct end *e)
{
    while (e->n_frames > 0)
        free(e->frames[--e->n_frames]);
    mail_free(e->mail);
}

/* Moves the frames, some of them wrongly. */
static void carry(struct end *e, struct rand *rand, uint32_t percent_bad, uint64_t now_ns)
{
    while (e->n_frames > 0) {
        uint32_t at = rand && rand_below(rand, 100) < percent_bad
                          ? (uint32_t)rand_below(rand, e->n_frames)
                          : 0;
        uint8_t *frame = e->frames[at];
        uint32_t len = e->lens[at];
        memmove(&e->frames[at], &e->frames[at + 1], (e->n_frames - at - 1) * sizeof e->frames[0]);
        memmove(&e->lens[at], &e->lens[at + 1], (e->n_frames - at - 1) * sizeof e->lens[0]);
        e->n_frames--;
        bool lost = rand && rand_below(rand, 100) < percent_bad;
        bool twice = rand && rand_below(rand, 100) < percent_bad;
        if (!lost)
            assert_int_equal(mail_on_frame(e->other->mail, frame, len, now_ns), 0);
        if (twice)
            assert_int_equal(mail_on_frame(e->other->mail, frame, len, now_ns), 0);
        free(frame);
    }
}

static void send_number(struct end *e, uint32_t dst, uint32_t n, uint64_t now_ns)
{
    assert_int_equal(mail_send(e->mail, dst, 77, &n, sizeof n, now_ns), 0);
}

static void test_lossy(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct end a, b;
        struct rand rand = {seed};
        uint64_t now_ns = CLOCK_NS_PER_S;
        end_init(&a, 1, 100, &b);
        end_init(&b, 2, 200, &a);
        a.other_epoch = 200;
        b.other_epoch = 100;
        uint32_t sent_a = 0, sent_b = 0;
        for (int step = 0; step < 4000 && (b.n_received < 300 || a.n_received < 300); step++) {
            if (sent_a < 300 && rand_below(&rand, 2))
                send_number(&a, 2, sent_a++, now_ns);
            if (sent_b < 300 && rand_below(&rand, 2))
                send_number(&b, 1, sent_b++, now_ns);
            carry(&a, &rand, 20, now_ns);
            carry(&b, &rand, 20, now_ns);
            now_ns += 50 * CLOCK_NS_PER_MS;
            mail_run(a.mail, now_ns);
            mail_run(b.mail, now_ns);
        }
        if (b.n_received != 300 || a.n_received != 300)
            fail_msg("seed %llu: %u and %u of 300 arrived", (unsigned long long)seed, b.n_received,
                     a.n_received);
        end_deinit(&a);
        end_deinit(&b);
    }
}

static void test_local(void **state)
{
    struct end a;

    (void)state;
    end_init(&a, 1, 100, NULL);
    send_number(&a, 1, 0, 1);
    assert_int_equal(a.n_local, 0); /* never from inside the call */
    assert_int_equal(mail_run(a.mail, 2), UINT64_MAX);
    assert_int_equal(a.n_local, 1);
    end_deinit(&a);
}

/* The other side restarts: what was under way to the old one is dropped, new mail arrives. */
static void test_restart(void **state)
{
    struct end a, b;
    uint64_t now_ns = CLOCK_NS_PER_S;

    (void)state;
    end_init(&a, 1, 100, &b);
    end_init(&b, 2, 200, &a);
    a.other_epoch = 200;
    b.other_epoch = 100;
    for (uint32_t i = 0; i < 5; i++)
        send_number(&a, 2, i, now_ns);
    carry(&a, NULL, 0, now_ns);
    carry(&b, NULL, 0, now_ns);
    assert_int_equal(b.n_received, 5);
    send_number(&a, 2, 99, now_ns); /* under way when the other one dies */
    end_deinit(&b);
    end_init(&b, 2, 201, &a);
    b.other_epoch = 100;
    carry(&a, NULL, 0, now_ns); /* reaches the new one, which it is not for */
    assert_int_equal(b.n_received, 0);
    a.other_epoch = 201;
    mail_on_routes(a.mail, now_ns);
    for (uint32_t i = 0; i < 5; i++)
        send_number(&a, 2, i, now_ns);
    carry(&a, NULL, 0, now_ns);
    assert_int_equal(b.n_received, 5);
    end_deinit(&a);
    end_deinit(&b);
}

/* A node was given up and comes back as the same: the gap does not stop what follows. */
static void test_given_up(void **state)
{
    struct end a, b;
    uint64_t now_ns = CLOCK_NS_PER_S;

    (void)state;
    end_init(&a, 1, 100, &b);
    end_init(&b, 2, 200, &a);
    a.other_epoch = 200;
    b.other_epoch = 100;
    send_number(&a, 2, 0, now_ns);
    carry(&a, NULL, 0, now_ns);
    a.cut = true;
    for (uint32_t i = 1; i < 4; i++)
        send_number(&a, 2, i, now_ns);
    mail_on_lost(a.mail, 2);
    assert_int_equal(mail_queued(a.mail, 2), 0);
    a.cut = false;
    b.next_expected = 50;
    send_number(&a, 2, 50, now_ns);
    carry(&a, NULL, 0, now_ns);
    carry(&b, NULL, 0, now_ns);
    assert_int_equal(b.n_received, 2);
    assert_int_equal(mail_queued(a.mail, 2), 0);
    end_deinit(&a);
    end_deinit(&b);
}

static void test_limit(void **state)
{
    struct end a;
    static uint8_t big[1 << 19];

    (void)state;
    end_init(&a, 1, 100, NULL);
    a.cut = true;
    assert_int_equal(mail_send(a.mail, 2, 77, big, sizeof big, 1), 0);
    assert_int_equal(mail_send(a.mail, 2, 77, big, sizeof big, 1), 0);
    assert_true(mail_send(a.mail, 2, 77, big, 1, 1) < 0);
    assert_true(mail_on_frame(a.mail, big, 100, 1) < 0);
    end_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lossy), cmocka_unit_test(test_local), cmocka_unit_test(test_restart),
        cmocka_unit_test(test_given_up), cmocka_unit_test(test_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
