/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/ring.h"

size_t ring_size(const struct ring_shape *shape)
{
    return sizeof(struct ring_shared) + (size_t)shape->n_slots * sizeof(struct ring_slot) +
           shape->data_bytes;
}

static uint32_t log2_exact(uint32_t n)
{
    assert(n > 0 && (n & (n - 1)) == 0);
    return (uint32_t)__builtin_ctz(n);
}

void ring_producer_init(struct ring_producer *p, void *ring, const struct ring_shape *shape,
                        uint32_t *data_end, const struct bell_ref *bell)
{
    struct ring_shared *shared = ring;

    *p = (struct ring_producer){
        .slots = shared->slots,
        .data = (uint8_t *)&shared->slots[shape->n_slots],
        .shared = shared,
        .mask = shape->n_slots - 1,
        .shift = log2_exact(shape->n_slots),
        .data_bytes = shape->data_bytes,
        .data_end = data_end,
        .bell = *bell,
    };
}

bool ring_make_room(struct ring_producer *p, uint32_t len)
{
    /* acquire: pairs with the release in ring_release. */
    uint32_t head = atomic_load_explicit(&p->shared->head, memory_order_acquire);

    /* The consumer may be hostile or torn by a crash: only a head between the last one and our tail
     * can be true. */
    if (head - p->head_seen > p->tail - p->head_seen)
        return false;
    if (head != p->head_seen) {
        p->head_seen = head;
        p->data_head = p->data_end[(head - 1) & p->mask];
    }
    if (p->tail - p->head_seen > p->mask)
        return false;
    if (len <= RING_INLINE_BYTES)
        return true;
    uint32_t need = (len + RING_LINE - 1) & ~(RING_LINE - 1);
    if (need > p->data_bytes)
        return false;
    if (p->head_seen == p->tail && p->data_head == p->data_tail) {
        /* Nothing is out: start at the front, where any permitted length fits without padding. */
        p->data_tail = (p->data_tail + p->data_bytes - 1) & ~(p->data_bytes - 1);
        p->data_head = p->data_tail;
    }
    return p->data_tail + ring_padding(p, need) + need - p->data_head <= p->data_bytes;
}

void ring_consumer_init(struct ring_consumer *c, void *ring, const struct ring_shape *shape)
{
    struct ring_shared *shared = ring;

    *c = (struct ring_consumer){
        .slots = shared->slots,
        .data = (uint8_t *)&shared->slots[shape->n_slots],
        .shared = shared,
        .mask = shape->n_slots - 1,
        .shift = log2_exact(shape->n_slots),
        .data_bytes = shape->data_bytes,
    };
}
