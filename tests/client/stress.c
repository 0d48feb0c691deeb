/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random point-to-point traffic with checked contents: stress [SEED [ROUNDS]]. In each round all
 * ranks draw the same list of messages (sender, receiver, tag, size, dense or strided on either
 * side, standard or synchronous or blocking), post their receives in a random order, partly with
 * wildcards, and compare every byte. Runs on any MPI. Prints the seed; exits with 1 on the first
 * difference.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MESSAGES 24

struct plan {
    int from, to, tag, n_bytes;
    int strided_send, strided_recv, mode, any_source, probe;
};

static uint64_t state;

static uint64_t draw(uint64_t n)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % n;
}

static int draw_size(void)
{
    static const int limits[] = {1, 40, 200, 5000, 20000, 70000, 300000, 3000000};
    return (int)draw((uint64_t)limits[draw(8)]) & ~3;
}

static unsigned char byte_of(const struct plan *p, int round, int i)
{
    return (unsigned char)(p->from * 31 + p->tag * 17 + round * 7 + i * 13 + (i >> 8));
}

/* 4-byte pieces, every other one. */
static MPI_Datatype strided(int n_bytes)
{
    MPI_Datatype type;

    MPI_Type_vector(n_bytes / 4, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static int at(int strided_layout, int i)
{
    return strided_layout ? i / 4 * 8 + i % 4 : i;
}

static void start_send(const struct plan *p, int round, unsigned char *buf, MPI_Request *request)
{
    MPI_Datatype type = p->strided_send ? strided(p->n_bytes) : MPI_BYTE;
    int count = p->strided_send ? 1 : p->n_bytes;

    for (int i = 0; i < p->n_bytes; i++)
        buf[at(p->strided_send, i)] = byte_of(p, round, i);
    if (p->mode == 1)
        MPI_Issend(buf, count, type, p->to, p->tag, MPI_COMM_WORLD, request);
    else
        MPI_Isend(buf, count, type, p->to, p->tag, MPI_COMM_WORLD, request);
    if (p->strided_send)
        MPI_Type_free(&type);
}

static void start_recv(const struct plan *p, unsigned char *buf, MPI_Request *request)
{
    MPI_Datatype type = p->strided_recv ? strided(p->n_bytes) : MPI_BYTE;
    /* A dense buffer has room to spare, so that the count in the status means something. */
    int count = p->strided_recv ? 1 : p->n_bytes + 16;
    int source = p->any_source ? MPI_ANY_SOURCE : p->from;

    if (p->probe) {
        MPI_Message message;
        MPI_Status status;
        MPI_Mprobe(source, p->tag, MPI_COMM_WORLD, &message, &status);
        MPI_Imrecv(buf, count, type, &message, request);
    } else {
        MPI_Irecv(buf, count, type, source, p->tag, MPI_COMM_WORLD, request);
    }
    if (p->strided_recv)
        MPI_Type_free(&type);
}

static int check(const struct plan *p, int round, const unsigned char *buf,
                 const MPI_Status *status)
{
    int n = -1;

    MPI_Get_count(status, MPI_BYTE, &n);
    if (n != p->n_bytes || status->MPI_SOURCE != p->from || status->MPI_TAG != p->tag) {
        fprintf(stderr, "round %d tag %d: got %d bytes from %d with tag %d, expected %d from %d\n",
                round, p->tag, n, status->MPI_SOURCE, status->MPI_TAG, p->n_bytes, p->from);
        return 1;
    }
    for (int i = 0; i < p->n_bytes; i++) {
        if (buf[at(p->strided_recv, i)] != byte_of(p, round, i)) {
            fprintf(stderr, "round %d tag %d from %d: byte %d of %d is wrong\n", round, p->tag,
                    p->from, i, p->n_bytes);
            return 1;
        }
    }
    return 0;
}

static int play(int round, int rank, int size)
{
    struct plan plans[MAX_MESSAGES];
    unsigned char *buffers[MAX_MESSAGES] = {0}, *sent[MAX_MESSAGES] = {0};
    MPI_Request requests[2 * MAX_MESSAGES];
    MPI_Status statuses[2 * MAX_MESSAGES];
    int which[2 * MAX_MESSAGES];
    int n = 1 + (int)draw(MAX_MESSAGES), n_requests = 0, bad = 0;
    int probes_last = (int)draw(2);

    for (int m = 0; m < n; m++) {
        plans[m] = (struct plan){.from = (int)draw((uint64_t)size),
                                 .to = (int)draw((uint64_t)size),
                                 .tag = round * MAX_MESSAGES + m,
                                 .n_bytes = draw_size(),
                                 .strided_send = draw(4) == 0,
                                 .strided_recv = draw(4) == 0,
                                 .mode = draw(4) == 0,
                                 .any_source = draw(3) == 0,
                                 .probe = probes_last && draw(4) == 0};
    }
    /* Half of the rounds receive before they send, the others meet everything unexpected. */
    int recv_first = (int)draw(2);
    for (int pass = 0; pass < 2; pass++) {
        for (int m = 0; m < n; m++) {
            const struct plan *p = &plans[m];
            int receiving = (pass == 0) == recv_first;
            if (receiving ? p->to != rank : p->from != rank)
                continue;
            /* A probe blocks: only once all sends have been started. */
            if (receiving && p->probe && pass == 0)
                continue;
            unsigned char *buf = calloc(1, (size_t)p->n_bytes * 2 + 64);
            if (receiving)
                buffers[m] = buf;
            else
                sent[m] = buf;
            which[n_requests] = receiving ? m : -1;
            if (receiving)
                start_recv(p, buf, &requests[n_requests++]);
            else
                start_send(p, round, buf, &requests[n_requests++]);
        }
    }
    for (int m = 0; m < n && recv_first; m++) {
        if (plans[m].to != rank || !plans[m].probe)
            continue;
        buffers[m] = calloc(1, (size_t)plans[m].n_bytes * 2 + 64);
        which[n_requests] = m;
        start_recv(&plans[m], buffers[m], &requests[n_requests++]);
    }
    MPI_Waitall(n_requests, requests, statuses);
    for (int i = 0; i < n_requests; i++)
        if (which[i] >= 0)
            bad |= check(&plans[which[i]], round, buffers[which[i]], &statuses[i]);
    for (int m = 0; m < n; m++) {
        free(buffers[m]);
        free(sent[m]);
    }
    return bad;
}

int main(int argc, char **argv)
{
    int rank, size, bad = 0;
    unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 300;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    state = seed;
    if (rank == 0)
        printf("seed %llu, %d rounds, %d ranks\n", seed, rounds, size);
    for (int round = 0; round < rounds && !bad; round++)
        bad = play(round, rank, size);
    if (bad)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
