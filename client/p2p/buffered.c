/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffered sends (MPI-5.0 section 3.6). The message is packed into memory of the library and sent from there; the buffer that the user
 * attached is the budget: a message takes its bytes and MPI_BSEND_OVERHEAD of it until it has left. With MPI_BUFFER_AUTOMATIC
 * there is no limit.
 */
#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/core/err.h"
#include "client/core/progress.h"
#include "client/p2p/transfer.h"

struct buffer_pool {
    void *address;
    MPI_Count size; /* -1: automatic */
    MPI_Count used;
    struct list messages; /* struct buffered: on their way */
};

/* A message that has not left. */
struct buffered {
    struct list link;
    struct request *send;
    MPI_Count cost;
    uint8_t data[];
};

static struct buffer_pool *process_pool;

/* Frees what has left. */
static void reclaim(struct buffer_pool *pool)
{
    list_foreach_safe(it, &pool->messages) {
        struct buffered *m = list_entry(it, struct buffered, link);
        if (!request_is_complete(m->send))
            continue;
        request_finish(m->send, MPI_STATUS_IGNORE);
        pool->used -= m->cost;
        list_remove(it);
        free(m);
    }
}

static void flush(struct buffer_pool *pool)
{
    struct progress_wait wait;

    progress_wait_begin(&wait);
    for (reclaim(pool); !list_empty(&pool->messages); reclaim(pool))
        progress_wait_step(&wait);
    progress_wait_end(&wait);
}

static int attach(struct buffer_pool **pool, void *buffer, MPI_Count size)
{
    if (*pool)
        return err_set(MPI_ERR_BUFFER, "a buffer is attached already");
    *pool = malloc(sizeof **pool);
    if (!*pool)
        return err_set(MPI_ERR_NO_MEM, "no memory to attach a buffer");
    **pool = (struct buffer_pool){.address = buffer, .size = buffer == MPI_BUFFER_AUTOMATIC ? -1 : size};
    list_init(&(*pool)->messages);
    return MPI_SUCCESS;
}

static int detach(struct buffer_pool **pool, void *buffer_addr, MPI_Count *ret_size)
{
    if (!*pool) {
        *(void **)buffer_addr = NULL;
        *ret_size = 0;
        return MPI_SUCCESS;
    }
    flush(*pool);
    *(void **)buffer_addr = (*pool)->address;
    *ret_size = (*pool)->size < 0 ? 0 : (*pool)->size;
    free(*pool);
    *pool = NULL;
    return MPI_SUCCESS;
}

static int send_buffered(const void *buf, MPI_Count count, struct datatype *type, int dest, int tag, struct comm *comm)
{
    struct buffer_pool *pool = comm->buffer ? comm->buffer : process_pool;
    MPI_Count n_bytes = count * type->size;
    MPI_Count cost = n_bytes + MPI_BSEND_OVERHEAD;

    if (dest == MPI_PROC_NULL)
        return MPI_SUCCESS;
    if (!pool)
        return err_set(MPI_ERR_BUFFER, "no buffer is attached");
    if (pool->size >= 0 && pool->used + cost > pool->size) {
        progress_poll();
        reclaim(pool);
        if (pool->used + cost > pool->size)
            return err_set(MPI_ERR_BUFFER, "a message of %lld bytes and %d of overhead does not fit: %lld of %lld bytes of the "
                           "attached buffer are in use", (long long)n_bytes, MPI_BSEND_OVERHEAD, (long long)pool->used,
                           (long long)pool->size);
    }
    struct buffered *m = malloc(sizeof *m + (size_t)n_bytes);
    if (!m)
        return err_set(MPI_ERR_NO_MEM, "no memory for a buffered message of %lld bytes", (long long)n_bytes);
    transfer_pack_all(type, count, buf, m->data, (size_t)n_bytes);
    m->cost = cost;
    int err = p2p_isend(m->data, n_bytes, datatype_from_handle(MPI_BYTE), dest, tag, comm, P2P_CONTEXT_USER, P2P_STANDARD,
                        &m->send);
    if (err) {
        free(m);
        return err;
    }
    pool->used += cost;
    list_append(&pool->messages, &m->link);
    reclaim(pool);
    return MPI_SUCCESS;
}

int mpi_bsend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag, struct comm *comm)
{
    return send_buffered(buf, count, datatype, dest, tag, comm);
}

int mpi_ibsend(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag, struct comm *comm,
               struct request **ret_request)
{
    int err = send_buffered(buf, count, datatype, dest, tag, comm);

    err = err ? err : request_new_complete(comm, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, ret_request);
    return request_publish(err, ret_request);
}

/* A persistent buffered send: each start is one buffered send, complete at once. */
struct bsend_request {
    struct request base;
    const void *buf;
    MPI_Count count;
    struct datatype *type;
    int dest, tag;
};

static void bsend_destroy(struct request *r)
{
    struct bsend_request *b = (struct bsend_request *)r;

    type_unref(b->type);
    comm_unref(b->base.comm);
    free(b);
}

static int bsend_start(struct request *r)
{
    struct bsend_request *b = (struct bsend_request *)r;
    int err = send_buffered(b->buf, b->count, b->type, b->dest, b->tag, b->base.comm);

    if (!err) {
        r->active = true;
        r->complete = true;
    }
    return err;
}

static const struct request_ops bsend_ops = {.destroy = bsend_destroy, .start = bsend_start};

int mpi_bsend_init(const void *buf, MPI_Count count, struct datatype *datatype, int dest, int tag, struct comm *comm,
                   struct request **ret_request)
{
    struct bsend_request *b = malloc(sizeof *b);

    if (!b)
        return err_set(MPI_ERR_NO_MEM, "no memory for a request");
    request_init(&b->base, &bsend_ops, comm, true);
    comm_ref(comm);
    type_ref(datatype);
    b->buf = buf;
    b->count = count;
    b->type = datatype;
    b->dest = dest;
    b->tag = tag;
    *ret_request = &b->base;
    return request_publish(MPI_SUCCESS, ret_request);
}

int mpi_buffer_attach(void *buffer, MPI_Count size)
{
    return attach(&process_pool, buffer, size);
}

int mpi_buffer_detach(void *buffer_addr, MPI_Count *ret_size)
{
    return detach(&process_pool, buffer_addr, ret_size);
}

int mpi_buffer_flush(void)
{
    if (process_pool)
        flush(process_pool);
    return MPI_SUCCESS;
}

int mpi_comm_attach_buffer(struct comm *comm, void *buffer, MPI_Count size)
{
    return attach(&comm->buffer, buffer, size);
}

int mpi_comm_detach_buffer(struct comm *comm, void *buffer_addr, MPI_Count *ret_size)
{
    return detach(&comm->buffer, buffer_addr, ret_size);
}

int mpi_comm_flush_buffer(struct comm *comm)
{
    if (comm->buffer)
        flush(comm->buffer);
    return MPI_SUCCESS;
}
