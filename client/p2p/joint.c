/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/joint.h"

#include <sys/uio.h>

#include "client/p2p/board.h"
#include "client/p2p/outbound.h"
#include "client/p2p/rendezvous.h"
#include "client/progress/progress.h"

/* Below this the hand-shake costs more than the second core brings (bench/run --only node). Who
 * waits for several messages, or takes part in a collective, does well without it up to the second
 * limit: then everybody has something to copy. */
#define JOINT_MIN_BYTES        (64u << 10)
#define JOINT_MIN_WINDOW_BYTES (512u << 10)
/* An eighth of the message: large enough that a system call is cheap beside it, small enough that
 * nobody waits long for the other's last one. */
#define JOINT_MIN_CHUNK_BYTES (16u << 10)
#define JOINT_MAX_CHUNK_BYTES (128u << 10)
#define JOINT_FAILED          UINT32_MAX
/* Offers looked at in one poll: messages are matched nearly in order. */
#define OFFERS_PER_POLL 4

static int *counter(const struct transfer *t)
{
    return t->dir == TRANSFER_SEND ? &t->engine->n_offers : &t->engine->n_joining;
}

/* Both sides know the length of the message, and so where its chunks begin. */
static MPI_Count chunk_bytes(MPI_Count bytes)
{
    MPI_Count part = bytes / 8;

    return part < JOINT_MIN_CHUNK_BYTES   ? JOINT_MIN_CHUNK_BYTES
           : part > JOINT_MAX_CHUNK_BYTES ? JOINT_MAX_CHUNK_BYTES
                                          : part;
}

static uint32_t n_chunks(MPI_Count bytes)
{
    return (uint32_t)((bytes + chunk_bytes(bytes) - 1) / chunk_bytes(bytes));
}

/* Where a chunk begins, and its length. */
static size_t chunk_at(MPI_Count bytes, uint32_t chunk, size_t *ret_len)
{
    MPI_Count at = chunk * chunk_bytes(bytes), left = bytes - at;

    *ret_len = (size_t)(left < chunk_bytes(bytes) ? left : chunk_bytes(bytes));
    return (size_t)at;
}

void joint_leave(struct transfer *t)
{
    if (!t->joint)
        return;
    t->joint = false;
    list_remove(&t->link);
    --*counter(t);
}

static void join(struct list *list, struct transfer *t)
{
    t->joint = true;
    list_append(list, &t->link);
    ++*counter(t);
}

/* ---- sender ---- */

uint32_t joint_offer(struct transfer *t)
{
    struct queue_record *r = t->record;

    if (t->bytes < (t->sole ? JOINT_MIN_BYTES : JOINT_MIN_WINDOW_BYTES) || !r)
        return 0;
    /* relaxed: the announcement's release publishes them. */
    atomic_store_explicit(&r->joint_target, 0, memory_order_relaxed);
    atomic_store_explicit(&r->joint_next, 0, memory_order_relaxed);
    atomic_store_explicit(&r->joint_done, 0, memory_order_relaxed);
    join(&t->engine->offers, t);
    return board_index(r);
}

/* Copies one chunk to the receiver. Returns false when there is nothing to do for this offer
 * now. */
static bool help(struct transfer *t)
{
    struct queue_record *r = t->record;
    /* acquire: pairs with the release in joint_receive. */
    uint64_t target = atomic_load_explicit(&r->joint_target, memory_order_acquire);

    if (target == 0)
        return false;
    uint32_t chunk = atomic_fetch_add_explicit(&r->joint_next, 1, memory_order_relaxed);
    if (chunk >= n_chunks(t->bytes)) {
        joint_leave(t);
        return false;
    }
    size_t len, off = chunk_at(t->bytes, chunk, &len);
    struct iovec local = {.iov_base =
                              (char *)datatype_run_start(t->buffer.type, t->buffer.base) + off,
                          .iov_len = len};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)(target + off), .iov_len = len};
    ssize_t put =
        process_vm_writev(peer_pid(peer_get(t->engine, t->world)), &local, 1, &remote, 1, 0);
    uint32_t done = atomic_load_explicit(&r->joint_done, memory_order_relaxed);
    if (put != (ssize_t)len) {
        done = JOINT_FAILED;
        joint_leave(t);
    } else {
        done++;
    }
    /* release: pairs with the acquire in sender_done; the bytes come before the count. */
    atomic_store_explicit(&r->joint_done, done, memory_order_release);
    return true;
}

/* ---- receiver ---- */

/* Reads one chunk out of the sender's memory. */
static bool read_chunk(const struct transfer *t, const struct peer *p, uint64_t address,
                       uint32_t chunk)
{
    size_t len, off = chunk_at(t->total, chunk, &len);
    struct iovec local = {.iov_base =
                              (char *)datatype_run_start(t->buffer.type, t->buffer.base) + off,
                          .iov_len = len};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)(address + off), .iov_len = len};

    return process_vm_readv(peer_pid(p), &local, 1, &remote, 1, 0) == (ssize_t)len;
}

static void complete(struct transfer *t)
{
    t->moved = t->total;
    outbound_control(peer_get(t->engine, t->world), MSG_FINISHED, t->remote, NULL, 0);
    rendezvous_finish(t, MPI_SUCCESS);
}

/* Chunks the sender has finished, or JOINT_FAILED. */
static uint32_t sender_done(const struct transfer *t)
{
    struct queue_record *r = board_of(transport_world(t->world)->local, t->joint_record);
    return atomic_load_explicit(&r->joint_done, memory_order_acquire);
}

bool joint_receive(struct transfer *t, struct peer *p, const struct msg_rts *rts)
{
    struct queue_record *r = board_of(transport_world(p->world)->local, rts->record);
    uint32_t n = n_chunks(t->total), own = 0, chunk;

    if (!r || t->moved > 0 || !datatype_is_run(t->buffer.type, t->buffer.count) || n < 2)
        return false;
    chunk = atomic_fetch_add_explicit(&r->joint_next, 1, memory_order_relaxed);
    /* The first chunk shows whether this is permitted at all, before the sender is let in. */
    if (chunk != 0 || !read_chunk(t, p, rts->address, chunk))
        return false;
    own++;
    t->joint_record = rts->record;
    t->joint_address = rts->address;
    /* release: pairs with the acquire in help. */
    atomic_store_explicit(&r->joint_target,
                          (uint64_t)(uintptr_t)datatype_run_start(t->buffer.type, t->buffer.base),
                          memory_order_release);
    while ((chunk = atomic_fetch_add_explicit(&r->joint_next, 1, memory_order_relaxed)) < n) {
        /* What was readable a moment ago fails only if the sender is dying, and the job with it. */
        if (read_chunk(t, p, rts->address, chunk))
            own++;
    }
    t->joint_rest = n - own;
    if (t->joint_rest == 0) {
        complete(t);
    } else {
        join(&t->engine->joining, t);
        board_show(t, QUEUE_RENDEZVOUS_IN);
    }
    return true;
}

/* The sender's chunks have arrived, or it could not write and all is read again. */
static bool receive_rest(struct transfer *t)
{
    uint32_t done = sender_done(t);

    if (done == JOINT_FAILED) {
        for (uint32_t chunk = 0; chunk < n_chunks(t->total); chunk++)
            if (!read_chunk(t, peer_get(t->engine, t->world), t->joint_address, chunk))
                return false;
    } else if (done != t->joint_rest) {
        return false;
    }
    complete(t);
    return true;
}

static int poll_joining(struct engine *e)
{
    int n = 0;

    list_foreach_safe(it, &e->joining)
        n += receive_rest(list_entry(it, struct transfer, link));
    return n;
}

static int poll_offers(struct engine *e)
{
    int n = 0, looked = 0;

    list_foreach_safe(it, &e->offers) {
        if (looked++ == OFFERS_PER_POLL)
            break;
        n += help(list_entry(it, struct transfer, link));
    }
    return n;
}

int joint_poll(struct engine *e)
{
    return (e->n_joining > 0 ? poll_joining(e) : 0) + (e->n_offers > 0 ? poll_offers(e) : 0);
}

void joint_init(struct engine *e)
{
    list_init(&e->offers);
    list_init(&e->joining);
    e->n_offers = e->n_joining = 0;
}
