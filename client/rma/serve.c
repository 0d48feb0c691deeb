/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target: carries out the requests of origins on this rank's memory (message.h). What comes is
 * checked once, in a copy: pieces against the memory that the window opens, types and operations
 * against the predefined ones.
 */
#include <stdlib.h>
#include <string.h>

#include "client/object/err.h"
#include "client/p2p/p2p.h"
#include "client/rma/apply.h"
#include "client/rma/message.h"
#include "client/rma/region.h"
#include "client/transport/end.h"

/* An operand on its way. */
struct incoming {
    struct list link;
    struct link *from;
    struct request *request;
    struct message_head head;
    struct pieces pieces;
    void *chunk; /* NULL: straight to its place, or refused */
    bool refused;
};

static struct apply_place own_place(const struct link *link)
{
    const struct win *win = link->win;
    const struct win_target *own = &win->targets[win->comm->rank];
    return (struct apply_place){.base = own->local, .lock = own->lock, .shared = win->shared};
}

static void *chunk_of(size_t n)
{
    void *chunk = malloc(n ? n : 1);
    if (!chunk)
        end_no_memory(__func__, "a chunk of a one-sided operation", n);
    return chunk;
}

/* ---- answers ---- */

static void answer(struct link *link, uint8_t kind, uint32_t id, int error)
{
    struct message_head head = {.kind = kind, .id = id, .error = (uint16_t)error};
    message_send(link, MESSAGE_ANSWER, &head, NULL, NULL, 0);
}

static void refuse(struct link *link, const struct message_head *head, int error)
{
    bool separate = head->flags & MESSAGE_F_SEPARATE;
    bool result = head->kind == MESSAGE_GET || (head->flags & MESSAGE_F_RESULT);
    if (separate) /* an empty message says it */
        message_send_data(link, (int)(head->id | MESSAGE_RESULT), buffer_of_bytes(NULL, 0), NULL,
                          false);
    else
        answer(link, result ? MESSAGE_RESULT_IS : MESSAGE_REFUSED, head->id, error);
}

static void answer_result(struct link *link, const struct message_head *head, const void *result)
{
    struct message_head out = {
        .kind = MESSAGE_RESULT_IS, .id = head->id, .error = MPI_SUCCESS, .bytes = head->bytes};
    message_send(link, MESSAGE_ANSWER, &out, NULL, result, (size_t)head->bytes);
}

/* ---- operations ---- */

static void serve_get(struct link *link, const struct message_head *head,
                      const struct pieces *pieces)
{
    struct apply_place place = own_place(link);
    if (!(head->flags & MESSAGE_F_SEPARATE)) {
        char result[MESSAGE_INLINE];
        apply_get(&place, pieces, result);
        answer_result(link, head, result);
        return;
    }
    int tag = (int)(head->id | MESSAGE_RESULT);
    if (pieces->n == 1 && pieces->at[0].count == 1) {
        uintptr_t at = (uintptr_t)place.base + (uintptr_t)pieces->at[0].offset;
        message_send_data(link, tag, buffer_of_bytes((void *)at, (MPI_Count)head->bytes), NULL,
                          true);
        return;
    }
    void *chunk = chunk_of((size_t)head->bytes);
    apply_get(&place, pieces, chunk);
    message_send_data(link, tag, buffer_of_bytes(chunk, (MPI_Count)head->bytes), chunk, false);
}

static void serve_accumulate(struct link *link, const struct message_head *head,
                             const struct pieces *pieces, const void *operand)
{
    struct apply_place place = own_place(link);
    const struct op *op = op_predefined((MPI_Op)(uintptr_t)head->op);
    struct datatype *element = datatype_predefined((MPI_Datatype)(uintptr_t)head->element);
    bool separate = head->flags & MESSAGE_F_SEPARATE;
    if (!(head->flags & MESSAGE_F_RESULT)) {
        apply_accumulate(&place, pieces, op, element, operand, NULL);
    } else if (!separate) {
        char result[MESSAGE_INLINE];
        apply_accumulate(&place, pieces, op, element, operand, result);
        answer_result(link, head, result);
    } else {
        void *chunk = chunk_of((size_t)head->bytes);
        apply_accumulate(&place, pieces, op, element, operand, chunk);
        message_send_data(link, (int)(head->id | MESSAGE_RESULT),
                          buffer_of_bytes(chunk, (MPI_Count)head->bytes), chunk, false);
    }
}

static void serve_compare(struct link *link, const struct message_head *head,
                          const struct pieces *pieces, const void *operands)
{
    struct apply_place place = own_place(link);
    struct datatype *element = datatype_predefined((MPI_Datatype)(uintptr_t)head->element);
    char before[64];
    apply_compare(&place, pieces->at[0].offset, element, operands,
                  (const char *)operands + head->bytes, before);
    answer_result(link, head, before);
}

static void carry_out(struct link *link, const struct message_head *head,
                      const struct pieces *pieces, const void *operand)
{
    struct apply_place place = own_place(link);
    switch (head->kind) {
    case MESSAGE_PUT:
        apply_put(&place, pieces, operand);
        break;
    case MESSAGE_GET:
        serve_get(link, head, pieces);
        break;
    case MESSAGE_COMPARE:
        serve_compare(link, head, pieces, operand);
        break;
    default:
        serve_accumulate(link, head, pieces, head->flags & MESSAGE_F_NOTHING ? NULL : operand);
    }
}

/* ---- operands that follow ---- */

static void receive_operand(struct link *link, const struct message_head *head,
                            const struct pieces *pieces, bool refused)
{
    struct incoming *in = chunk_of(sizeof *in);
    *in = (struct incoming){.from = link, .head = *head, .refused = refused};
    in->pieces.n = pieces->n;
    memcpy(in->pieces.at, pieces->at, pieces->n * sizeof pieces->at[0]);
    bool straight = head->kind == MESSAGE_PUT && pieces->n == 1 && pieces->at[0].count == 1;
    struct buffer room = buffer_of_bytes(NULL, 0);
    if (!refused && straight) {
        struct apply_place place = own_place(link);
        room = buffer_of_bytes((void *)((uintptr_t)place.base + (uintptr_t)pieces->at[0].offset),
                               (MPI_Count)head->bytes);
    } else if (!refused) {
        in->chunk = chunk_of((size_t)head->bytes);
        room = buffer_of_bytes(in->chunk, (MPI_Count)head->bytes);
    }
    if (p2p_irecv(room,
                  envelope_of(link->win->comm, link->rank, (int)head->id, P2P_CONTEXT_PARTITIONED),
                  &in->request))
        end_no_memory(__func__, "a receive", sizeof *in);
    link->n_incoming++;
    link->exclusive = head->kind != MESSAGE_PUT;
    list_append(&rma_here->incoming, &in->link);
    rma_here->n_active++;
}

int serve_poll(void)
{
    int n = 0;
    list_foreach_safe(it, &rma_here->incoming) {
        struct incoming *in = list_entry(it, struct incoming, link);
        struct link *link = in->from;
        if (!request_is_complete(in->request))
            continue;
        int err = request_finish(in->request, MPI_STATUS_IGNORE);
        if (in->refused || err)
            refuse(link, &in->head, in->refused ? MPI_ERR_RMA_RANGE : err);
        else if (in->chunk)
            carry_out(link, &in->head, &in->pieces, in->chunk);
        list_remove(&in->link);
        rma_here->n_active--;
        link->n_incoming--;
        link->exclusive = false;
        free(in->chunk);
        free(in);
        message_run(link);
        n++;
        break; /* the list may have changed */
    }
    return n;
}

/* ---- checks of what came ---- */

static bool check_types(const struct message_head *head, const struct pieces *pieces)
{
    if (head->kind == MESSAGE_PUT || head->kind == MESSAGE_GET)
        return true;
    const struct object *element = handle_object(head->element);
    if (head->element >= HANDLE_PREDEFINED_MAX || !element || element->kind != OBJECT_DATATYPE)
        return false;
    const struct datatype *type = (const struct datatype *)element;
    if (type->size <= 0 || type->true_extent > 64)
        return false;
    for (uint32_t i = 0; i < pieces->n; i++)
        if (pieces->at[i].bytes % (uint64_t)type->size != 0 ||
            (!type->dense && pieces->at[i].bytes != (uint64_t)type->size))
            return false;
    if (head->kind == MESSAGE_COMPARE)
        return head->bytes == (uint64_t)type->size && pieces->n == 1 && pieces->at[0].count == 1;
    const struct object *op = handle_object(head->op);
    if (head->op >= HANDLE_PREDEFINED_MAX || !op || op->kind != OBJECT_OP)
        return false;
    bool none = head->op == (uintptr_t)MPI_NO_OP;
    return none || head->op == (uintptr_t)MPI_REPLACE ||
           op_check((const struct op *)op, type) == MPI_SUCCESS;
}

/* Takes the pieces of a request apart. False: it is no sound request. */
static bool split(const struct message_head *head, const void *body, size_t n,
                  struct pieces *ret_pieces, size_t *ret_operand)
{
    if (head->n_pieces == 0 || head->n_pieces > PIECES_MAX ||
        n < head->n_pieces * sizeof ret_pieces->at[0])
        return false;
    ret_pieces->n = head->n_pieces;
    memcpy(ret_pieces->at, body, head->n_pieces * sizeof ret_pieces->at[0]);
    uint64_t total = 0;
    for (uint32_t i = 0; i < ret_pieces->n; i++) {
        uint64_t bytes;
        if (__builtin_mul_overflow(ret_pieces->at[i].bytes, ret_pieces->at[i].count, &bytes) ||
            __builtin_add_overflow(total, bytes, &total))
            return false;
    }
    size_t rest = n - head->n_pieces * sizeof ret_pieces->at[0];
    bool operand = head->kind != MESSAGE_GET && !(head->flags & MESSAGE_F_NOTHING);
    uint64_t wanted = operand && !(head->flags & MESSAGE_F_FOLLOWS)
                          ? (head->kind == MESSAGE_COMPARE ? 2 : 1) * head->bytes
                          : 0;
    bool small = head->flags & MESSAGE_F_SEPARATE || head->bytes <= MESSAGE_INLINE;
    *ret_operand = rest;
    return total == head->bytes && total <= INT64_MAX && rest == wanted &&
           (small || !(head->kind == MESSAGE_GET || head->flags & MESSAGE_F_RESULT)) &&
           check_types(head, ret_pieces);
}

static bool serve_operation(struct link *link, const struct message_head *head, const void *body,
                            size_t n)
{
    struct pieces pieces;
    size_t operand;
    if (link->exclusive)
        return false;
    if (!split(head, body, n, &pieces, &operand)) {
        refuse(link, head, MPI_ERR_INTERN);
        return true;
    }
    bool here = region_has(link->win, &pieces);
    if (head->flags & MESSAGE_F_FOLLOWS) {
        /* An accumulate is carried out when all before it is in its place. */
        if (head->kind != MESSAGE_PUT && link->n_incoming > 0)
            return false;
        receive_operand(link, head, &pieces, !here);
        return true;
    }
    if (!here)
        refuse(link, head, MPI_ERR_RMA_RANGE);
    else
        carry_out(link, head, &pieces, (const char *)body + (n - operand));
    return true;
}

/* ---- synchronisation ---- */

/* Draws a ticket once; then waits until its turn. */
static bool serve_lock(struct link *link, bool exclusive)
{
    struct ticket_lock *lock = win_own(link->win)->lock;
    if (!link->drawn) {
        link->ticket = ticket_draw(lock);
        link->drawn = true;
    }
    if (!ticket_enter_as(lock, link->ticket, exclusive)) {
        if (list_empty(&link->waiting)) {
            list_append(&rma_here->waiting, &link->waiting);
            rma_here->n_waiting++;
        }
        return false;
    }
    if (!list_empty(&link->waiting)) {
        list_remove(&link->waiting);
        rma_here->n_waiting--;
    }
    link->drawn = false;
    link->granted = exclusive ? WIN_LOCKED_EXCLUSIVE : WIN_LOCKED_SHARED;
    return true;
}

bool serve_request(struct link *link, const struct message_head *head, const void *body, size_t n)
{
    /* Something of its earlier requests still goes into the window, or comes out of it. */
    bool busy = link->n_incoming > 0 || link->n_reading > 0;
    switch (head->kind) {
    case MESSAGE_PUT:
    case MESSAGE_GET:
    case MESSAGE_ACCUMULATE:
    case MESSAGE_COMPARE:
        return serve_operation(link, head, body, n);
    case MESSAGE_LOCK:
        return !busy && serve_lock(link, head->flags & MESSAGE_F_EXCLUSIVE);
    case MESSAGE_UNLOCK:
        if (busy)
            return false;
        if (link->granted != WIN_UNLOCKED)
            ticket_exit(win_own(link->win)->lock, link->granted == WIN_LOCKED_EXCLUSIVE);
        link->granted = WIN_UNLOCKED;
        answer(link, MESSAGE_DONE, 0, MPI_SUCCESS);
        return true;
    case MESSAGE_FLUSH:
        if (busy)
            return false;
        answer(link, MESSAGE_DONE, 0, MPI_SUCCESS);
        return true;
    case MESSAGE_COMPLETE:
        if (busy)
            return false;
        link->n_completes++;
        return true;
    default:
        return true; /* not of this library: dropped */
    }
}
