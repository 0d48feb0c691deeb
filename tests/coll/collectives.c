/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective of chapter 6 on intracommunicators against what it must give, for a dense, a
 * strided and a pair type, all roots, in place and not, blocking, nonblocking and persistent. Any
 * number of ranks. Ends with 0 when all is right.
 *
 * Arguments: largest count (default 3000). Runs on any library with the standard ABI.
 */
#include "data.h"
#include "forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum form form;
int n_starts;

static MPI_Comm comm;
static int rank, size;
static char where[256];

static void at(const char *what, const struct kind *k, long count, int root, int in_place)
{
    static const char *const forms[] = {"blocking", "nonblocking", "persistent"};
    snprintf(where, sizeof where, "%s %s, %d ranks, %s x %ld, root %d%s", forms[form], what, size,
             k ? k->name : "", count, root, in_place ? ", in place" : "");
    context = where;
    n_starts = in_place ? 1 : 2;
}

/* ---- data movement ---- */

static void test_bcast(const struct kind *k, int count, int root)
{
    int *buf = data_new(k, count);
    at("bcast", k, count, root, 0);
    if (rank == root)
        data_fill(buf, k, 0, count, root, 0);
    RUN(Bcast, Ibcast, buf, count, k->type, root, comm);
    data_check(buf, k, 0, count, root, 0);
    data_check_gaps(buf, k, count);
    free(buf);
}

static void test_gather(const struct kind *k, int count, int root, int in_place)
{
    int *send = data_new(k, count), *recv = data_new(k, (long)count * size);
    at("gather", k, count, root, in_place);
    data_fill(send, k, 0, count, rank, 0);
    if (in_place && rank == root) {
        data_fill(recv, k, (long)rank * count, count, rank, 0);
        RUN(Gather, Igather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, count, k->type, root, comm);
    } else {
        RUN(Gather, Igather, send, count, k->type, recv, count, k->type, root, comm);
    }
    for (int i = 0; rank == root && i < size; i++)
        data_check(recv, k, (long)i * count, count, i, 0);
    if (rank != root)
        data_check_filler(recv, k, 0, (long)count * size);
    data_check_gaps(recv, k, (long)count * size);
    free(send);
    free(recv);
}

static void test_scatter(const struct kind *k, int count, int root, int in_place)
{
    int *send = data_new(k, (long)count * size), *recv = data_new(k, count);
    at("scatter", k, count, root, in_place);
    for (int i = 0; rank == root && i < size; i++)
        data_fill(send, k, (long)i * count, count, i, 5);
    if (in_place && rank == root) {
        RUN(Scatter, Iscatter, send, count, k->type, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root,
            comm);
    } else {
        RUN(Scatter, Iscatter, send, count, k->type, recv, count, k->type, root, comm);
        data_check(recv, k, 0, count, rank, 5);
    }
    data_check_gaps(recv, k, count);
    free(send);
    free(recv);
}

/* Blocks of the v forms: unequal, some empty, in reverse order with a gap of one element behind
 * each. */
static int v_count(int count, int i)
{
    return count == 0 ? 0 : (count + i) % 3 == 2 ? 0 : count + i;
}

static long v_layout(int count, int *counts, int *displs)
{
    long total = 0;
    for (int i = size - 1; i >= 0; i--) {
        counts[i] = v_count(count, i);
        displs[i] = (int)total;
        total += counts[i] + 1;
    }
    return total;
}

static void test_gatherv(const struct kind *k, int count, int root, int in_place)
{
    int *counts = malloc((size_t)size * sizeof(int)), *displs = malloc((size_t)size * sizeof(int));
    long total = v_layout(count, counts, displs);
    int mine = counts[rank];
    int *send = data_new(k, mine), *recv = data_new(k, total);
    at("gatherv", k, count, root, in_place);
    data_fill(send, k, 0, mine, rank, 0);
    if (in_place && rank == root) {
        data_fill(recv, k, displs[rank], mine, rank, 0);
        RUN(Gatherv, Igatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, counts, displs, k->type,
            root, comm);
    } else {
        RUN(Gatherv, Igatherv, send, mine, k->type, recv, counts, displs, k->type, root, comm);
    }
    for (int i = 0; rank == root && i < size; i++) {
        data_check(recv, k, displs[i], counts[i], i, 0);
        data_check_filler(recv, k, displs[i] + counts[i], 1);
    }
    data_check_gaps(recv, k, total);
    free(send);
    free(recv);
    free(counts);
    free(displs);
}

static void test_scatterv(const struct kind *k, int count, int root, int in_place)
{
    int *counts = malloc((size_t)size * sizeof(int)), *displs = malloc((size_t)size * sizeof(int));
    long total = v_layout(count, counts, displs);
    int mine = counts[rank];
    int *send = data_new(k, total), *recv = data_new(k, mine);
    at("scatterv", k, count, root, in_place);
    for (int i = 0; rank == root && i < size; i++)
        data_fill(send, k, displs[i], counts[i], i, 2);
    if (in_place && rank == root) {
        RUN(Scatterv, Iscatterv, send, counts, displs, k->type, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
            root, comm);
    } else {
        RUN(Scatterv, Iscatterv, send, counts, displs, k->type, recv, mine, k->type, root, comm);
        data_check(recv, k, 0, mine, rank, 2);
    }
    data_check_gaps(recv, k, mine);
    free(send);
    free(recv);
    free(counts);
    free(displs);
}

static void test_allgather(const struct kind *k, int count, int in_place)
{
    int *send = data_new(k, count), *recv = data_new(k, (long)count * size);
    at("allgather", k, count, -1, in_place);
    data_fill(send, k, 0, count, rank, 0);
    if (in_place) {
        data_fill(recv, k, (long)rank * count, count, rank, 0);
        RUN(Allgather, Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, count, k->type, comm);
    } else {
        RUN(Allgather, Iallgather, send, count, k->type, recv, count, k->type, comm);
    }
    for (int i = 0; i < size; i++)
        data_check(recv, k, (long)i * count, count, i, 0);
    data_check_gaps(recv, k, (long)count * size);
    free(send);
    free(recv);
}

static void test_allgatherv(const struct kind *k, int count, int in_place)
{
    int *counts = malloc((size_t)size * sizeof(int)), *displs = malloc((size_t)size * sizeof(int));
    long total = v_layout(count, counts, displs);
    int mine = counts[rank];
    int *send = data_new(k, mine), *recv = data_new(k, total);
    at("allgatherv", k, count, -1, in_place);
    data_fill(send, k, 0, mine, rank, 0);
    if (in_place) {
        data_fill(recv, k, displs[rank], mine, rank, 0);
        RUN(Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, counts, displs,
            k->type, comm);
    } else {
        RUN(Allgatherv, Iallgatherv, send, mine, k->type, recv, counts, displs, k->type, comm);
    }
    for (int i = 0; i < size; i++) {
        data_check(recv, k, displs[i], counts[i], i, 0);
        data_check_filler(recv, k, displs[i] + counts[i], 1);
    }
    data_check_gaps(recv, k, total);
    free(send);
    free(recv);
    free(counts);
    free(displs);
}

static void test_alltoall(const struct kind *k, int count, int in_place)
{
    int *send = data_new(k, (long)count * size), *recv = data_new(k, (long)count * size);
    at("alltoall", k, count, -1, in_place);
    for (int i = 0; i < size; i++)
        data_fill(in_place ? recv : send, k, (long)i * count, count, rank, i * 100);
    if (in_place)
        RUN(Alltoall, Ialltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, count, k->type, comm);
    else
        RUN(Alltoall, Ialltoall, send, count, k->type, recv, count, k->type, comm);
    for (int i = 0; i < size; i++)
        data_check(recv, k, (long)i * count, count, i, rank * 100);
    data_check_gaps(recv, k, (long)count * size);
    free(send);
    free(recv);
}

/* From a to b go (a + b) % 3 * count elements; symmetric, as the in-place form wants. wide:
 * alltoallw. */
static void test_alltoallv(const struct kind *k, int count, int in_place, int wide)
{
    int *counts = malloc((size_t)size * sizeof(int)), *displs = malloc((size_t)size * sizeof(int));
    MPI_Datatype *types = malloc((size_t)size * sizeof(MPI_Datatype));
    int total = 0, scale = wide ? k->extent * (int)sizeof(int) : 1;
    for (int i = 0; i < size; i++) {
        counts[i] = (rank + i) % 3 * count;
        displs[i] = total * scale;
        types[i] = k->type;
        total += counts[i] + 1;
    }
    int *send = data_new(k, total), *recv = data_new(k, total);
    at(wide ? "alltoallw" : "alltoallv", k, count, -1, in_place);
    for (int i = 0; i < size; i++)
        data_fill(in_place ? recv : send, k, displs[i] / scale, counts[i], rank, i * 100);
    if (wide && in_place)
        RUN(Alltoallw, Ialltoallw, MPI_IN_PLACE, NULL, NULL, NULL, recv, counts, displs, types,
            comm);
    else if (wide)
        RUN(Alltoallw, Ialltoallw, send, counts, displs, types, recv, counts, displs, types, comm);
    else if (in_place)
        RUN(Alltoallv, Ialltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, recv, counts,
            displs, k->type, comm);
    else
        RUN(Alltoallv, Ialltoallv, send, counts, displs, k->type, recv, counts, displs, k->type,
            comm);
    for (int i = 0; i < size; i++) {
        data_check(recv, k, displs[i] / scale, counts[i], i, rank * 100);
        data_check_filler(recv, k, displs[i] / scale + counts[i], 1);
    }
    data_check_gaps(recv, k, total);
    free(send);
    free(recv);
    free(counts);
    free(displs);
    free(types);
}

/* ---- reductions ---- */

/* Affine maps x -> a x + b modulo a prime: associative, not commutative, so the order of operands
 * shows. Two ints an element; on the strided type, too. */
#define PRIME 10007

struct reduction {
    const char *name;
    MPI_Op op;
    MPI_Datatype type;
    const struct kind *kind; /* layout of an element */
    int affine;
};

static void compose(const int *in, int *inout)
{
    /* in first, then inout: x -> a2 (a1 x + b1) + b2 */
    long a1 = in[0], b1 = in[1], a2 = inout[0], b2 = inout[1];
    inout[0] = (int)(a1 * a2 % PRIME);
    inout[1] = (int)((a2 * b1 + b2) % PRIME);
}

static void affine_dense(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        compose((int *)in + 2 * i, (int *)inout + 2 * i);
}

static void affine_strided(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++) {
        int *a = (int *)in + 4 * i, *b = (int *)inout + 4 * i;
        int x[2] = {a[0], a[2]}, y[2] = {b[0], b[2]};
        compose(x, y);
        b[0] = y[0];
        b[2] = y[1];
    }
}

static void operand(const struct reduction *r, int who, long i, int ret[2])
{
    ret[0] = value_of(who, i, 0) & 0xffff;
    ret[1] = value_of(who, i, 1) & 0xffff;
    if (r->affine) {
        ret[0] = ret[0] % (PRIME - 1) + 1;
        ret[1] %= PRIME;
    }
}

static void put(const struct reduction *r, int *buf, long i, const int value[2])
{
    for (int p = 0; p < r->kind->n; p++)
        buf[i * r->kind->extent + r->kind->at[p]] = value[p];
}

static void fill_operands(const struct reduction *r, int *buf, long count)
{
    for (long i = 0; i < count; i++) {
        int value[2];
        operand(r, rank, i, value);
        put(r, buf, i, value);
    }
}

/* Result of ranks 0..last for element i. */
static void expect(const struct reduction *r, int last, long i, int ret[2])
{
    operand(r, last, i, ret);
    for (int who = last - 1; who >= 0; who--) {
        int in[2];
        operand(r, who, i, in);
        if (r->affine)
            compose(in, ret);
        else if (r->op == MPI_SUM)
            ret[0] += in[0];
        else if (in[0] > ret[0] || (in[0] == ret[0] && in[1] < ret[1])) /* MPI_MAXLOC, MPI_MAX */
            memcpy(ret, in, sizeof in);
    }
}

static void check_result(const struct reduction *r, const int *buf, long first, long count,
                         int last)
{
    for (long i = 0; i < count; i++) {
        int want[2];
        expect(r, last, first + i, want);
        for (int p = 0; p < r->kind->n; p++) {
            int got = buf[i * r->kind->extent + r->kind->at[p]];
            if (got != want[p]) {
                failed("%s: element %ld part %d is %d, expected %d", r->name, i, p, got, want[p]);
                return;
            }
        }
    }
}

static void test_reduce(const struct reduction *r, int count, int root, int in_place)
{
    const struct kind *k = r->kind;
    int *send = data_new(k, count), *recv = data_new(k, count);
    at("reduce", k, count, root, in_place);
    fill_operands(r, in_place && rank == root ? recv : send, count);
    if (in_place && rank == root)
        RUN(Reduce, Ireduce, MPI_IN_PLACE, recv, count, r->type, r->op, root, comm);
    else
        RUN(Reduce, Ireduce, send, rank == root ? recv : NULL, count, r->type, r->op, root, comm);
    if (rank == root)
        check_result(r, recv, 0, count, size - 1);
    data_check_gaps(recv, k, count);
    free(send);
    free(recv);
}

/* which: 0 allreduce, 1 scan, 2 exscan */
static void test_all(const struct reduction *r, int which, int count, int in_place)
{
    static const char *const names[] = {"allreduce", "scan", "exscan"};
    const struct kind *k = r->kind;
    int *send = data_new(k, count), *recv = data_new(k, count);
    const void *from = in_place ? MPI_IN_PLACE : (void *)send;
    at(names[which], k, count, -1, in_place);
    fill_operands(r, in_place ? recv : send, count);
    if (which == 0)
        RUN(Allreduce, Iallreduce, from, recv, count, r->type, r->op, comm);
    else if (which == 1)
        RUN(Scan, Iscan, from, recv, count, r->type, r->op, comm);
    else
        RUN(Exscan, Iexscan, from, recv, count, r->type, r->op, comm);
    if (which < 2)
        check_result(r, recv, 0, count, which == 0 ? size - 1 : rank);
    else if (rank > 0)
        check_result(r, recv, 0, count, rank - 1);
    data_check_gaps(recv, k, count);
    free(send);
    free(recv);
}

static void test_reduce_scatter(const struct reduction *r, int count, int in_place, int block)
{
    const struct kind *k = r->kind;
    int *counts = malloc((size_t)size * sizeof(int));
    long total = 0, first = 0;
    for (int i = 0; i < size; i++) {
        counts[i] = block ? count : v_count(count, i);
        first += i < rank ? counts[i] : 0;
        total += counts[i];
    }
    int *send = data_new(k, total), *recv = data_new(k, in_place ? total : counts[rank]);
    const void *from = in_place ? MPI_IN_PLACE : (void *)send;
    at(block ? "reduce_scatter_block" : "reduce_scatter", k, count, -1, in_place);
    fill_operands(r, in_place ? recv : send, total);
    if (block)
        RUN(Reduce_scatter_block, Ireduce_scatter_block, from, recv, count, r->type, r->op, comm);
    else
        RUN(Reduce_scatter, Ireduce_scatter, from, recv, counts, r->type, r->op, comm);
    check_result(r, recv, first, counts[rank], size - 1);
    data_check_gaps(recv, k, in_place ? total : counts[rank]);
    free(send);
    free(recv);
    free(counts);
}

/* ---- all of it ---- */

static void test_moves(int count)
{
    for (int kind = 0; kind < N_KINDS; kind++) {
        const struct kind *k = &kinds[kind];
        for (int root = 0; root < size; root++) {
            test_bcast(k, count, root);
            for (int in_place = 0; in_place < 2; in_place++) {
                test_gather(k, count, root, in_place);
                test_scatter(k, count, root, in_place);
                test_gatherv(k, count, root, in_place);
                test_scatterv(k, count, root, in_place);
            }
        }
        for (int in_place = 0; in_place < 2; in_place++) {
            test_allgather(k, count, in_place);
            test_allgatherv(k, count, in_place);
            test_alltoall(k, count, in_place);
            test_alltoallv(k, count, in_place, 0);
            test_alltoallv(k, count, in_place, 1);
        }
    }
}

static void test_reductions(const struct reduction *reductions, int n, int count)
{
    for (int i = 0; i < n; i++) {
        const struct reduction *r = &reductions[i];
        for (int in_place = 0; in_place < 2; in_place++) {
            for (int root = 0; root < size; root++)
                test_reduce(r, count, root, in_place);
            for (int which = 0; which < 3; which++)
                test_all(r, which, count, in_place);
            test_reduce_scatter(r, count, in_place, 0);
            test_reduce_scatter(r, count, in_place, 1);
        }
    }
}

static void test_barrier(void)
{
    int round = 1, sum = 0;
    at("barrier", NULL, 0, -1, 0);
    MPI_Request request = MPI_REQUEST_NULL;
    if (form == FORM_BLOCKING) {
        MPI_Barrier(comm);
    } else if (form == FORM_NONBLOCKING) {
        MPI_Ibarrier(comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
        for (int i = 0; i < 3; i++) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
    }
    MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (sum != size)
        failed("the sum behind a barrier is %d", sum);
}

/* Several nonblocking collectives at once, waited for in another order on every rank. */
static void test_many(void)
{
    enum { N = 12 };
    MPI_Request requests[N];
    int in[N], out[N];
    form = FORM_NONBLOCKING;
    at("many at once", NULL, 0, -1, 0);
    for (int i = 0; i < N; i++) {
        in[i] = rank * 10 + i;
        out[i] = -1;
        if (i % 3 == 0)
            MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
        else if (i % 3 == 1)
            MPI_Ibcast(i % size == rank ? (out[i] = in[i], &out[i]) : &out[i], 1, MPI_INT, i % size,
                       comm, &requests[i]);
        else
            MPI_Iscan(&in[i], &out[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
    }
    for (int i = 0; i < N; i++) {
        int which = (i * 5 + rank * 7) % N;
        MPI_Wait(&requests[which], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < N; i++) {
        int last = i % 3 == 0 ? size - 1 : rank, want = i % 3 == 1 ? i % size * 10 + i : 0;
        for (int who = 0; i % 3 != 1 && who <= last; who++)
            want += who * 10 + i;
        if (out[i] != want)
            failed("operation %d gave %d, expected %d", i, out[i], want);
    }
}

int main(int argc, char **argv)
{
    int max_count = 3000;
    static const int counts[] = {0, 1, 3, 17, 300, 3000, 40000};

    MPI_Init(&argc, &argv);
    if (argc > 1)
        max_count = atoi(argv[1]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    kinds_make();

    struct reduction reductions[] = {
        {.name = "sum", .op = MPI_SUM, .type = MPI_INT, .kind = &kinds[0]},
        {.name = "maxloc", .op = MPI_MAXLOC, .type = MPI_2INT, .kind = &kinds[2]},
        {.name = "affine", .kind = &kinds[2], .affine = 1},
        {.name = "affine, strided", .kind = &kinds[1], .affine = 1},
    };
    int n = (int)(sizeof reductions / sizeof reductions[0]);
    MPI_Op_create(affine_dense, 0, &reductions[2].op);
    MPI_Op_create(affine_strided, 0, &reductions[3].op);
    MPI_Datatype two;
    MPI_Type_contiguous(2, MPI_INT, &two);
    MPI_Type_commit(&two);
    reductions[2].type = two;
    reductions[3].type = kinds[1].type;

    for (form = 0; form < N_FORMS; form++) {
        test_barrier();
        for (size_t i = 0; i < sizeof counts / sizeof counts[0] && counts[i] <= max_count; i++) {
            test_moves(counts[i]);
            test_reductions(reductions, n, counts[i]);
        }
    }
    test_many();

    MPI_Op_free(&reductions[2].op);
    MPI_Op_free(&reductions[3].op);
    MPI_Type_free(&two);
    kinds_free();
    MPI_Comm_free(&comm);
    int all = n_failed;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (all && n_failed)
        printf("rank %d: %d checks failed\n", rank, n_failed);
    MPI_Finalize();
    return all != 0;
}
