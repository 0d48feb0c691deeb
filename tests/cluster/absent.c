/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job that hangs because one rank does something else: what motetctl must tell of it. Uses mpi.h
 * alone.
 *
 *     absent CALL INSTEAD [RANK]
 *
 * After three barriers on MPI_COMM_WORLD all ranks but RANK (default: the last) call CALL; RANK
 * does INSTEAD. The first rank says so.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

static int rank, size, absent;
static MPI_Comm odd = MPI_COMM_NULL; /* ranks 1, 3, 5, ... and the absent one */

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(void)
{
    int one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void ibarrier(void)
{
    MPI_Request r;
    MPI_Ibarrier(MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void bcast(void)
{
    static char buf[100000];
    MPI_Bcast(buf, sizeof buf, MPI_BYTE, absent, MPI_COMM_WORLD);
}

static void persistent(void)
{
    MPI_Request r;
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
}

/* The absent rank's part: one round less. */
static void persistent_once(void)
{
    MPI_Request r;
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void sub(void)
{
    if (rank % 2)
        MPI_Barrier(odd);
}

static void duplicate(void)
{
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
}

static void split(void)
{
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
}

static void finalize(void)
{
    MPI_Finalize();
}

static void probe(void)
{
    MPI_Probe(absent, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive(void)
{
    char buf[8];
    MPI_Recv(buf, sizeof buf, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_absent(void)
{
    char buf[8];
    MPI_Recv(buf, sizeof buf, MPI_BYTE, absent, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ssend(void)
{
    MPI_Ssend("", 1, MPI_BYTE, absent, 7, MPI_COMM_WORLD);
}

static void send_large(void)
{
    MPI_Send(calloc(1, 4 << 20), 4 << 20, MPI_BYTE, absent, 7, MPI_COMM_WORLD);
}

static void partitioned(void)
{
    static char buf[4096];
    MPI_Request r;
    if (rank == 0)
        MPI_Precv_init(buf, 4, 1024, MPI_BYTE, absent, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    else
        MPI_Psend_init(buf, 4, 1024, MPI_BYTE, absent, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    if (rank != 0)
        MPI_Pready_range(0, 3, r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void *other_thread(void *arg)
{
    receive_absent();
    return arg;
}

/* One thread in a receive, the other in a barrier. */
static void threads(void)
{
    pthread_t t;
    pthread_create(&t, NULL, other_thread, NULL);
    barrier();
    pthread_join(t, NULL);
}

static void compute(void)
{
    for (unsigned n = 0;; n++)
        __asm__ __volatile__("" : : "r"(n) : "memory");
}

static void rest(void)
{
    sleep(1000);
}

static void stop(void)
{
    raise(SIGSTOP);
}

static const struct {
    const char *name;
    void (*fn)(void);
} calls[] = {
    {"barrier", barrier},     {"allreduce", allreduce},   {"ibarrier", ibarrier},
    {"bcast", bcast},         {"persistent", persistent}, {"sub", sub},
    {"duplicate", duplicate}, {"split", split},           {"finalize", finalize},
    {"probe", probe},         {"receive", receive},       {"receive_absent", receive_absent},
    {"ssend", ssend},         {"send_large", send_large}, {"partitioned", partitioned},
    {"threads", threads},     {"compute", compute},       {"sleep", rest},
    {"stop", stop},
};

static void call(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(calls[i].name, name) == 0) {
            calls[i].fn();
            return;
        }
    }
    fprintf(stderr, "absent: no call %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char **argv)
{
    int provided;
    const bool with_threads = argc > 1 && strcmp(argv[1], "threads") == 0;

    MPI_Init_thread(&argc, &argv, with_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    absent = argc > 3 ? atoi(argv[3]) : size - 1;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2 ? 1 : MPI_UNDEFINED, rank, &odd);
    if (odd != MPI_COMM_NULL)
        MPI_Comm_set_name(odd, "odd ones");
    for (int i = 0; i < 3; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("absent: %s, %d %s\n", argv[1], absent, argv[2]);
        fflush(stdout);
    }
    if (rank != absent) {
        call(argv[1]);
    } else {
        if (strcmp(argv[1], "persistent") == 0)
            persistent_once();
        call(argv[2]);
    }
    sleep(1000);
    return 0;
}
