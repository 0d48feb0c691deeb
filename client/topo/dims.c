/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Dims_create: factors as close to each other as possible, in falling order.
 *
 * Of all ways to write n as a product of k factors, the one whose largest factor is least, among those the
 * one whose second largest is least, and so on. Found by trying the divisors of n from the k-th root of n
 * upwards; numbers of processes have at most some hundreds of divisors, and the first that is tried mostly
 * does.
 */
#include "client/abi/semantics.h"
#include "client/core/err.h"

#include <stdbool.h>
#include <stdlib.h>

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

/* Writes n as factors[0] >= factors[1] >= ... of k factors, none above max. */
static bool factor(const struct divisors *d, int n, int k, int max, int *factors)
{
    if (k == 0)
        return n == 1;
    for (int i = 0; i < d->n && d->value[i] <= max && d->value[i] <= n; i++) {
        int first = d->value[i];
        if (n % first || !power_reaches(first, k, n))
            continue;
        factors[0] = first;
        if (factor(d, n / first, k - 1, first, factors + 1))
            return true;
    }
    return false;
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
        return err_set(MPI_ERR_DIMS, "%d processes cannot be laid out with the dimensions that are given",
                       nnodes);
    if (n_free == 0)
        return MPI_SUCCESS;
    struct divisors *d = malloc(sizeof *d);
    int *factors = malloc((size_t)n_free * sizeof(int));
    int err = MPI_SUCCESS;
    if (d && factors) {
        find_divisors((int)(nnodes / fixed), d);
        factor(d, (int)(nnodes / fixed), n_free, nnodes, factors);
        for (int i = 0, k = 0; i < ndims; i++)
            if (dims[i] == 0)
                dims[i] = factors[k++];
    } else {
        err = err_set(MPI_ERR_NO_MEM, "no memory to factor %d", nnodes);
    }
    free(d);
    free(factors);
    return err;
}
