/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided communication: every way to make a window, every synchronisation, every operation, with
 * types that have gaps and sizes on both sides of each limit. Uses mpi.h alone, so the same binary
 * runs on any library of the standard ABI. Each rank's element of what is checked follows from the
 * ranks alone.
 */
#include "tests/topo/check.h"

#include <stdlib.h>
#include <string.h>

static int rank, size;

enum flavor { CREATED, ALLOCATED, DYNAMIC, FLAVORS };

/* A window of n_bytes zeroed bytes at each rank, displacement unit 1. */
struct area {
    MPI_Win win;
    char *memory;
    MPI_Aint *base; /* of each rank: what displacements count from */
    enum flavor flavor;
};

static struct area area_new(enum flavor flavor, MPI_Aint n_bytes)
{
    struct area a = {.flavor = flavor, .base = calloc((size_t)size, sizeof(MPI_Aint))};
    if (flavor == ALLOCATED) {
        MPI_Win_allocate(n_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &a.memory, &a.win);
    } else {
        MPI_Alloc_mem(n_bytes, MPI_INFO_NULL, &a.memory);
        if (flavor == CREATED) {
            MPI_Win_create(a.memory, n_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &a.win);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &a.win);
            MPI_Win_attach(a.win, a.memory, n_bytes);
            MPI_Get_address(a.memory, &a.base[rank]);
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a.base, 1, MPI_AINT, MPI_COMM_WORLD);
        }
    }
    memset(a.memory, 0, (size_t)n_bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    return a;
}

static void area_free(struct area *a)
{
    MPI_Barrier(MPI_COMM_WORLD); /* others may still access what is detached */
    if (a->flavor == DYNAMIC)
        MPI_Win_detach(a->win, a->memory);
    MPI_Win_free(&a->win);
    CHECK(a->win == MPI_WIN_NULL, "a freed window is not null");
    if (a->flavor != ALLOCATED)
        MPI_Free_mem(a->memory);
    free(a->base);
}

/* Everybody writes a block to everybody, of sizes around the limits of the ways that data take. */
static void check_put_get(enum flavor flavor, int n_bytes)
{
    struct area a = area_new(flavor, (MPI_Aint)n_bytes * size);
    char *block = malloc((size_t)n_bytes), *got = malloc((size_t)n_bytes);
    int wrong = 0;

    MPI_Win_fence(0, a.win);
    for (int i = 0; i < n_bytes; i++)
        block[i] = (char)(i * 7 + rank);
    for (int to = 0; to < size; to++)
        MPI_Put(block, n_bytes, MPI_CHAR, to, a.base[to] + (MPI_Aint)rank * n_bytes, n_bytes,
                MPI_CHAR, a.win);
    MPI_Win_fence(0, a.win);
    for (int from = 0; from < size; from++)
        for (int i = 0; i < n_bytes; i++)
            wrong += a.memory[(size_t)from * (size_t)n_bytes + (size_t)i] != (char)(i * 7 + from);
    CHECK(wrong == 0, "flavor %d: %d of %d bytes put are wrong", flavor, wrong, n_bytes);
    for (int from = 0; from < size; from++) {
        int block_of = (rank + from) % size;
        memset(got, 0, (size_t)n_bytes);
        MPI_Get(got, n_bytes, MPI_CHAR, from, a.base[from] + (MPI_Aint)block_of * n_bytes, n_bytes,
                MPI_CHAR, a.win);
        MPI_Win_fence(0, a.win);
        for (int i = wrong = 0; i < n_bytes; i++)
            wrong += got[i] != (char)(i * 7 + block_of);
        CHECK(wrong == 0, "flavor %d: %d of %d bytes got are wrong", flavor, wrong, n_bytes);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, a.win);
    area_free(&a);
    free(block);
    free(got);
}

/* Columns of a matrix to rows and back: gaps on either side, larger than a chunk. */
static void check_types(enum flavor flavor, int n)
{
    struct area a = area_new(flavor, (MPI_Aint)sizeof(int) * n * n);
    int *mine = malloc((size_t)n * (size_t)n * sizeof *mine), *theirs = (int *)a.memory, wrong = 0;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Datatype column, transposed;

    MPI_Type_vector(n, 1, n, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &transposed);
    MPI_Type_commit(&transposed);
    MPI_Type_commit(&column);
    for (int i = 0; i < n * n; i++)
        mine[i] = i + rank;
    MPI_Win_fence(0, a.win);
    MPI_Put(mine, n * n, MPI_INT, to, a.base[to], n, transposed, a.win);
    MPI_Win_fence(0, a.win);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            wrong += theirs[i * n + k] != k * n + i + from;
    CHECK(wrong == 0, "flavor %d: %d of %d elements of a transposed matrix are wrong", flavor,
          wrong, n * n);
    memset(mine, 0, (size_t)n * (size_t)n * sizeof *mine);
    MPI_Win_fence(0, a.win);
    MPI_Get(mine, n, transposed, to, a.base[to], n * n, MPI_INT, a.win);
    MPI_Win_fence(0, a.win);
    for (int i = wrong = 0; i < n * n; i++)
        wrong += mine[i] != i + rank;
    CHECK(wrong == 0, "flavor %d: %d of %d elements got are wrong", flavor, wrong, n * n);
    memset(mine, 0, (size_t)n * (size_t)n * sizeof *mine);
    MPI_Win_fence(0, a.win);
    MPI_Get(mine, n, transposed, to, a.base[to], n, transposed, a.win);
    MPI_Win_fence(0, a.win);
    for (int i = wrong = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            wrong += mine[i * n + k] != k * n + i + rank;
    CHECK(wrong == 0, "flavor %d: %d of %d elements got from gaps into gaps are wrong", flavor,
          wrong, n * n);
    MPI_Win_fence(0, a.win);
    area_free(&a);
    MPI_Type_free(&column);
    MPI_Type_free(&transposed);
    free(mine);
}

/* A window is freed as soon as what was got from it is there, again and again: its owner may not
 * know yet that all has left it. */
static void check_free_at_once(int n_bytes)
{
    char *mine = malloc((size_t)n_bytes), *got = malloc((size_t)n_bytes);
    int wrong = 0;

    memset(mine, 'a' + rank, (size_t)n_bytes);
    for (int i = 0; i < 100; i++) {
        MPI_Win win;
        int to = (rank + 1) % size;
        MPI_Win_create(mine, n_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_fence(0, win);
        MPI_Get(got, n_bytes, MPI_BYTE, to, 0, n_bytes, MPI_BYTE, win);
        MPI_Win_fence(0, win);
        MPI_Win_free(&win);
        wrong += got[0] != 'a' + to || got[n_bytes - 1] != 'a' + to;
    }
    CHECK(wrong == 0, "%d of 100 blocks of %d bytes are wrong", wrong, n_bytes);
    free(mine);
    free(got);
}

/* Everybody adds to everybody, with locks of both kinds; n elements. */
static void check_accumulate(enum flavor flavor, int n)
{
    struct area a = area_new(flavor, (MPI_Aint)sizeof(double) * n);
    double *ones = malloc((size_t)n * sizeof *ones), *before = malloc((size_t)n * sizeof *before);
    const double *sums = (double *)a.memory;
    int wrong = 0;

    for (int i = 0; i < n; i++)
        ones[i] = 1 + rank;
    for (int turn = 0; turn < 3; turn++)
        for (int to = 0; to < size; to++) {
            MPI_Win_lock(turn == 1 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, to, 0, a.win);
            if (turn == 2)
                MPI_Get_accumulate(ones, n, MPI_DOUBLE, before, n, MPI_DOUBLE, to, a.base[to], n,
                                   MPI_DOUBLE, MPI_SUM, a.win);
            else
                MPI_Accumulate(ones, n, MPI_DOUBLE, to, a.base[to], n, MPI_DOUBLE, MPI_SUM, a.win);
            MPI_Win_unlock(to, a.win);
            for (int i = 1; turn == 2 && i < n; i++)
                wrong += before[i] < 2.0 * (1 + rank);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, a.win);
    for (int i = 0; i < n; i++)
        wrong += sums[i] != 3.0 * size * (size + 1) / 2;
    MPI_Win_unlock(rank, a.win);
    CHECK(wrong == 0, "flavor %d: %d of %d sums are wrong", flavor, wrong, n);
    area_free(&a);
    free(ones);
    free(before);
}

/* A counter at rank 0 gives each number once, and compare-and-swap makes a lock. */
static void check_counter(enum flavor flavor)
{
    enum { TURNS = 200 };
    struct area a = area_new(flavor, 4 * sizeof(MPI_Aint));
    const MPI_Aint one = 1, none = 0, me = rank + 1;
    MPI_Aint got, last = -1, sum = 0, all, old, word = sizeof(MPI_Aint);

    MPI_Win_lock_all(0, a.win);
    for (int i = 0; i < TURNS; i++) {
        MPI_Fetch_and_op(&one, &got, MPI_AINT, 0, a.base[0], MPI_SUM, a.win);
        MPI_Win_flush(0, a.win);
        CHECK(got > last, "the counter went from %ld to %ld", (long)last, (long)got);
        last = got;
        sum += got;
    }
    MPI_Allreduce(&sum, &all, 1, MPI_AINT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == (MPI_Aint)TURNS * size * (TURNS * size - 1) / 2, "numbers add up to %ld",
          (long)all);
    for (int i = 0; i < TURNS / 10; i++) {
        do {
            MPI_Compare_and_swap(&me, &none, &old, MPI_AINT, 0, a.base[0] + word, a.win);
            MPI_Win_flush(0, a.win);
        } while (old != 0);
        /* Inside: a read and a write that nobody comes between. */
        MPI_Get(&got, 1, MPI_AINT, 0, a.base[0] + 2 * word, 1, MPI_AINT, a.win);
        MPI_Win_flush(0, a.win);
        got++;
        MPI_Put(&got, 1, MPI_AINT, 0, a.base[0] + 2 * word, 1, MPI_AINT, a.win);
        MPI_Win_flush(0, a.win);
        MPI_Fetch_and_op(&none, &old, MPI_AINT, 0, a.base[0] + word, MPI_REPLACE, a.win);
        MPI_Win_flush_local(0, a.win);
        CHECK(old == me, "the lock has %ld, not %ld", (long)old, (long)me);
    }
    MPI_Win_unlock_all(a.win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, a.win);
    MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, &got, 1, MPI_AINT, 0, a.base[0] + 2 * word, 1,
                       MPI_AINT, MPI_NO_OP, a.win);
    MPI_Win_unlock(0, a.win);
    CHECK(got == TURNS / 10 * size, "%ld turns inside of the lock, not %d", (long)got,
          TURNS / 10 * size);
    area_free(&a);
}

/* Pairs, some of whose types have gaps, and the place of the largest. */
static void check_pairs(enum flavor flavor)
{
    struct pair {
        short value;
        int index;
    } mine = {(short)(rank % 5), rank}, *there;
    struct area a = area_new(flavor, 2 * sizeof(struct pair));

    there = (struct pair *)a.memory;
    there[1].value = -1;
    MPI_Win_fence(0, a.win);
    MPI_Accumulate(&mine, 1, MPI_SHORT_INT, 0, a.base[0] + (MPI_Aint)sizeof mine, 1, MPI_SHORT_INT,
                   MPI_MAXLOC, a.win);
    MPI_Win_fence(0, a.win);
    if (rank == 0)
        CHECK(there[1].value == (size < 5 ? size - 1 : 4) && there[1].index == there[1].value,
              "maximum %d at %d", there[1].value, there[1].index);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, a.win);
    area_free(&a);
}

/* Neighbours in a ring open their windows to one another. */
static void check_post_start(enum flavor flavor)
{
    struct area a = area_new(flavor, 2 * sizeof(int));
    int neighbours[2] = {(rank + size - 1) % size, (rank + 1) % size}, flag;
    int n = neighbours[0] == neighbours[1] ? 1 : 2;
    const int *got = (int *)a.memory;
    MPI_Group world, group;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, n, neighbours, &group);
    for (int turn = 0; turn < 20; turn++) {
        int value = rank * 100 + turn;
        MPI_Win_post(group, 0, a.win);
        MPI_Win_start(group, 0, a.win);
        MPI_Put(&value, 1, MPI_INT, neighbours[1], a.base[neighbours[1]], 1, MPI_INT, a.win);
        MPI_Put(&value, 1, MPI_INT, neighbours[0], a.base[neighbours[0]] + (MPI_Aint)sizeof(int), 1,
                MPI_INT, a.win);
        MPI_Win_complete(a.win);
        if (turn % 2)
            MPI_Win_wait(a.win);
        else
            do
                MPI_Win_test(a.win, &flag);
            while (!flag);
        CHECK(got[0] == neighbours[0] * 100 + turn && got[1] == neighbours[1] * 100 + turn,
              "turn %d: %d and %d", turn, got[0], got[1]);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    area_free(&a);
}

/* Request forms: complete when the buffer may be used, or the data are there. */
static void check_requests(enum flavor flavor, int n)
{
    struct area a = area_new(flavor, (MPI_Aint)sizeof(int) * n);
    int *out = malloc((size_t)n * sizeof *out), *in = malloc((size_t)n * sizeof *in), wrong = 0;
    int to = (rank + 1) % size;
    MPI_Request request, some[2];

    for (int i = 0; i < n; i++)
        out[i] = i + rank;
    MPI_Win_lock_all(0, a.win);
    MPI_Rput(out, n, MPI_INT, to, a.base[to], n, MPI_INT, a.win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(to, a.win);
    MPI_Rget(in, n, MPI_INT, to, a.base[to], n, MPI_INT, a.win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
        wrong += in[i] != out[i];
    MPI_Raccumulate(out, n, MPI_INT, to, a.base[to], n, MPI_INT, MPI_SUM, a.win, &some[0]);
    MPI_Rget_accumulate(out, n, MPI_INT, in, n, MPI_INT, to, a.base[to], n, MPI_INT, MPI_SUM, a.win,
                        &some[1]);
    MPI_Waitall(2, some, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        wrong += in[i] != 2 * out[i];
    MPI_Win_unlock_all(a.win);
    CHECK(wrong == 0, "flavor %d: %d of %d elements are wrong", flavor, wrong, n);
    MPI_Rput(out, n, MPI_INT, MPI_PROC_NULL, 0, n, MPI_INT, a.win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    area_free(&a);
    free(out);
    free(in);
}

/* What is got is what was there when the epoch ended, however long it is on its way: the target
 * writes again as soon as it may. */
static void check_end_of_get(enum flavor flavor, int n)
{
    struct area a = area_new(flavor, (MPI_Aint)sizeof(int) * n);
    int *got = malloc((size_t)n * sizeof *got), *mine = (int *)a.memory, wrong = 0;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Group world, next, last;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &to, &next);
    MPI_Group_incl(world, 1, &from, &last);
    for (int turn = 0; turn < 5; turn++) {
        for (int i = 0; i < n; i++)
            mine[i] = turn;
        MPI_Win_post(last, 0, a.win);
        MPI_Win_start(next, 0, a.win);
        MPI_Get(got, n, MPI_INT, to, a.base[to], n, MPI_INT, a.win);
        MPI_Win_complete(a.win);
        for (int i = 0; i < n; i++)
            wrong += got[i] != turn;
        MPI_Win_wait(a.win);
    }
    CHECK(wrong == 0, "flavor %d: %d elements of %d got are of another epoch", flavor, wrong, n);
    MPI_Group_free(&world);
    MPI_Group_free(&next);
    MPI_Group_free(&last);
    area_free(&a);
    free(got);
}

/* Shared memory: parts follow one another, and are seen by load and store. */
static void check_shared(void)
{
    MPI_Comm node;
    MPI_Win win;
    MPI_Aint bytes;
    int node_rank, node_size, unit, *mine, *theirs;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank);
    MPI_Comm_size(node, &node_size);
    MPI_Win_allocate_shared((MPI_Aint)sizeof(int) * 3, sizeof(int), MPI_INFO_NULL, node, &mine,
                            &win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 3; i++)
        mine[i] = node_rank * 10 + i;
    MPI_Win_sync(win);
    MPI_Barrier(node);
    MPI_Win_sync(win);
    for (int r = 0; r < node_size; r++) {
        MPI_Win_shared_query(win, r, &bytes, &unit, &theirs);
        CHECK(bytes == 3 * sizeof(int) && unit == sizeof(int) && theirs[2] == r * 10 + 2,
              "rank %d: %ld bytes, unit %d, last %d", r, (long)bytes, unit, theirs[2]);
    }
    MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &theirs);
    CHECK(theirs[3 * node_rank] == node_rank * 10, "parts do not follow one another");
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&node);
}

/* What windows tell of themselves. */
static void check_attributes(enum flavor flavor)
{
    static const int flavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE,
                                  MPI_WIN_FLAVOR_DYNAMIC};
    struct area a = area_new(flavor, 64);
    void *value;
    int flag, keyval, n, word = 4711;
    char name[MPI_MAX_OBJECT_NAME];

    MPI_Win_get_attr(a.win, MPI_WIN_BASE, &value, &flag);
    CHECK(flag && value == (flavor == DYNAMIC ? MPI_BOTTOM : a.memory), "base %p", value);
    MPI_Win_get_attr(a.win, MPI_WIN_SIZE, &value, &flag);
    CHECK(flag && *(MPI_Aint *)value == (flavor == DYNAMIC ? 0 : 64), "size");
    MPI_Win_get_attr(a.win, MPI_WIN_DISP_UNIT, &value, &flag);
    CHECK(flag && *(int *)value == 1, "unit");
    MPI_Win_get_attr(a.win, MPI_WIN_CREATE_FLAVOR, &value, &flag);
    CHECK(flag && *(int *)value == flavors[flavor], "flavor");
    MPI_Win_get_attr(a.win, MPI_WIN_MODEL, &value, &flag);
    CHECK(flag && *(int *)value == MPI_WIN_UNIFIED, "model");
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL);
    MPI_Win_set_attr(a.win, keyval, &word);
    MPI_Win_get_attr(a.win, keyval, &value, &flag);
    CHECK(flag && value == &word, "attribute %p", value);
    MPI_Win_delete_attr(a.win, keyval);
    MPI_Win_free_keyval(&keyval);
    if (flavor == CREATED) {
        /* The lowest rank that has memory is rank 0, for all; its own alone, and its node perhaps,
         * reach it. */
        MPI_Aint bytes;
        int unit;
        MPI_Win_shared_query(a.win, MPI_PROC_NULL, &bytes, &unit, &value);
        CHECK(bytes == 0 || rank != 0 || value == a.memory, "memory of rank 0 at %p", value);
        CHECK(bytes == 0 || value != a.memory || rank == 0, "own memory for that of rank 0");
    }
    MPI_Win_set_name(a.win, "halo");
    MPI_Win_get_name(a.win, name, &n);
    CHECK(n == 4 && strcmp(name, "halo") == 0, "name %s", name);
    area_free(&a);
}

static int class_of(int code)
{
    int mpi_class;
    MPI_Error_class(code, &mpi_class);
    return mpi_class;
}

/* What is wrong is said, and the window can be used on. */
static void check_errors(enum flavor flavor)
{
    struct area a = area_new(flavor, 64);
    int to = (rank + 1) % size, word = 1, code;

    MPI_Win_set_errhandler(a.win, MPI_ERRORS_RETURN);
    code = MPI_Put(&word, 1, MPI_INT, to, a.base[to], 1, MPI_INT, a.win);
    CHECK(class_of(code) == MPI_ERR_RMA_SYNC, "outside of an epoch: %d", code);
    code = MPI_Win_unlock(to, a.win);
    CHECK(class_of(code) == MPI_ERR_RMA_SYNC, "unlock of what is not locked: %d", code);
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, a.win);
    code = MPI_Put(&word, 1, MPI_INT, size, 0, 1, MPI_INT, a.win);
    CHECK(class_of(code) == MPI_ERR_RANK, "rank outside of the window: %d", code);
    code = MPI_Put(&word, 1, MPI_INT, to, a.base[to] + 60, 1, MPI_INT, a.win);
    CHECK(code == MPI_SUCCESS, "the last element: %d", code);
    code = MPI_Win_unlock(to, a.win);
    CHECK(code == MPI_SUCCESS, "unlock after the last element: %d", code);
    code = MPI_Win_lock(4711, to, 0, a.win);
    CHECK(class_of(code) == MPI_ERR_LOCKTYPE, "type of lock: %d", code);
    area_free(&a);
}

int main(int argc, char **argv)
{
    static const int bytes[] = {1, 8, 4000, 9000, 70000, 600000};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int f = 0; f < FLAVORS; f++) {
        enum flavor flavor = (enum flavor)f;
        for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
            check_put_get(flavor, bytes[i]);
        check_types(flavor, 3);
        check_types(flavor, 300);
        check_accumulate(flavor, 1);
        check_accumulate(flavor, 700);
        check_accumulate(flavor, 100000);
        check_counter(flavor);
        check_pairs(flavor);
        check_post_start(flavor);
        check_end_of_get(flavor, 10);
        check_end_of_get(flavor, 200000);
        check_requests(flavor, 1);
        check_requests(flavor, 50000);
        check_attributes(flavor);
        check_errors(flavor);
    }
    check_free_at_once(20000);
    check_free_at_once(300000);
    check_shared();
    MPI_Finalize();
    return 0;
}
