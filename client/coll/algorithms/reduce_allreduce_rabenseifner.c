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
    struct op *op;
    struct buffer acc; /* after the reduction [first, end) of the last round holds the result */
    void *spare;       /* room for what is received where acc has none */
    int n_rounds;
    MPI_Count first[MAX_ROUNDS + 1],
        end[MAX_ROUNDS + 1]; /* the range before each round, the kept one last */
};

static MPI_Count halving_middle(const struct halving *h, int round)
{
    return h->first[round] + (h->end[round] - h->first[round]) / 2;
}

/* Of the result: what this rank keeps in round k, and what its peer keeps. */
static struct buffer halving_kept(const struct halving *h, int k)
{
    return buffer_part(h->acc, h->first[k + 1], h->end[k + 1] - h->first[k + 1]);
}

static struct buffer halving_other(const struct halving *h, int k)
{
    bool upper = h->fold.rank >> k & 1;
    MPI_Count mid = halving_middle(h, k), first = upper ? h->first[k] : mid;
    return buffer_part(h->acc, first, (upper ? mid : h->end[k]) - first);
}

/* One received operand: `into` is where it was received, `mine` this rank's own, `acc` where the
 * result goes. It was received into acc itself unless mine lies there already. */
static void rabenseifner_combine(struct schedule *s, const struct halving *h, void *into,
                                 const void *mine, struct buffer acc, bool received_is_lower)
{
    struct buffer other = buffer_like(acc, mine == acc.base ? into : h->spare);
    if (mine == acc.base && (received_is_lower || h->op->commutative)) {
        schedule_reduce(s, into, acc, h->op);
    } else if (mine == acc.base) {
        schedule_reduce(s, acc.base, other, h->op);
        schedule_copy(s, other, acc);
    } else if (!received_is_lower || h->op->commutative) {
        schedule_reduce(s, mine, acc, h->op);
    } else {
        schedule_copy(s, buffer_like(acc, mine), other);
        schedule_reduce(s, acc.base, other, h->op);
        schedule_copy(s, other, acc);
    }
}

/* Folds and halves. False for a rank that sits out: its operand was taken from `send`, acc.base is
 * not touched. The operand is not copied: the first operand received is combined with it in acc. */
static bool rabenseifner_reduce(struct schedule *s, struct halving *h, const void *send)
{
    struct buffer acc = h->acc;
    int partner = fold_partner(&h->fold, s->view.rank);
    if (h->fold.rank < 0) {
        schedule_send(s, buffer_like(acc, send), partner);
        return false;
    }
    const void *mine = send; /* acc.base from the first combination on */
    h->spare = schedule_temp_typed(s, partner >= 0 ? acc.count : (acc.count + 1) / 2, acc.type);
    if (partner >= 0) {
        void *into = mine == acc.base ? h->spare : acc.base;
        schedule_recv(s, buffer_like(acc, into), partner);
        rabenseifner_combine(s, h, into, mine, acc, true);
        mine = acc.base;
    }
    h->first[0] = 0;
    h->end[0] = acc.count;
    for (int mask = 1; mask < h->fold.pof2; mask *= 2, h->n_rounds++) {
        int k = h->n_rounds, peer = fold_back(&h->fold, h->fold.rank ^ mask);
        bool upper = h->fold.rank & mask;
        MPI_Count mid = halving_middle(h, k);
        h->first[k + 1] = upper ? mid : h->first[k];
        h->end[k + 1] = upper ? h->end[k] : mid;
        MPI_Count given = upper ? h->first[k] : mid, n_given = (upper ? mid : h->end[k]) - given;
        struct buffer kept = halving_kept(h, k), own = buffer_like(acc, mine);
        void *into = mine == acc.base ? h->spare : kept.base;
        schedule_sendrecv(s, buffer_part(own, given, n_given), peer, buffer_like(kept, into), peer);
        rabenseifner_combine(s, h, into, buffer_part(own, h->first[k + 1], 0).base, kept, upper);
        mine = acc.base;
    }
    return true;
}

void allreduce_rabenseifner(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    struct halving h = {.fold = fold_of(s), .op = op, .acc = recv};
    int partner = fold_partner(&h.fold, s->view.rank);
    if (!rabenseifner_reduce(s, &h, send)) {
        schedule_recv(s, recv, partner);
        return;
    }
    for (int k = h.n_rounds - 1; k >= 0; k--) {
        int peer = fold_back(&h.fold, h.fold.rank ^ 1 << k);
        schedule_sendrecv(s, halving_kept(&h, k), peer, halving_other(&h, k), peer);
    }
    if (partner >= 0)
        schedule_send(s, recv, partner);
}

void reduce_rabenseifner(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                         int root)
{
    int rank = s->view.rank;
    struct halving h = {.fold = fold_of(s), .op = op, .acc = recv};
    /* The gather runs to the root, or to the partner that holds the operand of a root that sits
     * out. */
    bool root_sits_out = root < 2 * h.fold.rest && root % 2 == 0;
    int target = root_sits_out ? root + 1 : root;
    int target_fold = target < 2 * h.fold.rest ? target / 2 : target - h.fold.rest;
    if (rank != root)
        h.acc.base = h.fold.rank >= 0 ? schedule_temp_typed(s, recv.count, recv.type) : NULL;
    if (rabenseifner_reduce(s, &h, send)) {
        for (int k = h.n_rounds - 1; k >= 0; k--) {
            if ((h.fold.rank ^ target_fold) >> (k + 1))
                break; /* has given its part away */
            int peer = fold_back(&h.fold, h.fold.rank ^ 1 << k);
            if ((h.fold.rank ^ target_fold) >> k & 1)
                schedule_send(s, halving_kept(&h, k), peer);
            else
                schedule_recv(s, halving_other(&h, k), peer);
        }
    }
    if (root_sits_out && rank == target)
        schedule_send(s, h.acc, root);
    else if (root_sits_out && rank == root)
        schedule_recv(s, recv, target);
}
