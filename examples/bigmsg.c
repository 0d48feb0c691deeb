/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One large message from a chosen rank to another, checked: the contents come from a generator with
 * a seed of their own for each message, and the receiver compares the checksum of what came with
 * the sender's. Prints the speed.
 *
 *     mpicc -O2 -o bigmsg bigmsg.c && mpiexec -n 2 ./bigmsg [bytes] [from] [to] [messages]
 *
 * By default 64 MiB from the first rank to the last, once.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { TAG_DATA = 1, TAG_SUM };

/* xorshift64*: no two messages are alike, and a piece in the wrong place is noticed. */
static void fill(unsigned char *buf, size_t n_bytes, uint64_t seed)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < n_bytes; i += 8) {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        uint64_t word = x * 0x2545f4914f6cdd1du;
        memcpy(buf + i, &word, n_bytes - i < 8 ? n_bytes - i : 8);
    }
}

/* FNV-1a over words, 64 bits. */
static uint64_t checksum(const unsigned char *buf, size_t n_bytes)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n_bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, buf + i, n_bytes - i < 8 ? n_bytes - i : 8);
        sum = (sum ^ word) * 0x100000001b3u;
        sum ^= sum >> 29;
    }
    return sum;
}

int main(int argc, char **argv)
{
    int rank, size, failed = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long long n_bytes = argc > 1 ? atoll(argv[1]) : 64ll << 20;
    int from = argc > 2 ? atoi(argv[2]) : 0, to = argc > 3 ? atoi(argv[3]) : size - 1;
    int n_messages = argc > 4 ? atoi(argv[4]) : 1;
    if (from == to || from < 0 || to < 0 || from >= size || to >= size || n_bytes < 0 ||
        n_bytes > INT32_MAX) {
        if (rank == 0)
            fprintf(stderr, "bigmsg: needs two different ranks below %d and at most 2 GiB\n", size);
        MPI_Finalize();
        return 2;
    }
    unsigned char *buf = rank == from || rank == to ? malloc((size_t)n_bytes + 1) : NULL;
    if ((rank == from || rank == to) && !buf)
        MPI_Abort(MPI_COMM_WORLD, 1);

    for (int i = 0; i < n_messages; i++) {
        uint64_t sum = 0;
        if (rank == from) {
            fill(buf, (size_t)n_bytes, (uint64_t)i + 1);
            sum = checksum(buf, (size_t)n_bytes);
            MPI_Send(&sum, 1, MPI_UINT64_T, to, TAG_SUM, MPI_COMM_WORLD);
            MPI_Send(buf, (int)n_bytes, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD);
        } else if (rank == to) {
            MPI_Status status;
            int n_got;
            memset(buf, 0xa5, (size_t)n_bytes);
            MPI_Recv(&sum, 1, MPI_UINT64_T, from, TAG_SUM, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            double start = MPI_Wtime();
            MPI_Recv(buf, (int)n_bytes, MPI_BYTE, from, TAG_DATA, MPI_COMM_WORLD, &status);
            double seconds = MPI_Wtime() - start;
            MPI_Get_count(&status, MPI_BYTE, &n_got);
            int good = n_got == n_bytes && checksum(buf, (size_t)n_bytes) == sum;
            failed |= !good;
            printf("bigmsg: %lld bytes from rank %d to rank %d, checksum %016llx: %s, %.1f MB/s\n",
                   n_bytes, from, to, (unsigned long long)sum, good ? "ok" : "FAILED",
                   seconds > 0 ? (double)n_bytes / seconds / 1e6 : 0.0);
            fflush(stdout);
        }
    }
    MPI_Bcast(&failed, 1, MPI_INT, to, MPI_COMM_WORLD);
    free(buf);
    MPI_Finalize();
    return failed;
}
