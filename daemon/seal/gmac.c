/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/seal/gmac.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

/*
 * GHASH by carry-less multiplication: S. Gueron, M. Kounaev, "Intel Carry-Less Multiplication
 * Instruction and its Usage for Computing the GCM Mode" (2014), in the mirrored form that RFC 8452,
 * appendix A describes: with bytes reversed and the key times x, the product needs no shift, and
 * two multiplications by the polynomial reduce it. Up to GMAC_BLOCKS products are added up before
 * that: one multiplication each by a power of the key.
 */
#define GMAC_TARGET __attribute__((target("aes,pclmul,ssse3,sse4.1")))
#define GMAC_TARGET_WIDE                                                                           \
    __attribute__((target("aes,pclmul,ssse3,sse4.1,avx512f,avx512bw,avx512vl,vpclmulqdq")))

/* A product of 256 bits that is not reduced yet. */
struct gmac_sum {
    __m128i low, middle, high;
};

GMAC_TARGET static inline __m128i gmac_mirror(__m128i v)
{
    return _mm_shuffle_epi8(v, _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

GMAC_TARGET static inline void gmac_multiply(struct gmac_sum *sum, __m128i a, __m128i b)
{
    sum->low = _mm_xor_si128(sum->low, _mm_clmulepi64_si128(a, b, 0x00));
    sum->high = _mm_xor_si128(sum->high, _mm_clmulepi64_si128(a, b, 0x11));
    sum->middle = _mm_xor_si128(sum->middle, _mm_clmulepi64_si128(a, b, 0x10));
    sum->middle = _mm_xor_si128(sum->middle, _mm_clmulepi64_si128(a, b, 0x01));
}

GMAC_TARGET static inline __m128i gmac_reduce(const struct gmac_sum *sum)
{
    const __m128i poly = _mm_set_epi64x((long long)0xc200000000000000ull, 1);
    __m128i low = _mm_xor_si128(sum->low, _mm_slli_si128(sum->middle, 8));
    __m128i high = _mm_xor_si128(sum->high, _mm_srli_si128(sum->middle, 8));

    for (int i = 0; i < 2; i++)
        low = _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), _mm_clmulepi64_si128(low, poly, 0x10));
    return _mm_xor_si128(high, low);
}

GMAC_TARGET static inline __m128i gmac_encrypt(const struct gmac *g, __m128i block)
{
    const __m128i *rounds = (const void *)g->rounds;

    block = _mm_xor_si128(block, _mm_loadu_si128(&rounds[0]));
    for (int i = 1; i < 10; i++)
        block = _mm_aesenc_si128(block, _mm_loadu_si128(&rounds[i]));
    return _mm_aesenclast_si128(block, _mm_loadu_si128(&rounds[10]));
}

/* One step of the key expansion (FIPS 197, section 5.2). */
GMAC_TARGET static inline __m128i gmac_expand(__m128i key, __m128i assist)
{
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
    return _mm_xor_si128(key, _mm_shuffle_epi32(assist, 0xff));
}

GMAC_TARGET static void gmac_expand_key(struct gmac *g, const uint8_t *key)
{
    __m128i *rounds = (void *)g->rounds;
    __m128i k = _mm_loadu_si128((const void *)key);

    _mm_storeu_si128(&rounds[0], k);
#define GMAC_ROUND(i, constant)                                                                    \
    k = gmac_expand(k, _mm_aeskeygenassist_si128(k, constant));                                    \
    _mm_storeu_si128(&rounds[i], k)
    GMAC_ROUND(1, 0x01);
    GMAC_ROUND(2, 0x02);
    GMAC_ROUND(3, 0x04);
    GMAC_ROUND(4, 0x08);
    GMAC_ROUND(5, 0x10);
    GMAC_ROUND(6, 0x20);
    GMAC_ROUND(7, 0x40);
    GMAC_ROUND(8, 0x80);
    GMAC_ROUND(9, 0x1b);
    GMAC_ROUND(10, 0x36);
#undef GMAC_ROUND
}

/* Mirrored hash key times x: a shift to the left, and the polynomial where a bit fell out. */
GMAC_TARGET static __m128i gmac_times_x(__m128i v)
{
    uint64_t half[2];
    _mm_storeu_si128((void *)half, v);
    uint64_t carry = 0 - (half[1] >> 63);
    uint64_t high = (half[1] << 1 | half[0] >> 63) ^ (carry & 0xc200000000000000ull);
    uint64_t low = half[0] << 1 ^ (carry & 1);
    return _mm_set_epi64x((long long)high, (long long)low);
}

GMAC_TARGET static void gmac_init_powers(struct gmac *g)
{
    __m128i key = gmac_times_x(gmac_mirror(gmac_encrypt(g, _mm_setzero_si128()))), power = key;

    for (int i = GMAC_BLOCKS; i >= 0; i--) {
        struct gmac_sum sum = {0};
        _mm_store_si128((void *)g->powers[i], power);
        gmac_multiply(&sum, power, key);
        power = gmac_reduce(&sum);
    }
}

GMAC_TARGET static inline __m128i gmac_partial(const uint8_t *bytes, size_t n)
{
    uint8_t block[16] = {0};

    memcpy(block, bytes, n);
    return _mm_loadu_si128((const void *)block);
}

GMAC_TARGET static inline const __m128i *gmac_power(const struct gmac *g, size_t exponent)
{
    return (const void *)g->powers[GMAC_BLOCKS + 1 - exponent];
}

/* Adds n bytes, at most GMAC_BLOCKS blocks, to the sum: `above` more blocks, 0 or 1, come before
 * the reduction. The hash so far goes in with the first. */
GMAC_TARGET static inline void gmac_add(const struct gmac *g, struct gmac_sum *sum, __m128i *hash,
                                        const uint8_t *bytes, size_t n, size_t above)
{
    size_t n_blocks = (n + 15) / 16;
    const __m128i *power = gmac_power(g, n_blocks + above);

    for (size_t i = 0; i < n_blocks; i++) {
        __m128i block = n - i * 16 >= 16 ? _mm_loadu_si128((const void *)(bytes + i * 16))
                                         : gmac_partial(bytes + i * 16, n - i * 16);
        block = _mm_xor_si128(gmac_mirror(block), *hash);
        *hash = _mm_setzero_si128();
        gmac_multiply(sum, block, _mm_load_si128(&power[i]));
    }
}

/* The end of all ways: the lengths, the reduction, the nonce. */
GMAC_TARGET static inline uint64_t gmac_finish(const struct gmac *g, struct gmac_sum *sum,
                                               __m128i hash, size_t n_bytes, const uint8_t *nonce)
{
    uint8_t first[16] = {[15] = 1};
    __m128i lengths = _mm_set_epi64x((long long)n_bytes * 8, 0);
    uint64_t code;

    gmac_multiply(sum, _mm_xor_si128(lengths, hash), *gmac_power(g, 1));
    memcpy(first, nonce, GMAC_NONCE_BYTES);
    __m128i pad = gmac_encrypt(g, _mm_loadu_si128((const void *)first));
    __m128i tag = _mm_xor_si128(gmac_mirror(gmac_reduce(sum)), pad);
    _mm_storel_epi64((void *)&code, tag);
    return code;
}

GMAC_TARGET static uint64_t gmac_clmul(const struct gmac *g, const uint8_t *nonce,
                                       const uint8_t *head, size_t n_head, const uint8_t *data,
                                       size_t n_data)
{
    const size_t whole = GMAC_BLOCKS * 16;
    __m128i hash = _mm_setzero_si128();
    size_t left = n_data;

    if (n_head > 0) {
        struct gmac_sum sum = {0};
        gmac_add(g, &sum, &hash, head, n_head, 0);
        hash = gmac_reduce(&sum);
    }
    for (; left >= whole; left -= whole, data += whole) {
        struct gmac_sum sum = {0};
        gmac_add(g, &sum, &hash, data, whole, 0);
        hash = gmac_reduce(&sum);
    }
    struct gmac_sum sum = {0};
    gmac_add(g, &sum, &hash, data, left, 1);
    return gmac_finish(g, &sum, hash, n_head + n_data, nonce);
}

/* Four blocks times four powers. */
struct gmac_wide_sum {
    __m512i low, middle, high;
};

GMAC_TARGET_WIDE static inline void gmac_wide_multiply(struct gmac_wide_sum *sum, __m512i block,
                                                       __m128i hash, __m512i power)
{
    const __m512i mirror =
        _mm512_broadcast_i32x4(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    __m512i a = _mm512_xor_si512(_mm512_shuffle_epi8(block, mirror), _mm512_zextsi128_si512(hash));

    sum->low = _mm512_xor_si512(sum->low, _mm512_clmulepi64_epi128(a, power, 0x00));
    sum->high = _mm512_xor_si512(sum->high, _mm512_clmulepi64_epi128(a, power, 0x11));
    sum->middle = _mm512_ternarylogic_epi64(sum->middle, _mm512_clmulepi64_epi128(a, power, 0x10),
                                            _mm512_clmulepi64_epi128(a, power, 0x01), 0x96);
}

GMAC_TARGET_WIDE static inline __m128i gmac_fold(__m512i v)
{
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

GMAC_TARGET_WIDE static inline struct gmac_sum gmac_fold_sum(const struct gmac_wide_sum *wide)
{
    return (struct gmac_sum){gmac_fold(wide->low), gmac_fold(wide->middle), gmac_fold(wide->high)};
}

/* As gmac_add, and not without any data. */
GMAC_TARGET_WIDE static inline struct gmac_sum
gmac_wide_add(const struct gmac *g, __m128i hash, const uint8_t *bytes, size_t n, size_t above)
{
    const uint8_t *power = (const uint8_t *)gmac_power(g, (n + 15) / 16 + above);
    struct gmac_wide_sum wide = {0};

    for (; n >= 64; n -= 64, bytes += 64, power += 64) {
        gmac_wide_multiply(&wide, _mm512_loadu_si512(bytes), hash, _mm512_loadu_si512(power));
        hash = _mm_setzero_si128();
    }
    if (n > 0) {
        __mmask64 some = UINT64_MAX >> (64 - n);
        /* Blocks that are not there are zero, and so is whatever they are multiplied by. */
        __mmask64 blocks = UINT64_MAX >> (64 - (n + 15) / 16 * 16);
        gmac_wide_multiply(&wide, _mm512_maskz_loadu_epi8(some, bytes), hash,
                           _mm512_maskz_loadu_epi8(blocks, power));
    }
    return gmac_fold_sum(&wide);
}

GMAC_TARGET_WIDE static uint64_t gmac_wide(const struct gmac *g, const uint8_t *nonce,
                                           const uint8_t *head, size_t n_head, const uint8_t *data,
                                           size_t n_data)
{
    const size_t whole = GMAC_BLOCKS * 16;
    __m128i hash = _mm_setzero_si128();
    struct gmac_sum sum;
    size_t left = n_data;

    if (n_head > 0) {
        sum = gmac_wide_add(g, hash, head, n_head, 0);
        hash = gmac_reduce(&sum);
    }
    for (; left >= whole; left -= whole, data += whole) {
        sum = gmac_wide_add(g, hash, data, whole, 0);
        hash = gmac_reduce(&sum);
    }
    /* Nothing left: the hash goes on to the lengths. */
    sum = left > 0 ? gmac_wide_add(g, hash, data, left, 1) : (struct gmac_sum){0};
    return gmac_finish(g, &sum, left > 0 ? _mm_setzero_si128() : hash, n_head + n_data, nonce);
}
#endif

enum gmac_way gmac_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul") &&
        __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3"))
        return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("vpclmulqdq")
                   ? GMAC_WIDE
                   : GMAC_CLMUL;
#endif
    return GMAC_LIBCRYPTO;
}

int gmac_init(struct gmac *g, const uint8_t key[GMAC_KEY_BYTES], enum gmac_way way)
{
    memset(g, 0, sizeof *g);
    g->way = way;
#if defined(__x86_64__)
    if (way != GMAC_LIBCRYPTO) {
        gmac_expand_key(g, key);
        gmac_init_powers(g);
        return 0;
    }
#endif
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    g->cipher = cipher;
    return cipher && EVP_EncryptInit_ex(cipher, EVP_aes_128_gcm(), NULL, key, NULL) == 1 ? 0 : -EIO;
}

void gmac_deinit(struct gmac *g)
{
    EVP_CIPHER_CTX_free(g->cipher);
    OPENSSL_cleanse(g, sizeof *g);
}

static uint64_t gmac_libcrypto(const struct gmac *g, const uint8_t *nonce, const void *head,
                               size_t n_head, const void *data, size_t n_data)
{
    uint8_t tag[16], none[16];
    uint64_t code;
    int n;

    if (EVP_EncryptInit_ex(g->cipher, NULL, NULL, NULL, nonce) != 1 ||
        (n_head > 0 && EVP_EncryptUpdate(g->cipher, NULL, &n, head, (int)n_head) != 1) ||
        (n_data > 0 && EVP_EncryptUpdate(g->cipher, NULL, &n, data, (int)n_data) != 1) ||
        EVP_EncryptFinal_ex(g->cipher, none, &n) != 1 ||
        EVP_CIPHER_CTX_ctrl(g->cipher, EVP_CTRL_AEAD_GET_TAG, sizeof tag, tag) != 1)
        memset(tag, 0,
               sizeof tag); /* fits nothing; the cipher was set up, so this does not happen */
    memcpy(&code, tag, sizeof code);
    return code;
}

uint64_t gmac_code(const struct gmac *g, const uint8_t nonce[GMAC_NONCE_BYTES], const void *head,
                   size_t n_head, const void *data, size_t n_data)
{
    assert(n_head % 16 == 0 && n_head <= GMAC_BLOCKS * 16);
#if defined(__x86_64__)
    if (g->way == GMAC_WIDE)
        return gmac_wide(g, nonce, head, n_head, data, n_data);
    if (g->way == GMAC_CLMUL)
        return gmac_clmul(g, nonce, head, n_head, data, n_data);
#endif
    return gmac_libcrypto(g, nonce, head, n_head, data, n_data);
}
