/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/check.h"

#include "client/coll/family/coll.h"
#include "client/object/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 24

/* Sent as bytes between ranks of one job; hosts of one byte order and one library. */
struct record {
    uint32_t kind, form;
    int32_t root;
    uint32_t in_place;
    uint64_t n_bytes, signature; /* of the data that must agree; signature 0: any */
    char op[NAME_BYTES], type[NAME_BYTES];
    uint64_t block; /* v and w forms: what this rank sends to or takes from the rank that it tells;
                       BLOCK_NONE: nothing is known */
};
#define BLOCK_NONE UINT64_MAX

struct comparison {
    struct comm *comm;
    int n, own;
    struct record *out, *in; /* [n] */
    uint64_t
        *expected; /* [n] v and w forms: bytes that this rank takes from or gives to each rank */
    bool takes;    /* expected is what this rank takes */
    uint32_t
        *verdicts; /* [n] v and w forms: what each rank found, for only two ranks know of a block */
};

static const char *const kind_names[CHECK_KINDS] = {
    [CHECK_BARRIER] = "barrier",
    [CHECK_BCAST] = "bcast",
    [CHECK_GATHER] = "gather",
    [CHECK_GATHERV] = "gatherv",
    [CHECK_SCATTER] = "scatter",
    [CHECK_SCATTERV] = "scatterv",
    [CHECK_ALLGATHER] = "allgather",
    [CHECK_ALLGATHERV] = "allgatherv",
    [CHECK_ALLTOALL] = "alltoall",
    [CHECK_ALLTOALLV] = "alltoallv",
    [CHECK_ALLTOALLW] = "alltoallw",
    [CHECK_REDUCE] = "reduce",
    [CHECK_ALLREDUCE] = "allreduce",
    [CHECK_REDUCE_SCATTER] = "reduce_scatter",
    [CHECK_REDUCE_SCATTER_BLOCK] = "reduce_scatter_block",
    [CHECK_SCAN] = "scan",
    [CHECK_EXSCAN] = "exscan",
};

static const char *const form_names[] = {"blocking", "nonblocking", "persistent", "internal"};

static const char *name_of(const struct record *r)
{
    return r->kind < CHECK_KINDS ? kind_names[r->kind] : "?";
}

/* The first difference between rank 0's record and another one, which all ranks find alike. */
static int check_compare(const struct comparison *c, int k)
{
    const struct record *a = &c->in[0], *b = &c->in[k];
    const char *comm = c->comm->name[0] ? c->comm->name : "a communicator";
    if (a->kind != b->kind)
        return err_set(MPI_ERR_OTHER,
                       "collectives on %s do not match: rank 0 calls %s, rank %d calls %s", comm,
                       name_of(a), k, name_of(b));
    if (a->form != b->form)
        return err_set(MPI_ERR_OTHER, "%s on %s: rank 0 calls the %s form, rank %d the %s one",
                       name_of(a), comm, form_names[a->form & 3], k, form_names[b->form & 3]);
    if (a->root != b->root)
        return err_set(MPI_ERR_ROOT, "%s on %s: rank 0 gives root %d, rank %d gives root %d",
                       name_of(a), comm, a->root, k, b->root);
    if (strncmp(a->op, b->op, NAME_BYTES) != 0)
        return err_set(MPI_ERR_OP, "%s on %s: rank 0 gives the operation %.*s, rank %d gives %.*s",
                       name_of(a), comm, NAME_BYTES, a->op, k, NAME_BYTES, b->op);
    if (a->in_place != b->in_place)
        return err_set(MPI_ERR_BUFFER, "%s on %s: rank %d uses MPI_IN_PLACE and rank %d does not",
                       name_of(a), comm, a->in_place ? 0 : k, a->in_place ? k : 0);
    if (a->n_bytes != b->n_bytes)
        return err_set(
            a->n_bytes > b->n_bytes ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT,
            "%s on %s: rank 0 gives %llu bytes of %.*s, rank %d gives %llu bytes of %.*s",
            name_of(a), comm, (unsigned long long)a->n_bytes, NAME_BYTES, a->type, k,
            (unsigned long long)b->n_bytes, NAME_BYTES, b->type);
    if (a->signature != b->signature && a->signature != 0 && b->signature != 0)
        return err_set(
            MPI_ERR_TYPE,
            "%s on %s: the types of rank 0 (%.*s) and rank %d (%.*s) have different signatures",
            name_of(a), comm, NAME_BYTES, a->type, k, NAME_BYTES, b->type);
    return MPI_SUCCESS;
}

/* What the other rank says of the block between it and this one. */
static int compare_block(const struct comparison *c, int k)
{
    uint64_t theirs = c->in[k].block, ours = c->expected[k];
    const char *comm = c->comm->name[0] ? c->comm->name : "a communicator";
    if (theirs == BLOCK_NONE || ours == BLOCK_NONE || theirs == ours)
        return MPI_SUCCESS;
    uint64_t sent = c->takes ? theirs : ours, taken = c->takes ? ours : theirs;
    return err_set(sent > taken ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT,
                   "%s on %s: rank %d sends %llu bytes to rank %d, which expects %llu",
                   name_of(&c->in[c->own]), comm, c->takes ? k : c->own, (unsigned long long)sent,
                   c->takes ? c->own : k, (unsigned long long)taken);
}

static int check_judge(void *arg)
{
    const struct comparison *c = arg;
    for (int k = 1; k < c->n; k++) {
        int err = check_compare(c, k);
        if (err)
            return err;
    }
    for (int k = 0; c->expected && k < c->n; k++) {
        int err = compare_block(c, k); /* also what a rank sends to itself */
        if (err)
            return err;
    }
    return MPI_SUCCESS;
}

/* The first half of the verdict on blocks: says nothing yet, so that the others hear of it. */
static int check_judge_alone(void *arg)
{
    const struct comparison *c = arg;
    c->verdicts[c->own] = check_judge(arg) != MPI_SUCCESS;
    return MPI_SUCCESS;
}

/* The second half: everybody knows what everybody found, and all of them stop. */
static int check_judge_together(void *arg)
{
    const struct comparison *c = arg;
    if (c->verdicts[c->own])
        return check_judge(arg);
    for (int k = 0; k < c->n; k++)
        if (c->verdicts[k])
            return err_set(
                MPI_ERR_OTHER, "%s on %s: rank %d found that what it sends or takes does not fit",
                name_of(&c->in[c->own]), c->comm->name[0] ? c->comm->name : "a communicator", k);
    return MPI_SUCCESS;
}

/* Every rank gets the `n_bytes` that each other rank has for it in out, at the place of its rank in
 * in. */
static void check_exchange(struct schedule *s, void *in, const void *out, size_t n_bytes,
                           size_t out_step)
{
    int n = s->view.size;
    for (int k = 1; k < n; k++) {
        int from = (s->view.rank - k + n) % n;
        schedule_irecv(s, buffer_of_bytes((char *)in + (size_t)from * n_bytes, (MPI_Count)n_bytes),
                       from);
    }
    for (int k = 1; k < n; k++) {
        int to = (s->view.rank + k) % n;
        schedule_isend(
            s, buffer_of_bytes((const char *)out + (size_t)to * out_step, (MPI_Count)n_bytes), to);
    }
    schedule_wait(s);
}

static void check_describe(const struct schedule *s, const struct check_call *call,
                           struct record *r)
{
    *r = (struct record){.kind = (uint32_t)call->kind,
                         .form = coll_form_of(s->tag),
                         .root = call->root,
                         .in_place = call->root < 0 && call->in_place,
                         .block = BLOCK_NONE};
    if (call->op)
        snprintf(r->op, sizeof r->op, "%s", call->op->name);
    if (!call->type)
        return;
    struct type_signature signature = datatype_signature(call->type, call->count);
    r->n_bytes = (uint64_t)(call->count * call->type->size);
    r->signature = call->type->element == datatype_predefined(MPI_PACKED) ? 0 : signature.hash;
    snprintf(r->type, sizeof r->type, "%s", datatype_name(call->type));
}

/* Fills what the v and w forms say of single blocks. */
static void describe_blocks(const struct schedule *s, const struct check_call *call,
                            struct comparison *c)
{
    c->takes = call->from != NULL || !call->to;
    for (int i = 0; i < c->n; i++) {
        bool with_root = call->root < 0 || i == call->root;
        /* What I tell rank i: the bytes that I give it, or, where only it gives, those that I take
         * from it. */
        if (call->to)
            c->out[i].block = (uint64_t)blocks_bytes(call->to, i);
        else if (with_root && s->view.rank != call->root)
            c->out[i].block = (uint64_t)call->own_bytes;
        c->expected[i] = call->from ? (uint64_t)blocks_bytes(call->from, i)
                         : call->to ? c->out[i].block
                                    : BLOCK_NONE;
        if (!call->from && !call->to && with_root && s->view.rank != call->root) {
            c->expected[i] = (uint64_t)call->own_bytes;
            c->takes = call->kind == CHECK_SCATTERV;
        }
    }
}

bool check_calls(struct schedule *s, const struct check_call *call)
{
    int n = s->view.size, tag = s->tag;
    uint32_t *verdicts;
    bool with_blocks = call->to || call->from || call->kind == CHECK_GATHERV ||
                       call->kind == CHECK_SCATTERV || call->kind == CHECK_ALLTOALLV ||
                       call->kind == CHECK_ALLTOALLW;
    struct comparison *c = schedule_temp(s, sizeof *c);
    struct record *records = schedule_temp(s, 2 * (size_t)n * sizeof *records);
    uint64_t *expected = with_blocks ? schedule_temp(s, (size_t)n * sizeof *expected) : NULL;
    verdicts = with_blocks ? schedule_temp(s, (size_t)n * sizeof *verdicts) : NULL;
    if (s->broken)
        return false;
    *c = (struct comparison){.comm = s->view.comm,
                             .n = n,
                             .own = s->view.rank,
                             .out = records,
                             .in = records + n,
                             .expected = expected,
                             .verdicts = verdicts};
    for (int i = 0; i < n; i++)
        check_describe(s, call, &c->out[i]);
    if (with_blocks)
        describe_blocks(s, call, c);
    s->tag = coll_next_check_tag(s->view.comm);
    c->in[s->view.rank] = c->out[s->view.rank];
    check_exchange(s, c->in, c->out, sizeof(struct record), sizeof(struct record));
    if (with_blocks) {
        schedule_judge(s, check_judge_alone, c);
        check_exchange(s, verdicts, &verdicts[s->view.rank], sizeof *verdicts, 0);
    }
    s->tag = tag;
    schedule_judge(s, with_blocks ? check_judge_together : check_judge, c);
    return !s->broken;
}
