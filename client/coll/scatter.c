/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Scatter and MPI_Scatterv: binomial tree for short blocks of one size, from the root to everyone
 * otherwise. */
#include "client/coll/coll.h"
#include "client/coll/hierarchy.h"
#include "client/coll/select.h"
#include "client/coll/shared.h"

#define LINEAR_WINDOW 64 /* sends of the root under way at a time, as in gather.c */

/* The root sends to every rank. (p - 1) alpha + n beta at the root; no byte is moved twice. */
static void scatter_linear(struct schedule *s, const struct blocks *send, void *recv, MPI_Count recv_count,
                           struct datatype *recv_type, int root)
{
    int rank = s->view.rank, size = s->view.size;
    if (rank != root) {
        if (recv_count * recv_type->size > 0)
            schedule_recv(s, recv, recv_count, recv_type, root);
        return;
    }
    int under_way = 0;
    for (int k = 1; k < size; k++) {
        int to = (root + k) % size;
        if (blocks_bytes(send, to) == 0)
            continue;
        schedule_isend(s, blocks_at(send, to), blocks_count(send, to), blocks_type(send, to), to);
        if (++under_way % LINEAR_WINDOW == 0)
            schedule_wait(s);
    }
    if (recv != MPI_IN_PLACE)
        schedule_copy(s, blocks_at(send, root), blocks_count(send, root), blocks_type(send, root), recv,
                      recv_count, recv_type);
    schedule_wait(s);
}

/* The mirror image of gather's binomial tree. log2 p alpha + (p - 1) n beta. */
static void scatter_binomial(struct schedule *s, const struct blocks *send, void *recv, MPI_Count recv_count,
                             struct datatype *recv_type, int root)
{
    int size = s->view.size, relative = (s->view.rank - root + size) % size;
    bool in_place = recv == MPI_IN_PLACE; /* only at the root */
    MPI_Count block_bytes = in_place ? blocks_bytes(send, root) : recv_count * recv_type->size;
    int mask = 1;
    while (mask < size && !(relative & mask))
        mask *= 2;
    int n_blocks = relative + mask < size ? mask : size - relative;
    if (relative && n_blocks == 1) {
        schedule_recv(s, recv, recv_count, recv_type, (relative - mask + root) % size);
        return;
    }
    unsigned char *packed = schedule_temp(s, (size_t)(n_blocks * block_bytes));
    if (relative) {
        schedule_recv(s, packed, n_blocks * block_bytes, coll_byte(), (relative - mask + root) % size);
    } else {
        int above = size - root - 1;
        if (above > 0)
            schedule_copy(s, blocks_at(send, root + 1), above * send->count, send->type, packed + block_bytes,
                          above * block_bytes, coll_byte());
        if (root > 0)
            schedule_copy(s, send->buf, root * send->count, send->type, packed + (above + 1) * block_bytes,
                          root * block_bytes, coll_byte());
    }
    for (mask /= 2; mask > 0; mask /= 2) {
        if (relative + mask >= size)
            continue;
        int n = relative + 2 * mask < size ? mask : size - relative - mask;
        schedule_isend(s, packed + mask * block_bytes, n * block_bytes, coll_byte(),
                       (relative + mask + root) % size);
    }
    if (relative)
        schedule_copy(s, packed, block_bytes, coll_byte(), recv, recv_count, recv_type);
    else if (!in_place)
        schedule_copy(s, blocks_at(send, root), send->count, send->type, recv, recv_count, recv_type);
    schedule_wait(s);
}

void coll_scatter(struct schedule *s, const struct blocks *send, bool uniform, void *recv,
                  MPI_Count recv_count, struct datatype *recv_type, int root)
{
    MPI_Count n_bytes = 0;
    if (uniform) {
        n_bytes = recv == MPI_IN_PLACE ? blocks_bytes(send, root) : recv_count * recv_type->size;
        if (n_bytes == 0)
            return;
    }
    switch (select_algorithm(SELECT_SCATTER, s, n_bytes, uniform)) {
    case SCATTER_NODES:
        hierarchy_scatter(s, hierarchy_nodes(s), send, recv, recv_count, recv_type, root);
        break;
    case SCATTER_NETWORKS:
        hierarchy_scatter(s, hierarchy_networks(s), send, recv, recv_count, recv_type, root);
        break;
    case SCATTER_SHARED:
        shared_scatter(s, send, uniform, recv, recv_count, recv_type, root);
        break;
    case SCATTER_BINOMIAL:
        scatter_binomial(s, send, recv, recv_count, recv_type, root);
        break;
    default:
        scatter_linear(s, send, recv, recv_count, recv_type, root);
        break;
    }
}
