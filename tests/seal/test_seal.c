/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon/seal: codes by all ways against published vectors and one another, derived secrets, and a
 * pair's datagrams against forgers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <endian.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/rand.h"
#include "daemon/seal/seal.h"

static const uint8_t secret[SEAL_SECRET_BYTES] = "the secret of two incarnations.";

static void code_is_gmac(void **state)
{
    /* McGrew, Viega, "The Galois/Counter Mode of Operation", appendix B, test case 1; NIST CAVP,
     * gcmEncryptExtIV128, keys of 128, nonces of 96, no plaintext, 128 bits more, count 0. */
    static const struct {
        uint8_t key[16], nonce[12], data[16];
        size_t n;
        uint8_t tag[8];
    } vectors[] = {
        {{0}, {0}, {0}, 0, {0x58, 0xe2, 0xfc, 0xce, 0xfa, 0x7e, 0x30, 0x61}},
        {{0x77, 0xbe, 0x63, 0x70, 0x89, 0x71, 0xc4, 0xe2, 0x40, 0xd1, 0xcb, 0x79, 0xe8, 0xd7, 0x7f,
          0xeb},
         {0xe0, 0xe0, 0x0f, 0x19, 0xfe, 0xd7, 0xba, 0x01, 0x36, 0xa7, 0x97, 0xf3},
         {0x7a, 0x43, 0xec, 0x1d, 0x9c, 0x0a, 0x5a, 0x78, 0xa0, 0xb1, 0x65, 0x33, 0xa6, 0x21, 0x3c,
          0xab},
         16,
         {0x20, 0x9f, 0xcc, 0x8d, 0x36, 0x75, 0xed, 0x93}},
    };
    (void)state;

    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        for (enum gmac_way way = GMAC_LIBCRYPTO; way <= gmac_best(); way++) {
            struct gmac g;
            assert_int_equal(gmac_init(&g, vectors[i].key, way), 0);
            uint64_t code = gmac_code(&g, vectors[i].nonce, NULL, 0, vectors[i].data, vectors[i].n);
            assert_memory_equal(&code, vectors[i].tag, sizeof code);
            code = gmac_code(&g, vectors[i].nonce, vectors[i].data, vectors[i].n, NULL, 0);
            assert_memory_equal(&code, vectors[i].tag, sizeof code);
            gmac_deinit(&g);
        }
}

static void all_ways_agree(void **state)
{
    static uint8_t bytes[70000];
    struct rand r = {11};
    struct gmac ways[GMAC_WIDE + 1];
    uint8_t key[16], nonce[12];
    (void)state;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)rand_next(&r);
    memcpy(key, bytes + 1000, sizeof key);
    memcpy(nonce, bytes + 2000, sizeof nonce);
    for (enum gmac_way way = GMAC_LIBCRYPTO; way <= gmac_best(); way++)
        assert_int_equal(gmac_init(&ways[way], key, way), 0);
    for (size_t n = 0; n < 66000; n += n < 2600 ? 1 : 1023)
        for (size_t head = 0; head <= 1024; head = head * 4 + 16) {
            uint64_t code =
                gmac_code(&ways[GMAC_LIBCRYPTO], nonce, bytes, head, bytes + 1024 + n % 5, n);
            for (enum gmac_way way = GMAC_CLMUL; way <= gmac_best(); way++)
                assert_true(code ==
                            gmac_code(&ways[way], nonce, bytes, head, bytes + 1024 + n % 5, n));
        }
    for (enum gmac_way way = GMAC_LIBCRYPTO; way <= gmac_best(); way++)
        gmac_deinit(&ways[way]);
}

/* RFC 5869, sections 2.2 and 2.3, by hand. */
static void secrets_are_hkdf(void **state)
{
    const struct seal_source source = {"input key", "the salt", 9, 8};
    uint8_t prk[32], t[64], made[48], info[] = "label\0ctx", step[32 + sizeof info];
    unsigned n;
    (void)state;

    assert_int_equal(seal_derive_from(&source, "label", "ctx", 3, made, sizeof made), 0);
    HMAC(EVP_sha256(), "the salt", 8, (const void *)"input key", 9, prk, &n);
    memcpy(step, info, sizeof info - 1);
    step[sizeof info - 1] = 1;
    HMAC(EVP_sha256(), prk, 32, step, sizeof info, t, &n);
    memcpy(step, t, 32);
    memcpy(step + 32, info, sizeof info - 1);
    step[32 + sizeof info - 1] = 2;
    HMAC(EVP_sha256(), prk, 32, step, 32 + sizeof info, t + 32, &n);
    assert_memory_equal(made, t, sizeof made);

    /* A label is not a part of another one's context. */
    uint8_t other[48];
    assert_int_equal(seal_derive_from(&source, "labelc", "tx", 2, other, sizeof other), 0);
    assert_memory_not_equal(made, other, sizeof other);
}

struct pair {
    struct seal low, high;
    struct seal *table; /* of high */
};

static void pair_make(struct pair *p, enum seal_mode mode)
{
    assert_int_equal(seal_init(&p->low, secret, true, mode), 0);
    assert_int_equal(seal_init(&p->high, secret, false, mode), 0);
    p->table = NULL;
    seal_add(&p->table, &p->high);
    seal_add(&p->table, &p->high);
}

static void pair_end(struct pair *p)
{
    seal_remove(&p->table, &p->high);
    seal_remove(&p->table, &p->high);
    seal_deinit(&p->low);
    seal_deinit(&p->high);
}

static void datagram_arrives(enum seal_mode mode)
{
    struct pair p;
    uint8_t head[16] = "head", data[300], sent[300], got[300];
    struct seal_mark mark;

    pair_make(&p, mode);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7);
    for (size_t n = 0; n <= sizeof data; n++) {
        seal_wrap(&p.low, &mark, head, sizeof head, data, n, sent);
        if (n > 8)
            assert_int_equal(memcmp(sent, data, n) == 0, mode == SEAL_INTEGRITY);
        struct seal *s = seal_find(p.table, mark.id);
        assert_ptr_equal(s, &p.high);
        assert_int_equal(seal_unwrap(s, &mark, head, sizeof head, sent, n, got), 0);
        assert_memory_equal(got, data, n);
        assert_int_equal(seal_unwrap(s, &mark, head, sizeof head, sent, n, got), SEAL_E_OLD);
    }
    /* In place. */
    seal_wrap(&p.low, &mark, head, sizeof head, sent, 100, sent);
    memcpy(got, sent, 100);
    assert_int_equal(seal_unwrap(&p.high, &mark, head, sizeof head, got, 100, got), 0);
    pair_end(&p);
}

static void both_kinds_arrive(void **state)
{
    (void)state;
    datagram_arrives(SEAL_INTEGRITY);
    datagram_arrives(SEAL_ENCRYPT);
}

/* Every bit of a datagram counts. */
static void damage_is_found(void **state)
{
    (void)state;
    for (enum seal_mode mode = SEAL_INTEGRITY; mode <= SEAL_ENCRYPT; mode++) {
        struct {
            struct seal_mark mark;
            uint8_t head[16], data[70];
        } d = {.head = "head", .data = "data"}, bad;
        struct pair p;
        uint8_t got[70];
        pair_make(&p, mode);
        seal_wrap(&p.low, &d.mark, d.head, sizeof d.head, d.data, sizeof d.data, d.data);
        for (size_t bit = 8 * sizeof d.mark.id; bit < 8 * (sizeof d.mark + 16 + 70); bit++) {
            bad = d;
            ((uint8_t *)&bad)[bit / 8] ^= (uint8_t)(1u << bit % 8);
            /* Number 0, which is none, counts as old. */
            assert_int_not_equal(seal_unwrap(&p.high, &bad.mark, bad.head, sizeof bad.head,
                                             bad.data, sizeof bad.data, got),
                                 0);
        }
        /* Cut short, and the limits between head and data moved. */
        assert_int_equal(seal_unwrap(&p.high, &d.mark, d.head, 16, d.data, 69, got), SEAL_E_CODE);
        assert_int_equal(seal_unwrap(&p.high, &d.mark, d.head, 0, d.data, 70, got), SEAL_E_CODE);
        /* None of that moved the window. */
        assert_int_equal(seal_unwrap(&p.high, &d.mark, d.head, 16, d.data, 70, got), 0);
        pair_end(&p);
    }
}

static void nothing_is_reflected(void **state)
{
    struct pair p;
    struct seal_mark mark;
    uint8_t data[20] = "to high";
    (void)state;

    pair_make(&p, SEAL_INTEGRITY);
    seal_wrap(&p.low, &mark, NULL, 0, data, sizeof data, data);
    assert_int_equal(seal_unwrap(&p.low, &mark, NULL, 0, data, sizeof data, data), SEAL_E_CODE);
    struct seal *of_low = NULL;
    seal_add(&of_low, &p.low);
    assert_null(seal_find(of_low, mark.id));
    seal_remove(&of_low, &p.low);
    pair_end(&p);

    /* Nor does another secret, or the other mode, do. */
    uint8_t other[SEAL_SECRET_BYTES] = "another";
    struct seal stranger;
    assert_int_equal(seal_init(&stranger, other, true, SEAL_INTEGRITY), 0);
    pair_make(&p, SEAL_INTEGRITY);
    seal_wrap(&stranger, &mark, NULL, 0, data, sizeof data, data);
    assert_null(seal_find(p.table, mark.id));
    assert_int_equal(seal_unwrap(&p.high, &mark, NULL, 0, data, sizeof data, data), SEAL_E_CODE);
    seal_deinit(&stranger);
    pair_end(&p);
}

/* Two with one id, in whatever order they go: nothing is left that points to them. */
static void table_forgets_each(void **state)
{
    struct seal seals[2], *table = NULL;
    (void)state;

    for (int first = 0; first < 2; first++) {
        for (int i = 0; i < 2; i++) {
            assert_int_equal(seal_init(&seals[i], secret, true, SEAL_NONE), 0);
            seal_add(&table, &seals[i]);
        }
        seal_remove(&table, &seals[first]);
        assert_ptr_equal(seal_find(table, htole64(seals[0].in_id)), &seals[1 - first]);
        seal_remove(&table, &seals[1 - first]);
        assert_null(table);
        seal_deinit(&seals[0]);
        seal_deinit(&seals[1]);
    }
}

/* Numbers in any order within the window, against a plain list of what has come. */
static void window_is_exact(void **state)
{
    enum { N = 20000 };
    static bool seen[N];
    struct seal_mark *marks = calloc(N, sizeof *marks);
    struct rand r = {5};
    struct pair p;
    uint64_t last = 0;
    uint8_t data[8] = "datagram";
    (void)state;

    assert_non_null(marks);
    pair_make(&p, SEAL_INTEGRITY);
    for (uint32_t i = 1; i < N; i++)
        seal_wrap(&p.low, &marks[i], NULL, 0, data, sizeof data, data);
    for (uint32_t i = 0; i < 100000; i++) {
        uint64_t base = last > 5000 ? last - 5000 : 1;
        uint64_t number = base + rand_next(&r) % (i % 100 == 0 ? 5400 : 5010);
        if (number >= N)
            number = N - 1;
        int rc = seal_unwrap(&p.high, &marks[number], NULL, 0, data, sizeof data, data);
        bool old = number <= last && (last - number >= SEAL_WINDOW - 64 || seen[number]);
        assert_int_equal(rc, old ? SEAL_E_OLD : 0);
        if (rc == 0)
            seen[number] = true;
        last = number > last ? number : last;
    }
    struct seal_mark zero = {.id = marks[1].id};
    assert_int_equal(seal_unwrap(&p.high, &zero, NULL, 0, data, sizeof data, data), SEAL_E_OLD);
    pair_end(&p);
    free(marks);
}

/* A key of a stream: the place in the stream is the number. */
static void frames_keep_their_places(void **state)
{
    struct seal_key out, in;
    uint8_t data[40] = "frame", sent[40], got[40];
    (void)state;

    for (enum seal_mode mode = SEAL_INTEGRITY; mode <= SEAL_ENCRYPT; mode++) {
        assert_int_equal(seal_key_init(&out, secret, "test stream", "12", 2, mode), 0);
        assert_int_equal(seal_key_init(&in, secret, "test stream", "12", 2, mode), 0);
        for (uint64_t i = 0; i < 5; i++) {
            uint64_t code = seal_key_wrap(&out, i, NULL, 0, data, sizeof data, sent);
            assert_int_equal(seal_key_unwrap(&in, i + 1, code, NULL, 0, sent, sizeof sent, got),
                             SEAL_E_CODE);
            assert_int_equal(seal_key_unwrap(&in, i, code, NULL, 0, sent, sizeof sent, got), 0);
            assert_memory_equal(got, data, sizeof data);
        }
        seal_key_deinit(&out);
        seal_key_deinit(&in);
    }
    assert_int_equal(seal_key_init(&out, secret, "test stream", "12", 2, SEAL_NONE), 0);
    assert_int_equal(seal_key_wrap(&out, 1, NULL, 0, data, sizeof data, sent), 0);
    assert_memory_equal(sent, data, sizeof data);
    seal_key_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_gmac),
        cmocka_unit_test(all_ways_agree),
        cmocka_unit_test(secrets_are_hkdf),
        cmocka_unit_test(both_kinds_arrive),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(nothing_is_reflected),
        cmocka_unit_test(table_forgets_each),
        cmocka_unit_test(window_is_exact),
        cmocka_unit_test(frames_keep_their_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
