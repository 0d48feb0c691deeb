/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives that move data, through the cells of a node: one step each (long broadcasts: one
 * per segment). Every rank publishes what others want of it and takes what it wants, so a rank
 * waits for the others at most once, whatever their number.
 */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/schedule/coll_comm.h"

/* Of a broadcast: short enough for the reader to begin while the root still copies, and for the
 * second-level cache. */
static MPI_Count shared_segment_bytes(void)
{
    MPI_Count most = node_max_bytes();
    return most < 64 * 1024 ? most : 64 * 1024;
}

/* Everybody shows an empty publication and looks for those of all others. One turn, p^2 reads of a
 * cache line on the node. */
void barrier_shared(struct schedule *s)
{
    struct node_step step = schedule_take_step(s);
    int rank = s->view.rank, size = s->view.size;
    schedule_put(s, &step, buffer_of_bytes(NULL, 0), -1);
    for (int k = 1; k < size; k++)
        schedule_await(s, &step, (rank + k) % size);
    schedule_finish(s, &step);
}

static void shared_bcast_part(struct schedule *s, struct buffer buf, int root)
{
    struct node_step step = schedule_take_step(s);
    if (s->view.rank == root)
        schedule_put(s, &step, buf, -1);
    else
        schedule_get(s, &step, root, SCHEDULE_WHOLE, buf);
    schedule_finish(s, &step);
}

/* The root copies once, everybody else once, segment by segment; the root runs ahead as far as its
 * cell has room. */
void bcast_shared(struct schedule *s, struct buffer buf, int root)
{
    MPI_Count n_bytes = buffer_size(buf), segment = shared_segment_bytes();
    bool is_root = s->view.rank == root;
    if (n_bytes <= segment) {
        shared_bcast_part(s, buf, root);
        return;
    }
    bool dense = datatype_is_run(buf.type, buf.count);
    unsigned char *bytes =
        dense ? datatype_run_start(buf.type, buf.base) : schedule_temp(s, (size_t)n_bytes);
    if (!dense && is_root)
        schedule_copy(s, buf, buffer_of_bytes(bytes, n_bytes));
    for (MPI_Count at = 0; at < n_bytes; at += segment)
        shared_bcast_part(
            s, buffer_of_bytes(bytes + at, n_bytes - at < segment ? n_bytes - at : segment), root);
    if (!dense && !is_root)
        schedule_copy(s, buffer_of_bytes(bytes, n_bytes), buf);
}

/* In the v and w forms the two ranks of a pair know the size of their block and nobody else does:
 * short blocks go through the cells, the others as messages, so that every rank chooses alike.
 * Half of what a publication for everybody could hold, and not more than what two copies through
 * the node's memory do as fast as one copy between processes. */
static MPI_Count shared_short_block(const struct schedule *s)
{
    struct coll_comm *c = s->view.map ? NULL : s->view.comm->coll;
    if (c && c->short_block > 0)
        return c->short_block;
    MPI_Count limit = (node_max_bytes() / s->view.size - (MPI_Count)sizeof(uint32_t)) / 2;
    limit = limit < 4096 ? limit : 4096;
    if (c)
        c->short_block = limit;
    return limit;
}

/* Every other rank publishes for the root. */
void gather_shared(struct schedule *s, struct buffer send, const struct blocks *recv, int root)
{
    struct node_step step = schedule_take_step(s);
    int rank = s->view.rank, size = s->view.size;
    MPI_Count most = recv->uniform ? INT64_MAX : shared_short_block(s);
    if (rank != root) {
        MPI_Count n = buffer_size(send);
        bool shows = n <= most;
        if (n > 0 && shows)
            schedule_put(s, &step, send, root);
        schedule_finish(s, &step);
        if (!shows)
            schedule_send(s, send, root);
        return;
    }
    for (int i = 0; i < size; i++)
        if (i != root && !recv->uniform && blocks_bytes(recv, i) > most)
            schedule_irecv(s, blocks_buffer(recv, i), i);
    if (send.base != MPI_IN_PLACE)
        schedule_copy(s, send, blocks_buffer(recv, root));
    schedule_look_ahead(s, &step);
    for (int i = 0; i < size; i++) {
        MPI_Count n = blocks_bytes(recv, i);
        if (i != root && n > 0 && n <= most)
            schedule_get(s, &step, i, SCHEDULE_WHOLE, blocks_buffer(recv, i));
    }
    schedule_finish(s, &step);
    schedule_wait(s);
}

/* Publishes a piece of `longest` bytes for each rank, with the block of no more bytes at its
 * beginning. */
static void shared_put_equal_pieces(struct schedule *s, const struct node_step *step,
                                    const struct blocks *send, MPI_Count longest)
{
    schedule_claim(s, step, s->view.size * longest);
    for (int i = 0; i < s->view.size; i++)
        if (i != s->view.rank)
            schedule_fill(s, i * longest, blocks_buffer(send, i));
    schedule_publish(s, step, -1);
}

/* One block after the other, all of one length: one piece of memory. */
static bool shared_is_one_run(const struct blocks *send, int n)
{
    if (send->types || !send->type->contiguous)
        return false;
    MPI_Count count = blocks_count(send, 0),
              first = send->displs.base ? intvec_at(send->displs, 0) : 0;
    for (int i = 1; i < n; i++)
        if (blocks_count(send, i) != count ||
            (send->displs.base && intvec_at(send->displs, i) != first + i * count))
            return false;
    return true;
}

/* Publishes one rank's short blocks for everybody: as pieces of equal length where that is hardly
 * longer, so that a reader of a short block touches one cache line, else behind a table of where
 * each begins. */
static void shared_put_pieces(struct schedule *s, const struct node_step *step,
                              const struct blocks *send)
{
    int size = s->view.size;
    MPI_Count most = shared_short_block(s), longest = 0, sum = 0;
    for (int i = 0; i < size; i++) {
        MPI_Count n = i == s->view.rank ? 0 : blocks_bytes(send, i);
        longest = n > longest ? n : longest;
        sum += n;
    }
    if (longest <= most && shared_is_one_run(send, size)) {
        schedule_put(s, step,
                     buffer_of(blocks_at(send, 0), size * blocks_count(send, 0), send->type), -1);
        return;
    }
    if (longest <= most && size * longest <= sum + size * (MPI_Count)sizeof(uint32_t)) {
        shared_put_equal_pieces(s, step, send, longest);
        return;
    }
    uint32_t *table = schedule_temp(s, (size_t)size * sizeof *table);
    if (!table)
        return;
    MPI_Count at = (MPI_Count)((size_t)size * sizeof *table);
    for (int i = 0; i < size; i++) {
        MPI_Count n = blocks_bytes(send, i);
        table[i] = (uint32_t)at;
        if (i != s->view.rank && n <= most)
            at += n;
    }
    schedule_claim(s, step,
                   at % size ? at : at + 1); /* an undivided length says that there is a table */
    schedule_fill(s, 0, buffer_of_bytes(table, (MPI_Count)((size_t)size * sizeof *table)));
    for (int i = 0; i < size; i++) {
        MPI_Count n = blocks_bytes(send, i);
        if (i != s->view.rank && n > 0 && n <= most)
            schedule_fill(s, table[i], blocks_buffer(send, i));
    }
    schedule_publish(s, step, -1);
}

/* The root publishes everybody's block. */
void scatter_shared(struct schedule *s, const struct blocks *send, struct buffer recv, int root)
{
    struct node_step step = schedule_take_step(s);
    int rank = s->view.rank, size = s->view.size;
    MPI_Count most = send->uniform ? INT64_MAX : shared_short_block(s);
    if (rank != root) {
        MPI_Count n = buffer_size(recv);
        bool shown = n <= most;
        if (n > 0 && shown)
            schedule_get(s, &step, root, send->uniform ? rank * n : SCHEDULE_PIECES(size), recv);
        schedule_finish(s, &step);
        if (!shown)
            schedule_recv(s, recv, root);
        return;
    }
    if (send->uniform)
        schedule_put(s, &step, buffer_of(send->buf, size * send->count, send->type), -1);
    else
        shared_put_pieces(s, &step, send);
    schedule_finish(s, &step);
    for (int i = 0; i < size; i++)
        if (i != root && !send->uniform && blocks_bytes(send, i) > most)
            schedule_isend(s, blocks_buffer(send, i), i);
    if (recv.base != MPI_IN_PLACE)
        schedule_copy(s, blocks_buffer(send, root), recv);
    schedule_wait(s);
}

/* Everybody publishes the own block and takes all others. */
void allgather_shared(struct schedule *s, const struct blocks *recv)
{
    struct node_step step = schedule_take_step(s);
    int rank = s->view.rank, size = s->view.size;
    if (blocks_bytes(recv, rank) > 0)
        schedule_put(s, &step, blocks_buffer(recv, rank), -1);
    for (int k = 1; k < size; k++) {
        int from = (rank + k) % size;
        if (blocks_bytes(recv, from) > 0)
            schedule_get(s, &step, from, SCHEDULE_WHOLE, blocks_buffer(recv, from));
    }
    schedule_finish(s, &step);
}

/* Everybody publishes all own blocks and takes the one for itself from each other rank; the long
 * blocks of the v and w forms travel as messages. */
void alltoall_shared(struct schedule *s, const struct blocks *send, const struct blocks *recv)
{
    struct node_step step = schedule_take_step(s);
    int rank = s->view.rank, size = s->view.size;
    bool regular = !recv->counts.base;
    MPI_Count most = regular ? INT64_MAX : shared_short_block(s);
    if (regular) {
        schedule_put(s, &step, buffer_of(send->buf, size * send->count, send->type), -1);
    } else {
        for (int k = 1; k < size; k++) {
            int from = (rank - k + size) % size;
            if (blocks_bytes(recv, from) > most)
                schedule_irecv(s, blocks_buffer(recv, from), from);
        }
        shared_put_pieces(s, &step, send);
        for (int k = 1; k < size; k++) {
            int to = (rank + k) % size;
            if (blocks_bytes(send, to) > most)
                schedule_isend(s, blocks_buffer(send, to), to);
        }
    }
    schedule_copy(s, blocks_buffer(send, rank), blocks_buffer(recv, rank));
    for (int k = 1; k < size; k++) {
        int from = (rank + k) % size;
        MPI_Count n = blocks_bytes(recv, from);
        if (n > 0 && n <= most)
            schedule_get(s, &step, from, regular ? rank * n : SCHEDULE_PIECES(size),
                         blocks_buffer(recv, from));
    }
    schedule_finish(s, &step);
    schedule_wait(s);
}
