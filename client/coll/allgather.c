/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allgather and MPI_Allgatherv: choice, recursive doubling, Bruck and ring. Every rank knows every
 * block's size. */
#include "client/coll/algorithms.h"
#include "client/coll/hierarchy.h"
#include "client/coll/select.h"
#include "client/coll/shared.h"

/* Recursive doubling, for powers of two: in round k a rank exchanges the 2^k blocks it has with the rank
 * whose number differs in bit k. log2 p alpha + (p - 1) n beta. Regular blocks only. */
void allgather_recursive_doubling(struct schedule *s, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    for (int mask = 1; mask < size; mask *= 2) {
        int peer = rank ^ mask, mine = rank & ~(mask - 1), theirs = peer & ~(mask - 1);
        schedule_sendrecv(s, blocks_at(recv, mine), mask * recv->count, recv->type, peer,
                          blocks_at(recv, theirs), mask * recv->count, recv->type, peer);
    }
}

/* Bruck et al. 1997: in round k a rank passes all it has (at most 2^k blocks, its own first) to the rank 2^k
 * below. ceil(log2 p) alpha + (p - 1) n beta and two copies, for any p and any block sizes. */
void allgather_bruck(struct schedule *s, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    /* at[i]: where block rank + i begins among the packed bytes */
    MPI_Count *at = schedule_temp(s, (size_t)(size + 1) * sizeof(MPI_Count));
    if (!at)
        return;
    at[0] = 0;
    for (int i = 0; i < size; i++)
        at[i + 1] = at[i] + blocks_bytes(recv, (rank + i) % size);
    unsigned char *packed = schedule_temp(s, (size_t)at[size]);
    schedule_copy(s, blocks_at(recv, rank), blocks_count(recv, rank), recv->type, packed, at[1], coll_byte());
    for (int have = 1; have < size; have *= 2) {
        int n = have < size - have ? have : size - have;
        schedule_sendrecv(s, packed, at[n], coll_byte(), (rank - have + size) % size, packed + at[have],
                          at[have + n] - at[have], coll_byte(), (rank + have) % size);
    }
    for (int i = 1; i < size; i++) {
        int block = (rank + i) % size;
        schedule_copy(s, packed + at[i], at[i + 1] - at[i], coll_byte(), blocks_at(recv, block),
                      blocks_count(recv, block), recv->type);
    }
}

/* Ring: each rank passes on to its upper neighbour what it received last. (p - 1)(alpha + n beta), no copy,
 * and only neighbours talk. */
void allgather_ring(struct schedule *s, const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    for (int k = 0; k < size - 1; k++) {
        int out = (rank - k + size) % size, in = (rank - k - 1 + size) % size;
        schedule_sendrecv(s, blocks_at(recv, out), blocks_count(recv, out), recv->type, to,
                          blocks_at(recv, in), blocks_count(recv, in), recv->type, from);
    }
}

void coll_allgather(struct schedule *s, const void *send, MPI_Count send_count, struct datatype *send_type,
                    const struct blocks *recv)
{
    int rank = s->view.rank, size = s->view.size;
    if (send != MPI_IN_PLACE)
        schedule_copy(s, send, send_count, send_type, blocks_at(recv, rank), blocks_count(recv, rank),
                      recv->type);
    MPI_Count total_bytes = blocks_first(recv, size) * recv->type->size;
    if (size == 1 || total_bytes == 0)
        return;
    bool regular = !recv->counts.base;
    switch (select_algorithm(SELECT_ALLGATHER, s, total_bytes, regular)) {
    case ALLGATHER_NODES:
        hierarchy_allgather(s, hierarchy_nodes(s), recv);
        break;
    case ALLGATHER_NETWORKS:
        hierarchy_allgather(s, hierarchy_networks(s), recv);
        break;
    case ALLGATHER_SHARED:
        shared_allgather(s, recv);
        break;
    case ALLGATHER_RECURSIVE_DOUBLING:
        allgather_recursive_doubling(s, recv);
        break;
    case ALLGATHER_BRUCK:
        allgather_bruck(s, recv);
        break;
    default:
        allgather_ring(s, recv);
        break;
    }
}
