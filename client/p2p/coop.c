/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/coop.h"

#include <sys/uio.h>

/* An eighth of the message: large enough that a system call is cheap beside it, small enough that
 * nobody waits long for the other's last one. */
#define COOP_MIN_CHUNK_BYTES (16u << 10)
#define COOP_MAX_CHUNK_BYTES (128u << 10)
#define COOP_FAILED          UINT32_MAX
/* Offers looked at in one poll: messages are matched nearly in order. */
#define OFFERS_PER_POLL 4

void coop_init(struct coop *c, struct rendezvous *r)
{
    c->rendezvous = r;
    list_init(&c->offers);
    list_init(&c->joining);
    c->n_offers = c->n_joining = 0;
}

/* Both sides know the length of the message, and so where its chunks begin. */
static MPI_Count coop_chunk_bytes(MPI_Count bytes)
{
    MPI_Count part = bytes / 8;

    return part < COOP_MIN_CHUNK_BYTES   ? COOP_MIN_CHUNK_BYTES
           : part > COOP_MAX_CHUNK_BYTES ? COOP_MAX_CHUNK_BYTES
                                         : part;
}

static uint32_t coop_n_chunks(MPI_Count bytes)
{
    return (uint32_t)((bytes + coop_chunk_bytes(bytes) - 1) / coop_chunk_bytes(bytes));
}

/* A chunk of a message of `bytes` whose first byte lies at `start`, in this process or another. */
static struct iovec coop_chunk(MPI_Count bytes, uint32_t chunk, uint64_t start)
{
    MPI_Count at = chunk * coop_chunk_bytes(bytes), left = bytes - at;

    return (struct iovec){
        .iov_base = (void *)(uintptr_t)(start + (uint64_t)at),
        .iov_len = (size_t)(left < coop_chunk_bytes(bytes) ? left : coop_chunk_bytes(bytes))};
}

/* Where the first byte of this side's buffer, a dense run, lies. */
static uint64_t coop_start(const struct coop_transfer *t)
{
    const struct buffer *b = &t->base.base.buffer;
    return (uint64_t)(uintptr_t)datatype_run_start(b->type, b->base);
}

static struct peer *coop_peer(const struct coop_transfer *t)
{
    return peer_get(t->base.base.engine, t->base.base.world);
}

/* ---- lists ---- */

static int *coop_counter(struct coop *c, const struct coop_transfer *t)
{
    return t->base.base.dir == TRANSFER_SEND ? &c->n_offers : &c->n_joining;
}

static void coop_join(struct coop *c, struct list *list, struct coop_transfer *t)
{
    t->joined = true;
    list_append(list, &t->base.base.link);
    ++*coop_counter(c, t);
}

void coop_leave(struct coop *c, struct coop_transfer *t)
{
    if (!t->joined)
        return;
    t->joined = false;
    list_remove(&t->base.base.link);
    --*coop_counter(c, t);
}

/* ---- sender ---- */

uint32_t coop_offer(struct coop *c, struct coop_transfer *t)
{
    const struct transfer *base = &t->base.base;
    struct queue_record *r = base->record;

    if (base->bytes < METHOD_BOTH_BYTES || !r)
        return 0;
    /* relaxed: the announcement's release publishes them. */
    atomic_store_explicit(&r->coop_target, 0, memory_order_relaxed);
    atomic_store_explicit(&r->coop_next, 0, memory_order_relaxed);
    atomic_store_explicit(&r->coop_done, 0, memory_order_relaxed);
    coop_join(c, &c->offers, t);
    return record_index(&base->engine->records, r);
}

/* Copies one chunk to the receiver. Returns false when there is nothing to do for this offer
 * now. */
static bool coop_write_chunk(struct coop *c, struct coop_transfer *t)
{
    MPI_Count bytes = t->base.base.bytes;
    struct queue_record *r = t->base.base.record;
    /* acquire: pairs with the release in coop_receive. */
    uint64_t target = atomic_load_explicit(&r->coop_target, memory_order_acquire);

    if (target == 0)
        return false;
    uint32_t chunk = atomic_fetch_add_explicit(&r->coop_next, 1, memory_order_relaxed);
    if (chunk >= coop_n_chunks(bytes)) {
        coop_leave(c, t);
        return false;
    }
    struct iovec local = coop_chunk(bytes, chunk, coop_start(t));
    struct iovec remote = coop_chunk(bytes, chunk, target);
    ssize_t put = process_vm_writev(peer_pid(coop_peer(t)), &local, 1, &remote, 1, 0);
    uint32_t done = atomic_load_explicit(&r->coop_done, memory_order_relaxed);
    if (put != (ssize_t)local.iov_len) {
        done = COOP_FAILED;
        coop_leave(c, t);
    } else {
        done++;
    }
    /* release: pairs with the acquire in coop_sender_done; the bytes come before the count. */
    atomic_store_explicit(&r->coop_done, done, memory_order_release);
    return true;
}

/* ---- receiver ---- */

/* Reads one chunk out of the sender's memory. */
static bool coop_read_chunk(const struct coop_transfer *t, const struct peer *p, uint32_t chunk)
{
    struct iovec local = coop_chunk(t->base.total, chunk, coop_start(t));
    struct iovec remote = coop_chunk(t->base.total, chunk, t->address);

    return process_vm_readv(peer_pid(p), &local, 1, &remote, 1, 0) == (ssize_t)local.iov_len;
}

static struct queue_record *coop_record(const struct peer *p, uint32_t record)
{
    return record_of(&p->engine->records, transport_world(p->world)->local, record);
}

static void coop_complete(struct coop *c, struct coop_transfer *t)
{
    coop_leave(c, t);
    t->base.moved = t->base.total;
    rendezvous_time(c->rendezvous, &t->base);
    peer_send_control(coop_peer(t), MSG_FINISHED, t->base.remote, NULL, 0);
    rendezvous_finish(c->rendezvous, &t->base, MPI_SUCCESS);
}

bool coop_receive(struct coop *c, struct coop_transfer *t, const struct peer *p,
                  const struct msg_rts *rts)
{
    struct transfer *base = &t->base.base;
    struct queue_record *r = coop_record(p, rts->record);
    uint32_t n = coop_n_chunks(t->base.total), own = 0, chunk;

    if (!r || t->base.moved > 0 || n < 2 || !datatype_is_run(base->buffer.type, base->buffer.count))
        return false;
    t->record = rts->record;
    t->address = rts->address;
    chunk = atomic_fetch_add_explicit(&r->coop_next, 1, memory_order_relaxed);
    /* The first chunk shows whether this is permitted at all, before the sender is let in. */
    if (chunk != 0 || !coop_read_chunk(t, p, chunk))
        return false;
    own++;
    /* release: pairs with the acquire in coop_write_chunk. */
    atomic_store_explicit(&r->coop_target, coop_start(t), memory_order_release);
    while ((chunk = atomic_fetch_add_explicit(&r->coop_next, 1, memory_order_relaxed)) < n) {
        /* What was readable a moment ago fails only if the sender is dying, and the job with it. */
        if (coop_read_chunk(t, p, chunk))
            own++;
    }
    t->rest = n - own;
    if (t->rest == 0) {
        coop_complete(c, t);
    } else {
        coop_join(c, &c->joining, t);
        transfer_show_part(base, QUEUE_RENDEZVOUS_IN, t->base.total, t->base.moved);
    }
    return true;
}

/* Chunks the sender has finished, or COOP_FAILED. */
static uint32_t coop_sender_done(const struct coop_transfer *t)
{
    const struct queue_record *r = coop_record(coop_peer(t), t->record);
    return atomic_load_explicit(&r->coop_done, memory_order_acquire);
}

/* The sender's chunks have arrived, or it could not write and all is read again. */
static bool coop_receive_rest(struct coop *c, struct coop_transfer *t)
{
    uint32_t done = coop_sender_done(t);

    if (done == COOP_FAILED) {
        for (uint32_t chunk = 0; chunk < coop_n_chunks(t->base.total); chunk++)
            if (!coop_read_chunk(t, coop_peer(t), chunk))
                return false;
    } else if (done != t->rest) {
        return false;
    }
    coop_complete(c, t);
    return true;
}

/* ---- the turn ---- */

static int coop_poll_joining(struct coop *c)
{
    int n = 0;

    list_foreach_safe(it, &c->joining)
        n += coop_receive_rest(c, list_entry(it, struct coop_transfer, base.base.link));
    return n;
}

static int coop_poll_offers(struct coop *c)
{
    int n = 0, looked = 0;

    list_foreach_safe(it, &c->offers) {
        if (looked++ == OFFERS_PER_POLL)
            break;
        n += coop_write_chunk(c, list_entry(it, struct coop_transfer, base.base.link));
    }
    return n;
}

int coop_poll(struct coop *c)
{
    return (c->n_joining > 0 ? coop_poll_joining(c) : 0) +
           (c->n_offers > 0 ? coop_poll_offers(c) : 0);
}
