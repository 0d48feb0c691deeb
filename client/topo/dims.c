/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Dims_create: factors as close to each other as possible, in falling order.
 *
 * Of all ways to write n as a product of k factors, those with the least difference between the
 * largest and the smallest; of them the one whose smallest is greatest, then the second smallest,
 * and so on. Found by trying the divisors of n from the k-th root of n upwards for the largest
 * factor; the spread of the best way so far bounds the rest. Numbers of processes have at most some
 * hundreds of divisors. The number of steps is bounded, too; when they are used up, the best way so
 * far is taken.
 */
#include "client/abi/semantics.h"
#include "client/object/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS 200000

/* An int has at most 1536 divisors (2095133040). */
#define MAX_DIVISORS 1600

struct divisors {
    int n;
    int value[MAX_DIVISORS]; /* ascending */
};

static int compare_ints(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void find_divisors(int n, struct divisors *d)
{
    d->n = 0;
    for (int i = 1; (long long)i * i <= n; i++) {
        if (n % i)
            continue;
        d->value[d->n++] = i;
        if (i != n / i)
            d->value[d->n++] = n / i;
    }
    qsort(d->value, (size_t)d->n, sizeof(int), compare_ints);
}

/* Whether base^k >= n. */
static bool power_reaches(int base, int k, int n)
{
    long long product = 1;
    for (int i = 0; i < k && product < n && base > 1; i++)
        product *= base;
    return product >= n;
}

/* Whether base^k > n. */
static bool power_exceeds(int base, int k, int n)
{
    long long product = 1;
    for (int i = 0; i < k && product <= n; i++)
        product *= base;
    return product > n;
}

struct search {
    const struct divisors *d;
    int k;       /* number of factors */
    int spread;  /* of the best so far: its largest factor less its smallest */
    int n_steps; /* left */
    int *factors, *best;
};

static void take_if_better(struct search *s)
{
    int spread = s->factors[0] - s->factors[s->k - 1], i = s->k - 1;
    while (i > 0 && s->factors[i] == s->best[i])
        i--;
    if (spread > s->spread || (spread == s->spread && s->factors[i] <= s->best[i]))
        return;
    s->spread = spread;
    memcpy(s->best, s->factors, (size_t)s->k * sizeof(int));
}

/* Writes n as factors[at] >= factors[at + 1] >= ..., all ways that may be better than the best. The
 * first factor is tried from its least possible value upwards, so that a good way is found soon;
 * what follows may not be smaller than that less the best spread. */
static void factor(struct search *s, int at, int n)
{
    int k = s->k - at;
    if (k == 0) {
        take_if_better(s);
        return;
    }
    for (int i = 0; i < s->d->n && s->d->value[i] <= n && s->n_steps > 0; i++) {
        int f = s->d->value[i];
        if ((at > 0 && f > s->factors[at - 1]) || (k == 1 && f != n))
            continue;
        if (n % f || !power_reaches(f, k, n))
            continue;
        if (at == 0 && f > s->spread && power_exceeds(f - s->spread, k, n))
            return; /* and so would every greater one */
        if (at > 0 && s->factors[0] - f > s->spread)
            continue;
        s->n_steps--;
        s->factors[at] = f;
        factor(s, at + 1, n / f);
    }
}

int mpi_dims_create(int nnodes, int ndims, int dims[])
{
    long long fixed = 1;
    int n_free = 0;
    if (nnodes < 1)
        return err_set(MPI_ERR_ARG, "nnodes is %d, but must be positive", nnodes);
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 0)
            return err_set(MPI_ERR_DIMS, "dims[%d] is %d, but must not be negative", i, dims[i]);
        if (dims[i] == 0)
            n_free++;
        else if (fixed <= nnodes)
            fixed *= dims[i];
    }
    if (ndims == 0)
        return MPI_SUCCESS;
    if (nnodes % fixed || (n_free == 0 && fixed != nnodes))
        return err_set(MPI_ERR_DIMS,
                       "%d processes cannot be laid out with the dimensions that are given",
                       nnodes);
    if (n_free == 0)
        return MPI_SUCCESS;
    struct divisors *d = malloc(sizeof *d);
    int *factors = calloc(2 * (size_t)n_free, sizeof(int));
    int err = MPI_SUCCESS;
    if (d && factors) {
        int n = (int)(nnodes / fixed);
        struct search s = {.d = d,
                           .k = n_free,
                           .spread = INT_MAX,
                           .n_steps = MAX_STEPS,
                           .factors = factors,
                           .best = factors + n_free};
        find_divisors(n, d);
        factor(&s, 0, n);
        for (int i = 0, k = 0; i < ndims; i++)
            if (dims[i] == 0)
                dims[i] = s.best[k++];
    } else {
        err = err_set(MPI_ERR_NO_MEM, "no memory to factor %d", nnodes);
    }
    free(d);
    free(factors);
    return err;
}
