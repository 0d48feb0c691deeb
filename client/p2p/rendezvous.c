/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/rendezvous.h"

#include <stdlib.h>
#include <string.h>

#include "client/object/err.h"

/* Numbers: index into a growing table below, generation above, so that a late packet meets no
 * stranger. */
#define NUMBER_INDEX_BITS  20u
#define NUMBER_INDEX_MASK  ((1u << NUMBER_INDEX_BITS) - 1)
#define NUMBER_GENERATIONS 4095u

/* Packets one transfer sends before the next one gets its turn. */
#define SEND_BURST 16

struct rendezvous_number {
    struct rendezvous_transfer *transfer;
    uint32_t generation;
    uint32_t next_free; /* index + 1 */
};

void rendezvous_init(struct rendezvous *r, struct engine *e)
{
    *r = (struct rendezvous){.engine = e};
    list_init(&r->sending);
    list_init(&r->backlog);
}

void rendezvous_deinit(struct rendezvous *r)
{
    free(r->numbers);
    rendezvous_init(r, r->engine);
}

void rendezvous_begin(struct rendezvous_transfer *t)
{
    t->number = t->remote = 0;
    t->total = t->granted = t->moved = 0;
    t->sample.timed = false;
}

/* ---- numbers ---- */

static bool rendezvous_more_numbers(struct rendezvous *r)
{
    uint32_t bigger = r->max_numbers ? 2 * r->max_numbers : 64;

    if (bigger > NUMBER_INDEX_MASK)
        return false;
    struct rendezvous_number *grown = realloc(r->numbers, bigger * sizeof *r->numbers);
    if (!grown)
        return false;
    memset(grown + r->max_numbers, 0, (bigger - r->max_numbers) * sizeof *grown);
    r->numbers = grown;
    r->max_numbers = bigger;
    return true;
}

bool rendezvous_take_number(struct rendezvous *r, struct rendezvous_transfer *t)
{
    uint32_t idx;

    if (r->first_free_number) {
        idx = r->first_free_number - 1;
        r->first_free_number = r->numbers[idx].next_free;
    } else {
        if (r->n_numbers == r->max_numbers && !rendezvous_more_numbers(r))
            return false;
        idx = r->n_numbers++;
    }
    /* From 1 on: a number is never 0. */
    r->numbers[idx].generation = r->numbers[idx].generation % NUMBER_GENERATIONS + 1;
    r->numbers[idx].transfer = t;
    t->number = r->numbers[idx].generation << NUMBER_INDEX_BITS | idx;
    return true;
}

static void rendezvous_give_number(struct rendezvous *r, struct rendezvous_transfer *t)
{
    uint32_t idx = t->number & NUMBER_INDEX_MASK;

    if (!t->number)
        return;
    r->numbers[idx].transfer = NULL;
    r->numbers[idx].next_free = r->first_free_number;
    r->first_free_number = idx + 1;
    t->number = 0;
}

struct rendezvous_transfer *rendezvous_find(const struct rendezvous *r, uint32_t number,
                                            uint32_t world, enum transfer_dir dir)
{
    uint32_t idx = number & NUMBER_INDEX_MASK;

    if (idx >= r->n_numbers || r->numbers[idx].generation != number >> NUMBER_INDEX_BITS)
        return NULL;
    struct rendezvous_transfer *t = r->numbers[idx].transfer;
    return t && t->base.world == world && t->base.dir == dir ? t : NULL;
}

uint32_t rendezvous_n_under_way(const struct rendezvous *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->n_numbers; i++)
        n += r->numbers[i].transfer != NULL;
    return n;
}

/* ---- lists: `sending` and `backlog` ---- */

static void rendezvous_enter(struct list *list, struct rendezvous_transfer *t)
{
    if (!list_empty(&t->base.link))
        return;
    list_append(list, &t->base.link);
    t->base.engine->n_waiting++;
}

static void rendezvous_leave(struct rendezvous_transfer *t)
{
    if (list_empty(&t->base.link))
        return;
    list_remove(&t->base.link);
    t->base.engine->n_waiting--;
}

void rendezvous_finish(struct rendezvous *r, struct rendezvous_transfer *t, int error)
{
    rendezvous_leave(t);
    rendezvous_give_number(r, t);
    transfer_complete(&t->base, error);
}

/* ---- sender ---- */

bool rendezvous_may_grant(const struct rendezvous_transfer *t, const struct msg_pull *pull)
{
    return (MPI_Count)pull->granted >= t->granted && (MPI_Count)pull->granted <= t->base.bytes;
}

void rendezvous_on_pull(struct rendezvous *r, struct rendezvous_transfer *t,
                        const struct msg_pull *pull)
{
    t->remote = pull->transfer;
    t->granted = (MPI_Count)pull->granted;
    rendezvous_enter(&r->sending, t);
}

/* One packet of at most `most` bytes. False: no room. */
static bool rendezvous_send_packet(struct rendezvous_transfer *t, struct peer *p, uint32_t most)
{
    MPI_Count left = t->granted - t->moved;
    uint32_t len = left < most ? (uint32_t)left : most;
    void *payload;
    struct ring_producer *ring = peer_ring(p, true);
    struct ring_slot *slot = ring ? ring_claim(ring, len, &payload) : NULL;

    if (!slot)
        return false;
    type_cursor_pack(&t->cursor, payload, len);
    slot->kind = MSG_DATA;
    slot->flags = 0;
    slot->context = t->remote;
    slot->source = 0;
    slot->tag = (int32_t)(uint32_t)t->moved;
    slot->order = (uint32_t)((uint64_t)t->moved >> 32);
    slot->peer = p->world;
    ring_publish(ring);
    if (!p->local)
        p->engine->daemon_sent_bytes += len;
    t->moved += len;
    return true;
}

/* Sends packets while there is room. Returns how many. */
static int rendezvous_send_granted(struct rendezvous_transfer *t)
{
    struct peer *p = peer_get(t->base.engine, t->base.world);
    uint32_t most = p->local ? ring_max_payload(&transport_here->layout.shape.local) / 8
                             : transport_here->packet_bytes;
    int n = 0;

    while (t->moved < t->granted && n < SEND_BURST && rendezvous_send_packet(t, p, most))
        n++;
    transfer_show_moved(&t->base, t->moved);
    return n;
}

static int rendezvous_poll_sending(struct rendezvous *r)
{
    int n = 0;

    list_foreach_safe(it, &r->sending) {
        struct rendezvous_transfer *t = list_entry(it, struct rendezvous_transfer, base.link);
        n += rendezvous_send_granted(t);
        if (t->moved == t->base.bytes)
            rendezvous_finish(r, t, MPI_SUCCESS);
        else if (t->moved == t->granted)
            rendezvous_leave(t);
    }
    return n;
}

/* ---- receiver ---- */

static void rendezvous_grant(struct rendezvous *r, struct rendezvous_transfer *t)
{
    MPI_Count up_to = t->moved + RENDEZVOUS_GRANT_AHEAD;

    if (up_to > t->total)
        up_to = t->total;
    if (up_to <= t->granted)
        return;
    uint64_t more = (uint64_t)(up_to - t->granted);
    if (r->budget_used + more > RENDEZVOUS_GRANT_BUDGET) {
        rendezvous_enter(&r->backlog, t);
        return;
    }
    r->budget_used += more;
    t->granted = up_to;
    struct msg_pull pull = {.granted = (uint64_t)up_to, .transfer = t->number};
    peer_send_control(peer_get(r->engine, t->base.world), MSG_PULL, t->remote, &pull, sizeof pull);
}

void rendezvous_time(struct rendezvous *r, const struct rendezvous_transfer *t)
{
    struct method_table *m = peer_get(r->engine, t->base.world)->method;

    if (m)
        method_done(m, &t->sample);
}

/* The sender is to wait for this message no longer. */
static void rendezvous_tell_sender(struct rendezvous *r, const struct rendezvous_transfer *t)
{
    peer_send_control(peer_get(r->engine, t->base.world), MSG_FINISHED, t->remote, NULL, 0);
}

bool rendezvous_pull(struct rendezvous *r, struct rendezvous_transfer *t)
{
    if (!rendezvous_take_number(r, t)) {
        rendezvous_tell_sender(r, t);
        rendezvous_finish(r, t, err_set(MPI_ERR_NO_MEM, "too many large messages in transfer"));
        return false;
    }
    transfer_show_part(&t->base, QUEUE_RENDEZVOUS_IN, t->total, t->moved);
    rendezvous_grant(r, t);
    return true;
}

void rendezvous_on_data(struct rendezvous *r, uint32_t src_world, uint32_t number, uint64_t offset,
                        const void *payload, uint32_t len)
{
    struct rendezvous_transfer *t = rendezvous_find(r, number, src_world, TRANSFER_RECV);

    if (!t || offset > (uint64_t)t->granted || len > (uint64_t)t->granted - offset)
        return;
    if (t->cursor.position != (MPI_Count)offset)
        type_cursor_seek(&t->cursor, (MPI_Count)offset);
    type_cursor_unpack(&t->cursor, payload, len);
    t->moved += len;
    r->budget_used -= len;
    transfer_show_moved(&t->base, t->moved);
    if (t->moved == t->total) {
        if (t->base.base.error)
            rendezvous_tell_sender(r, t);
        rendezvous_time(r, t);
        rendezvous_finish(r, t, t->base.base.error);
    } else if (t->granted - t->moved <= RENDEZVOUS_GRANT_AHEAD / 2) {
        rendezvous_grant(r, t);
    }
}

static int rendezvous_poll_backlog(struct rendezvous *r)
{
    int n = 0;

    list_foreach_safe(it, &r->backlog) {
        if (r->budget_used + RENDEZVOUS_GRANT_AHEAD > RENDEZVOUS_GRANT_BUDGET)
            break;
        struct rendezvous_transfer *t = list_entry(it, struct rendezvous_transfer, base.link);
        rendezvous_leave(t);
        rendezvous_grant(r, t);
        n++;
    }
    return n;
}

int rendezvous_poll(struct rendezvous *r)
{
    return rendezvous_poll_sending(r) + rendezvous_poll_backlog(r);
}
