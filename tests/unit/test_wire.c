/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/wire: the packet header. Includes the source to reach both check sum routines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rand.h"
#include "proto/wire.c"

static struct wire_header sealed(uint32_t len)
{
    struct wire_header h = {.magic = WIRE_MAGIC,
                            .version = WIRE_VERSION,
                            .type = WIRE_DATA,
                            .hops_left = WIRE_MAX_HOPS,
                            .src_node = 0x11223344,
                            .dst_node = 0x55667788,
                            .job = 0x0123456789abcdefull,
                            .seq = 7,
                            .len = len,
                            .src_rank = 1,
                            .dst_rank = 2};
    wire_seal(&h);
    return h;
}

static void check_sum_is_crc32c(void **state)
{
    uint8_t bytes[32];
    (void)state;

    /* Check value of the polynomial and the examples of RFC 3720 appendix B.4. */
    assert_int_equal(crc32c_soft("123456789", 9), 0xe3069283);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(crc32c_soft(bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(crc32c_soft(bytes, 32), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = i;
    assert_int_equal(crc32c_soft(bytes, 32), 0x46dd794e);
    assert_int_equal(crc32c_soft("", 0), 0);
}

static void processor_and_table_agree(void **state)
{
    (void)state;
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("sse4.2"))
        skip();
    uint8_t bytes[300];
    struct rand r = {3};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)rand_next(&r);
    for (size_t n = 0; n <= 256; n++)
        for (size_t at = 0; at < 9; at++)
            assert_int_equal(crc32c_sse42(bytes + at, n), crc32c_soft(bytes + at, n));
#else
    skip();
#endif
}

static void sealed_header_is_accepted(void **state)
{
    (void)state;
    for (uint32_t len = 0; len < 70000; len += 4097) {
        struct wire_header h = sealed(len);
        assert_int_equal(wire_verify(&h, sizeof h + len), 0);
    }
}

static void every_flipped_bit_is_noticed(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < sizeof(struct wire_header) * 8; bit++) {
        struct wire_header h = sealed(100);
        ((uint8_t *)&h)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (wire_verify(&h, sizeof h + 100) == 0)
            fail_msg("bit %zu flipped unnoticed", bit);
    }
}

static void reasons_are_told_apart(void **state)
{
    struct wire_header h = sealed(10);
    (void)state;

    assert_int_equal(wire_verify(&h, 0), WIRE_E_SHORT);
    assert_int_equal(wire_verify(&h, sizeof h - 1), WIRE_E_SHORT);
    assert_int_equal(wire_verify(&h, sizeof h + 9), WIRE_E_LENGTH);
    assert_int_equal(wire_verify(&h, sizeof h + 11), WIRE_E_LENGTH);
    h = sealed(UINT32_MAX);
    assert_int_equal(wire_verify(&h, sizeof h - 1 + 0), WIRE_E_SHORT);
    assert_int_equal(wire_verify(&h, sizeof h), WIRE_E_LENGTH);
    h = sealed(10);
    h.magic = 0;
    assert_int_equal(wire_verify(&h, sizeof h + 10), WIRE_E_MAGIC);
    h = sealed(10);
    h.version = WIRE_VERSION - 1;
    assert_int_equal(wire_verify(&h, sizeof h + 10), WIRE_E_VERSION);
    h = sealed(10);
    h.seq++;
    assert_int_equal(wire_verify(&h, sizeof h + 10), WIRE_E_CHECK);
    const uint8_t types[] = {0, WIRE_REFUSE + 1, 255};
    for (size_t i = 0; i < sizeof types; i++) {
        h = sealed(10);
        h.type = types[i];
        wire_seal(&h);
        assert_int_equal(wire_verify(&h, sizeof h + 10), WIRE_E_TYPE);
    }
    h = sealed(10);
    h.flow_class = WIRE_BULK;
    wire_seal(&h);
    assert_int_equal(wire_verify(&h, sizeof h + 10), 0);
    h.flow_class = WIRE_CLASSES;
    wire_seal(&h);
    assert_int_equal(wire_verify(&h, sizeof h + 10), WIRE_E_TYPE);
    h = sealed(10);
    h.reserved1 = 1;
    wire_seal(&h);
    assert_int_equal(wire_verify(&h, sizeof h + 10), WIRE_E_TYPE);
    h = sealed(10);
    h.reserved2 = 1;
    wire_seal(&h);
    assert_int_equal(wire_verify(&h, sizeof h + 10), WIRE_E_TYPE);
}

/* What daemons say of a flow is quick, whichever flow it is. */
static void class_in_queues(void **state)
{
    const uint8_t always_quick[] = {WIRE_ACK, WIRE_RESET, WIRE_REFUSE};
    const uint8_t as_they_say[] = {WIRE_DATA, WIRE_PROBE, WIRE_ECHO};
    (void)state;

    for (uint8_t cls = 0; cls < WIRE_CLASSES; cls++) {
        for (size_t i = 0; i < 3; i++) {
            struct wire_header h = {.type = always_quick[i], .flow_class = cls};
            assert_int_equal(wire_class(&h), WIRE_QUICK);
            h.type = as_they_say[i];
            assert_int_equal(wire_class(&h), cls);
        }
    }
}

static void every_reason_has_a_text(void **state)
{
    (void)state;
    for (int e = WIRE_E_SHORT; e <= WIRE_E_LENGTH; e++)
        assert_true(strlen(wire_error(e)) > 5);
    assert_string_equal(wire_error(0), "no error");
    assert_string_equal(wire_error(-5), "no error");
    assert_string_equal(wire_error(1000), "no error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_sum_is_crc32c),       cmocka_unit_test(processor_and_table_agree),
        cmocka_unit_test(sealed_header_is_accepted), cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(reasons_are_told_apart),    cmocka_unit_test(every_reason_has_a_text),
        cmocka_unit_test(class_in_queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
