/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives on intercommunicators: the ranks are split into two groups of unequal size that are
 * joined in the middle. Needs two ranks or more; blocking, nonblocking and persistent.
 */
#include "data.h"
#include "forms.h"

#include <stdio.h>
#include <stdlib.h>

enum form form;
int n_starts = 2;

static MPI_Comm comm; /* the intercommunicator */
static int rank, size, n_remote;
static int side;    /* 0: lower ranks of the world, 1: upper ones */
static int base[2]; /* world rank of each side's rank 0 */
static const struct kind *k;
static int count;
static char where[128];

static void at(const char *what, int root_side, int root)
{
    snprintf(where, sizeof where, "form %d inter %s, %d against %d, %s x %d, root %d of side %d",
             (int)form, what, size, n_remote, k->name, count, root, root_side);
    context = where;
}

/* The root argument of this rank for rank `root` of side `root_side`. */
static int root_argument(int root_side, int root)
{
    if (side != root_side)
        return root;
    return rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

static int own(void)
{
    return base[side] + rank;
}

static MPI_Datatype triple;
static MPI_Op follow;

/* Rows (first, last, length) that follow one another; others spoil the length. */
static void follow_on(void *in, void *inout, int *n, MPI_Datatype *type)
{
    const int *a = in;
    int *b = inout;
    (void)type;
    for (int i = 0; i < *n; i++, a += 3, b += 3) {
        b[2] = a[1] + 1 == b[0] ? a[2] + b[2] : -1000000;
        b[0] = a[0];
    }
}

static void test_rooted(int root_side, int root)
{
    int argument = root_argument(root_side, root), is_root = argument == MPI_ROOT;
    int *one = data_new(k, count), *many = data_new(k, (long)count * n_remote);

    at("bcast", root_side, root);
    if (is_root)
        data_fill(one, k, 0, count, 77, 0);
    RUN(Bcast, Ibcast, one, count, k->type, argument, comm);
    if (side != root_side)
        data_check(one, k, 0, count, 77, 0);
    free(one);

    at("gather", root_side, root);
    one = data_new(k, count);
    data_fill(one, k, 0, count, own(), 0);
    RUN(Gather, Igather, one, count, k->type, many, count, k->type, argument, comm);
    for (int i = 0; is_root && i < n_remote; i++)
        data_check(many, k, (long)i * count, count, base[!side] + i, 0);
    free(one);
    free(many);

    at("scatter", root_side, root);
    one = data_new(k, count);
    many = data_new(k, (long)count * n_remote);
    for (int i = 0; is_root && i < n_remote; i++)
        data_fill(many, k, (long)i * count, count, i, 3);
    RUN(Scatter, Iscatter, many, count, k->type, one, count, k->type, argument, comm);
    if (side != root_side)
        data_check(one, k, 0, count, rank, 3);
    free(one);
    free(many);

    at("reduce", root_side, root);
    if (k == &kinds[0]) {
        int in = own() + 1, out = -1, want = 0;
        RUN(Reduce, Ireduce, &in, &out, 1, MPI_INT, MPI_SUM, argument, comm);
        for (int i = 0; i < n_remote; i++)
            want += base[!side] + i + 1;
        if (is_root && out != want)
            failed("sum is %d, expected %d", out, want);
    }

    /* Ordered and as long as the others: each element a row of numbers of which the result keeps
     * first and last. */
    at("reduce in order", root_side, root);
    int *row = malloc(3 * (size_t)count * sizeof(int) + 1),
        *rows = malloc(3 * (size_t)count * sizeof(int) + 1);
    for (int i = 0; i < 3 * count; i++)
        row[i] = i % 3 == 2 ? 1 : rank + i / 3;
    RUN(Reduce, Ireduce, row, rows, count, triple, follow, argument, comm);
    for (int i = 0; is_root && i < count; i++)
        if (rows[3 * i] != i || rows[3 * i + 1] != n_remote - 1 + i ||
            rows[3 * i + 2] != n_remote) {
            failed("element %d goes from %d to %d, %d ranks", i, rows[3 * i], rows[3 * i + 1],
                   rows[3 * i + 2]);
            break;
        }
    free(row);
    free(rows);
}

static void test_v(void)
{
    int *counts = malloc((size_t)n_remote * sizeof(int)),
        *displs = malloc((size_t)n_remote * sizeof(int));
    int total = 0, mine = (own() % 2) * count + 1;
    for (int i = n_remote - 1; i >= 0; i--) {
        counts[i] = ((base[!side] + i) % 2) * count + 1;
        displs[i] = total;
        total += counts[i] + 1;
    }
    int *send = data_new(k, mine), *recv = data_new(k, total);
    at("allgatherv", -1, -1);
    data_fill(send, k, 0, mine, own(), 0);
    RUN(Allgatherv, Iallgatherv, send, mine, k->type, recv, counts, displs, k->type, comm);
    for (int i = 0; i < n_remote; i++) {
        data_check(recv, k, displs[i], counts[i], base[!side] + i, 0);
        data_check_filler(recv, k, displs[i] + counts[i], 1);
    }
    free(send);
    free(recv);
    free(counts);
    free(displs);
}

static void test_all(void)
{
    int *send = data_new(k, count), *recv = data_new(k, (long)count * n_remote);
    at("allgather", -1, -1);
    data_fill(send, k, 0, count, own(), 0);
    RUN(Allgather, Iallgather, send, count, k->type, recv, count, k->type, comm);
    for (int i = 0; i < n_remote; i++)
        data_check(recv, k, (long)i * count, count, base[!side] + i, 0);
    free(send);
    free(recv);

    at("alltoall", -1, -1);
    send = data_new(k, (long)count * n_remote);
    recv = data_new(k, (long)count * n_remote);
    for (int i = 0; i < n_remote; i++)
        data_fill(send, k, (long)i * count, count, own(), i * 10);
    RUN(Alltoall, Ialltoall, send, count, k->type, recv, count, k->type, comm);
    for (int i = 0; i < n_remote; i++)
        data_check(recv, k, (long)i * count, count, base[!side] + i, rank * 10);
    free(send);
    free(recv);

    at("barrier and allreduce", -1, -1);
    int in[2] = {own() + 1, 1}, out[2] = {-1, -1}, want = 0;
    if (form == FORM_BLOCKING)
        MPI_Barrier(comm);
    RUN(Allreduce, Iallreduce, in, out, 2, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < n_remote; i++)
        want += base[!side] + i + 1;
    if (out[0] != want || out[1] != n_remote)
        failed("sums are %d and %d, expected %d and %d", out[0], out[1], want, n_remote);

    /* Each group's operand has size * n_remote elements, so that it can be cut up on either
     * side. */
    at("reduce_scatter_block", -1, -1);
    int n = size * n_remote, *operand = malloc((size_t)n * sizeof(int)),
        *part = malloc((size_t)n_remote * sizeof(int));
    for (int i = 0; i < n; i++)
        operand[i] = own() * 1000 + i;
    RUN(Reduce_scatter_block, Ireduce_scatter_block, operand, part, n_remote, MPI_INT, MPI_SUM,
        comm);
    for (int i = 0; i < n_remote; i++) {
        want = 0;
        for (int who = 0; who < n_remote; who++)
            want += (base[!side] + who) * 1000 + rank * n_remote + i;
        if (part[i] != want)
            failed("element %d is %d, expected %d", i, part[i], want);
    }
    at("reduce_scatter", -1, -1);
    int *uneven = malloc((size_t)size * sizeof(int)), first = 0;
    for (int i = 0; i < size; i++)
        uneven[i] =
            i == 0 ? n - (size - 1) : 1; /* all to the first but an element for each other one */
    int *cut = malloc((size_t)n * sizeof(int));
    RUN(Reduce_scatter, Ireduce_scatter, operand, cut, uneven, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < rank; i++)
        first += uneven[i];
    for (int i = 0; i < uneven[rank]; i++) {
        want = 0;
        for (int who = 0; who < n_remote; who++)
            want += (base[!side] + who) * 1000 + first + i;
        if (cut[i] != want)
            failed("element %d is %d, expected %d", i, cut[i], want);
    }
    free(uneven);
    free(cut);
    free(operand);
    free(part);
}

/* Long enough to travel in pieces, in both directions at once. */
static void test_long(int n)
{
    int *in = malloc((size_t)n * sizeof(int)), *out = malloc((size_t)n * sizeof(int)), want = 0;
    count = n;
    at("long allreduce", -1, -1);
    for (int i = 0; i < n; i++)
        in[i] = own() + i;
    RUN(Allreduce, Iallreduce, in, out, n, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < n_remote; i++)
        want += base[!side] + i;
    for (int i = 0; i < n; i++)
        if (out[i] != want + n_remote * i) {
            failed("element %d is %d, expected %d", i, out[i], want + n_remote * i);
            break;
        }
    free(in);
    free(out);
}

static void test_merge(void)
{
    MPI_Comm merged, copy;
    int merged_rank, merged_size, result;

    context = "merge";
    MPI_Intercomm_merge(comm, side == 0, &merged); /* the upper side first */
    MPI_Comm_rank(merged, &merged_rank);
    MPI_Comm_size(merged, &merged_size);
    if (merged_size != size + n_remote || merged_rank != (side == 0 ? n_remote + rank : rank))
        failed("rank %d of %d", merged_rank, merged_size);
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_compare(comm, copy, &result);
    if (result != MPI_CONGRUENT)
        failed("a duplicate compares as %d", result);
    MPI_Comm_free(&copy);
    MPI_Comm_compare(comm, merged, &result);
    if (result != MPI_UNEQUAL)
        failed("inter and intra compare as %d", result);
    MPI_Comm_free(&merged);

    /* By parity of the world rank; a color without partner on the other side gives no
     * communicator. */
    context = "split of an intercommunicator";
    MPI_Comm half;
    MPI_Comm_split(comm, own() % 2, -rank, &half);
    int partners = 0, peers = 0;
    for (int i = 0; i < n_remote; i++)
        partners += (base[!side] + i) % 2 == own() % 2;
    if ((half == MPI_COMM_NULL) != (partners == 0))
        failed("%d partners, but the communicator is%s null", partners,
               half == MPI_COMM_NULL ? "" : " not");
    if (half != MPI_COMM_NULL) {
        MPI_Comm_remote_size(half, &peers);
        if (peers != partners)
            failed("remote size %d, expected %d", peers, partners);
        int one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half);
        if (sum != partners)
            failed("sum over the remote group %d, expected %d", sum, partners);
        MPI_Comm_free(&half);
    }
}

int main(int argc, char **argv)
{
    static const int counts[] = {0, 1, 7, 500};
    int world_rank, world_size;
    MPI_Comm local;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (world_size < 2) {
        MPI_Finalize();
        return 77;
    }
    kinds_make();
    MPI_Type_contiguous(3, MPI_INT, &triple);
    MPI_Type_commit(&triple);
    MPI_Op_create(follow_on, 0, &follow);
    base[1] = (world_size + 2) / 3; /* a third against two thirds */
    side = world_rank >= base[1];
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, base[!side], 17, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_remote_size(comm, &n_remote);
    for (form = 0; form < N_FORMS; form++) {
        for (int kind = 0; kind < N_KINDS; kind++) {
            k = &kinds[kind];
            for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
                count = counts[i];
                for (int root_side = 0; root_side < 2; root_side++)
                    for (int root = 0; root < (root_side == side ? size : n_remote); root++)
                        test_rooted(root_side, root);
                test_all();
                test_v();
            }
        }
        test_long(200000);
        k = &kinds[0];
        count = 40000;
        test_rooted(0, 0);
        test_rooted(1, (side == 1 ? size : n_remote) - 1);
    }
    test_merge();
    MPI_Comm_free(&comm);
    MPI_Comm_free(&local);
    kinds_free();
    MPI_Type_free(&triple);
    MPI_Op_free(&follow);
    int all = n_failed;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
