/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "client/object/err.h"
#include "client/p2p/p2p.h"
#include "client/rma/operation.h"
#include "client/transport/end.h"

/* Parts of one link under way that need memory at the target or an answer. */
#define MAX_FLYING       64u
#define MAX_FLYING_BYTES (2u << 20)
/* Messages that wait for room, of all links: operations are kept rather than their copies. */
#define MAX_OUTGOING 128u
/* One message of an operation, of which something is still to come. */
struct part {
    struct list link; /* in rma_here->parts while `data` is under way */
    struct operation *operation;
    uint32_t id;
    MPI_Count from, bytes;
    uint32_t cost;           /* of link.flying_bytes */
    struct request *data;    /* operand to the target, or result from it */
    void *chunk;             /* `data` goes through it */
    bool receives;           /* `data` is the result */
    bool answer;             /* an answer is awaited */
    struct request *operand; /* of one that also receives */
};

/* ---- numbers of parts ---- */

static uint32_t slot_take(struct part *part)
{
    struct rma *r = rma_here;
    uint32_t i = r->first_free;
    while (i < r->n_slots && r->slots[i])
        i++;
    if (i == r->n_slots) {
        uint32_t n = r->n_slots ? 2 * r->n_slots : 128;
        struct part **grown =
            n <= RMA_PARTS_MAX ? realloc(r->slots, n * sizeof(struct part *)) : NULL;
        if (!grown)
            end_no_memory(__func__, "parts of one-sided operations", n * sizeof(struct part *));
        memset(grown + r->n_slots, 0, (n - r->n_slots) * sizeof(struct part *));
        r->slots = grown;
        r->n_slots = n;
    }
    r->slots[i] = part;
    r->first_free = i + 1;
    return i;
}

static void slot_give(uint32_t id)
{
    rma_here->slots[id] = NULL;
    if (id < rma_here->first_free)
        rma_here->first_free = id;
}

/* ---- ends ---- */

static void type_drop(struct datatype *type)
{
    if (type)
        type_unref(type);
}

static void operation_end(struct operation *o)
{
    struct link *link = o->peer;
    link->n_open--;
    if (o->error && !o->request && !link->win->error) {
        link->win->error = o->error;
        link->win->error_target = link->rank;
    }
    type_drop(o->call.origin.type);
    type_drop(o->call.result.type);
    type_drop(o->call.target_type);
    if (o->request)
        request_complete(o->request, o->error);
    free(o);
}

static void part_end(struct part *part)
{
    struct operation *o = part->operation;
    struct link *link = o->peer;
    slot_give(part->id);
    link->n_flying--;
    link->flying_bytes -= part->cost;
    free(part->chunk);
    free(part);
    if (--o->n_parts == 0 && o->sent == o->total)
        operation_end(o);
}

/* ---- results ---- */

static const struct buffer *result_side(const struct operation *o)
{
    return o->call.kind == MESSAGE_GET ? &o->call.origin : &o->call.result;
}

static void result_store(const struct part *part, const void *data, size_t n)
{
    const struct buffer *to = result_side(part->operation);
    struct type_cursor c;
    type_cursor_init(&c, to->type, to->count, to->base);
    type_cursor_seek(&c, part->from);
    type_cursor_unpack(&c, data, n);
}

static void result_refused(struct operation *o, int mpi_class)
{
    o->error = err_set(mpi_class ? mpi_class : MPI_ERR_RMA_RANGE,
                       "rank %d of %s refused an access: no memory is attached there",
                       o->peer->rank, win_text(o->peer->win));
}

void part_answer(struct link *link, const struct message_head *head, const void *body, size_t n)
{
    struct win *win = link->win;
    switch (head->kind) {
    case MESSAGE_RESULT_IS: {
        struct part *part = head->id < rma_here->n_slots ? rma_here->slots[head->id] : NULL;
        if (!part || part->operation->peer != link || !part->answer)
            return;
        if (head->error || n != (size_t)part->bytes)
            result_refused(part->operation, head->error);
        else
            result_store(part, body, n);
        part->answer = false;
        if (!part->data)
            part_end(part);
        break;
    }
    case MESSAGE_DONE:
        link->n_done++;
        break;
    case MESSAGE_REFUSED:
        if (!win->error) {
            win->error = head->error;
            win->error_target = link->rank;
        }
        break;
    case MESSAGE_POST:
        link->n_posts++;
        break;
    default:
        break;
    }
}

/* ---- parts ---- */

/* The buffer of `bytes` of a side from `from` on, as a message of its own: itself, a range of it,
 * or a chunk, which then is *ret_chunk. */
static struct buffer range_of(const struct buffer *side, MPI_Count from, MPI_Count bytes,
                              void **ret_chunk)
{
    *ret_chunk = NULL;
    if (from == 0 && bytes == buffer_size(*side))
        return *side;
    if (datatype_is_run(side->type, side->count))
        return buffer_of_bytes((char *)datatype_run_start(side->type, side->base) + from, bytes);
    *ret_chunk = malloc((size_t)bytes);
    if (!*ret_chunk)
        end_no_memory(__func__, "a chunk of a one-sided operation", (size_t)bytes);
    return buffer_of_bytes(*ret_chunk, bytes);
}

static void pack_range(const struct buffer *side, MPI_Count from, void *out, MPI_Count bytes)
{
    struct type_cursor c;
    type_cursor_init(&c, side->type, side->count, side->base);
    type_cursor_seek(&c, from);
    type_cursor_pack(&c, out, (size_t)bytes);
}

static void must(int err)
{
    if (err)
        end_no_memory(__func__, "a one-sided operation", sizeof(struct part));
}

/* Receives the result of a part as a message of its own. */
static void receive_result(struct part *part)
{
    struct operation *o = part->operation;
    struct buffer room = range_of(result_side(o), part->from, part->bytes, &part->chunk);
    part->receives = true;
    must(p2p_irecv(room,
                   envelope_of(o->peer->win->comm, o->peer->rank, (int)part->id | MESSAGE_RESULT,
                               P2P_CONTEXT_PARTITIONED),
                   &part->data));
}

/* Sends the operand of a part as a message of its own. A part that receives as well has another
 * request for it: then the operand is packed, and kept by message.c. */
static void send_operand(struct part *part)
{
    struct operation *o = part->operation;
    struct link *link = o->peer;
    void *chunk;
    struct buffer data = range_of(&o->call.origin, part->from, part->bytes, &chunk);
    if (chunk)
        pack_range(&o->call.origin, part->from, chunk, part->bytes);
    if (chunk) {
        message_send_data(link, (int)part->id, data, chunk, false);
        return;
    }
    struct request **slot = part->data ? &part->operand : &part->data;
    must(p2p_isend(data,
                   envelope_of(link->win->comm, link->rank, (int)part->id, P2P_CONTEXT_PARTITIONED),
                   P2P_STANDARD, slot));
}

static struct part *part_new(struct operation *o, MPI_Count bytes, bool direct)
{
    struct part *part = calloc(1, sizeof *part);
    if (!part)
        end_no_memory(__func__, "a part of a one-sided operation", sizeof *part);
    list_init(&part->link);
    part->operation = o;
    part->from = o->sent;
    part->bytes = bytes;
    part->cost = direct ? 0 : (uint32_t)bytes;
    part->id = slot_take(part);
    o->n_parts++;
    o->peer->n_flying++;
    o->peer->flying_bytes += part->cost;
    return part;
}

static void post_head(struct operation *o, const struct message_head *head,
                      const struct pieces *pieces, MPI_Count inline_bytes)
{
    void *room;
    struct outgoing *m = message_begin(head, pieces, (size_t)inline_bytes, &room);
    if (head->kind == MESSAGE_COMPARE) {
        size_t size = (size_t)inline_bytes / 2;
        memcpy(room, o->call.origin.base, size);
        memcpy((char *)room + size, o->call.compare, size);
    } else if (inline_bytes > 0) {
        pack_range(&o->call.origin, o->sent, room, inline_bytes);
    }
    message_post(o->peer, MESSAGE_REQUEST, m);
}

/* Sends the next part of an operation. */
static void send_part(struct operation *o)
{
    const struct operation_call *call = &o->call;
    bool has_result = call->kind == MESSAGE_GET || call->result.type;
    bool has_operand = call->kind != MESSAGE_GET && !call->nothing;
    bool direct = o->one_run && (call->kind == MESSAGE_PUT || call->kind == MESSAGE_GET);
    struct pieces pieces;
    MPI_Count left = o->total - o->sent, most = direct ? left : MESSAGE_CHUNK;
    MPI_Count bytes = pieces_next(&o->at, left < most ? left : most, &pieces);
    MPI_Count operand = has_operand ? (call->kind == MESSAGE_COMPARE ? 2 * bytes : bytes) : 0;
    size_t around = sizeof(struct message_head) + pieces.n * sizeof pieces.at[0];
    bool follows = around + (size_t)operand > MESSAGE_INLINE;
    bool separate = has_result && sizeof(struct message_head) + (size_t)bytes > MESSAGE_INLINE;
    struct message_head head = {
        .kind = call->kind,
        .flags =
            (uint8_t)((follows ? MESSAGE_F_FOLLOWS : 0) | (call->nothing ? MESSAGE_F_NOTHING : 0) |
                      (has_result ? MESSAGE_F_RESULT : 0) | (separate ? MESSAGE_F_SEPARATE : 0)),
        .op = call->op ? (uint16_t)call->op->obj.handle : 0,
        .element = call->element ? (uint16_t)call->element->obj.handle : 0,
        .n_pieces = pieces.n,
        .bytes = (uint64_t)bytes};
    struct part *part = has_result || follows ? part_new(o, bytes, direct) : NULL;
    if (part) {
        head.id = part->id;
        if (separate)
            receive_result(part);
        else
            part->answer = has_result;
    }
    post_head(o, &head, &pieces, follows ? 0 : operand);
    if (follows)
        send_operand(part);
    o->sent += bytes;
    if (call->kind == MESSAGE_PUT || call->kind == MESSAGE_ACCUMULATE)
        o->peer->dirty = true;
    if (part && part->data) {
        list_append(&rma_here->parts, &part->link);
        rma_here->n_active++;
    } else if (part && !part->answer) {
        part_end(part); /* its operand is a copy */
    }
}

static bool may_send(const struct link *link)
{
    return link->n_flying < MAX_FLYING && link->flying_bytes < MAX_FLYING_BYTES &&
           rma_here->n_outgoing < MAX_OUTGOING;
}

bool part_send(struct operation *o)
{
    while (may_send(o->peer)) {
        bool last;
        o->n_parts++; /* keeps it alive */
        send_part(o);
        last = o->sent == o->total;
        if (--o->n_parts == 0 && last)
            operation_end(o);
        if (last)
            return true;
    }
    return false;
}

int part_send_more(struct link *link)
{
    struct list *first;
    int n = 0;
    while ((first = list_first(&link->queue)) != NULL && may_send(link)) {
        struct operation *o = list_entry(first, struct operation, link);
        list_remove(first);
        n++;
        if (part_send(o)) {
            link->n_queued--;
        } else {
            list_prepend(&link->queue, &o->link);
            break;
        }
    }
    if (list_empty(&link->queue) && !list_empty(&link->busy)) {
        list_remove(&link->busy);
        rma_here->n_active--;
    }
    return n;
}

static bool request_over(struct request **r, int *error)
{
    if (!*r)
        return true;
    if (!request_is_complete(*r))
        return false;
    int err = request_finish(*r, MPI_STATUS_IGNORE);
    if (err)
        *error = err;
    *r = NULL;
    return true;
}

int part_poll(void)
{
    int n = 0;
    list_foreach_safe(it, &rma_here->parts) {
        struct part *part = list_entry(it, struct part, link);
        struct operation *o = part->operation;
        if (part->data && request_is_complete(part->data)) {
            MPI_Count came = part->data->bytes;
            int error = MPI_SUCCESS;
            request_over(&part->data, &error);
            n++;
            if (part->receives && came < part->bytes)
                result_refused(o, MPI_ERR_RMA_RANGE);
            else if (part->receives && part->chunk)
                result_store(part, part->chunk, (size_t)part->bytes);
        }
        int error = MPI_SUCCESS;
        if (part->data || !request_over(&part->operand, &error))
            continue;
        list_remove(&part->link);
        rma_here->n_active--;
        if (!part->answer)
            part_end(part);
    }
    return n;
}
