/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Bcast of short messages: a binomial tree.
 *
 * The rank that differs from its parent in the lowest set bit receives from it and serves the
 * subtrees below that bit, largest first. ceil(log2 p) (alpha + n beta).
 */
#include "client/coll/algorithms/algorithms.h"

void bcast_binomial(struct schedule *s, struct buffer buf, int root)
{
    int size = s->view.size;
    int relative = (s->view.rank - root + size) % size;
    int mask = 1;
    while (mask < size && !(relative & mask))
        mask *= 2;
    if (relative)
        schedule_recv(s, buf, (relative - mask + root) % size);
    mask /= 2;
    if (mask == 1 && relative + 1 < size) { /* one child: no request */
        schedule_send(s, buf, (relative + 1 + root) % size);
        return;
    }
    for (; mask > 0; mask /= 2)
        if (relative + mask < size)
            schedule_isend(s, buf, (relative + mask + root) % size);
    schedule_wait(s);
}
