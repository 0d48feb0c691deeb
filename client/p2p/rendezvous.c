/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/rendezvous.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "client/object/err.h"
#include "client/p2p/board.h"
#include "client/p2p/joint.h"
#include "client/p2p/outbound.h"

/* Numbers: index into a growing table below, generation above, so that a late packet meets no
 * stranger. */
#define NUMBER_INDEX_BITS 20u
#define NUMBER_INDEX_MASK ((1u << NUMBER_INDEX_BITS) - 1)

/* A grant covers this much beyond what has arrived: the product of bandwidth and delay of 10 Gbit/s
 * and 800 us. */
#define GRANT_AHEAD (1u << 20)
/* All grants of a rank together; the down ring's data area is 4 MiB and eager messages want some of
 * it. */
#define GRANT_BUDGET (3u << 20)
/* Packets one transfer sends before the next one gets its turn. */
#define SEND_BURST 16
/* Pieces of local memory per process_vm_readv. */
#define READV_PIECES 64

struct rendezvous_number {
    struct transfer *transfer;
    uint32_t generation;
    uint32_t next_free; /* index + 1 */
};

void rendezvous_init(struct engine *e)
{
    list_init(&e->sending);
    list_init(&e->starving);
    e->numbers = NULL;
    e->n_numbers = e->max_numbers = e->first_free_number = 0;
    e->budget_used = 0;
}

void rendezvous_deinit(struct engine *e)
{
    free(e->numbers);
    rendezvous_init(e);
}

bool rendezvous_number(struct transfer *t)
{
    struct engine *e = t->engine;
    uint32_t idx;

    if (e->first_free_number) {
        idx = e->first_free_number - 1;
        e->first_free_number = e->numbers[idx].next_free;
    } else {
        if (e->n_numbers == e->max_numbers) {
            uint32_t bigger = e->max_numbers ? 2 * e->max_numbers : 64;
            struct rendezvous_number *grown =
                bigger > NUMBER_INDEX_MASK ? NULL
                                           : realloc(e->numbers, bigger * sizeof *e->numbers);
            if (!grown)
                return false;
            memset(grown + e->max_numbers, 0, (bigger - e->max_numbers) * sizeof *grown);
            e->numbers = grown;
            e->max_numbers = bigger;
        }
        idx = e->n_numbers++;
    }
    /* Generations 1 .. 4095: a number is never 0. */
    e->numbers[idx].generation = e->numbers[idx].generation % 4095 + 1;
    e->numbers[idx].transfer = t;
    t->number = e->numbers[idx].generation << NUMBER_INDEX_BITS | idx;
    return true;
}

static void give_number(struct transfer *t)
{
    struct engine *e = t->engine;
    uint32_t idx = t->number & NUMBER_INDEX_MASK;

    if (!t->number)
        return;
    e->numbers[idx].transfer = NULL;
    e->numbers[idx].next_free = e->first_free_number;
    e->first_free_number = idx + 1;
    t->number = 0;
}

/* The transfer of this number if it deals with this peer in this direction. */
static struct transfer *find(const struct engine *e, uint32_t number, uint32_t world,
                             enum transfer_dir dir)
{
    uint32_t idx = number & NUMBER_INDEX_MASK;

    if (idx >= e->n_numbers || e->numbers[idx].generation != number >> NUMBER_INDEX_BITS)
        return NULL;
    struct transfer *t = e->numbers[idx].transfer;
    return t && t->world == world && t->dir == dir ? t : NULL;
}

void rendezvous_finish(struct transfer *t, int error)
{
    if (t->joint) {
        joint_leave(t);
    } else if (!list_empty(&t->link)) {
        list_remove(&t->link);
        t->engine->n_waiting--;
    }
    give_number(t);
    transfer_complete(t, error);
}

/* ---- sender ---- */

void rendezvous_on_pull(struct engine *e, uint32_t src_world, uint32_t number,
                        const struct msg_pull *pull)
{
    struct transfer *t = find(e, number, src_world, TRANSFER_SEND);

    if (!t || (MPI_Count)pull->granted < t->granted || (MPI_Count)pull->granted > t->bytes)
        return;
    joint_leave(t);
    t->remote = pull->transfer;
    t->granted = (MPI_Count)pull->granted;
    if (list_empty(&t->link)) {
        list_append(&e->sending, &t->link);
        e->n_waiting++;
    }
}

void rendezvous_on_fin(struct engine *e, uint32_t src_world, uint32_t number)
{
    struct transfer *t = find(e, number, src_world, TRANSFER_SEND);

    if (t)
        rendezvous_finish(t, MPI_SUCCESS);
}

/* Sends packets while there is room. Returns how many. */
static int send_granted(struct transfer *t)
{
    struct peer *p = peer_get(t->engine, t->world);
    uint32_t most = p->local ? ring_max_payload(&transport_here->layout.shape.local) / 4
                             : transport_here->packet_bytes;
    int n = 0;

    while (t->moved < t->granted && n < SEND_BURST) {
        MPI_Count left = t->granted - t->moved;
        uint32_t len = left < most ? (uint32_t)left : most;
        void *payload;
        struct ring_producer *ring = peer_ring(p, true);
        struct ring_slot *slot = ring ? ring_claim(ring, len, &payload) : NULL;
        if (!slot)
            break;
        type_cursor_pack(&t->cursor, payload, len);
        slot->kind = MSG_DATA;
        slot->flags = 0;
        slot->context = t->remote;
        slot->source = 0;
        slot->tag = (int32_t)(uint32_t)t->moved;
        slot->order = (uint32_t)((uint64_t)t->moved >> 32);
        slot->peer = p->world;
        ring_publish(ring);
        t->moved += len;
        n++;
    }
    board_moved(t);
    return n;
}

/* ---- receiver ---- */

static void grant(struct transfer *t)
{
    struct engine *e = t->engine;
    MPI_Count up_to = t->moved + GRANT_AHEAD;

    if (up_to > t->total)
        up_to = t->total;
    if (up_to <= t->granted)
        return;
    uint64_t more = (uint64_t)(up_to - t->granted);
    if (e->budget_used + more > GRANT_BUDGET) {
        if (list_empty(&t->link)) {
            list_append(&e->starving, &t->link);
            e->n_waiting++;
        }
        return;
    }
    e->budget_used += more;
    t->granted = up_to;
    struct msg_pull pull = {.granted = (uint64_t)up_to, .transfer = t->number};
    outbound_control(peer_get(t->engine, t->world), MSG_PULL, t->remote, &pull, sizeof pull);
}

/* Reads the message out of the sender's memory. Returns false when the kernel does not allow it
 * (nothing is lost: pull then). */
static bool read_memory(struct transfer *t, const struct peer *p, uint64_t address)
{
    struct iovec local[READV_PIECES];
    int32_t pid = peer_pid(p);

    while (t->moved < t->total) {
        size_t want = 0;
        int n =
            type_cursor_iov(&t->cursor, local, READV_PIECES, (size_t)(t->total - t->moved), &want);
        struct iovec remote = {.iov_base = (void *)(uintptr_t)(address + (uint64_t)t->moved),
                               .iov_len = want};
        ssize_t got = process_vm_readv(pid, local, (unsigned long)n, &remote, 1, 0);
        if (got <= 0) {
            type_cursor_seek(&t->cursor, t->moved);
            return false;
        }
        t->moved += got;
        if ((size_t)got < want)
            type_cursor_seek(&t->cursor, t->moved);
    }
    return true;
}

void rendezvous_accept(struct transfer *t, struct peer *p, const struct msg_rts *rts,
                       const void *first, uint32_t first_len)
{
    t->engine->rendezvous_in++;
    t->world = p->world;
    t->remote = rts->transfer;
    t->total = (MPI_Count)rts->bytes;
    if (first_len > 0)
        outbound_owe(p, first_len + PEER_EAGER_OVERHEAD);
    int error = transfer_check_length(t, t->total);
    t->base.error = error;
    if (t->total > t->bytes)
        t->total = t->bytes;
    t->base.bytes = t->total;
    type_cursor_init(&t->cursor, t->buffer.type, t->buffer.count, t->buffer.base);
    uint32_t take = (MPI_Count)first_len < t->total ? first_len : (uint32_t)t->total;
    type_cursor_unpack(&t->cursor, first, take);
    t->moved = t->granted = take;

    bool complete = t->moved == t->total;
    if (!complete && rts->flags & MSG_RTS_SAME_NODE && !p->no_readv) {
        if (!error && joint_receive(t, p, rts))
            return;
        complete = read_memory(t, p, rts->address);
        p->no_readv = !complete;
    }
    if (complete) {
        /* The sender of a message that came whole with its announcement has nothing more to do
         * unless it waits for us. */
        outbound_control(p, MSG_FINISHED, t->remote, NULL, 0);
        rendezvous_finish(t, error);
        return;
    }
    if (!rendezvous_number(t)) {
        outbound_control(p, MSG_FINISHED, t->remote, NULL, 0);
        rendezvous_finish(t, err_set(MPI_ERR_NO_MEM, "too many large messages in transfer"));
        return;
    }
    board_show(t, QUEUE_RENDEZVOUS_IN);
    grant(t);
}

void rendezvous_on_data(struct engine *e, uint32_t src_world, uint32_t number, uint64_t offset,
                        const void *payload, uint32_t len)
{
    struct transfer *t = find(e, number, src_world, TRANSFER_RECV);

    if (!t || offset > (uint64_t)t->granted || len > (uint64_t)t->granted - offset)
        return;
    if (t->cursor.position != (MPI_Count)offset)
        type_cursor_seek(&t->cursor, (MPI_Count)offset);
    type_cursor_unpack(&t->cursor, payload, len);
    t->moved += len;
    e->budget_used -= len;
    board_moved(t);
    if (t->moved == t->total) {
        if (t->base.error)
            outbound_control(peer_get(t->engine, t->world), MSG_FINISHED, t->remote, NULL, 0);
        rendezvous_finish(t, t->base.error);
    } else if (t->granted - t->moved <= GRANT_AHEAD / 2) {
        grant(t);
    }
}

int rendezvous_poll(struct engine *e)
{
    int n = 0;

    list_foreach_safe(it, &e->sending) {
        struct transfer *t = list_entry(it, struct transfer, link);
        n += send_granted(t);
        if (t->moved == t->bytes) {
            rendezvous_finish(t, MPI_SUCCESS);
        } else if (t->moved == t->granted) {
            list_remove(it);
            e->n_waiting--;
        }
    }
    list_foreach_safe(it, &e->starving) {
        struct transfer *t = list_entry(it, struct transfer, link);
        if (e->budget_used + GRANT_AHEAD > GRANT_BUDGET)
            break;
        list_remove(it);
        e->n_waiting--;
        grant(t);
        n++;
    }
    return n;
}
