/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block with operations that do not commute: a reduction
 * and a scatter.
 *
 * An ordered reduction to rank 0, then a scatter from there: log2 p (alpha + n beta + n gamma),
 * then log2 p alpha + n beta.
 */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/family/coll.h"

void reduce_scatter_reduce_scatter(struct schedule *s, const void *send, void *recv,
                                   const struct blocks *counts, struct op *op)
{
    int size = s->view.size, rank = s->view.rank;
    MPI_Count count = blocks_first(counts, size);
    struct blocks whole = *counts;
    whole.uniform = !counts->counts.base;
    if (rank == 0) {
        whole.buf = schedule_temp_typed(s, count, counts->type);
        if (s->broken)
            return;
    }
    coll_reduce(s, send, buffer_of(whole.buf, count, counts->type), op, 0);
    coll_scatter(s, &whole, buffer_of(recv, blocks_count(counts, rank), counts->type), 0);
}
