/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/transport/cells.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "client/client.h"
#include "client/transport/end.h"

#define AHEAD 8u /* entries that are fetched for writing ahead of their use, as for rings */
#define LINE  64u

struct cells {
    struct cell *mine;
    uint8_t *data; /* of the own cell */
    uint32_t data_bytes;
    uint32_t slot, row;
    uint32_t n_members, me;
    uint64_t base;
    uint64_t taken;      /* last step given */
    uint64_t published;  /* highest step published */
    uint64_t done;       /* every step up to here is finished here */
    uint64_t done_ahead; /* bit i: step done + 2 + i is finished, too */
    uint64_t free_up_to; /* every member was seen to be done with all steps up to here */
    bool drained;        /* nobody reads what the row's last user published */
    /* The data area is used like a ring: parts in the order of their claims, given back at either
     * end when everybody is done with their steps. */
    uint32_t tail, head; /* free-running */
    uint32_t claim_end;  /* tail once the claimed part is published */
    struct {
        uint64_t step;
        uint32_t end;
    } parts[CELLS_DEPTH];
    uint32_t first_part, n_parts;
    struct cell *cells[]; /* [n_members], then their bells */
};

struct cells_state {
    /* What the last user of each row left: those who may still read, and what. */
    struct {
        uint64_t published;
        uint32_t n_readers;
        uint32_t *readers; /* local ranks; NULL: none */
    } left[CELLS_SLOTS][CELLS_ROWS];
    uint64_t highest;
};
static struct cells_state cells_first;
static struct cells_state *cells_here = &cells_first;

static void cells_part_deinit(void)
{
    for (uint32_t slot = 0; slot < CELLS_SLOTS; slot++)
        for (uint32_t row = 0; row < CELLS_ROWS; row++)
            free(cells_here->left[slot][row].readers);
}
CLIENT_PART(cells_here, cells_first, .deinit = cells_part_deinit);

bool cells_exist(void)
{
    return transport_here->base && transport_here->layout.shape.cell_bytes > 0;
}

uint64_t cells_highest(void)
{
    return cells_here->highest;
}

uint32_t cells_max_bytes(void)
{
    return transport_here->layout.shape.cell_bytes / 2;
}

static struct cell *cell_of(uint32_t slot, uint32_t row, uint32_t local)
{
    return segment_cell(transport_here->base, &transport_here->layout, slot, row, local);
}

static struct bell **bells_of(const struct cells *x)
{
    return (struct bell **)(void *)&((struct cells *)(uintptr_t)x)->cells[x->n_members];
}

struct cells *cells_open(uint32_t slot, uint32_t row, uint64_t base, uint32_t n_members,
                         const uint32_t *locals, uint32_t me)
{
    struct cells *x =
        calloc(1, sizeof *x + n_members * (sizeof x->cells[0] + sizeof(struct bell *)));

    if (!x)
        return NULL;
    x->slot = slot;
    x->row = row;
    x->n_members = n_members;
    x->me = me;
    x->base = x->taken = x->done = x->free_up_to = base;
    x->drained = cells_here->left[slot][row].readers == NULL;
    for (uint32_t i = 0; i < n_members; i++) {
        x->cells[i] = cell_of(slot, row, locals[i]);
        bells_of(x)[i] =
            &segment_rank_at(transport_here->base, &transport_here->layout, locals[i])->bell;
    }
    x->mine = x->cells[me];
    x->data = (uint8_t *)x->mine + CELLS_DATA_OFF;
    x->data_bytes = transport_here->layout.shape.cell_bytes;
    if (base > cells_here->highest)
        cells_here->highest = base;
    return x;
}

static uint64_t done_of(const struct cell *cell)
{
    /* acquire: pairs with the release in cells_finish; what is overwritten now has been read. */
    return atomic_load_explicit(&((struct cell *)(uintptr_t)cell)->done, memory_order_acquire);
}

void cells_close(struct cells *x)
{
    if (!x)
        return;
    bool unread = false;
    for (uint32_t i = 0; x->published > 0 && i < x->n_members; i++)
        unread |= i != x->me && done_of(x->cells[i]) < x->published;
    /* A row that was not drained is as it was: this user has published nothing. */
    if (unread) {
        uint32_t *readers = malloc(x->n_members * sizeof *readers);
        if (!readers)
            /* Without the list a late reader would see another communicator's data. */
            end_no_memory(__func__, "the list of late readers", x->n_members * sizeof *readers);
        for (uint32_t i = 0; i < x->n_members; i++)
            readers[i] =
                (uint32_t)(((size_t)((char *)x->cells[i] - (char *)cell_of(x->slot, x->row, 0))) /
                           transport_here->layout.cells_stride);
        free(cells_here->left[x->slot][x->row].readers);
        cells_here->left[x->slot][x->row].readers = readers;
        cells_here->left[x->slot][x->row].n_readers = x->n_members;
        cells_here->left[x->slot][x->row].published = x->published;
    }
    free(x);
}

uint64_t cells_take(struct cells *x)
{
    x->taken++;
    if (x->taken > cells_here->highest)
        cells_here->highest = x->taken;
    return x->taken;
}

/* The readers of the row's last user. */
static bool drain(struct cells *x)
{
    for (uint32_t i = 0; i < cells_here->left[x->slot][x->row].n_readers; i++) {
        uint32_t local = cells_here->left[x->slot][x->row].readers[i];
        if (local != transport_here->local_rank &&
            done_of(cell_of(x->slot, x->row, local)) < cells_here->left[x->slot][x->row].published)
            return false;
    }
    free(cells_here->left[x->slot][x->row].readers);
    cells_here->left[x->slot][x->row].readers = NULL;
    cells_here->left[x->slot][x->row].n_readers = 0;
    x->drained = true;
    return true;
}

/* The part with this place in their order. */
static uint32_t part_at(const struct cells *x, uint32_t idx)
{
    return (x->first_part + idx) % CELLS_DEPTH;
}

static void look_for_room(struct cells *x)
{
    uint64_t least = x->done;

    for (uint32_t i = 0; i < x->n_members; i++) {
        uint64_t done = i == x->me ? x->done : done_of(x->cells[i]);
        if (done < least)
            least = done;
    }
    if (least > x->free_up_to) /* a member that has not begun still shows a step before the base */
        x->free_up_to = least;
    while (x->n_parts > 0 && x->parts[x->first_part].step <= x->free_up_to) {
        x->head = x->parts[x->first_part].end;
        x->first_part = (x->first_part + 1) % CELLS_DEPTH;
        x->n_parts--;
    }
    /* What an earlier step published behind a later one that is still read. */
    while (x->n_parts > 1 && x->parts[part_at(x, x->n_parts - 1)].step <= x->free_up_to) {
        x->n_parts--;
        x->tail = x->parts[part_at(x, x->n_parts - 1)].end;
    }
    if (x->n_parts == 0)
        x->head = x->tail = 0; /* what is used again soon is still in the cache */
}

/* A place for `need` bytes in one piece behind `tail`, or false. */
static bool place(const struct cells *x, uint32_t tail, uint32_t n_parts, uint32_t need,
                  uint32_t *ret_off, uint32_t *ret_end)
{
    uint32_t rest = x->data_bytes - (tail & (x->data_bytes - 1)), pad = rest < need ? rest : 0;

    if (n_parts >= CELLS_DEPTH || tail + pad + need - x->head > x->data_bytes)
        return false;
    *ret_off = (tail + pad) & (x->data_bytes - 1);
    *ret_end = tail + pad + need;
    return true;
}

/* No earlier step will ask for room any more: each one was published or finished here. */
static bool is_next_claim(const struct cells *x, uint64_t step)
{
    for (uint64_t s = x->done + 1; s < step; s++) {
        /* relaxed: only this process writes it */
        if (atomic_load_explicit(&x->mine->entries[s % CELLS_DEPTH].step, memory_order_relaxed) !=
                s &&
            !(s - x->done - 2 < 64 && x->done_ahead >> (s - x->done - 2) & 1))
            return false;
    }
    return true;
}

/* Room in the data area; see the header for what must be left to earlier steps. */
static void *claim_data(struct cells *x, uint64_t step, struct cell_entry *e)
{
    uint32_t need = (e->len + LINE - 1) & ~(LINE - 1), off, end, reserve_off, reserve_end;

    if (x->n_parts > 0)
        look_for_room(x);
    if (!place(x, x->tail, x->n_parts, need, &off, &end))
        return NULL;
    if (step != x->done + 1 &&
        !place(x, end, x->n_parts + 1, x->data_bytes / 2, &reserve_off, &reserve_end) &&
        !is_next_claim(x, step))
        return NULL;
    x->claim_end = end;
    e->off = off;
    return x->data + off;
}

void *cells_claim(struct cells *x, uint64_t step, uint32_t len)
{
    struct cell_entry *e = &x->mine->entries[step % CELLS_DEPTH];

    if (__builtin_expect(!x->drained, 0) && !drain(x))
        return NULL;
    if (step - x->free_up_to > CELLS_DEPTH) {
        look_for_room(x);
        if (step - x->free_up_to > CELLS_DEPTH)
            return NULL;
    }
    e->len = len;
    return len <= CELLS_INLINE_BYTES ? e->payload : claim_data(x, step, e);
}

static inline void wake(const struct bell_ref *ref)
{
    if (__builtin_expect(atomic_load_explicit(&ref->bell->sleeping, memory_order_seq_cst), 0))
        bell_wake(ref);
}

void cells_publish(struct cells *x, uint64_t step, int to)
{
    struct cell_entry *e = &x->mine->entries[step % CELLS_DEPTH];

    if (e->len > CELLS_INLINE_BYTES) {
        x->tail = x->claim_end;
        x->parts[part_at(x, x->n_parts)].step = step;
        x->parts[part_at(x, x->n_parts)].end = x->tail;
        x->n_parts++;
    }
    if (step > x->published)
        x->published = step;
    if (transport_here->fenced) {
        /* seq_cst: pairs with the seq_cst exchange in bell_sleep_begin. */
        atomic_exchange_explicit(&e->step, step, memory_order_seq_cst);
    } else {
        /* release: pairs with the acquire in cells_peek. The order against the look at
         * `sleeping` is made by the sleeper's thread_barrier_all, as for rings. */
        atomic_store_explicit(&e->step, step, memory_order_release);
        atomic_signal_fence(memory_order_seq_cst);
    }
    /* Others have read what stood in the entry that comes then, so its line is in their caches: it
     * is on its way back before it is wanted. */
    thread_prefetch_own(&x->mine->entries[(step + AHEAD) % CELLS_DEPTH]);
    struct bell_ref ref = {.event_fd = -1, .fenced = transport_here->fenced};
    if (to >= 0) {
        ref.bell = bells_of(x)[to];
        wake(&ref);
        return;
    }
    for (uint32_t i = 0; i < x->n_members; i++) {
        ref.bell = bells_of(x)[i];
        if (i != x->me)
            wake(&ref);
    }
}

const void *cells_peek(const struct cells *x, uint32_t member, uint64_t step, uint32_t *ret_len)
{
    struct cell *cell = x->cells[member];
    struct cell_entry *e = &cell->entries[step % CELLS_DEPTH];

    /* acquire: pairs with the release in cells_publish. */
    if (atomic_load_explicit(&e->step, memory_order_acquire) != step)
        return NULL;
    uint32_t len = e->len, off = e->off;
    *ret_len = len;
    if (len <= CELLS_INLINE_BYTES)
        return e->payload;
    if (off > x->data_bytes || len > x->data_bytes - off) { /* not written by this library */
        *ret_len = 0;
        return e->payload;
    }
    return (const uint8_t *)cell + CELLS_DATA_OFF + off;
}

void cells_prefetch(const struct cells *x, uint64_t step)
{
    for (uint32_t i = 0; i < x->n_members; i++)
        __builtin_prefetch(&x->cells[i]->entries[(step + 1) % CELLS_DEPTH]);
}

bool cells_finish(struct cells *x, uint64_t step)
{
    if (step == x->done + 1) {
        x->done++;
        while (x->done_ahead & 1) {
            x->done++;
            x->done_ahead >>= 1;
        }
        x->done_ahead >>= 1;
        /* release: pairs with the acquire in done_of. */
        atomic_store_explicit(&x->mine->done, x->done, memory_order_release);
        return true;
    }
    if (step - x->done - 2 >= 64)
        return false;
    x->done_ahead |= UINT64_C(1) << (step - x->done - 2);
    return true;
}
