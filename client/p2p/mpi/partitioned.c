/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitioned communication (MPI-5.0 chapter 4): a persistent transfer whose parts are released one
 * by one.
 *
 * The partitions of the sender are messages of their own in a context of their own, so nothing
 * waits for the slowest part and the usual protocols carry them. When a send is set up it announces
 * itself under the user's tag: how many parts, how long, and the tags they will have, a range of
 * negative numbers that this process uses for no other send. Announcements meet receives in the
 * order in which both were set up, which is what the standard asks; from the first start on, the
 * receiver posts one receive for each of the sender's parts, straight into its buffer where their
 * borders are borders of its elements. The k-th start of one side meets the k-th start of the
 * other, since messages of a tag keep their order.
 */
#include <limits.h>
#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/object/err.h"
#include "client/p2p/inbound.h"
#include "client/p2p/outbound.h"
#include "client/p2p/p2p.h"
#include "client/progress/progress.h"

/* Tags of parts lie below this: clear of the wildcards. */
#define LAST_TAG (-1000)

struct announcement {
    int64_t part_bytes;
    int32_t n_parts;
    int32_t first_tag; /* of part i: first_tag + i */
};

struct partitioned {
    struct request base;
    struct list link; /* in `running` between start and completion */
    bool sending;
    struct buffer partition; /* the first of this side's; the others follow it */
    int n_partitions;        /* of this side */
    struct envelope with;
    int first_tag;

    int error; /* that no start can heal: the two sides do not fit */

    /* The messages: the sender's partitions. A receiver knows of them when `announcement` has
     * come. */
    int n_parts, n_done;    /* the first n_done are finished */
    struct request **parts; /* NULL: not sent yet, or finished */
    struct transfer *setup; /* receiver: until the announcement has come */
    MPI_Count part_bytes;
    bool posted;      /* receiver: the parts of this round are posted */
    uint8_t *staging; /* receiver: where parts end within elements, they arrive here */
};

struct partitioned_state {
    struct list running;
    int n_running;
    int next_tag;
};
static struct partitioned_state partitioned_first;
static struct partitioned_state *partitioned_here = &partitioned_first;

static void partitioned_part_init(void)
{
    list_init(&partitioned_here->running);
    partitioned_here->next_tag = INT_MIN;
}
CLIENT_PART(partitioned_here, partitioned_first, .init = partitioned_part_init);

/* ---- announcements ---- */

/* The announcement is the transfer's own, so either side may free its request while it is under
 * way. */
static void partitioned_announcement_destroy(struct request *r)
{
    free(transfer_of(r)->buffer.base);
    transfer_destroy(r);
}

static const struct request_ops announcement_ops = {.destroy = partitioned_announcement_destroy};

static struct transfer *partitioned_announcement(enum transfer_dir dir, struct envelope with)
{
    struct announcement *a = calloc(1, sizeof *a);
    struct engine *e = engine_of(with.comm);

    engine_enter(e);
    struct buffer room = buffer_of(a, sizeof *a, datatype_from_handle(MPI_BYTE));
    struct transfer *t = a ? transfer_new(dir, room, with) : NULL;

    if (t)
        t->base.ops = &announcement_ops;
    else
        free(a);
    engine_leave(e);
    return t;
}

static int partitioned_take_tags(int n, int *ret_first)
{
    int next = partitioned_here->next_tag;

    if (n > LAST_TAG - INT_MIN)
        return err_set(MPI_ERR_ARG, "%d partitions are more than one transfer can have", n);
    if (next > LAST_TAG - n) /* round again: messages so old have long been received */
        next = INT_MIN;
    *ret_first = next;
    partitioned_here->next_tag = next + n;
    return MPI_SUCCESS;
}

/* ---- receiver ---- */

static int partitioned_post_part(struct partitioned *p, int i)
{
    MPI_Count first_byte = i * p->part_bytes;
    struct datatype *type = p->partition.type;
    struct envelope from = p->with;
    struct buffer room;

    if (p->staging)
        room = buffer_of(p->staging + first_byte, p->part_bytes, datatype_from_handle(MPI_BYTE));
    else
        room = buffer_of(
            datatype_at(type, p->partition.base, type->size ? first_byte / type->size : 0),
            type->size ? p->part_bytes / type->size : 0, type);
    from.tag = p->first_tag + i;
    return p2p_irecv(room, from, &p->parts[i]);
}

static int partitioned_post_parts(struct partitioned *p)
{
    int err = MPI_SUCCESS;

    for (int i = 0; !err && i < p->n_parts; i++)
        err = partitioned_post_part(p, i);
    p->posted = true;
    return err;
}

/* The announcement has come. */
static int partitioned_meet(struct partitioned *p)
{
    struct announcement a = *(const struct announcement *)p->setup->buffer.base;
    MPI_Count room = p->n_partitions * p->partition.count * p->partition.type->size;

    request_finish(&p->setup->base, MPI_STATUS_IGNORE);
    p->setup = NULL;
    p->part_bytes = a.part_bytes;
    p->first_tag = a.first_tag;
    if (a.n_parts * a.part_bytes > room)
        return err_set(
            MPI_ERR_TRUNCATE,
            "a partitioned send of %lld bytes with tag %d from rank %d met a receive of %lld bytes",
            (long long)(a.n_parts * a.part_bytes), p->with.tag, p->with.rank, (long long)room);
    bool within_elements =
        p->partition.type->size > 0 && a.part_bytes % p->partition.type->size != 0;
    p->parts = calloc((size_t)a.n_parts + 1, sizeof(struct request *));
    if (within_elements)
        p->staging = malloc((size_t)(a.n_parts * a.part_bytes));
    if (!p->parts || (within_elements && !p->staging))
        return err_set(MPI_ERR_NO_MEM, "no memory for %d partitions", a.n_parts);
    p->n_parts = a.n_parts;
    return MPI_SUCCESS;
}

static void partitioned_unpack_part(const struct partitioned *p, int i)
{
    struct type_cursor cursor;

    type_cursor_init(&cursor, p->partition.type, p->n_partitions * p->partition.count,
                     p->partition.base);
    type_cursor_seek(&cursor, i * p->part_bytes);
    type_cursor_unpack(&cursor, p->staging + i * p->part_bytes, (size_t)p->part_bytes);
}

/* ---- progress ---- */

/* Whether part i is over; if it just became so, its message is taken in. */
static bool partitioned_part_is_over(struct partitioned *p, int i)
{
    struct request *r = p->parts[i];

    if (!r)
        return !p->sending; /* of a sender: not ready yet */
    if (!request_is_complete(r))
        return false;
    p->parts[i] = NULL;
    int err = request_finish(r, MPI_STATUS_IGNORE);
    if (err && !p->error) {
        p->error = err;
        err_stow(err, &p->base.detail);
    }
    if (p->staging)
        partitioned_unpack_part(p, i);
    return true;
}

static void partitioned_end(struct partitioned *p)
{
    list_remove(&p->link);
    partitioned_here->n_running--;
    if (!p->sending) {
        p->base.source = p->with.rank;
        p->base.tag = p->with.rank == MPI_PROC_NULL ? MPI_ANY_TAG : p->with.tag;
        p->base.bytes = p->n_parts * p->part_bytes;
    }
    request_complete(&p->base, p->error);
}

/* Takes over what is complete. Returns the number of events; p may be gone afterwards. */
static int partitioned_advance(struct partitioned *p)
{
    int n = 0;

    if (p->setup) {
        if (!request_is_complete(&p->setup->base))
            return 0;
        p->error = partitioned_meet(p);
        n++;
    }
    if (!p->sending && !p->posted && !p->error)
        p->error = partitioned_post_parts(p);
    while (p->n_done < p->n_parts && partitioned_part_is_over(p, p->n_done)) {
        p->n_done++;
        n++;
    }
    if (p->n_done == p->n_parts) {
        partitioned_end(p);
        n++;
    }
    return n;
}

static int partitioned_poll(void)
{
    int n = 0;

    list_foreach_safe(it, &partitioned_here->running)
        n += partitioned_advance(list_entry(it, struct partitioned, link));
    return n;
}

/* ---- the request ---- */

static void partitioned_destroy(struct request *r)
{
    struct partitioned *p = (struct partitioned *)r;

    if (p->setup)
        request_release(&p->setup->base); /* stays posted: the announcement that belongs to it must
                                             meet no other receive */
    type_unref(p->partition.type);
    comm_unref(p->base.comm);
    free(p->parts);
    free(p->staging);
    free(p);
}

static int partitioned_start(struct request *r)
{
    struct partitioned *p = (struct partitioned *)r;

    r->active = true;
    r->error = MPI_SUCCESS;
    request_set_complete(r, false);
    p->n_done = 0;
    p->posted = false;
    list_append(&partitioned_here->running, &p->link);
    partitioned_here->n_running++;
    if (p->with.rank == MPI_PROC_NULL)
        partitioned_end(p);
    else
        partitioned_advance(p);
    return MPI_SUCCESS;
}

static const struct request_ops partitioned_ops = {.destroy = partitioned_destroy,
                                                   .start = partitioned_start};

static int partitioned_init(bool sending, struct buffer partition, int n_partitions,
                            struct envelope with, struct request **ret_request)
{
    int first_tag = 0;
    int err = sending ? partitioned_take_tags(n_partitions, &first_tag) : MPI_SUCCESS;

    if (err)
        return err;
    struct partitioned *p = calloc(1, sizeof *p);
    struct transfer *setup = NULL;
    if (p && sending)
        p->parts = calloc((size_t)n_partitions + 1, sizeof(struct request *));
    if (p && with.rank != MPI_PROC_NULL)
        setup = partitioned_announcement(sending ? TRANSFER_SEND : TRANSFER_RECV, with);
    if (!p || (sending && !p->parts) || (with.rank != MPI_PROC_NULL && !setup)) {
        if (setup) {
            request_set_complete(&setup->base, true);
            request_release(&setup->base);
        }
        if (p)
            free(p->parts);
        free(p);
        return err_set(MPI_ERR_NO_MEM, "no memory for a request of %d partitions", n_partitions);
    }
    request_init(&p->base, &partitioned_ops, with.comm, true);
    comm_ref(with.comm);
    type_ref(partition.type);
    list_init(&p->link);
    p->sending = sending;
    p->partition = partition;
    p->n_partitions = n_partitions;
    p->with = with;
    p->first_tag = first_tag;
    p->part_bytes = partition.count * partition.type->size;
    engine_enter(engine_of(with.comm));
    if (sending && setup) {
        p->n_parts = n_partitions;
        *(struct announcement *)setup->buffer.base =
            (struct announcement){p->part_bytes, n_partitions, first_tag};
        outbound_start(setup);
        request_release(&setup->base);
    } else if (setup) {
        p->setup = setup;
        inbound_start(setup);
    }
    engine_leave(engine_of(with.comm));
    progress_register(partitioned_poll, &partitioned_here->n_running, false);
    *ret_request = &p->base;
    return request_publish(MPI_SUCCESS, ret_request);
}

int mpi_psend_init(const void *buf, int partitions, MPI_Count count, struct datatype *datatype,
                   int dest, int tag, struct comm *comm, struct info *info,
                   struct request **ret_request)
{
    (void)info; /* no hints are known */
    return partitioned_init(true, buffer_of(buf, count, datatype), partitions,
                            envelope_of(comm, dest, tag, P2P_CONTEXT_PARTITIONED), ret_request);
}

int mpi_precv_init(void *buf, int partitions, MPI_Count count, struct datatype *datatype, int dest,
                   int tag, struct comm *comm, struct info *info, struct request **ret_request)
{
    (void)info; /* no hints are known */
    return partitioned_init(false, buffer_of(buf, count, datatype), partitions,
                            envelope_of(comm, dest, tag, P2P_CONTEXT_PARTITIONED), ret_request);
}

/* ---- partitions ---- */

/* The partitioned side behind a request, or NULL. */
static struct partitioned *partitioned_of(struct request *r, bool sending)
{
    struct partitioned *p = (struct partitioned *)r;

    return r->ops == &partitioned_ops && p->sending == sending ? p : NULL;
}

static int partitioned_ready(struct partitioned *p, int i)
{
    if (i < 0 || i >= p->n_partitions)
        return err_set(MPI_ERR_ARG, "partition %d is not in 0..%d", i, p->n_partitions - 1);
    if (p->with.rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    if (i < p->n_done || p->parts[i])
        return err_set(MPI_ERR_ARG, "partition %d has been marked ready already", i);
    struct buffer message = p->partition;
    struct envelope to = p->with;
    message.base = datatype_at(message.type, message.base, i * message.count);
    to.tag = p->first_tag + i;
    return p2p_isend(message, to, P2P_STANDARD, &p->parts[i]);
}

static int partitioned_sender(struct request *request, struct partitioned **ret_sender)
{
    struct partitioned *p = partitioned_of(request, true);

    if (!p)
        return err_set(MPI_ERR_REQUEST, "the request is no partitioned send");
    if (!p->base.active)
        return err_set(MPI_ERR_REQUEST, "the partitioned send has not been started");
    *ret_sender = p;
    return MPI_SUCCESS;
}

int mpi_pready(int partition, struct request *request)
{
    struct partitioned *p;
    int err = partitioned_sender(request, &p);

    return err ? err : partitioned_ready(p, partition);
}

int mpi_pready_range(int partition_low, int partition_high, struct request *request)
{
    struct partitioned *p;
    int err = partitioned_sender(request, &p);

    for (int i = partition_low; !err && i <= partition_high; i++)
        err = partitioned_ready(p, i);
    return err;
}

int mpi_pready_list(MPI_Count length, const int array_of_partitions[], struct request *request)
{
    struct partitioned *p;
    int err = partitioned_sender(request, &p);

    for (MPI_Count i = 0; !err && i < length; i++)
        err = partitioned_ready(p, array_of_partitions[i]);
    return err;
}

/* Whether all messages that the partition has bytes of have come. */
static bool partitioned_has_arrived(struct partitioned *p, int partition)
{
    if (!p->base.active || request_is_complete(&p->base))
        return true;
    if (!p->posted)
        return false;
    /* In bytes; partitions of no bytes lie beside the sender's in proportion. */
    MPI_Count size = p->part_bytes ? p->partition.count * p->partition.type->size : p->n_parts;
    MPI_Count part = p->part_bytes ? p->part_bytes : p->n_partitions;
    MPI_Count first = partition * size / part, behind = ((partition + 1) * size + part - 1) / part;
    for (MPI_Count i = first; i < behind && i < p->n_parts; i++)
        if (!partitioned_part_is_over(p, (int)i))
            return false;
    return true;
}

int mpi_parrived(struct request *request, int partition, int *flag)
{
    *flag = 1;
    if (!request)
        return MPI_SUCCESS;
    struct partitioned *p = partitioned_of(request, false);
    if (!p)
        return err_set(MPI_ERR_REQUEST, "the request is no partitioned receive");
    if (partition < 0 || partition >= p->n_partitions)
        return err_set(MPI_ERR_ARG, "partition %d is not in 0..%d", partition, p->n_partitions - 1);
    if (!partitioned_has_arrived(p, partition)) {
        progress_ask();
        *flag = partitioned_has_arrived(p, partition);
    }
    return MPI_SUCCESS;
}
