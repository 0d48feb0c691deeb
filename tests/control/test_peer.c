/* SPDX-License-Identifier: BSD-3-Clause */
/* The hand-shake between two daemons: who gets in, who does not and why; liveness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/cluster/peer.h"
#include "daemon/routing/node_name.h"
#include "proto/control.pb-c.h"

struct side {
    enum seal_mode protect;
    struct peer peer;
    struct peer_self self;
    struct auth_key key;
    const char *refuse;
    bool up;
    uint64_t rtt_ns;
    uint32_t n_frames;
    /* Sent and not yet carried. */
    struct {
        uint16_t type;
        uint32_t len;
        uint8_t body[PEER_HELLO_BYTES];
    } out[16];
    uint32_t n_out;
};

static void on_send(void *ctx, uint16_t type, const void *body, uint32_t len)
{
    struct side *s = ctx;

    assert_true(s->n_out < 16);
    s->out[s->n_out].type = type;
    s->out[s->n_out].len = len;
    memcpy(s->out[s->n_out++].body, body, len);
}

static const char *on_admit(void *ctx, const struct peer *peer)
{
    (void)peer;
    return ((struct side *)ctx)->refuse;
}

static void on_up(void *ctx, uint64_t now_ns)
{
    (void)now_ns;
    ((struct side *)ctx)->up = true;
}

static int on_frame(void *ctx, uint16_t type, const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    (void)type, (void)body, (void)len, (void)now_ns;
    ((struct side *)ctx)->n_frames++;
    return 0;
}

static void on_rtt(void *ctx, uint64_t rtt_ns, uint64_t now_ns)
{
    (void)now_ns;
    ((struct side *)ctx)->rtt_ns = rtt_ns;
}

static const struct peer_ops ops = {
    .send = on_send, .admit = on_admit, .up = on_up, .frame = on_frame, .rtt = on_rtt};

static void side_init(struct side *s, const char *name)
{
    memset(s, 0, sizeof *s);
    s->protect = SEAL_INTEGRITY;
    memset(s->key.bytes, 7, 40);
    s->key.len = 40;
    s->self = (struct peer_self){.node = name,
                                 .software = "test",
                                 .node_id = node_name_id(name),
                                 .epoch = 5,
                                 .packet_bytes = 16384,
                                 .salt = {(uint8_t)name[0]},
                                 .key = &s->key,
                                 .heartbeat_ns = 200 * CLOCK_NS_PER_MS,
                                 .dead_after_ns = CLOCK_NS_PER_S,
                                 .handshake_ns = 5 * CLOCK_NS_PER_S};
}

/* Carries frames until nothing moves. The first refusal, or 0. */
static int carry(struct side *a, struct side *b, uint64_t now_ns)
{
    while (a->n_out || b->n_out) {
        struct side *from = a->n_out ? a : b, *to = a->n_out ? b : a;
        int rc = peer_on_frame(&to->peer, from->out[0].type, from->out[0].body, from->out[0].len,
                               now_ns);
        memmove(&from->out[0], &from->out[1], sizeof from->out[0] * --from->n_out);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void start(struct side *a, struct side *b, uint64_t now_ns)
{
    peer_start(&a->peer, &a->self, "net", a->protect, 1, true, &ops, a, now_ns);
    peer_start(&b->peer, &b->self, "net", b->protect, 2, false, &ops, b, now_ns);
}

static void test_good(void **state)
{
    struct side a, b;

    (void)state;
    side_init(&a, "a");
    side_init(&b, "b");
    start(&a, &b, 1);
    assert_int_equal(carry(&a, &b, 2), 0);
    assert_true(a.up && b.up);
    assert_string_equal(a.peer.node, "b");
    assert_int_equal(b.peer.node_id, node_name_id("a"));
    assert_int_equal(a.peer.control_port, 2);
}

static void expect_refused(struct side *a, struct side *b, const char *part)
{
    start(a, b, 1);
    assert_true(carry(a, b, 2) < 0);
    const char *reason = a->peer.reason[0] ? a->peer.reason : b->peer.reason;
    if (!strstr(reason, part))
        fail_msg("reason is '%s'", reason);
    assert_false(a->up && b->up);
}

static void test_refused(void **state)
{
    struct side a, b;

    (void)state;
    side_init(&a, "a");
    side_init(&b, "b");
    b.key.bytes[3] ^= 1;
    expect_refused(&a, &b, "another cluster key");

    side_init(&a, "a");
    side_init(&b, "b");
    b.self.packet_bytes = 8192;
    expect_refused(&a, &b, "packet_bytes");

    side_init(&a, "a");
    side_init(&b, "b");
    b.refuse = "not you";
    expect_refused(&a, &b, "not you");

    side_init(&a, "a");
    side_init(&b, "b");
    b.self.node_id++;
    expect_refused(&a, &b, "not valid");
}

/* What an attacker without the key can do with recorded frames: nothing. */
static void test_mirror(void **state)
{
    struct side a;
    uint8_t hello[PEER_HELLO_BYTES], proof[PEER_HELLO_BYTES];

    (void)state;
    side_init(&a, "a");
    peer_start(&a.peer, &a.self, "net", SEAL_INTEGRITY, 1, true, &ops, &a, 1);
    uint32_t hello_len = a.out[0].len;
    memcpy(hello, a.out[0].body, hello_len);
    a.n_out = 0;
    /* Our own Hello comes back, then our own Proof. */
    assert_int_equal(peer_on_frame(&a.peer, MOTET__FRAME_TYPE__HELLO, hello, hello_len, 2), 0);
    assert_int_equal(a.n_out, 1);
    uint32_t proof_len = a.out[0].len;
    memcpy(proof, a.out[0].body, proof_len);
    assert_true(peer_on_frame(&a.peer, MOTET__FRAME_TYPE__PROOF, proof, proof_len, 3) < 0);
    assert_false(a.up);
}

static void test_changed_hello(void **state)
{
    struct side a, b;

    (void)state;
    side_init(&a, "a");
    side_init(&b, "b");
    start(&a, &b, 1);
    /* Someone in between changes the port that b tells. */
    Motet__Hello *hello = motet__hello__unpack(NULL, b.out[0].len, b.out[0].body);
    hello->control_port = 99;
    b.out[0].len = (uint32_t)motet__hello__pack(hello, b.out[0].body);
    motet__hello__free_unpacked(hello, NULL);
    assert_true(carry(&a, &b, 2) < 0);
    assert_false(a.up || b.up);
}

static void test_order(void **state)
{
    struct side a;
    uint8_t body[4] = {0};

    (void)state;
    for (uint16_t type = 0; type < 60; type++) {
        if (type == MOTET__FRAME_TYPE__HELLO)
            continue;
        side_init(&a, "a");
        peer_start(&a.peer, &a.self, "net", SEAL_INTEGRITY, 1, true, &ops, &a, 1);
        assert_true(peer_on_frame(&a.peer, type, body, sizeof body, 2) < 0);
    }
}

static void test_alive(void **state)
{
    struct side a, b;
    uint64_t now_ns = CLOCK_NS_PER_S;

    (void)state;
    side_init(&a, "a");
    side_init(&b, "b");
    start(&a, &b, now_ns);
    assert_int_equal(carry(&a, &b, now_ns), 0);
    for (int i = 0; i < 100; i++) {
        now_ns += 200 * CLOCK_NS_PER_MS;
        assert_int_equal(peer_on_timer(&a.peer, now_ns), 0);
        assert_int_equal(peer_on_timer(&b.peer, now_ns), 0);
        assert_int_equal(carry(&a, &b, now_ns + 100000), 0);
    }
    assert_int_equal(a.rtt_ns, 100000);
    /* b falls silent. */
    uint64_t silent_ns = now_ns;
    int rc = 0;
    while (rc == 0) {
        now_ns += 200 * CLOCK_NS_PER_MS;
        rc = peer_on_timer(&a.peer, now_ns);
        a.n_out = 0;
    }
    assert_true(now_ns - silent_ns <= 1500 * CLOCK_NS_PER_MS);
    assert_non_null(strstr(a.peer.reason, "silent"));
}

/* What follows the proofs is read by the other side alone, once, in its order. */
static void test_wrapped(void **state)
{
    uint8_t sent[2][40 + PEER_CODE_BYTES], got[48], bad[48];
    struct side a, b;
    uint32_t n;

    (void)state;
    side_init(&a, "a");
    side_init(&b, "b");
    start(&a, &b, 1);
    /* Before, frames are as they are. */
    assert_int_equal(peer_wrap(&a.peer, 4, "plain", 5, got), 5);
    assert_int_equal(carry(&a, &b, 2), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(peer_wrap(&a.peer, 4, "somebody's environment, and keys", 32, sent[i]),
                         32 + PEER_CODE_BYTES);
        assert_null(memmem(sent[i], sizeof sent[i], "environment", 11));
    }
    /* Every bit counts, and so do type, order, place and direction. */
    for (uint32_t bit = 0; bit < 8 * (32 + PEER_CODE_BYTES); bit++) {
        struct peer at = b.peer;
        memcpy(bad, sent[0], sizeof sent[0]);
        bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(peer_unwrap(&at, 4, bad, 32 + PEER_CODE_BYTES, got, &n) < 0);
    }
    struct peer at = b.peer;
    assert_true(peer_unwrap(&at, 5, sent[0], 32 + PEER_CODE_BYTES, got, &n) < 0);
    at = b.peer;
    assert_true(peer_unwrap(&at, 4, sent[1], 32 + PEER_CODE_BYTES, got, &n) < 0);
    at = b.peer;
    assert_true(peer_unwrap(&at, 4, sent[0], PEER_CODE_BYTES - 1, got, &n) < 0);
    at = a.peer;
    assert_true(peer_unwrap(&at, 4, sent[0], 32 + PEER_CODE_BYTES, got, &n) < 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(peer_unwrap(&b.peer, 4, sent[i], 32 + PEER_CODE_BYTES, got, &n), 0);
        assert_int_equal(n, 32);
        assert_memory_equal(got, "somebody's environment, and keys", 32);
    }
    assert_true(peer_unwrap(&b.peer, 4, sent[1], 32 + PEER_CODE_BYTES, got, &n) < 0);
    peer_end(&a.peer);
    peer_end(&b.peer);
}

/* Both find the same secret, whoever opens the connection and however often; another incarnation
 * has another one. */
static void test_secret(void **state)
{
    uint8_t first[SEAL_SECRET_BYTES] = {0};
    struct side a, b;

    (void)state;
    for (int i = 0; i < 3; i++) {
        side_init(&a, "a");
        side_init(&b, "b");
        b.self.salt[1] = i == 2;
        if (i == 1)
            start(&b, &a, 1);
        else
            start(&a, &b, 1);
        assert_int_equal(carry(&a, &b, 2), 0);
        assert_memory_equal(a.peer.secret, b.peer.secret, SEAL_SECRET_BYTES);
        if (i == 1)
            assert_memory_equal(a.peer.secret, first, sizeof first);
        else
            assert_memory_not_equal(a.peer.secret, first, sizeof first);
        memcpy(first, a.peer.secret, sizeof first);
        peer_end(&a.peer);
        peer_end(&b.peer);
    }
    side_init(&a, "a");
    side_init(&b, "b");
    a.protect = SEAL_ENCRYPT;
    expect_refused(&a, &b, "node a has protect = encrypt on network net, here it is integrity");
}

static void test_slow_handshake(void **state)
{
    struct side a;

    (void)state;
    side_init(&a, "a");
    peer_start(&a.peer, &a.self, "net", SEAL_INTEGRITY, 1, true, &ops, &a, 1);
    assert_int_equal(peer_on_timer(&a.peer, 4 * CLOCK_NS_PER_S), 0);
    assert_true(peer_on_timer(&a.peer, 6 * CLOCK_NS_PER_S) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),           cmocka_unit_test(test_refused),
        cmocka_unit_test(test_mirror),         cmocka_unit_test(test_changed_hello),
        cmocka_unit_test(test_order),          cmocka_unit_test(test_alive),
        cmocka_unit_test(test_slow_handshake), cmocka_unit_test(test_wrapped),
        cmocka_unit_test(test_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
