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

void bcast_pipeline(struct schedule *s, void *buf, MPI_Count count, struct datatype *type, int root)
{
    MPI_Count n_bytes = count * type->size;
    int size = s->view.size, relative = (s->view.rank - root + size) % size;
    int from = relative ? (s->view.rank - 1 + size) % size : -1;
    int to = relative + 1 < size ? (s->view.rank + 1) % size : -1;
    bool dense = datatype_is_run(type, count);
    unsigned char *bytes =
        dense ? datatype_run_start(type, buf) : schedule_temp(s, (size_t)n_bytes);
    if (!dense && !relative)
        schedule_copy(s, buf, count, type, bytes, n_bytes, coll_byte());
    /* Two receives are always posted and at most two sends under way; ids, oldest first. */
    MPI_Count posted = 0;
    int in_flight[2] = {-1, -1}, sent[2] = {-1, -1};
    for (int i = 0; i < 2 && posted < n_bytes; i++) {
        MPI_Count n = n_bytes - posted < SEGMENT_BYTES ? n_bytes - posted : SEGMENT_BYTES;
        in_flight[i] = schedule_irecv(s, bytes + posted, n, coll_byte(), from);
        posted += n;
    }
    for (MPI_Count at = 0; at < n_bytes; at += SEGMENT_BYTES) {
        MPI_Count n = n_bytes - at < SEGMENT_BYTES ? n_bytes - at : SEGMENT_BYTES;
        schedule_wait_one(s, in_flight[0]);
        in_flight[0] = in_flight[1];
        in_flight[1] = -1;
        if (posted < n_bytes) {
            MPI_Count next = n_bytes - posted < SEGMENT_BYTES ? n_bytes - posted : SEGMENT_BYTES;
            in_flight[1] = schedule_irecv(s, bytes + posted, next, coll_byte(), from);
            posted += next;
        }
        schedule_wait_one(s, sent[0]);
        sent[0] = sent[1];
        sent[1] = schedule_isend(s, bytes + at, n, coll_byte(), to);
    }
    schedule_wait(s);
    if (!dense && relative)
        schedule_copy(s, bytes, n_bytes, coll_byte(), buf, count, type);
}
