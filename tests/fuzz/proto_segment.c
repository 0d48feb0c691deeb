/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attach reply as a rank gets it, and the attach request as the daemon gets it: a shape that
 * passes the check must give a layout whose objects lie in order, inside, aligned, and none of
 * whose sizes has overflowed.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/attach.h"
#include "proto/segment.h"
#include "tests/fuzz/fuzz.h"

static void need(int truth)
{
    if (!truth)
        abort();
}

static void follow(const struct segment_shape *s)
{
    struct segment_layout l;
    char *base = (char *)0x10000; /* compared, never followed */
    size_t last = s->n_local - 1;

    segment_layout(s, &l);
    need(l.total < (size_t)1 << 46);
    need(l.world_off >= sizeof(struct segment_header));
    need(l.nodes_off >= l.world_off + sizeof(struct segment_world) * (size_t)s->n_world);
    need(l.networks_off >= l.nodes_off + sizeof(struct segment_node) * (size_t)s->n_nodes);
    need(l.on_network_off >=
         l.networks_off + sizeof(struct segment_network) * (size_t)s->n_networks);
    need(l.distances_off >= l.on_network_off + (size_t)s->n_networks * s->n_nodes);
    need(l.closed_off >= l.distances_off + (size_t)s->n_networks * s->n_networks);
    need(l.closed_stride >= s->n_world &&
         l.bells_off >= l.closed_off + l.closed_stride * s->n_channels);
    need(l.ranks_off >= l.bells_off + sizeof(struct bell) * (size_t)s->n_channels);
    need(l.board_off >= sizeof(struct segment_rank));
    need(l.calls_off >= l.board_off + sizeof(struct queue_record) * (size_t)s->board_records);
    need(l.rank_stride >= l.calls_off + sizeof(struct calls_board));
    need(l.local_off >= l.ranks_off + l.rank_stride * s->n_local);
    need(l.up_off >= l.local_off + l.local_stride * s->n_local * s->n_local * s->n_vcis);
    need(l.down_off >= l.up_off + l.up_stride * s->n_local * s->n_channels);
    need(l.total >= l.down_off + l.down_stride * s->n_local * s->n_channels);
    need(l.local_stride >= ring_size(&s->local) && l.up_stride >= ring_size(&s->up) &&
         l.down_stride >= ring_size(&s->down));
    char *ring = segment_local_ring(base, &l, s->n_vcis - 1, (uint32_t)last, (uint32_t)last);
    need((size_t)(ring - base) + ring_size(&s->local) <= l.up_off &&
         (uintptr_t)ring % RING_LINE == 0);
    if (s->n_channels > 0) {
        ring = segment_down_ring(base, &l, (uint32_t)last, s->n_channels - 1);
        need((size_t)(ring - base) + ring_size(&s->down) <= l.total &&
             (uintptr_t)ring % RING_LINE == 0);
    }
    need(ring_max_payload(&s->local) <= s->local.data_bytes / 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct attach_reply reply;
    struct segment_shape shape;

    if (n < sizeof shape)
        return 0;
    memset(&reply, 0, sizeof reply);
    memcpy(&reply, data, n < sizeof reply ? n : sizeof reply);
    if (segment_shape_check(&reply.shape) == 0)
        follow(&reply.shape);
    /* The shape alone, and with rings of the defaults, so that more inputs pass the check. */
    memcpy(&shape, data, sizeof shape);
    if (segment_shape_check(&shape) == 0)
        follow(&shape);
    segment_shape_defaults(&shape);
    if (segment_shape_check(&shape) == 0)
        follow(&shape);
    return 0;
}
