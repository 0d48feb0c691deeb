/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/segment.h"

#include <errno.h>

#define PAGE_BYTES 4096u

void segment_shape_defaults(struct segment_shape *shape)
{
    /* A record per request that waits: 64 Ki of them cost address space only until they are
     * used. */
    shape->board_records = 65536;
    /* 256 lines of short messages; the data area holds several eager messages and still fits, for
     * all peers of a small job, into a second-level cache. */
    shape->local.n_slots = shape->n_local <= 32 ? 256 : 64;
    shape->local.data_bytes = shape->n_local <= 8    ? 256u << 10
                              : shape->n_local <= 64 ? 128u << 10
                                                     : 64u << 10;
    shape->up.n_slots = 512;
    shape->up.data_bytes = 1u << 20;
    shape->down.n_slots = 1024;
    shape->down.data_bytes = 4u << 20;
    /* Half of it is the largest single publication: 64 KiB for each of 8 ranks. */
    shape->cell_bytes = shape->n_local <= 16   ? 1u << 20
                        : shape->n_local <= 64 ? 256u << 10
                                               : 64u << 10;
    /* As many as threads of a rank can be expected to run at once. */
    shape->n_vcis = shape->n_local <= 32 ? 8 : shape->n_local <= 96 ? 4 : 1;
    /* The ways to other jobs are the daemon's channels. */
    shape->n_foreign = shape->n_channels > 0 ? SEGMENT_MAX_FOREIGN : 0;
}

static int ring_shape_check(const struct ring_shape *s)
{
    if (s->n_slots < 4 || s->n_slots > 65536 || (s->n_slots & (s->n_slots - 1)) != 0)
        return -EINVAL;
    if (s->data_bytes < 4096 || s->data_bytes > RING_MAX_DATA_BYTES ||
        (s->data_bytes & (s->data_bytes - 1)) != 0)
        return -EINVAL;
    return 0;
}

int segment_shape_check(const struct segment_shape *shape)
{
    if (shape->n_local == 0 || shape->n_local > SEGMENT_MAX_LOCAL ||
        shape->n_world < shape->n_local || shape->n_world > 1u << 22 || shape->n_nodes == 0 ||
        shape->n_nodes > HOP_MAX_NODES || shape->n_channels > HOP_MAX_CHANNELS ||
        shape->n_networks > SEGMENT_MAX_NETWORKS || shape->n_foreign > SEGMENT_MAX_FOREIGN ||
        shape->board_records < 64 || shape->board_records > 1u << 20)
        return -EINVAL;
    if (shape->cell_bytes != 0 && (shape->cell_bytes < 4096 || shape->cell_bytes > 1u << 26 ||
                                   (shape->cell_bytes & (shape->cell_bytes - 1)) != 0))
        return -EINVAL;
    if (shape->n_vcis == 0 || shape->n_vcis > SEGMENT_MAX_VCIS ||
        segment_first_bit(shape, shape->n_vcis) > BELL_MAX_RINGS)
        return -EINVAL;
    if (ring_shape_check(&shape->local) < 0 || ring_shape_check(&shape->up) < 0 ||
        ring_shape_check(&shape->down) < 0)
        return -EINVAL;
    return 0;
}

static size_t page_align(size_t n)
{
    return (n + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
}

void segment_layout(const struct segment_shape *shape, struct segment_layout *l)
{
    size_t at = sizeof(struct segment_header);

    l->shape = *shape;
    l->world_off = at;
    at += sizeof(struct segment_world) * ((size_t)shape->n_world + shape->n_foreign);
    l->nodes_off = at = (at + 63) & ~(size_t)63;
    at += sizeof(struct segment_node) * ((size_t)shape->n_nodes + shape->n_foreign);

    l->networks_off = at;
    at += sizeof(struct segment_network) * shape->n_networks;
    l->on_network_off = at;
    at += (size_t)shape->n_networks * shape->n_nodes;
    l->distances_off = at;
    at += (size_t)shape->n_networks * shape->n_networks;

    l->closed_off = at = page_align(at);
    l->closed_stride = ((size_t)shape->n_world + shape->n_foreign + 63) & ~(size_t)63;
    at += l->closed_stride * shape->n_channels;

    l->bells_off = at = page_align(at);
    at += sizeof(struct bell) * shape->n_channels;

    l->ranks_off = at = page_align(at);
    l->board_off = page_align(sizeof(struct segment_rank));
    l->calls_off =
        l->board_off + page_align(sizeof(struct queue_record) * (size_t)shape->board_records);
    l->rank_stride = l->calls_off + page_align(sizeof(struct calls_board));
    at += l->rank_stride * shape->n_local;

    l->local_off = at;
    l->local_stride = page_align(ring_size(&shape->local));
    at += l->local_stride * shape->n_local * shape->n_local * shape->n_vcis;

    l->up_off = at;
    l->up_stride = page_align(ring_size(&shape->up));
    at += l->up_stride * shape->n_local * shape->n_channels;

    l->down_off = at;
    l->down_stride = page_align(ring_size(&shape->down));
    at += l->down_stride * shape->n_local * shape->n_channels;

    l->methods_off = at;
    at += page_align(sizeof(struct method_board) * shape->n_local * shape->n_local * shape->n_vcis);

    l->cells_off = at;
    l->cells_stride = shape->cell_bytes ? CELLS_DATA_OFF + shape->cell_bytes : 0;
    at += l->cells_stride * CELLS_SLOTS * CELLS_ROWS * shape->n_local;
    l->total = page_align(at);
}
