/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffered sends (MPI-5.0 section 3.6). The message is packed into memory of the library and sent
 * from there; the buffer that the user attached is the budget: a message takes its bytes and the
 * size of its record of it until it has left. That is less than the MPI_BSEND_OVERHEAD that a
 * program has to reckon with, and programs that reckon with less are common. With
 * MPI_BUFFER_AUTOMATIC there is no limit.
 *
 * The send of a message is released as soon as it is started, so that it destroys itself when it is
 * complete; that gives back the budget and completes the flushes that waited for it. Nobody has to
 * look for messages that have left.
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/object/err.h"
#include "client/object/session.h"
#include "client/p2p/outbound.h"
#include "client/progress/progress.h"

struct buffer_pool {
    void *address;
    MPI_Count size; /* -1: automatic */
    MPI_Count used;
    uint64_t n_messages;  /* ever: the number of the next one */
    struct list messages; /* struct buffered: on their way, oldest first */
    struct list flushes;  /* struct flush: that wait */
};

/* A message that has not left. */
struct buffered {
    struct list link;
    struct buffer_pool *pool;
    uint64_t number;
    MPI_Count cost;
    uint8_t data[];
};

#define MESSAGE_OVERHEAD (int)sizeof(struct buffered)

static_assert(sizeof(struct buffered) <= MPI_BSEND_OVERHEAD,
              "a program that reckons with MPI_BSEND_OVERHEAD has enough");

/* A nonblocking flush: complete when all messages before number `end` have left. */
struct flush {
    struct request base;
    struct list link;
    uint64_t end;
};

struct buffered_state {
    struct buffer_pool *process_pool;
    bool hooked;
};
static struct buffered_state buffered_first;
static struct buffered_state *buffered_here = &buffered_first;
CLIENT_PART(buffered_here, buffered_first);

/* Whether all messages before `end` have left. */
static bool buffered_has_left(const struct buffer_pool *pool, uint64_t end)
{
    const struct list *oldest = list_first(&pool->messages);
    return !oldest || list_entry(oldest, struct buffered, link)->number >= end;
}

static void buffered_leave(struct object *object)
{
    struct request *r = (struct request *)object;
    struct buffered *m = (struct buffered *)((uint8_t *)transfer_of(r)->buffer.base -
                                             offsetof(struct buffered, data));
    struct buffer_pool *pool = m->pool;

    pool->used -= m->cost;
    list_remove(&m->link);
    free(m);
    list_foreach_safe(it, &pool->flushes) {
        struct flush *f = list_entry(it, struct flush, link);
        if (!buffered_has_left(pool, f->end))
            continue;
        list_remove(it);
        request_complete(&f->base, MPI_SUCCESS);
    }
    transfer_destroy(r); /* last: it may take the communicator along, and with it the pool */
}

/* The pool belongs to whoever holds the library lock. */
static void buffered_destroy(struct request *r)
{
    if (vci_alone())
        vci_bury(&r->obj, buffered_leave);
    else
        buffered_leave(&r->obj);
}

static const struct request_ops message_ops = {.destroy = buffered_destroy};

static void buffered_flush(struct buffer_pool *pool)
{
    uint64_t end = pool->n_messages;
    struct progress_wait wait;

    progress_wait_begin(&wait);
    while (!buffered_has_left(pool, end))
        progress_wait_step(&wait);
    progress_wait_end(&wait);
}

static void buffered_flush_destroy(struct request *r)
{
    free(r);
}

static const struct request_ops flush_ops = {.destroy = buffered_flush_destroy};

static int buffered_iflush(struct buffer_pool *pool, struct request **ret_request)
{
    if (!pool || list_empty(&pool->messages))
        return request_publish(
            request_new_complete(NULL, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, ret_request), ret_request);
    struct flush *f = malloc(sizeof *f);
    if (!f)
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    request_init(&f->base, &flush_ops, NULL, false);
    f->end = pool->n_messages;
    list_append(&pool->flushes, &f->link);
    *ret_request = &f->base;
    return request_publish(MPI_SUCCESS, ret_request);
}

static int buffered_attach(struct buffer_pool **pool, void *buffer, MPI_Count size)
{
    if (*pool)
        return err_set(MPI_ERR_BUFFER, "a buffer is attached already");
    *pool = malloc(sizeof **pool);
    if (!*pool)
        return err_set(MPI_ERR_NO_MEM, "no memory to attach a buffer");
    **pool =
        (struct buffer_pool){.address = buffer, .size = buffer == MPI_BUFFER_AUTOMATIC ? -1 : size};
    list_init(&(*pool)->messages);
    list_init(&(*pool)->flushes);
    return MPI_SUCCESS;
}

static int buffered_detach(struct buffer_pool **pool, void *buffer_addr, MPI_Count *ret_size)
{
    if (!*pool) {
        *(void **)buffer_addr = NULL;
        *ret_size = 0;
        return MPI_SUCCESS;
    }
    while (!list_empty(&(*pool)->messages)) /* other threads may send while this one waits */
        buffered_flush(*pool);
    *(void **)buffer_addr = (*pool)->address;
    *ret_size = (*pool)->size < 0 ? 0 : (*pool)->size;
    free(*pool);
    *pool = NULL;
    return MPI_SUCCESS;
}

static struct buffer_pool *buffered_pool(const struct comm *comm)
{
    if (comm->buffer)
        return comm->buffer;
    return comm->session && comm->session->buffer ? comm->session->buffer
                                                  : buffered_here->process_pool;
}

static int buffered_send(struct buffer message, struct envelope to)
{
    struct buffer_pool *pool = buffered_pool(to.comm);
    MPI_Count n_bytes = message.count * message.type->size;
    MPI_Count cost = n_bytes + MESSAGE_OVERHEAD;

    if (to.rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    if (!pool)
        return err_set(MPI_ERR_BUFFER, "no buffer is attached");
    if (pool->size >= 0 && pool->used + cost > pool->size) {
        progress_poll();
        if (pool->used + cost > pool->size)
            return err_set(MPI_ERR_BUFFER,
                           "a message of %lld bytes and %d of overhead does not fit: %lld of %lld "
                           "bytes of the "
                           "attached buffer are in use",
                           (long long)n_bytes, MESSAGE_OVERHEAD, (long long)pool->used,
                           (long long)pool->size);
    }
    struct buffered *m = malloc(sizeof *m + (size_t)n_bytes);
    struct engine *e = engine_of(to.comm);
    engine_enter(e);
    struct transfer *t =
        m ? transfer_new(TRANSFER_SEND, buffer_of(m->data, n_bytes, datatype_from_handle(MPI_BYTE)),
                         to)
          : NULL;
    if (!t) {
        engine_leave(e);
        free(m);
        return err_set(MPI_ERR_NO_MEM, "no memory for a buffered message of %lld bytes",
                       (long long)n_bytes);
    }
    transfer_pack_all(&message, m->data, (size_t)n_bytes);
    m->pool = pool;
    m->number = pool->n_messages++;
    m->cost = cost;
    pool->used += cost;
    list_append(&pool->messages, &m->link);
    t->base.ops = &message_ops;
    outbound_start(t);
    request_release(&t->base);
    engine_leave(e);
    return MPI_SUCCESS;
}

int mpi_bsend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
              struct comm *comm)
{
    return buffered_send(buffer_of(buf, count, datatype), envelope_user(comm, dest, tag));
}

int mpi_ibsend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
               struct comm *comm, struct request **ret_request)
{
    int err = buffered_send(buffer_of(buf, count, datatype), envelope_user(comm, dest, tag));

    err = err ? err : request_new_complete(comm, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, ret_request);
    return request_publish(err, ret_request);
}

/* A persistent buffered send: each start is one buffered send, complete at once. */
struct bsend_request {
    struct request base;
    struct buffer message;
    struct envelope to;
};

static void buffered_persistent_destroy(struct request *r)
{
    struct bsend_request *b = (struct bsend_request *)r;

    type_unref(b->message.type);
    comm_unref(b->base.comm);
    free(b);
}

static int buffered_persistent_start(struct request *r)
{
    struct bsend_request *b = (struct bsend_request *)r;
    int err = buffered_send(b->message, b->to);

    if (!err) {
        r->active = true;
        request_set_complete(r, true);
    }
    return err;
}

static const struct request_ops bsend_ops = {.destroy = buffered_persistent_destroy,
                                             .start = buffered_persistent_start};

int mpi_bsend_init(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag,
                   struct comm *comm, struct request **ret_request)
{
    struct bsend_request *b = malloc(sizeof *b);

    if (!b)
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    request_init(&b->base, &bsend_ops, comm, true);
    comm_ref(comm);
    type_ref(datatype);
    b->message = buffer_of(buf, count, datatype);
    b->to = envelope_user(comm, dest, tag);
    *ret_request = &b->base;
    return request_publish(MPI_SUCCESS, ret_request);
}

int mpi_buffer_attach(void *buffer, MPI_Count size)
{
    return buffered_attach(&buffered_here->process_pool, buffer, size);
}

int mpi_buffer_detach(void *buffer_addr, MPI_Count *ret_size)
{
    return buffered_detach(&buffered_here->process_pool, buffer_addr, ret_size);
}

int mpi_buffer_flush(void)
{
    if (buffered_here->process_pool)
        buffered_flush(buffered_here->process_pool);
    return MPI_SUCCESS;
}

int mpi_buffer_iflush(struct request **ret_request)
{
    return buffered_iflush(buffered_here->process_pool, ret_request);
}

/* Communicators are destroyed when their last message has left: the pool is empty then. */
static void buffered_release_comm(struct comm *comm)
{
    free(comm->buffer);
    comm->buffer = NULL;
}

int mpi_comm_attach_buffer(struct comm *comm, void *buffer, MPI_Count size)
{
    if (!buffered_here->hooked)
        comm_on_destroy(buffered_release_comm);
    buffered_here->hooked = true;
    return buffered_attach(&comm->buffer, buffer, size);
}

int mpi_comm_detach_buffer(struct comm *comm, void *buffer_addr, MPI_Count *ret_size)
{
    return buffered_detach(&comm->buffer, buffer_addr, ret_size);
}

int mpi_comm_flush_buffer(struct comm *comm)
{
    if (comm->buffer)
        buffered_flush(comm->buffer);
    return MPI_SUCCESS;
}

int mpi_comm_iflush_buffer(struct comm *comm, struct request **ret_request)
{
    return buffered_iflush(comm->buffer, ret_request);
}

int mpi_session_attach_buffer(struct session *session, void *buffer, MPI_Count size)
{
    return buffered_attach(&session->buffer, buffer, size);
}

int mpi_session_detach_buffer(struct session *session, void *buffer_addr, MPI_Count *ret_size)
{
    return buffered_detach(&session->buffer, buffer_addr, ret_size);
}

int mpi_session_flush_buffer(struct session *session)
{
    if (session->buffer)
        buffered_flush(session->buffer);
    return MPI_SUCCESS;
}

int mpi_session_iflush_buffer(struct session *session, struct request **ret_request)
{
    return buffered_iflush(session->buffer, ret_request);
}
