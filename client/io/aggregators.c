/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/aggregators.h"

#include <stdlib.h>

#include "client/object/err.h"
#include "client/object/group.h"
#include "client/process/job.h"

/* Ranks of a node that share its work unless the application says otherwise: copies of two go side
 * by side, and what a third would win is lost in the file's lock (bench row `files`). */
#define PER_NODE 2

/* For each rank its number among those of its node; returns the number of nodes, 0 where memory is
 * missing. */
static int number_in_nodes(const struct comm *comm, int *numbers)
{
    if (comm->foreign) {
        /* Its members do not see the nodes alike: for all of them it is one node. */
        for (int i = 0; i < comm->size; i++)
            numbers[i] = i;
        return 1;
    }
    int *n_seen = calloc((size_t)job_n_nodes(), sizeof *n_seen), n_nodes = 0;
    if (!n_seen)
        return 0;
    for (int i = 0; i < comm->size; i++) {
        int node = job_node_of(comm->group->procs[i]);
        n_nodes += n_seen[node] == 0;
        numbers[i] = n_seen[node]++;
    }
    free(n_seen);
    return n_nodes;
}

int aggregators_choose(struct aggregators *a, const struct comm *comm, int wanted)
{
    int *numbers = calloc((size_t)comm->size, sizeof *numbers);
    int *ranks = calloc((size_t)comm->size, sizeof *ranks), n = 0;
    int n_nodes = numbers && ranks ? number_in_nodes(comm, numbers) : 0;
    if (n_nodes == 0) {
        free(numbers);
        free(ranks);
        return err_set(MPI_ERR_NO_MEM, "no memory for the aggregators of a file");
    }
    if (wanted == 0)
        wanted = n_nodes * PER_NODE;
    if (wanted > comm->size)
        wanted = comm->size;
    a->own = -1;
    /* The first rank of every node, then the second of those that have one, ... */
    for (int number = 0, before = -1; n < wanted && n != before; number++) {
        before = n;
        for (int i = 0; i < comm->size && n < wanted; i++) {
            if (numbers[i] != number)
                continue;
            if (i == comm->rank)
                a->own = n;
            ranks[n++] = i;
        }
    }
    free(numbers);
    free(a->ranks);
    a->ranks = ranks;
    a->n = n;
    return MPI_SUCCESS;
}
