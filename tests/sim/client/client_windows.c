/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided traffic of a round: a window of a drawn kind, accumulates and puts from everybody to
 * everybody under a drawn synchronisation. The plan says which rank adds what where, so each knows
 * to the last unit what its memory must hold: an accumulate that was lost or carried out twice
 * shows, whatever packets and nodes went through meanwhile.
 */
#include "tests/sim/client/client_program.h"

#include <string.h>

#include "base/hash.h"
#include "tests/sim/client/client_process.h"
#include "tests/sim/client/client_world.h"

#define MOST_DEEDS 24

enum window_kind { WINDOW_CREATED, WINDOW_ALLOCATED, WINDOW_DYNAMIC, WINDOW_KINDS };
enum window_sync { SYNC_FENCE, SYNC_POST, SYNC_LOCK, SYNC_LOCK_ALL, SYNCS };
enum deed_kind { DEED_ADD, DEED_GET_ADD, DEED_FETCH, DEED_KINDS };

struct window {
    struct meeting *meeting;
    enum window_kind kind;
    enum window_sync sync;
    int n_words; /* counters; as many again for each rank, for what it puts */
    uint64_t salt;
    MPI_Win win;
    uint64_t *memory, *expected, *operand, *before;
    MPI_Aint *bases;
};

static void *words_alloc(size_t n_bytes)
{
    void *memory = sim_malloc(n_bytes);

    if (!memory)
        world_fail("no memory for a window");
    return memory;
}

static size_t words_of(const struct window *w)
{
    return (size_t)w->n_words * (size_t)(1 + w->meeting->size);
}

static void open_window(struct window *w)
{
    MPI_Comm comm = w->meeting->comm;
    MPI_Aint n_bytes = (MPI_Aint)(words_of(w) * sizeof(uint64_t));
    size_t n_ranks = (size_t)w->meeting->size;

    w->bases = words_alloc(n_ranks * sizeof *w->bases);
    memset(w->bases, 0, n_ranks * sizeof *w->bases);
    if (w->kind == WINDOW_ALLOCATED)
        CHECK(MPI_Win_allocate(n_bytes, 1, MPI_INFO_NULL, comm, &w->memory, &w->win));
    else
        w->memory = words_alloc((size_t)n_bytes);
    memset(w->memory, 0, (size_t)n_bytes);
    if (w->kind == WINDOW_CREATED) {
        CHECK(MPI_Win_create(w->memory, n_bytes, 1, MPI_INFO_NULL, comm, &w->win));
    } else if (w->kind == WINDOW_DYNAMIC) {
        CHECK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &w->win));
        CHECK(MPI_Win_attach(w->win, w->memory, n_bytes));
        CHECK(MPI_Get_address(w->memory, &w->bases[w->meeting->rank]));
        CHECK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, w->bases, 1, MPI_AINT, comm));
    }
    CHECK(MPI_Barrier(comm));
}

static void begin_epoch(struct window *w)
{
    MPI_Group group;

    switch (w->sync) {
    case SYNC_FENCE:
        CHECK(MPI_Win_fence(0, w->win));
        break;
    case SYNC_POST:
        CHECK(MPI_Win_get_group(w->win, &group));
        CHECK(MPI_Win_post(group, 0, w->win));
        CHECK(MPI_Win_start(group, 0, w->win));
        CHECK(MPI_Group_free(&group));
        break;
    case SYNC_LOCK_ALL:
        CHECK(MPI_Win_lock_all(0, w->win));
        break;
    default:
        break;
    }
}

static void end_epoch(struct window *w)
{
    switch (w->sync) {
    case SYNC_FENCE:
        CHECK(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
        break;
    case SYNC_POST:
        CHECK(MPI_Win_complete(w->win));
        CHECK(MPI_Win_wait(w->win));
        break;
    case SYNC_LOCK_ALL:
        CHECK(MPI_Win_unlock_all(w->win));
        break;
    default:
        break;
    }
    CHECK(MPI_Barrier(w->meeting->comm));
}

static uint64_t amount(const struct window *w, int origin, int deed, int i)
{
    return hash_mix64(w->salt + (uint64_t)origin * 1000003 + (uint64_t)deed * 31) + (uint64_t)i;
}

/* Adds to `n` counters from `first` on. */
static void carry_out(struct window *w, enum deed_kind kind, int target, int first, int n)
{
    MPI_Aint at = w->bases[target] + (MPI_Aint)first * (MPI_Aint)sizeof(uint64_t);

    if (kind == DEED_ADD)
        CHECK(MPI_Accumulate(w->operand, n, MPI_UINT64_T, target, at, n, MPI_UINT64_T, MPI_SUM,
                             w->win));
    else if (kind == DEED_GET_ADD)
        CHECK(MPI_Get_accumulate(w->operand, n, MPI_UINT64_T, w->before, n, MPI_UINT64_T, target,
                                 at, n, MPI_UINT64_T, MPI_SUM, w->win));
    else
        CHECK(MPI_Fetch_and_op(w->operand, w->before, MPI_UINT64_T, target, at, MPI_SUM, w->win));
}

static void do_deed(struct window *w, struct rand *plan, int deed)
{
    struct meeting *m = w->meeting;
    int origin = (int)program_draw(plan, (uint64_t)m->size);
    int target = (int)program_draw(plan, (uint64_t)m->size);
    enum deed_kind kind = (enum deed_kind)program_draw(plan, DEED_KINDS);
    bool exclusive = program_draw(plan, 2), one = program_draw(plan, 3) == 0;
    int first = (int)program_draw(plan, (uint64_t)w->n_words);
    int n = kind == DEED_FETCH || one ? 1 : w->n_words - first;

    for (int i = 0; target == m->rank && i < n; i++)
        w->expected[first + i] += amount(w, origin, deed, i);
    if (origin != m->rank)
        return;
    for (int i = 0; i < n; i++)
        w->operand[i] = amount(w, origin, deed, i);
    if (w->sync == SYNC_LOCK)
        CHECK(MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, w->win));
    carry_out(w, kind, target, first, n);
    /* The operand is used again. */
    if (w->sync == SYNC_LOCK)
        CHECK(MPI_Win_unlock(target, w->win));
    else if (w->sync == SYNC_LOCK_ALL)
        CHECK(MPI_Win_flush_local(target, w->win));
}

/* Active epochs cannot wait for one operation: each deed has a place of its own for its operand. */
static uint64_t *operand_for(const struct window *w, int deed)
{
    bool waits = w->sync == SYNC_LOCK || w->sync == SYNC_LOCK_ALL;
    return w->operand + (waits ? 0 : (size_t)deed * (size_t)w->n_words);
}

/* Everybody puts a block of its own into everybody's memory. */
static void put_all(struct window *w, uint64_t *block)
{
    struct meeting *m = w->meeting;

    for (int i = 0; i < w->n_words; i++)
        block[i] = amount(w, m->rank, MOST_DEEDS, i);
    for (int k = 0; k < m->size; k++) {
        int target = (m->rank + k) % m->size;
        MPI_Aint at = w->bases[target] +
                      (MPI_Aint)((size_t)w->n_words * (size_t)(1 + m->rank) * sizeof(uint64_t));
        if (w->sync == SYNC_LOCK)
            CHECK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
        CHECK(
            MPI_Put(block, w->n_words, MPI_UINT64_T, target, at, w->n_words, MPI_UINT64_T, w->win));
        if (w->sync == SYNC_LOCK)
            CHECK(MPI_Win_unlock(target, w->win));
    }
}

static void compare(const struct window *w)
{
    for (int r = 0; r < w->meeting->size; r++)
        for (int i = 0; i < w->n_words; i++)
            w->expected[(size_t)w->n_words * (size_t)(1 + r) + (size_t)i] =
                amount(w, r, MOST_DEEDS, i);
    for (size_t i = 0; i < words_of(w); i++)
        if (w->memory[i] != w->expected[i])
            world_fail(
                "window kind %d, synchronisation %d, %d words: word %zu of rank %d is wrong by "
                "%lld",
                w->kind, w->sync, w->n_words, i, w->meeting->rank,
                (long long)(w->memory[i] - w->expected[i]));
}

void windows_round(struct program *p, struct meeting *m)
{
    static const int sizes[] = {1, 30, 1200, 40000};
    struct rand plan = program_plan(m);
    struct window w = {.meeting = m,
                       .kind = (enum window_kind)program_draw(&plan, WINDOW_KINDS),
                       .sync = (enum window_sync)program_draw(&plan, SYNCS),
                       .n_words = sizes[program_draw(&plan, 4)],
                       .salt = program_draw(&plan, UINT64_C(1) << 60)};
    if (w.n_words * m->size > 40000)
        w.n_words = sizes[1];
    int n_deeds = (int)program_draw(&plan, w.n_words > 1000 ? 4 : MOST_DEEDS);
    size_t n_operands = (size_t)w.n_words * (size_t)(n_deeds + 1) * sizeof(uint64_t);
    uint64_t *operands = words_alloc(n_operands), *befores = words_alloc(n_operands);

    open_window(&w);
    w.expected = words_alloc(words_of(&w) * sizeof(uint64_t));
    memset(w.expected, 0, words_of(&w) * sizeof(uint64_t));
    begin_epoch(&w);
    for (int i = 0; i < n_deeds; i++) {
        w.operand = operands;
        w.operand = operand_for(&w, i);
        w.before = befores + (w.operand - operands);
        do_deed(&w, &plan, i);
        program_dawdle(p);
    }
    put_all(&w, operands + (size_t)w.n_words * (size_t)n_deeds);
    end_epoch(&w);
    compare(&w);
    if (w.kind == WINDOW_DYNAMIC)
        CHECK(MPI_Win_detach(w.win, w.memory));
    CHECK(MPI_Win_free(&w.win));
    if (w.kind != WINDOW_ALLOCATED)
        sim_free(w.memory);
    sim_free(w.bases);
    sim_free(w.expected);
    sim_free(operands);
    sim_free(befores);
}
