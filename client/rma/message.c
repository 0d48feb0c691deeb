/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/rma/message.h"

#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "client/object/group.h"
#include "client/p2p/p2p.h"
#include "client/progress/progress.h"
#include "client/transport/end.h"

static struct rma rma_first;
struct rma *rma_here = &rma_first;

static void rma_part_init(void)
{
    list_init(&rma_here->busy);
    list_init(&rma_here->waiting);
    list_init(&rma_here->outgoing);
    list_init(&rma_here->incoming);
    list_init(&rma_here->fetching);
    list_init(&rma_here->parts);
}

static void rma_part_deinit(void)
{
    free(rma_here->slots);
    free(rma_here->spare);
}
CLIENT_PART(rma_here, rma_first, .init = rma_part_init, .deinit = rma_part_deinit);

static void *must_have(void *memory, const char *function, const char *what, size_t n)
{
    if (!memory)
        end_no_memory(function, what, n);
    return memory;
}

/* ---- links ---- */

struct link *link_of(struct win *win, int rank)
{
    struct link *link = win->targets[rank].link;
    if (link)
        return link;
    link =
        must_have(calloc(1, sizeof *link), __func__, "a pair of ranks in a window", sizeof *link);
    link->win = win;
    link->rank = rank;
    list_init(&link->queue);
    list_init(&link->busy);
    list_init(&link->held);
    list_init(&link->waiting);
    return win->targets[rank].link = link;
}

/* ---- sending ---- */

struct outgoing {
    struct list link;
    struct request *request;
    void *chunk;         /* data of a message of their own, freed with it */
    struct link *reader; /* whose n_reading counts it, or NULL */
    size_t n_bytes;
    _Alignas(16) char bytes[];
};

static struct outgoing *outgoing_new(size_t n_bytes)
{
    struct outgoing *m = rma_here->spare;
    if (m && n_bytes <= MESSAGE_INLINE) {
        rma_here->spare = NULL;
    } else {
        size_t room = n_bytes > MESSAGE_INLINE ? n_bytes : MESSAGE_INLINE;
        m = must_have(malloc(sizeof *m + room), __func__, "a one-sided message", room);
    }
    m->chunk = NULL;
    m->reader = NULL;
    m->n_bytes = n_bytes;
    list_init(&m->link);
    return m;
}

static void outgoing_free(struct outgoing *m)
{
    free(m->chunk);
    if (!rma_here->spare && m->n_bytes <= MESSAGE_INLINE)
        rma_here->spare = m;
    else
        free(m);
}

/* The transport has it, or it is kept until it has. */
static void outgoing_start(struct outgoing *m, int err, struct request *request)
{
    if (err)
        end_no_memory(__func__, "a one-sided message", m->n_bytes);
    if (request_is_complete(request)) {
        request_finish(request, MPI_STATUS_IGNORE);
        outgoing_free(m);
        return;
    }
    if (m->reader)
        m->reader->n_reading++;
    m->request = request;
    list_append(&rma_here->outgoing, &m->link);
    rma_here->n_outgoing++;
    rma_here->n_active++;
}

struct outgoing *message_begin(const struct message_head *head, const struct pieces *pieces,
                               size_t n_bytes, void **ret_data)
{
    size_t n_pieces = pieces ? pieces->n * sizeof pieces->at[0] : 0;
    struct outgoing *m = outgoing_new(sizeof *head + n_pieces + n_bytes);
    memcpy(m->bytes, head, sizeof *head);
    if (n_pieces)
        memcpy(m->bytes + sizeof *head, pieces->at, n_pieces);
    *ret_data = m->bytes + sizeof *head + n_pieces;
    return m;
}

void message_post(struct link *link, enum message_tag tag, struct outgoing *m)
{
    struct request *request = NULL;
    int err = p2p_isend(buffer_of_bytes(m->bytes, (MPI_Count)m->n_bytes),
                        envelope_of(link->win->comm, link->rank, tag, P2P_CONTEXT_USER),
                        P2P_STANDARD, &request);
    outgoing_start(m, err, request);
}

void message_send(struct link *link, enum message_tag tag, const struct message_head *head,
                  const struct pieces *pieces, const void *data, size_t n_bytes)
{
    void *room;
    struct outgoing *m = message_begin(head, pieces, n_bytes, &room);
    if (n_bytes)
        memcpy(room, data, n_bytes);
    message_post(link, tag, m);
}

void message_send_data(struct link *link, int tag, struct buffer buffer, void *chunk, bool reads)
{
    struct request *request = NULL;
    struct outgoing *m = outgoing_new(0);
    m->chunk = chunk;
    m->reader = reads ? link : NULL;
    int err =
        p2p_isend(buffer, envelope_of(link->win->comm, link->rank, tag, P2P_CONTEXT_PARTITIONED),
                  P2P_STANDARD, &request);
    outgoing_start(m, err, request);
}

static int outgoing_poll(void)
{
    int n = 0;
    list_foreach_safe(it, &rma_here->outgoing) {
        struct outgoing *m = list_entry(it, struct outgoing, link);
        if (!request_is_complete(m->request))
            continue;
        request_finish(m->request, MPI_STATUS_IGNORE);
        list_remove(&m->link);
        rma_here->n_outgoing--;
        rma_here->n_active--;
        struct link *reader = m->reader;
        outgoing_free(m);
        n++;
        if (!reader)
            continue;
        reader->n_reading--;
        message_run(reader);
        break; /* the list may have changed */
    }
    return n;
}

/* ---- receiving ---- */

/* A request that waits for its turn, or any message that was announced and is to be received. */
struct held {
    struct list link;  /* in link.held */
    struct list fetch; /* in rma_here->fetching */
    struct link *from;
    bool is_answer, announced, here; /* here: the bytes are */
    struct request *request;
    size_t n_bytes;
    _Alignas(16) char bytes[];
};

static struct held *hold(struct link *link, const void *payload, size_t n)
{
    struct held *h = must_have(malloc(sizeof *h + n), __func__, "a one-sided request", n);
    *h = (struct held){.from = link, .n_bytes = n, .announced = !payload, .here = payload != NULL};
    list_init(&h->link);
    list_init(&h->fetch);
    if (payload)
        memcpy(h->bytes, payload, n);
    return h;
}

/* Receives what was announced: the oldest that this rank has not received. */
static void fetch(struct held *h)
{
    struct link *link = h->from;
    int err =
        p2p_irecv(buffer_of_bytes(h->bytes, (MPI_Count)h->n_bytes),
                  envelope_of(link->win->comm, link->rank,
                              h->is_answer ? MESSAGE_ANSWER : MESSAGE_REQUEST, P2P_CONTEXT_USER),
                  &h->request);
    if (err)
        end_no_memory(__func__, "a receive", sizeof *h);
    list_append(&rma_here->fetching, &h->fetch);
    rma_here->n_active++;
}

static void held_free(struct held *h)
{
    list_remove(&h->link);
    if (!h->announced && !h->is_answer)
        p2p_taken((uint32_t)h->from->win->comm->group->procs[h->from->rank], h->n_bytes);
    free(h);
}

static bool serve_bytes(struct link *link, const void *bytes, size_t n)
{
    struct message_head head;
    if (n < sizeof head)
        return true; /* not ours: dropped */
    memcpy(&head, bytes, sizeof head);
    return serve_request(link, &head, (const char *)bytes + sizeof head, n - sizeof head);
}

static void answer_bytes(struct link *link, const void *bytes, size_t n)
{
    struct message_head head;
    if (n < sizeof head)
        return;
    memcpy(&head, bytes, sizeof head);
    part_answer(link, &head, (const char *)bytes + sizeof head, n - sizeof head);
}

void message_run(struct link *link)
{
    struct list *first;
    while (!link->fetching && (first = list_first(&link->held)) != NULL) {
        struct held *h = list_entry(first, struct held, link);
        if (!h->here) {
            link->fetching = true;
            fetch(h);
            return;
        }
        if (!serve_bytes(link, h->bytes, h->n_bytes))
            return;
        held_free(h);
    }
}

static int fetching_poll(void)
{
    int n = 0;
    list_foreach_safe(it, &rma_here->fetching) {
        struct held *h = list_entry(it, struct held, fetch);
        struct link *link = h->from;
        if (!request_is_complete(h->request))
            continue;
        request_finish(h->request, MPI_STATUS_IGNORE);
        list_remove(&h->fetch);
        rma_here->n_active--;
        h->here = true;
        n++;
        if (h->is_answer) {
            answer_bytes(link, h->bytes, h->n_bytes);
            held_free(h);
        } else {
            link->fetching = false;
            message_run(link);
        }
        /* What ran may have changed the list. */
        break;
    }
    return n;
}

static bool message_take(uint32_t context, int32_t source, int32_t tag, const void *payload,
                         MPI_Count bytes)
{
    struct win *win = context % 4 == P2P_CONTEXT_USER ? win_of_context(context) : NULL;
    if (!win || source < 0 || source >= win->comm->size)
        return false;
    struct link *link = link_of(win, source);
    size_t n = (size_t)bytes;
    if (tag == MESSAGE_ANSWER && payload) {
        answer_bytes(link, payload, n);
    } else if (tag == MESSAGE_ANSWER) {
        struct held *h = hold(link, NULL, n);
        h->is_answer = true;
        fetch(h);
        return true;
    } else if (!payload || !list_empty(&link->held) || !serve_bytes(link, payload, n)) {
        struct held *h = hold(link, payload, n);
        list_append(&link->held, &h->link);
        if (!payload)
            message_run(link);
        return true;
    }
    p2p_taken((uint32_t)win->comm->group->procs[source], (uint64_t)n);
    return true;
}

/* ---- progress ---- */

static int message_poll(void)
{
    int n = outgoing_poll() + fetching_poll() + serve_poll() + part_poll();
    list_foreach_safe(it, &rma_here->busy)
        n += part_send_more(list_entry(it, struct link, busy));
    return n;
}

/* Locks are given back by processes that know nothing of those who wait here. */
static int waiting_poll(void)
{
    int n = 0;
    list_foreach_safe(it, &rma_here->waiting) {
        struct link *link = list_entry(it, struct link, waiting);
        message_run(link);
        n += list_empty(&link->waiting);
    }
    return n;
}

void message_init(void)
{
    p2p_set_taker(message_take);
    progress_register(message_poll, &rma_here->n_active, false);
    progress_register(waiting_poll, &rma_here->n_waiting, true);
}

void link_free(struct link *link)
{
    if (!link)
        return;
    list_foreach_safe(it, &link->held)
        held_free(list_entry(it, struct held, link));
    list_remove(&link->busy);
    list_remove(&link->waiting);
    free(link);
}
