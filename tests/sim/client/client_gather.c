/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of a round: one blocking, or several that are under way at once. Every rank knows
 * what every other one contributes, and so every element of the result. */
#include "tests/sim/client/client_program.h"

#include "base/hash.h"
#include "tests/sim/client/client_process.h"
#include "tests/sim/client/client_world.h"

#define DEEDS_FEW 4
#define DEEDS_MAX 24 /* in a burst */

enum deed_kind {
    DEED_BARRIER,
    DEED_BCAST,
    DEED_REDUCE,
    DEED_ALLREDUCE,
    DEED_SCAN,
    DEED_EXSCAN,
    DEED_REDUCE_SCATTER,
    DEED_REDUCE_SCATTER_BLOCK,
    DEED_GATHER,
    DEED_GATHERV,
    DEED_ALLGATHER,
    DEED_ALLGATHERV,
    DEED_SCATTER,
    DEED_SCATTERV,
    DEED_ALLTOALL,
    DEED_ALLTOALLV,
    DEED_KINDS
};

enum deed_form { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT, FORMS };

/* One collective operation. Elements are numbers of 64 bits; rank r gives value(d, r, i). */
struct deed {
    struct meeting *meeting;
    enum deed_kind kind;
    enum deed_form form;
    int count, root;
    bool ordered; /* reductions: with the operation that does not commute */
    uint64_t salt;
    uint64_t *in, *out;
    int *lengths, *places; /* of the ranks' blocks; then the same for what is sent */
    MPI_Request request;
};

static uint64_t value(const struct deed *d, int r, int i)
{
    return hash_mix64(d->salt + (uint64_t)r * 1000003 + (uint64_t)i);
}

/* Maps x -> a x + b, both numbers in one: first x, then y. Associative, and does not commute. */
static uint64_t compose(uint64_t x, uint64_t y)
{
    uint32_t a = (uint32_t)(x >> 32) * (uint32_t)(y >> 32);
    uint32_t b = (uint32_t)x * (uint32_t)(y >> 32) + (uint32_t)y;

    return (uint64_t)a << 32 | b;
}

static void compose_all(void *in, void *inout, int *n, MPI_Datatype *type)
{
    uint64_t *x = in, *y = inout;

    (void)type;
    for (int i = 0; i < *n; i++)
        y[i] = compose(x[i], y[i]);
}

/* Ranks first to last - 1 combined. */
static uint64_t combined(const struct deed *d, int first, int last, int i)
{
    uint64_t v = value(d, first, i);

    for (int r = first + 1; r < last; r++)
        v = d->ordered ? compose(v, value(d, r, i)) : v + value(d, r, i);
    return v;
}

/* Elements of the block that `from` has for `to` in the operations with lengths. */
static int length_of(const struct deed *d, int from, int to)
{
    uint64_t h = hash_mix64(d->salt * 3 + (uint64_t)from * 64 + (uint64_t)to);

    return (int)(h % (uint64_t)(d->count + 1));
}

/* ---- carrying it out ---- */

static bool has_lengths(const struct deed *d)
{
    return d->kind == DEED_GATHERV || d->kind == DEED_ALLGATHERV || d->kind == DEED_SCATTERV ||
           d->kind == DEED_ALLTOALLV || d->kind == DEED_REDUCE_SCATTER;
}

/* The block of rank r in the array that is received (way 0) or sent (way 1). */
static int block_length(const struct deed *d, int way, int r)
{
    int me = d->meeting->rank;

    if (!has_lengths(d))
        return d->count;
    if (d->kind == DEED_ALLTOALLV)
        return way ? length_of(d, me, r) : length_of(d, r, me);
    return length_of(d, r, 0);
}

static void deed_prepare(struct deed *d)
{
    int n = d->meeting->size, me = d->meeting->rank;
    size_t room = (size_t)n * (size_t)(d->count + 3) + 1;

    d->in = sim_calloc(room, sizeof *d->in);
    d->out = sim_calloc(room, sizeof *d->out);
    d->lengths = sim_calloc((size_t)n * 2, sizeof *d->lengths);
    d->places = sim_calloc((size_t)n * 2, sizeof *d->places);
    if (!d->in || !d->out || !d->lengths || !d->places)
        world_fail("no memory for a collective");
    for (int way = 0; way < 2; way++) {
        int at = 0;
        for (int r = 0; r < n; r++) {
            d->lengths[way * n + r] = block_length(d, way, r);
            d->places[way * n + r] = at;
            /* Gaps between the blocks where the call allows them. */
            at += block_length(d, way, r) + (d->kind == DEED_REDUCE_SCATTER ? 0 : r % 3);
        }
    }
    /* What is sent: alike for all but scatter and alltoall, whose blocks lie behind one another. */
    if (d->kind == DEED_SCATTERV || d->kind == DEED_ALLTOALLV) {
        for (int r = 0, k = 0; r < n; r++)
            for (int i = 0; i < d->lengths[n + r]; i++)
                d->in[d->places[n + r] + i] = value(d, me, k++);
    } else {
        for (size_t i = 0; i < room; i++)
            d->in[i] = value(d, me, (int)i);
    }
    if (d->kind == DEED_BCAST && me == d->root)
        for (int i = 0; i < d->count; i++)
            d->out[i] = d->in[i];
}

/* One of the three forms of a collective. */
#define DEED(blocking, nonblocking, persistent, ...)                                               \
    (d->form == FORM_BLOCKING      ? blocking(__VA_ARGS__)                                         \
     : d->form == FORM_NONBLOCKING ? nonblocking(__VA_ARGS__, &d->request)                         \
                                   : persistent(__VA_ARGS__, MPI_INFO_NULL, &d->request))

static int deed_reduction(struct deed *d, MPI_Op op)
{
    MPI_Comm comm = d->meeting->comm;
    const MPI_Datatype u = MPI_UINT64_T;
    int c = d->count;

    switch (d->kind) {
    case DEED_REDUCE:
        return DEED(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, d->in, d->out, c, u, op, d->root,
                    comm);
    case DEED_ALLREDUCE:
        return DEED(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, d->in, d->out, c, u, op,
                    comm);
    case DEED_SCAN:
        return DEED(MPI_Scan, MPI_Iscan, MPI_Scan_init, d->in, d->out, c, u, op, comm);
    case DEED_EXSCAN:
        return DEED(MPI_Exscan, MPI_Iexscan, MPI_Exscan_init, d->in, d->out, c, u, op, comm);
    case DEED_REDUCE_SCATTER:
        return DEED(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init, d->in, d->out,
                    d->lengths, u, op, comm);
    default:
        return DEED(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block,
                    MPI_Reduce_scatter_block_init, d->in, d->out, c, u, op, comm);
    }
}

static int deed_start(struct deed *d, MPI_Op op)
{
    MPI_Comm comm = d->meeting->comm;
    const MPI_Datatype u = MPI_UINT64_T;
    int n = d->meeting->size, c = d->count, mine = d->lengths[d->meeting->rank];

    switch (d->kind) {
    case DEED_BARRIER:
        return DEED(MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init, comm);
    case DEED_BCAST:
        return DEED(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, d->out, c, u, d->root, comm);
    case DEED_GATHER:
        return DEED(MPI_Gather, MPI_Igather, MPI_Gather_init, d->in, c, u, d->out, c, u, d->root,
                    comm);
    case DEED_GATHERV:
        return DEED(MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, d->in, mine, u, d->out, d->lengths,
                    d->places, u, d->root, comm);
    case DEED_ALLGATHER:
        return DEED(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, d->in, c, u, d->out, c, u,
                    comm);
    case DEED_ALLGATHERV:
        return DEED(MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, d->in, mine, u, d->out,
                    d->lengths, d->places, u, comm);
    case DEED_SCATTER:
        return DEED(MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, d->in, c, u, d->out, c, u, d->root,
                    comm);
    case DEED_SCATTERV:
        return DEED(MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, d->in, d->lengths + n,
                    d->places + n, u, d->out, mine, u, d->root, comm);
    case DEED_ALLTOALL:
        return DEED(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, d->in, c, u, d->out, c, u,
                    comm);
    case DEED_ALLTOALLV:
        return DEED(MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, d->in, d->lengths + n,
                    d->places + n, u, d->out, d->lengths, d->places, u, comm);
    default:
        return deed_reduction(d, op);
    }
}

/* ---- results ---- */

static void expect(const struct deed *d, int at, uint64_t wanted, int of, int i)
{
    if (d->out[at] != wanted)
        world_fail("collective %d of %d elements, root %d, form %d%s: element %d of rank %d is "
                   "wrong",
                   d->kind, d->count, d->root, d->form, d->ordered ? ", ordered" : "", i, of);
}

/* Elements that rank `from` sends to others than `to` before those for `to`. */
static int sent_before(const struct deed *d, int from, int to)
{
    int n = 0;

    for (int r = 0; r < to; r++)
        n += d->kind == DEED_ALLTOALLV ? length_of(d, from, r) : length_of(d, r, 0);
    return n;
}

static void check_blocks(const struct deed *d)
{
    int me = d->meeting->rank;
    bool takes = d->kind == DEED_GATHER || d->kind == DEED_GATHERV ? me == d->root : true;

    for (int r = 0; takes && r < d->meeting->size; r++) {
        int at = has_lengths(d) ? d->places[r] : r * d->count;
        for (int i = 0; i < d->lengths[r]; i++) {
            int k = d->kind == DEED_ALLTOALL    ? me * d->count + i
                    : d->kind == DEED_ALLTOALLV ? sent_before(d, r, me) + i
                                                : i;
            expect(d, at + i, value(d, r, k), r, i);
        }
    }
}

static void deed_check(const struct deed *d)
{
    int me = d->meeting->rank, n = d->meeting->size, first;

    switch (d->kind) {
    case DEED_BARRIER:
        break;
    case DEED_BCAST:
        for (int i = 0; i < d->count; i++)
            expect(d, i, value(d, d->root, i), d->root, i);
        break;
    case DEED_REDUCE:
        for (int i = 0; i < d->count && me == d->root; i++)
            expect(d, i, combined(d, 0, n, i), me, i);
        break;
    case DEED_ALLREDUCE:
        for (int i = 0; i < d->count; i++)
            expect(d, i, combined(d, 0, n, i), me, i);
        break;
    case DEED_SCAN:
        for (int i = 0; i < d->count; i++)
            expect(d, i, combined(d, 0, me + 1, i), me, i);
        break;
    case DEED_EXSCAN:
        for (int i = 0; i < d->count && me > 0; i++)
            expect(d, i, combined(d, 0, me, i), me, i);
        break;
    case DEED_REDUCE_SCATTER:
    case DEED_REDUCE_SCATTER_BLOCK:
        first = d->kind == DEED_REDUCE_SCATTER ? d->places[me] : me * d->count;
        for (int i = 0; i < d->lengths[me]; i++)
            expect(d, i, combined(d, 0, n, first + i), me, i);
        break;
    case DEED_SCATTER:
        for (int i = 0; i < d->count; i++)
            expect(d, i, value(d, d->root, me * d->count + i), d->root, i);
        break;
    case DEED_SCATTERV:
        for (int i = 0; i < d->lengths[me]; i++)
            expect(d, i, value(d, d->root, sent_before(d, d->root, me) + i), d->root, i);
        break;
    default:
        check_blocks(d);
        break;
    }
}

static void deed_free(struct deed *d)
{
    if (d->form == FORM_PERSISTENT)
        CHECK(MPI_Request_free(&d->request));
    sim_free(d->in);
    sim_free(d->out);
    sim_free(d->lengths);
    sim_free(d->places);
}

static void deed_draw(struct deed *d, struct meeting *m, struct rand *plan, bool small)
{
    static const uint64_t limits[] = {2, 8, 60, 400, 3000};
    uint64_t limit = limits[program_draw(plan, 3)];

    if (!small && program_draw(plan, 6) == 0)
        limit = limits[program_draw(plan, 5)];
    *d = (struct deed){.meeting = m, .request = MPI_REQUEST_NULL};
    d->kind = (enum deed_kind)program_draw(plan, DEED_KINDS);
    d->form = (enum deed_form)program_draw(plan, FORMS);
    d->count = (int)program_draw(plan, limit);
    if (d->count > 0 && (d->kind == DEED_BCAST || d->kind == DEED_ALLREDUCE) &&
        program_draw(plan, 12) == 0)
        d->count *= 10;
    d->root = (int)program_draw(plan, (uint64_t)m->size);
    d->ordered = program_draw(plan, 3) == 0;
    d->salt = rand_next(plan);
}

static void await_all(struct program *p, struct deed *deeds, int n)
{
    int first = (int)program_draw(&p->own, (uint64_t)n), flag = 0;

    for (int i = 0; i < n; i++) {
        struct deed *d = &deeds[(first + i) % n];
        if (d->form == FORM_BLOCKING)
            continue;
        if (program_draw(&p->own, 2)) {
            for (flag = 0; !flag;) {
                CHECK(MPI_Test(&d->request, &flag, MPI_STATUS_IGNORE));
                if (!flag)
                    process_pause(program_draw(&p->own, 50000));
            }
        } else {
            CHECK(MPI_Wait(&d->request, MPI_STATUS_IGNORE));
        }
    }
}

void gather_round(struct program *p, struct meeting *m)
{
    struct rand plan = program_plan(m);
    struct deed deeds[DEEDS_MAX];
    int n = 1 + (int)program_draw(&plan, program_draw(&plan, 8) ? DEEDS_FEW : DEEDS_MAX);
    MPI_Op ordered;

    CHECK(MPI_Op_create(compose_all, 0, &ordered));
    for (int i = 0; i < n; i++) {
        struct deed *d = &deeds[i];
        deed_draw(d, m, &plan, n > DEEDS_FEW);
        deed_prepare(d);
        world_say("round %u: collective %d of %d elements, root %d, form %d", m->n_rounds, d->kind,
                  d->count, d->root, d->form);
        program_dawdle(p);
        program_check(deed_start(d, d->ordered ? ordered : MPI_SUM), "a collective");
        if (d->form == FORM_PERSISTENT)
            CHECK(MPI_Start(&d->request));
    }
    await_all(p, deeds, n);
    for (int i = 0; i < n; i++) {
        deed_check(&deeds[i]);
        deed_free(&deeds[i]);
    }
    CHECK(MPI_Op_free(&ordered));
}
