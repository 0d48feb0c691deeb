/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/comm/context.h"

#include "base/hash.h"
#include "client/client.h"
#include "client/coll/family/coll.h"
#include "client/coll/node/node.h"
#include "client/object/err.h"
#include "client/progress/vci.h"

#include <assert.h>

/* 64 Ki communicators at a time in one process: 8 KiB of bitmap. A word of 64 ids fits into the
 * shortest message. */
#define N_WORDS      1024u
#define IDS_PER_WORD 64u

/* Ids are handed out in fours: the contexts of point-to-point, collectives and partitioned
 * communication, and that of the collectives of the hidden local communicator of an
 * intercommunicator. The first fours are those of MPI_COMM_WORLD, of MPI_COMM_SELF, and of what two
 * jobs first say to one another (client/dynamic). */
#define ID_STEP 4u

#define FREE_OF_COLLISIONS (UINT64_C(1) << 63)

struct context_state {
    bool ready;
    uint64_t used[N_WORDS];
    uint64_t on_offer[N_WORDS / 64]; /* a bit per word */
    struct op combine_op;
};
static struct context_state context_first;
static struct context_state *context_here = &context_first;

static bool is_on_offer(uint32_t word)
{
    return context_here->on_offer[word / 64] >> word % 64 & 1;
}

static void set_on_offer(uint32_t word, bool offered)
{
    if (offered)
        context_here->on_offer[word / 64] |= UINT64_C(1) << word % 64;
    else
        context_here->on_offer[word / 64] &= ~(UINT64_C(1) << word % 64);
}

void context_give_back(uint32_t id)
{
    uint32_t index = id / ID_STEP;
    if (id < COMM_CONTEXT_FIRST)
        return;
    context_here->used[index / IDS_PER_WORD] &= ~(UINT64_C(1) << index % IDS_PER_WORD);
    node_give_back(id);
    vci_give_back(id);
}

static void release_of(struct comm *comm)
{
    /* Local communicators share the id of their intercommunicator; COMM_WORLD's is never given
     * back. */
    if (comm->context_id >= COMM_CONTEXT_FIRST && comm->context_id % ID_STEP == 0)
        context_give_back(comm->context_id);
}

void context_init(void)
{
    if (context_here->ready)
        return;
    context_here->ready = true;
    context_here->used[0] = 7;
    node_init();
    comm_on_destroy(release_of);
}

void context_begin(struct context_try *t, uint32_t parent_id, int tag)
{
    *t = (struct context_try){
        .start = (uint32_t)(hash_mix64((uint64_t)parent_id << 32 | (uint32_t)tag) % N_WORDS)};
}

void context_offer(struct context_try *t)
{
    t->word = (t->start + t->attempt) % N_WORDS;
    t->attempt++;
    t->holds = !is_on_offer(t->word);
    t->vote[0] = t->holds ? ~context_here->used[t->word] : 0;
    t->vote[1] = t->holds ? FREE_OF_COLLISIONS | vci_offer() : 0;
    if (t->holds)
        set_on_offer(t->word, true);
    t->vote[2] = t->vote[3] = 0;
    if (t->with_slot)
        t->offered = t->vote[2] = node_offer(&t->vote[3]);
}

void context_withdraw(struct context_try *t)
{
    if (t->holds)
        set_on_offer(t->word, false);
    t->holds = false;
    node_withdraw(t->offered);
    t->offered = 0;
}

int context_settle(struct context_try *t)
{
    context_withdraw(t);
    if (t->vote[0]) {
        uint32_t bit = (uint32_t)__builtin_ctzll(t->vote[0]);
        context_here->used[t->word] |= UINT64_C(1) << bit;
        t->id = (t->word * IDS_PER_WORD + bit) * ID_STEP;
        if (t->with_slot) {
            node_settle(t->vote[2], t->vote[3], t->id);
            vci_settle(t->vote[1], t->id);
        }
        return MPI_SUCCESS;
    }
    t->n_full = t->vote[1] ? t->n_full + 1 : 0;
    if (t->n_full == N_WORDS)
        return err_set(MPI_ERR_OTHER,
                       "no context id is free on all members of the new communicator");
    return CONTEXT_AGAIN;
}

/* Combines votes of four words. A vote is one element, so that no algorithm takes it apart: of the
 * predefined type that happens to have its size. */
static void combine(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
    const uint64_t *a = in;
    uint64_t *b = inout;
    (void)type;
    for (MPI_Count i = 0; i < *n; i++, a += 4, b += 4) {
        for (int k = 0; k < 3; k++)
            b[k] &= a[k];
        b[3] = a[3] > b[3] ? a[3] : b[3];
    }
}
#define VOTE_TYPE MPI_C_LONG_DOUBLE_COMPLEX
static_assert(sizeof(long double _Complex) == sizeof(((struct context_try *)0)->vote),
              "the type that carries a vote");
static void context_part_init(void)
{
    context_here->combine_op = (struct op){.obj = {.refs = 1, .kind = OBJECT_OP},
                                           .commutative = true,
                                           .name = "vote",
                                           .user_fn_c = combine};
}
CLIENT_PART(context_here, context_first, .init = context_part_init);

void context_vote(struct schedule *s, struct context_try *t)
{
    if (!comm_is_inter(s->view.comm)) {
        coll_allreduce(s, MPI_IN_PLACE, buffer_of(t->vote, 1, datatype_predefined(VOTE_TYPE)),
                       &context_here->combine_op);
        return;
    }
    struct datatype *type = datatype_predefined(MPI_UINT64_T);
    struct op *band = op_predefined(MPI_BAND);
    struct comm *local = s->view.comm->local_comm;
    struct schedule_view inter =
        schedule_enter(s, (struct schedule_view){local, local->rank, local->size, NULL});
    coll_reduce(s, local->rank == 0 ? MPI_IN_PLACE : t->vote, buffer_of(t->vote, 2, type), band, 0);
    schedule_leave(s, inter);
    if (local->rank == 0) {
        uint64_t *remote = schedule_temp(s, sizeof t->vote);
        schedule_sendrecv(s, buffer_of(t->vote, 2, type), 0, buffer_of(remote, 2, type), 0);
        schedule_reduce(s, remote, buffer_of(t->vote, 2, type), band);
    }
    schedule_enter(s, (struct schedule_view){local, local->rank, local->size, NULL});
    coll_bcast(s, buffer_of(t->vote, 2, type), 0);
    schedule_leave(s, inter);
}

int context_agree(struct schedule *s, uint32_t *ret_id)
{
    struct context_try t;
    context_begin(&t, s->view.comm->context_id, s->tag);
    t.with_slot = !comm_is_inter(s->view.comm);
    int rc;
    do {
        context_offer(&t);
        context_vote(s, &t);
        rc = s->err ? s->err : context_settle(&t);
    } while (rc == CONTEXT_AGAIN);
    if (rc)
        context_withdraw(&t);
    else
        *ret_id = t.id;
    return rc;
}
