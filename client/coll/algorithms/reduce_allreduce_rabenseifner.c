/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allreduce and MPI_Reduce of long operands (Rabenseifner 2004).
 *
 * Reduce-scatter by halving the vector while the distance doubles, then an allgather (or a gather
 * to the root) that goes the same way back. 2 log2 p alpha + 2 (p - 1)/p n beta + (p - 1)/p n gamma
 * for powers of two. Doubling the distance combines neighbours first, so the order of operands is
 * kept; each element is reduced on one rank, so all ranks get the same bits.
 */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/algorithms/fold.h"

#define MAX_ROUNDS 31

struct halving {
    struct fold fold;
    void *acc; /* count elements; after the reduction [first, end) of the last round holds the
                  result */
    struct datatype *type;
    int n_rounds;
    MPI_Count first[MAX_ROUNDS + 1],
        end[MAX_ROUNDS + 1]; /* the range before each round, the kept one last */
};

static void *element(const struct halving *h, MPI_Count i)
{
    return datatype_at(h->type, h->acc, i);
}

static MPI_Count middle(const struct halving *h, int round)
{
    return h->first[round] + (h->end[round] - h->first[round]) / 2;
}

/* One received operand: `into` is where it was received, `mine` this rank's own, `acc` where the
 * result goes. It was received into acc itself unless mine lies there already; `spare` has room for
 * n elements. */
static void combine(struct schedule *s, void *into, const void *mine, void *acc, void *spare,
                    MPI_Count n, struct datatype *type, struct op *op, bool received_is_lower)
{
    if (mine == acc && (received_is_lower || op->commutative)) {
        schedule_reduce(s, into, acc, n, type, op);
    } else if (mine == acc) {
        schedule_reduce(s, acc, into, n, type, op);
        schedule_copy(s, into, n, type, acc, n, type);
    } else if (!received_is_lower || op->commutative) {
        schedule_reduce(s, mine, acc, n, type, op);
    } else {
        schedule_copy(s, mine, n, type, spare, n, type);
        schedule_reduce(s, acc, spare, n, type, op);
        schedule_copy(s, spare, n, type, acc, n, type);
    }
}

/* Folds and halves. False for a rank that sits out: its operand was taken from `send`, h->acc is
 * not touched. The operand is not copied: the first operand received is combined with it in
 * h->acc. */
static bool reduce_halves(struct schedule *s, struct halving *h, const void *send, MPI_Count count,
                          struct op *op)
{
    int partner = fold_partner(&h->fold, s->view.rank);
    if (h->fold.rank < 0) {
        schedule_send(s, send, count, h->type, partner);
        return false;
    }
    const void *mine = send; /* h->acc from the first combination on */
    void *spare = schedule_temp_typed(s, partner >= 0 ? count : (count + 1) / 2, h->type);
    if (partner >= 0) {
        void *into = mine == h->acc ? spare : h->acc;
        schedule_recv(s, into, count, h->type, partner);
        combine(s, into, mine, h->acc, spare, count, h->type, op, true);
        mine = h->acc;
    }
    h->first[0] = 0;
    h->end[0] = count;
    for (int mask = 1; mask < h->fold.pof2; mask *= 2, h->n_rounds++) {
        int k = h->n_rounds, peer = fold_back(&h->fold, h->fold.rank ^ mask);
        bool upper = h->fold.rank & mask;
        MPI_Count mid = middle(h, k);
        h->first[k + 1] = upper ? mid : h->first[k];
        h->end[k + 1] = upper ? h->end[k] : mid;
        MPI_Count given = upper ? h->first[k] : mid, n_given = (upper ? mid : h->end[k]) - given;
        MPI_Count kept = h->first[k + 1], n_kept = h->end[k + 1] - kept;
        void *into = mine == h->acc ? spare : element(h, kept);
        schedule_sendrecv(s, datatype_at(h->type, mine, given), n_given, h->type, peer, into,
                          n_kept, h->type, peer);
        combine(s, into, datatype_at(h->type, mine, kept), element(h, kept), spare, n_kept, h->type,
                op, upper);
        mine = h->acc;
    }
    return true;
}

/* The other half of round k. */
static void other_half(const struct halving *h, int k, MPI_Count *ret_first, MPI_Count *ret_n)
{
    bool upper = h->fold.rank >> k & 1;
    MPI_Count mid = middle(h, k);
    *ret_first = upper ? h->first[k] : mid;
    *ret_n = (upper ? mid : h->end[k]) - *ret_first;
}

void allreduce_rabenseifner(struct schedule *s, const void *send, void *recv, MPI_Count count,
                            struct datatype *type, struct op *op)
{
    struct halving h = {.fold = fold_of(s), .acc = recv, .type = type};
    int partner = fold_partner(&h.fold, s->view.rank);
    if (!reduce_halves(s, &h, send, count, op)) {
        schedule_recv(s, recv, count, type, partner);
        return;
    }
    for (int k = h.n_rounds - 1; k >= 0; k--) {
        int peer = fold_back(&h.fold, h.fold.rank ^ 1 << k);
        MPI_Count first, n;
        other_half(&h, k, &first, &n);
        schedule_sendrecv(s, element(&h, h.first[k + 1]), h.end[k + 1] - h.first[k + 1], type, peer,
                          element(&h, first), n, type, peer);
    }
    if (partner >= 0)
        schedule_send(s, recv, count, type, partner);
}

void reduce_rabenseifner(struct schedule *s, const void *send, void *recv, MPI_Count count,
                         struct datatype *type, struct op *op, int root)
{
    int rank = s->view.rank;
    struct halving h = {.fold = fold_of(s), .type = type};
    /* The gather runs to the root, or to the partner that holds the operand of a root that sits
     * out. */
    bool root_sits_out = root < 2 * h.fold.rest && root % 2 == 0;
    int target = root_sits_out ? root + 1 : root;
    int target_fold = target < 2 * h.fold.rest ? target / 2 : target - h.fold.rest;
    if (h.fold.rank >= 0)
        h.acc = rank == root ? recv : schedule_temp_typed(s, count, type);
    if (reduce_halves(s, &h, send, count, op)) {
        for (int k = h.n_rounds - 1; k >= 0; k--) {
            if ((h.fold.rank ^ target_fold) >> (k + 1))
                break; /* has given its part away */
            int peer = fold_back(&h.fold, h.fold.rank ^ 1 << k);
            MPI_Count first, n;
            other_half(&h, k, &first, &n);
            if ((h.fold.rank ^ target_fold) >> k & 1)
                schedule_send(s, element(&h, h.first[k + 1]), h.end[k + 1] - h.first[k + 1], type,
                              peer);
            else
                schedule_recv(s, element(&h, first), n, type, peer);
        }
    }
    if (root_sits_out && rank == target)
        schedule_send(s, h.acc, count, type, root);
    else if (root_sits_out && rank == root)
        schedule_recv(s, recv, count, type, target);
}
