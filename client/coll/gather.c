/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Gather and MPI_Gatherv: binomial tree for short blocks of one size, everyone to the root otherwise. */
#include "client/coll/coll.h"
#include "client/coll/hierarchy.h"
#include "client/coll/select.h"
#include "client/coll/shared.h"

/* Receives of the root under way at a time: enough to keep every sender busy, few enough for the match queue.
 */
#define LINEAR_WINDOW 64

/* Every rank sends to the root. (p - 1) alpha + n beta at the root; no byte is moved twice. */
static void gather_linear(struct schedule *s, const void *send, MPI_Count send_count,
                          struct datatype *send_type, const struct blocks *recv, int root)
{
    int rank = s->view.rank, size = s->view.size;
    if (rank != root) {
        if (send_count * send_type->size > 0)
            schedule_send(s, send, send_count, send_type, root);
        return;
    }
    int under_way = 0;
    for (int k = 1; k < size; k++) {
        int from = (root + k) % size;
        if (blocks_bytes(recv, from) == 0)
            continue;
        schedule_irecv(s, blocks_at(recv, from), blocks_count(recv, from), blocks_type(recv, from), from);
        if (++under_way % LINEAR_WINDOW == 0)
            schedule_wait(s);
    }
    if (send != MPI_IN_PLACE)
        schedule_copy(s, send, send_count, send_type, blocks_at(recv, root), blocks_count(recv, root),
                      blocks_type(recv, root));
    schedule_wait(s);
}

/* Binomial tree over ranks relative to the root: a rank collects the blocks of its subtree as packed bytes,
 * in order, and passes them up in one message. log2 p alpha + (p - 1) n beta. */
static void gather_binomial(struct schedule *s, const void *send, MPI_Count send_count,
                            struct datatype *send_type, const struct blocks *recv, int root)
{
    int size = s->view.size, relative = (s->view.rank - root + size) % size;
    bool in_place = send == MPI_IN_PLACE; /* only at the root */
    MPI_Count block_bytes = in_place ? blocks_bytes(recv, root) : send_count * send_type->size;
    int mask = 1;
    while (mask < size && !(relative & mask))
        mask *= 2;
    int n_blocks = relative + mask < size ? mask : size - relative;
    if (relative && n_blocks == 1) {
        schedule_send(s, send, send_count, send_type, (relative - mask + root) % size);
        return;
    }
    unsigned char *packed = schedule_temp(s, (size_t)(n_blocks * block_bytes));
    for (int child = 1; child < mask && relative + child < size; child *= 2) {
        int n = relative + 2 * child < size ? child : size - relative - child;
        schedule_irecv(s, packed + child * block_bytes, n * block_bytes, coll_byte(),
                       (relative + child + root) % size);
    }
    if (relative) {
        schedule_copy(s, send, send_count, send_type, packed, block_bytes, coll_byte());
        schedule_wait(s);
        schedule_send(s, packed, n_blocks * block_bytes, coll_byte(), (relative - mask + root) % size);
        return;
    }
    if (!in_place)
        schedule_copy(s, send, send_count, send_type, blocks_at(recv, root), recv->count, recv->type);
    schedule_wait(s);
    int above = size - root - 1; /* ranks root+1 .. size-1 lie together, and so do 0 .. root-1 */
    if (above > 0)
        schedule_copy(s, packed + block_bytes, above * block_bytes, coll_byte(), blocks_at(recv, root + 1),
                      above * recv->count, recv->type);
    if (root > 0)
        schedule_copy(s, packed + (above + 1) * block_bytes, root * block_bytes, coll_byte(), recv->buf,
                      root * recv->count, recv->type);
}

void coll_gather(struct schedule *s, const void *send, MPI_Count send_count, struct datatype *send_type,
                 const struct blocks *recv, bool uniform, int root)
{
    MPI_Count n_bytes = 0;
    if (uniform) {
        n_bytes = send == MPI_IN_PLACE ? blocks_bytes(recv, root) : send_count * send_type->size;
        if (n_bytes == 0)
            return;
    }
    switch (select_algorithm(SELECT_GATHER, s, n_bytes, uniform)) {
    case GATHER_NODES:
        hierarchy_gather(s, hierarchy_nodes(s), send, send_count, send_type, recv, root);
        break;
    case GATHER_NETWORKS:
        hierarchy_gather(s, hierarchy_networks(s), send, send_count, send_type, recv, root);
        break;
    case GATHER_SHARED:
        shared_gather(s, send, send_count, send_type, recv, uniform, root);
        break;
    case GATHER_BINOMIAL:
        gather_binomial(s, send, send_count, send_type, recv, root);
        break;
    default:
        gather_linear(s, send, send_count, send_type, recv, root);
        break;
    }
}
