/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Bcast of long messages: scatter, then allgather (Barnett, Shuler, van de Geijn et al. 1994).
 *
 * The message is cut into p blocks of bytes; a binomial scatter gives block i to the rank i above
 * the root, a ring gathers all blocks everywhere. (log2 p + p - 1) alpha + 2 (p - 1)/p n beta:
 * twice the message for each rank, however many there are. Works on bytes: a noncontiguous buffer
 * is packed once.
 */
#include "client/coll/algorithms/algorithms.h"

struct cut {
    unsigned char *bytes;
    MPI_Count n_bytes, block_bytes;
    int root;
};

/* First byte of block i (also of i == p: the end). */
static MPI_Count cut_first(const struct cut *cut, int i)
{
    MPI_Count first = i * cut->block_bytes;
    return first < cut->n_bytes ? first : cut->n_bytes;
}

static MPI_Count cut_bytes(const struct cut *cut, int first, int end)
{
    return cut_first(cut, end) - cut_first(cut, first);
}

static void cut_spread(struct schedule *s, const struct cut *cut)
{
    int size = s->view.size, relative = (s->view.rank - cut->root + size) % size;
    int mask = 1;
    while (mask < size && !(relative & mask))
        mask *= 2;
    if (relative) {
        int end = relative + mask < size ? relative + mask : size;
        MPI_Count n = cut_bytes(cut, relative, end);
        if (n > 0)
            schedule_recv(s, buffer_of_bytes(cut->bytes + cut_first(cut, relative), n),
                          (relative - mask + cut->root) % size);
    }
    for (mask /= 2; mask > 0; mask /= 2) {
        int child = relative + mask, end = child + mask < size ? child + mask : size;
        if (child >= size)
            continue;
        MPI_Count n = cut_bytes(cut, child, end);
        if (n > 0)
            schedule_isend(s, buffer_of_bytes(cut->bytes + cut_first(cut, child), n),
                           (child + cut->root) % size);
    }
    schedule_wait(s);
}

static void pass_round(struct schedule *s, const struct cut *cut)
{
    int size = s->view.size, relative = (s->view.rank - cut->root + size) % size;
    int to = (s->view.rank + 1) % size, from = (s->view.rank - 1 + size) % size;
    for (int k = 0; k < size - 1; k++) {
        int out = (relative - k + size) % size, in = (relative - k - 1 + size) % size;
        schedule_sendrecv(
            s, buffer_of_bytes(cut->bytes + cut_first(cut, out), cut_bytes(cut, out, out + 1)), to,
            buffer_of_bytes(cut->bytes + cut_first(cut, in), cut_bytes(cut, in, in + 1)), from);
    }
}

void bcast_scatter_allgather(struct schedule *s, struct buffer buf, int root)
{
    struct cut cut = {.n_bytes = buffer_size(buf), .root = root};
    bool dense = datatype_is_run(buf.type, buf.count);
    cut.block_bytes = (cut.n_bytes + s->view.size - 1) / s->view.size;
    cut.bytes =
        dense ? datatype_run_start(buf.type, buf.base) : schedule_temp(s, (size_t)cut.n_bytes);
    if (!dense && s->view.rank == root)
        schedule_copy(s, buf, buffer_of_bytes(cut.bytes, cut.n_bytes));
    cut_spread(s, &cut);
    pass_round(s, &cut);
    if (!dense && s->view.rank != root)
        schedule_copy(s, buffer_of_bytes(cut.bytes, cut.n_bytes), buf);
}
