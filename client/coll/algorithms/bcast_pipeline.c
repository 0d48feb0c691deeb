/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Bcast of long messages on few ranks: a chain of ranks, cut into segments that travel one
 * behind the other.
 *
 * Each rank receives segment k + 1 while it passes on segment k. (p - 2 + n/m)(alpha + m beta) for
 * segments of m bytes: for n far above p m it costs one message's time, whatever p; every byte
 * crosses each link of the chain once.
 */
#include "client/coll/algorithms/algorithms.h"

/* Long enough to hide the latency of a segment behind its transfer, short enough for the
 * second-level cache. */
#define SEGMENT_BYTES (128 * 1024)

void bcast_pipeline(struct schedule *s, struct buffer buf, int root)
{
    MPI_Count n_bytes = buffer_size(buf);
    int size = s->view.size, relative = (s->view.rank - root + size) % size;
    int from = relative ? (s->view.rank - 1 + size) % size : -1;
    int to = relative + 1 < size ? (s->view.rank + 1) % size : -1;
    bool dense = datatype_is_run(buf.type, buf.count);
    unsigned char *bytes =
        dense ? datatype_run_start(buf.type, buf.base) : schedule_temp(s, (size_t)n_bytes);
    if (!dense && !relative)
        schedule_copy(s, buf, buffer_of_bytes(bytes, n_bytes));
    /* Two receives are always posted and at most two sends under way; ids, oldest first. */
    MPI_Count posted = 0;
    int in_flight[2] = {-1, -1}, sent[2] = {-1, -1};
    for (int i = 0; i < 2 && posted < n_bytes; i++) {
        MPI_Count n = n_bytes - posted < SEGMENT_BYTES ? n_bytes - posted : SEGMENT_BYTES;
        in_flight[i] = schedule_irecv(s, buffer_of_bytes(bytes + posted, n), from);
        posted += n;
    }
    for (MPI_Count at = 0; at < n_bytes; at += SEGMENT_BYTES) {
        MPI_Count n = n_bytes - at < SEGMENT_BYTES ? n_bytes - at : SEGMENT_BYTES;
        schedule_wait_one(s, in_flight[0]);
        in_flight[0] = in_flight[1];
        in_flight[1] = -1;
        if (posted < n_bytes) {
            MPI_Count next = n_bytes - posted < SEGMENT_BYTES ? n_bytes - posted : SEGMENT_BYTES;
            in_flight[1] = schedule_irecv(s, buffer_of_bytes(bytes + posted, next), from);
            posted += next;
        }
        schedule_wait_one(s, sent[0]);
        sent[0] = sent[1];
        sent[1] = schedule_isend(s, buffer_of_bytes(bytes + at, n), to);
    }
    schedule_wait(s);
    if (!dense && relative)
        schedule_copy(s, buffer_of_bytes(bytes, n_bytes), buf);
}
