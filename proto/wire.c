/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/wire.h"

#include <string.h>

/* CRC-32C (Castagnoli, RFC 3720 appendix B.4), reflected polynomial 0x82f63b78. */
static uint32_t crc32c_soft(const void *data, size_t n)
{
    static const uint32_t nibble[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                        0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    const uint8_t *p = data;
    uint32_t crc = ~0u;

    while (n-- > 0) {
        crc ^= *p++;
        crc = crc >> 4 ^ nibble[crc & 15];
        crc = crc >> 4 ^ nibble[crc & 15];
    }
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t crc = ~0u;

    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    uint32_t crc32 = (uint32_t)crc;
    while (n-- > 0)
        crc32 = __builtin_ia32_crc32qi(crc32, *p++);
    return ~crc32;
}
#endif

static uint32_t header_check(const struct wire_header *h)
{
    struct wire_header copy = *h;

    copy.check = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return crc32c_sse42(&copy, sizeof copy);
#endif
    return crc32c_soft(&copy, sizeof copy);
}

void wire_seal(struct wire_header *h)
{
    h->check = header_check(h);
}

int wire_verify(const struct wire_header *h, size_t n_bytes)
{
    if (n_bytes < sizeof *h)
        return WIRE_E_SHORT;
    if (h->magic != WIRE_MAGIC)
        return WIRE_E_MAGIC;
    if (h->version != WIRE_VERSION)
        return WIRE_E_VERSION;
    if (h->check != header_check(h))
        return WIRE_E_CHECK;
    if (h->type < WIRE_DATA || h->type > WIRE_REFUSE || h->flow_class >= WIRE_CLASSES ||
        h->reserved1 || h->reserved2)
        return WIRE_E_TYPE;
    if (h->len != n_bytes - sizeof *h)
        return WIRE_E_LENGTH;
    return 0;
}

const char *wire_error(int condition)
{
    static const char *const texts[] = {[WIRE_E_SHORT] = "shorter than a header",
                                        [WIRE_E_MAGIC] = "wrong magic number",
                                        [WIRE_E_VERSION] = "unknown version",
                                        [WIRE_E_CHECK] = "header check sum does not fit",
                                        [WIRE_E_TYPE] =
                                            "unknown type or class, or reserved bits set",
                                        [WIRE_E_LENGTH] = "length does not fit"};

    return condition > 0 && condition < (int)(sizeof texts / sizeof *texts) ? texts[condition]
                                                                            : "no error";
}
