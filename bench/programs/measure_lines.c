/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between two rows ranks 0 and 1 hand a cache line to and fro through memory of their own, without
 * the library under test. A virtual machine's cores lie now near each other and now far; the time
 * of one hand-over, beside each row, tells which rows can be compared.
 *
 * The other ranks sleep meanwhile, so it also works with more ranks than cores.
 */
#include "measure.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS  500
#define BATCHES 8
/* Looks without success before a rank gives its core away: longer than a line ever takes. */
#define PATIENCE 2000

struct lines {
    _Alignas(64) _Atomic uint32_t arrived, left; /* since the start, of all ranks */
    _Alignas(64) _Atomic uint32_t ball;
};

static struct lines *shared;
static uint32_t gathering; /* arrivals when all have come */
static uint32_t n_thrown;  /* numbers stored in `ball` so far */

double measure_line_ns;

static struct lines *map(const char *name, int flags)
{
    int fd = shm_open(name, flags, 0600);
    void *p = MAP_FAILED;

    if (fd < 0)
        return NULL;
    if (!(flags & O_CREAT) || ftruncate(fd, sizeof(struct lines)) == 0)
        p = mmap(NULL, sizeof(struct lines), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

void measure_lines_open(void)
{
    char name[64] = "";
    int ok, all;

    if (measure_size < 2)
        return;
    if (measure_rank == 0) {
        snprintf(name, sizeof name, "/motet-bench-%d", (int)getpid());
        shared = map(name, O_CREAT | O_EXCL | O_RDWR);
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (measure_rank != 0)
        shared = map(name, O_RDWR);
    ok = shared != NULL;
    MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (measure_rank == 0)
        shm_unlink(name);
    if (!all)
        shared = NULL; /* ranks of several nodes, or nothing shared to be had */
}

static void await(_Atomic uint32_t *word, uint32_t least)
{
    while ((int32_t)(atomic_load(word) - least) < 0)
        if (measure_rank < 2)
            sched_yield();
        else
            usleep(50);
}

/* Ranks 0 and 1 in turn store the next number. Nanoseconds for one hand-over. */
static double batch(void)
{
    double begin_us = measure_now_us();
    uint32_t end = n_thrown + 2 * ROUNDS;

    for (uint32_t i = n_thrown + (uint32_t)measure_rank; i != end + (uint32_t)measure_rank;
         i += 2) {
        for (int looks = 0; atomic_load_explicit(&shared->ball, memory_order_acquire) != i;)
            if (++looks % PATIENCE == 0)
                sched_yield();
        atomic_store_explicit(&shared->ball, i + 1, memory_order_release);
    }
    n_thrown = end;
    return (measure_now_us() - begin_us) * 1e3 / (2 * ROUNDS);
}

void measure_lines(void)
{
    double best_ns = 0;

    if (!shared)
        return;
    gathering += (uint32_t)measure_size;
    atomic_fetch_add(&shared->arrived, 1);
    await(&shared->arrived, gathering);
    for (int b = 0; measure_rank < 2 && b < BATCHES; b++) {
        double ns = batch();
        if (b == 0 || ns < best_ns)
            best_ns = ns;
    }
    atomic_fetch_add(&shared->left, 1);
    await(&shared->left, gathering);
    measure_line_ns = best_ns;
}
