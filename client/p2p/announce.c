/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/announce.h"

#include <string.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "client/p2p/protocols.h"

/* Pieces of local memory per process_vm_readv. */
#define READV_PIECES 64

static void announce_begin(struct rendezvous_transfer *t)
{
    rendezvous_begin(t);
    coop_begin(coop_of(t));
}

/* ---- sender ---- */

/* Within a node. True: the receiver copies it out of this rank's memory. */
static bool announce_choose_local(struct peer *p, const struct transfer *t, struct msg_rts *rts)
{
    const struct method_table *m = peer_method(p);
    bool timed = false;
    enum method method = m ? method_for(m, rts->bytes, t->sole, &timed) : METHOD_RINGS;

    if (p->no_readv || !t->buffer.type->contiguous)
        method = METHOD_RINGS;
    rts->flags |= (uint32_t)method << MSG_RTS_METHOD_SHIFT | (t->sole ? MSG_RTS_ALONE : 0);
    if (timed) {
        rts->flags |= MSG_RTS_TIMED;
        rts->time_ns = (uint32_t)clock_now_ns();
    }
    if (method == METHOD_RINGS)
        return false;
    rts->flags |= MSG_RTS_SAME_NODE;
    rts->address = (uint64_t)(uintptr_t)datatype_run_start(t->buffer.type, t->buffer.base);
    return true;
}

/* How the message may travel, told in `rts`. Returns how much of it leaves with the announcement.
 */
static uint32_t announce_choose(struct peer *p, const struct transfer *t, struct msg_rts *rts)
{
    uint64_t bytes = (uint64_t)t->bytes, room = p->eager_limit - sizeof *rts;

    if (t->mode == P2P_SYNCHRONOUS && bytes <= room && credit_allows(&p->credit, bytes)) {
        rts->flags |= MSG_RTS_SYNC;
        return (uint32_t)bytes;
    }
    if (p->local && announce_choose_local(p, t, rts))
        return 0;
    if (!credit_allows(&p->credit, p->eager_limit))
        return 0;
    return (uint32_t)(bytes < room ? bytes : room);
}

/* A message that is short enough to be sent unasked, and was not to be synchronous, is announced
 * because the allowance is used up. */
static void announce_tell(struct peer *p, const struct transfer *t)
{
    bool stalled = t->mode != P2P_SYNCHRONOUS && t->bytes <= p->eager_limit;

    p->engine->n_credit_stalls += stalled;
    notice_tell(stalled ? NOTICE_STALLED : NOTICE_ANNOUNCED, t->context, (int)t->world, t->tag,
                t->bytes);
}

bool announce_send(struct peer *p, struct transfer *t)
{
    struct protocols *all = protocols_of(p->engine);
    struct rendezvous_transfer *r = rendezvous_of(t);
    struct msg_rts rts = {.bytes = (uint64_t)t->bytes};
    struct ring_producer *ring = peer_ring(p, false);
    void *payload;

    if (!ring)
        return false;
    uint32_t first = announce_choose(p, t, &rts);
    struct ring_slot *slot = ring_claim(ring, (uint32_t)sizeof rts + first, &payload);
    if (!slot)
        return false;
    announce_begin(r);
    if (!rendezvous_take_number(&all->rendezvous, r))
        return false;
    rts.transfer = r->number;
    transfer_show(t, QUEUE_RENDEZVOUS_OUT);
    if (msg_rts_method(rts.flags) == METHOD_BOTH)
        rts.record = coop_offer(&all->coop, coop_of(r));
    memcpy(payload, &rts, sizeof rts);
    type_cursor_init(&r->cursor, t->buffer.type, t->buffer.count, t->buffer.base);
    if (first > 0) {
        type_cursor_pack(&r->cursor, (uint8_t *)payload + sizeof rts, first);
        credit_take(&p->credit, first);
    }
    r->moved = r->granted = first;
    engine_count_sent(p->engine, (uint64_t)t->bytes);
    p->engine->rendezvous_out++;
    announce_tell(p, t);
    peer_publish(p, ring, slot, MSG_RTS, t->context, t->base.comm->rank, t->tag);
    return true;
}

void announce_on_pull(struct engine *e, uint32_t src_world, uint32_t number,
                      const struct msg_pull *pull)
{
    struct protocols *all = protocols_of(e);
    struct rendezvous_transfer *t =
        rendezvous_find(&all->rendezvous, number, src_world, TRANSFER_SEND);

    if (!t || !rendezvous_may_grant(t, pull))
        return;
    coop_leave(&all->coop, coop_of(t));
    rendezvous_on_pull(&all->rendezvous, t, pull);
}

void announce_on_finished(struct engine *e, uint32_t src_world, uint32_t number)
{
    struct protocols *all = protocols_of(e);
    struct rendezvous_transfer *t =
        rendezvous_find(&all->rendezvous, number, src_world, TRANSFER_SEND);

    if (!t)
        return;
    coop_leave(&all->coop, coop_of(t));
    rendezvous_finish(&all->rendezvous, t, MPI_SUCCESS);
}

/* ---- receiver ---- */

bool announce_split(const void *payload, uint32_t len, struct msg_rts *ret_rts,
                    const void **ret_first, uint32_t *ret_first_len)
{
    if (len < sizeof *ret_rts)
        return false;
    memcpy(ret_rts, payload, sizeof *ret_rts);
    *ret_first = (const uint8_t *)payload + sizeof *ret_rts;
    *ret_first_len = len - (uint32_t)sizeof *ret_rts;
    return ret_rts->bytes <= INT64_MAX && *ret_first_len <= ret_rts->bytes;
}

/* Reads the message out of the sender's memory. Returns false when the kernel does not allow it;
 * then nothing has happened, and all is pulled. */
static bool announce_read(struct rendezvous_transfer *t, const struct peer *p, uint64_t address)
{
    struct iovec local[READV_PIECES];
    int32_t pid = peer_pid(p);
    MPI_Count before = t->moved;

    while (t->moved < t->total) {
        size_t want = 0;
        int n =
            type_cursor_iov(&t->cursor, local, READV_PIECES, (size_t)(t->total - t->moved), &want);
        struct iovec remote = {.iov_base = (void *)(uintptr_t)(address + (uint64_t)t->moved),
                               .iov_len = want};
        ssize_t got = process_vm_readv(pid, local, (unsigned long)n, &remote, 1, 0);
        if (got <= 0) {
            t->moved = before;
            type_cursor_seek(&t->cursor, before);
            return false;
        }
        t->moved += got;
        if ((size_t)got < want)
            type_cursor_seek(&t->cursor, t->moved);
    }
    return true;
}

/* Nobody asks the kernel again. */
static void announce_refused(struct peer *p)
{
    p->no_readv = true;
    if (p->method)
        method_refused(p->method);
}

void announce_accept(struct transfer *t, struct peer *p, const struct msg_rts *rts,
                     const void *first, uint32_t first_len, bool expected)
{
    struct protocols *all = protocols_of(t->engine);
    struct rendezvous_transfer *r = rendezvous_of(t);

    t->engine->rendezvous_in++;
    t->world = p->world;
    announce_begin(r);
    r->remote = rts->transfer;
    r->total = (MPI_Count)rts->bytes;
    if (first_len > 0)
        peer_owe(p, first_len);
    int error = transfer_check_length(t, r->total);
    t->base.error = error;
    if (p->local && !error && peer_method(p))
        method_arrived(p->method, rts, expected, first_len, &r->sample);
    if (r->total > t->bytes)
        r->total = t->bytes;
    t->base.bytes = r->total;
    type_cursor_init(&r->cursor, t->buffer.type, t->buffer.count, t->buffer.base);
    uint32_t take = (MPI_Count)first_len < r->total ? first_len : (uint32_t)r->total;
    r->moved = r->granted = take;
    bool copy = rts->flags & MSG_RTS_SAME_NODE && !p->no_readv;
    bool pull = r->moved < r->total && !copy;
    /* It asks before it unpacks: the rest comes meanwhile. */
    if (pull && !rendezvous_pull(&all->rendezvous, r))
        return;
    type_cursor_unpack(&r->cursor, first, take);
    if (pull)
        return;
    if (r->moved < r->total) {
        if (!error && coop_receive(&all->coop, coop_of(r), p, rts))
            return;
        if (!announce_read(r, p, rts->address)) {
            announce_refused(p);
            rendezvous_pull(&all->rendezvous, r);
            return;
        }
    }
    rendezvous_time(&all->rendezvous, r);
    /* Also of a message that came whole with its announcement: the sender may wait for us. */
    peer_send_control(p, MSG_FINISHED, r->remote, NULL, 0);
    rendezvous_finish(&all->rendezvous, r, error);
}
