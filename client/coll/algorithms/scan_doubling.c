/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Scan and MPI_Exscan: recursive doubling (Hillis and Steele 1986, on blocks of ranks).
 *
 * In round k the ranks that differ in bit k exchange the combined operand of their blocks of 2^k
 * ranks; what comes from below also goes into the result. ceil(log2 p)(alpha + n beta + 2 n gamma).
 * The order of operands is kept. A block that is cut off at the end of the ranks is never needed by
 * a higher one, so any p will do.
 */
#include "client/coll/algorithms/algorithms.h"

/* `result` gets the operands of all ranks below (and, if inclusive, this one's). */
void scan_doubling(struct schedule *s, const void *send, struct buffer result, struct op *op,
                   bool inclusive)
{
    int rank = s->view.rank, size = s->view.size;
    void *block = schedule_temp_typed(s, result.count, result.type),
         *other = schedule_temp_typed(s, result.count, result.type);
    bool has_result = inclusive;
    schedule_copy(s, buffer_like(result, send), buffer_like(result, block));
    if (inclusive)
        schedule_copy(s, buffer_like(result, send), result);
    for (int mask = 1; mask < size; mask *= 2) {
        int peer = rank ^ mask;
        if (peer >= size)
            continue;
        schedule_sendrecv(s, buffer_like(result, block), peer, buffer_like(result, other), peer);
        if (peer < rank) {
            if (has_result)
                schedule_reduce(s, other, result, op);
            else
                schedule_copy(s, buffer_like(result, other), result);
            has_result = true;
            schedule_reduce(s, other, buffer_like(result, block), op);
        } else {
            schedule_reduce(s, block, buffer_like(result, other), op);
            void *swap = block;
            block = other;
            other = swap;
        }
    }
}
