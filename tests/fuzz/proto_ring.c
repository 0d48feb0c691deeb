/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring whose other side is hostile. The input is a program: the honest producer and consumer work
 * on one ring while the other side writes anything anywhere in the shared memory. Whatever it
 * writes, the producer's payload lies inside the data area, the consumer's payload lies inside the
 * ring, and the private counters stay within their bounds. The ring is allocated exactly, so the
 * sanitizer sees any access beyond it.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/ring.h"
#include "tests/fuzz/fuzz.h"

struct input {
    const uint8_t *data;
    size_t n;
};

static uint32_t take(struct input *in, unsigned n_bytes)
{
    uint32_t v = 0;

    for (; n_bytes > 0; n_bytes--) {
        v = v << 8 | (in->n > 0 ? *in->data : 0);
        if (in->n > 0) {
            in->data++;
            in->n--;
        }
    }
    return v;
}

static void need(int truth)
{
    if (!truth)
        abort();
}

static void produce(struct ring_producer *p, const struct ring_shape *shape, uint32_t len)
{
    void *payload;
    struct ring_slot *slot;

    if (len > ring_max_payload(shape))
        len = ring_max_payload(shape);
    slot = ring_claim(p, len, &payload);
    if (!slot)
        return;
    memset(payload, (int)len, len);
    if (len > RING_INLINE_BYTES)
        need((uint8_t *)payload >= p->data &&
             (uint8_t *)payload + len <= p->data + shape->data_bytes);
    ring_publish(p);
    need(p->tail - p->head_seen <= shape->n_slots);
    need(p->data_tail - p->data_head <= shape->data_bytes);
}

static uint32_t consume(struct ring_consumer *c)
{
    struct ring_slot *slot = ring_peek(c);
    uint32_t sum = 0;

    if (!slot)
        return 0;
    uint32_t len = slot->len;
    const uint8_t *payload = ring_payload(c, slot, len, slot->data_line);
    if (!payload)
        len = 0;
    for (uint32_t i = 0; i < len; i++)
        sum += payload[i];
    ring_advance(c, len);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in = {data, n};
    struct ring_shape shape = {.n_slots = 4u << take(&in, 1) % 4,
                               .data_bytes = 4096u << take(&in, 1) % 2};
    struct bell_ref bell = {.event_fd = -1, .bit = take(&in, 1)};
    struct ring_producer p;
    struct ring_consumer c;
    uint32_t sum = 0;

    size_t bytes = ring_size(&shape);
    uint8_t *ring = aligned_alloc(RING_LINE, bytes);
    uint32_t *data_end = calloc(shape.n_slots, sizeof *data_end);
    bell.bell = aligned_alloc(64, sizeof *bell.bell);
    if (!ring || !data_end || !bell.bell)
        abort();
    memset(ring, 0, bytes);
    memset(bell.bell, 0, sizeof *bell.bell);
    ring_producer_init(&p, ring, &shape, data_end, &bell);
    ring_consumer_init(&c, ring, &shape);
    while (in.n > 0) {
        uint32_t op = take(&in, 1);
        switch (op % 8) {
        case 0:
            produce(&p, &shape, take(&in, 2));
            break;
        case 1:
            produce(&p, &shape, op / 8);
            break;
        case 2:
        case 3:
            sum += consume(&c);
            break;
        case 4: { /* anything anywhere */
            size_t at = take(&in, 2) % bytes;
            for (uint32_t k = op / 8; k > 0 && at < bytes; k--)
                ring[at++] = (uint8_t)take(&in, 1);
            break;
        }
        case 5: /* a head of its own choice */
            atomic_store_explicit(&c.shared->head, op & 128 ? take(&in, 4) : p.tail - op / 8,
                                  memory_order_relaxed);
            break;
        case 6: { /* a slot that looks published */
            struct ring_slot *slot = &c.slots[(c.next + op / 64) & c.mask];
            slot->len = op & 8 ? take(&in, 4) : take(&in, 2);
            slot->data_line = (uint16_t)take(&in, 2);
            atomic_store_explicit(&slot->turn, ((c.next + op / 64) >> c.shift) + 1,
                                  memory_order_relaxed);
            break;
        }
        case 7: /* the bell's words */
            atomic_store_explicit(&bell.bell->sleeping, op / 8, memory_order_relaxed);
            sum += (uint32_t)bell_collect(bell.bell, op / 8 % (BELL_MAX_RINGS / 64));
            break;
        }
    }
    free(bell.bell);
    free(data_end);
    free(ring);
    return sum == 0x12345678u ? -1 : 0;
}
