/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point traffic of a round. Which receive a message finds is known whatever the order of
 * arrival: the receives of a communicator ask either for one source and one tag, for a tag of this
 * round, for a source, or for anything; the last while nobody sends anything else. Messages of one
 * sender, receiver and tag must be received in the order in which they were sent, by receives in
 * the order in which they were posted.
 */
#include "tests/sim/client/client_program.h"

#include <string.h>

#include "base/hash.h"
#include "tests/sim/client/client_layout.h"
#include "tests/sim/client/client_process.h"
#include "tests/sim/client/client_world.h"

#define TALK_MESSAGES 96
#define MOST_BUFFERED 3000  /* bytes of a message that is sent by MPI_Bsend */
#define TAG_NEVER     30000 /* nobody sends it */
#define TAG_ROUND     100   /* from here on tags that one round uses */
/* Most that is sent in all: the simulation moves some hundred MB a second. */
#define TALK_BYTES 1000000

enum asks {
    ASKS_ONE,    /* source and tag */
    ASKS_TAG,    /* any source */
    ASKS_SOURCE, /* any tag */
    ASKS_ANY,    /* both, and nobody else sends meanwhile */
    ASKS_KEY,    /* one key, by receives of all four kinds */
};

enum order { RECEIVE_FIRST, SEND_FIRST, MIXED };

struct message {
    int from, to, tag, n_bytes;
    uint32_t salt;
    bool claimed; /* a receive had it */
};

struct item {
    const struct message *sent; /* NULL: a receive */
    int source, tag;            /* what the receive asks for */
    int n_room;                 /* of a receive that is too short: what it takes; else -1 */
    struct layout_buffer buffer;
    MPI_Request request;
    MPI_Status status;
    int error;
    bool persistent, done;
};

struct talk {
    struct program *program;
    struct meeting *meeting;
    uint32_t round;
    enum asks asks;
    enum order order;
    bool ready, quiet;
    int n_messages, n_items;
    struct message messages[TALK_MESSAGES];
    struct item items[2 * TALK_MESSAGES]; /* own sends and receives; receives as they were posted */
};

/* ---- plan ---- */

static int draw_bytes(struct rand *plan, int limit)
{
    static const int limits[] = {1, 33, 200, 4000, 5000, 20000, 70000, 400000};
    int most = limits[program_draw(plan, 4)];

    if (program_draw(plan, 3) == 0)
        most = limits[program_draw(plan, 8)];
    if (most > limit)
        most = limit > 0 ? limit : 1;
    int n = (int)program_draw(plan, (uint64_t)most);
    return program_draw(plan, 4) ? n & ~3 : n;
}

/* More than a rank may have at another one before it finds its receives, in messages that are sent
 * at once. */
static void draw_flood(struct talk *t, struct rand *plan)
{
    uint64_t n_ranks = (uint64_t)t->meeting->size;
    int to = (int)program_draw(plan, n_ranks), from = (int)program_draw(plan, n_ranks);
    int tag = TAG_ROUND + (int)(t->round % 1000) * 4, most = program_draw(plan, 2) ? 4096 : 16384;

    t->n_messages = TALK_MESSAGES / 2 + (int)program_draw(plan, TALK_MESSAGES / 2);
    for (int i = 0; i < t->n_messages; i++)
        t->messages[i] = (struct message){
            .from = from, .to = to, .tag = tag, .n_bytes = most - (int)program_draw(plan, 64)};
}

static void draw_messages(struct talk *t, struct rand *plan)
{
    static const uint64_t many[] = {6, 20, TALK_MESSAGES};
    uint64_t n_ranks = (uint64_t)t->meeting->size;
    bool narrow = program_draw(plan, 3) == 0;
    int n_left = TALK_BYTES;

    t->n_messages = 1 + (int)program_draw(plan, many[program_draw(plan, 3)]);
    /* Room for any message is kept for each receive that may get it. */
    int limit = t->asks == ASKS_ONE ? 400000 : 1500000 / t->n_messages;
    int to = (int)program_draw(plan, n_ranks), from = (int)program_draw(plan, n_ranks);
    for (int i = 0; i < t->n_messages; i++) {
        struct message *m = &t->messages[i];
        if (!narrow) {
            to = (int)program_draw(plan, n_ranks);
            from = (int)program_draw(plan, n_ranks);
        }
        *m = (struct message){.from = from, .to = to};
        m->tag = (int)program_draw(plan, 3);
        if (t->asks == ASKS_TAG)
            m->tag += TAG_ROUND + (int)(t->round % 1000) * 4;
        if (t->asks == ASKS_KEY) {
            m->tag = 7 + to;
            m->from = (int)(hash_mix64((uint64_t)to + t->round) % n_ranks);
        }
        m->n_bytes = draw_bytes(plan, limit < n_left ? limit : n_left);
        n_left -= m->n_bytes;
    }
}

/* ---- sending ---- */

static struct item *item_new(struct talk *t)
{
    struct item *it = &t->items[t->n_items++];

    *it = (struct item){.n_room = -1, .request = MPI_REQUEST_NULL};
    return it;
}

static int class_of(int error)
{
    int class = MPI_SUCCESS;

    MPI_Error_class(error, &class);
    return class;
}

/* A buffered send may find the buffer full of messages that have not left yet. */
static bool is_buffered(int error)
{
    if (class_of(error) == MPI_ERR_BUFFER)
        return false;
    program_check(error, "a buffered send");
    return true;
}

static void send_blocking(struct talk *t, const struct message *m, struct item *it)
{
    const struct layout_buffer *b = &it->buffer;
    MPI_Comm comm = t->meeting->comm;

    switch (program_draw(&t->program->own, t->ready ? 4 : 3)) {
    case 0:
        CHECK(MPI_Ssend(b->start, b->count, b->type, m->to, m->tag, comm));
        break;
    case 1:
        if (m->n_bytes < MOST_BUFFERED &&
            is_buffered(MPI_Bsend(b->start, b->count, b->type, m->to, m->tag, comm)))
            break; /* fall through */
    case 2:
        CHECK(MPI_Send(b->start, b->count, b->type, m->to, m->tag, comm));
        break;
    default:
        CHECK(MPI_Rsend(b->start, b->count, b->type, m->to, m->tag, comm));
        break;
    }
    it->done = true;
}

static void send_persistent(struct talk *t, const struct message *m, struct item *it)
{
    const struct layout_buffer *b = &it->buffer;
    MPI_Comm comm = t->meeting->comm;

    it->persistent = true;
    switch (program_draw(&t->program->own, 2)) {
    case 0:
        CHECK(MPI_Send_init(b->start, b->count, b->type, m->to, m->tag, comm, &it->request));
        break;
    default:
        CHECK(MPI_Ssend_init(b->start, b->count, b->type, m->to, m->tag, comm, &it->request));
        break;
    }
    CHECK(MPI_Start(&it->request));
}

static void send_nonblocking(struct talk *t, const struct message *m, struct item *it)
{
    const struct layout_buffer *b = &it->buffer;
    MPI_Comm comm = t->meeting->comm;

    switch (program_draw(&t->program->own, t->ready ? 5 : 4)) {
    case 0:
        CHECK(MPI_Issend(b->start, b->count, b->type, m->to, m->tag, comm, &it->request));
        break;
    case 1:
        send_persistent(t, m, it);
        break;
    case 2:
        if (m->n_bytes < MOST_BUFFERED &&
            is_buffered(MPI_Ibsend(b->start, b->count, b->type, m->to, m->tag, comm, &it->request)))
            break; /* fall through */
    case 3:
        CHECK(MPI_Isend(b->start, b->count, b->type, m->to, m->tag, comm, &it->request));
        break;
    default:
        CHECK(MPI_Irsend(b->start, b->count, b->type, m->to, m->tag, comm, &it->request));
        break;
    }
}

static struct item *send_prepare(struct talk *t, const struct message *m)
{
    struct item *it = item_new(t);

    it->sent = m;
    layout_make(&it->buffer, (enum layout)program_draw(&t->program->own, LAYOUTS), m->n_bytes);
    layout_fill(&it->buffer, m->n_bytes, m->salt);
    return it;
}

static void send_message(struct talk *t, const struct message *m, bool may_block)
{
    struct item *it = send_prepare(t, m);

    world_say("round %u: sends %d bytes to %d, tag %d", t->round, m->n_bytes, m->to, m->tag);
    if (may_block && program_draw(&t->program->own, 2))
        send_blocking(t, m, it);
    else
        send_nonblocking(t, m, it);
    program_dawdle(t->program);
}

/* ---- receiving ---- */

/* The oldest message of this key that no receive has had. */
static struct message *claim(struct talk *t, int source, int tag)
{
    for (int i = 0; i < t->n_messages; i++) {
        struct message *m = &t->messages[i];
        if (!m->claimed && m->to == t->meeting->rank && m->from == source && m->tag == tag)
            return m;
    }
    return NULL;
}

/* Messages of this key that the talk has, whoever has had them. */
static const struct message *nth_of_key(const struct talk *t, int source, int tag, int n)
{
    for (int i = 0; i < t->n_messages; i++) {
        const struct message *m = &t->messages[i];
        if (m->to == t->meeting->rank && m->from == source && m->tag == tag && n-- == 0)
            return m;
    }
    return NULL;
}

static int most_bytes(const struct talk *t)
{
    int most = 0;

    for (int i = 0; i < t->n_messages; i++)
        if (t->messages[i].to == t->meeting->rank && t->messages[i].n_bytes > most)
            most = t->messages[i].n_bytes;
    return most;
}

/* A receive for what message m's place in the plan asks for. */
static struct item *receive_prepare(struct talk *t, const struct message *m)
{
    struct item *it = item_new(t);
    uint64_t kind = program_draw(&t->program->own, 4);
    struct rand *own = &t->program->own;

    it->source = m->from;
    it->tag = m->tag;
    if (t->asks == ASKS_TAG || t->asks == ASKS_ANY || (t->asks == ASKS_KEY && kind & 1))
        it->source = MPI_ANY_SOURCE;
    if (t->asks == ASKS_SOURCE || t->asks == ASKS_ANY || (t->asks == ASKS_KEY && kind & 2))
        it->tag = MPI_ANY_TAG;
    if (t->asks != ASKS_ONE) {
        layout_make(&it->buffer, LAYOUT_DENSE, most_bytes(t) + (int)program_draw(own, 16));
        return it;
    }
    int n_before = 0;
    for (int i = 0; i < t->n_items - 1; i++)
        n_before +=
            !t->items[i].sent && t->items[i].source == it->source && t->items[i].tag == it->tag;
    int n_bytes = nth_of_key(t, it->source, it->tag, n_before)->n_bytes;
    if (n_bytes > 0 && program_draw(own, 8) == 0) {
        it->n_room = (int)program_draw(own, (uint64_t)n_bytes);
        layout_make(&it->buffer, LAYOUT_DENSE, it->n_room);
    } else if (program_draw(own, 3)) {
        layout_make(&it->buffer, (enum layout)program_draw(own, LAYOUTS), n_bytes);
    } else {
        layout_make(&it->buffer, LAYOUT_DENSE, n_bytes + (int)program_draw(own, 40));
    }
    return it;
}

static void receive_nonblocking(struct talk *t, struct item *it)
{
    struct layout_buffer *b = &it->buffer;

    if (program_draw(&t->program->own, 4) == 0) {
        it->persistent = true;
        CHECK(MPI_Recv_init(b->start, b->count, b->type, it->source, it->tag, t->meeting->comm,
                            &it->request));
        CHECK(MPI_Start(&it->request));
    } else {
        CHECK(MPI_Irecv(b->start, b->count, b->type, it->source, it->tag, t->meeting->comm,
                        &it->request));
    }
}

static void receive_probed(struct talk *t, struct item *it)
{
    struct layout_buffer *b = &it->buffer;
    MPI_Status probed;
    int flag = 0;

    if (program_draw(&t->program->own, 2)) {
        CHECK(MPI_Probe(it->source, it->tag, t->meeting->comm, &probed));
    } else {
        while (!flag) {
            CHECK(MPI_Iprobe(it->source, it->tag, t->meeting->comm, &flag, &probed));
            if (!flag)
                process_pause(program_draw(&t->program->own, 100000));
        }
    }
    it->error = MPI_Recv(b->start, b->count, b->type, probed.MPI_SOURCE, probed.MPI_TAG,
                         t->meeting->comm, &it->status);
    it->done = true;
    if (it->status.MPI_SOURCE != probed.MPI_SOURCE || it->status.MPI_TAG != probed.MPI_TAG)
        world_fail("round %u: probed %d, %d, received %d, %d", t->round, probed.MPI_SOURCE,
                   probed.MPI_TAG, it->status.MPI_SOURCE, it->status.MPI_TAG);
}

static void receive_matched(struct talk *t, struct item *it)
{
    struct layout_buffer *b = &it->buffer;
    MPI_Message message;
    MPI_Status probed;
    int flag = 0;

    if (program_draw(&t->program->own, 2)) {
        CHECK(MPI_Mprobe(it->source, it->tag, t->meeting->comm, &message, &probed));
    } else {
        while (!flag) {
            CHECK(MPI_Improbe(it->source, it->tag, t->meeting->comm, &flag, &message, &probed));
            if (!flag)
                process_pause(program_draw(&t->program->own, 100000));
        }
    }
    if (program_draw(&t->program->own, 2)) {
        CHECK(MPI_Imrecv(b->start, b->count, b->type, &message, &it->request));
    } else {
        it->error = MPI_Mrecv(b->start, b->count, b->type, &message, &it->status);
        it->done = true;
    }
}

static void receive_blocking(struct talk *t, struct item *it)
{
    struct layout_buffer *b = &it->buffer;

    it->error =
        MPI_Recv(b->start, b->count, b->type, it->source, it->tag, t->meeting->comm, &it->status);
    it->done = true;
}

static void receive_message(struct talk *t, const struct message *m, bool may_block)
{
    struct item *it = receive_prepare(t, m);
    uint64_t form = may_block ? program_draw(&t->program->own, 4) : 0;

    world_say("round %u: receives from %d, tag %d, form %u", t->round, it->source, it->tag,
              (unsigned)form);
    if (form == 0)
        receive_nonblocking(t, it);
    else if (form == 1)
        receive_blocking(t, it);
    else if (form == 2)
        receive_probed(t, it);
    else
        receive_matched(t, it);
    program_dawdle(t->program);
}

/* A send and a receive in one call; both are messages of the plan. */
static void send_and_receive(struct talk *t, const struct message *out, const struct message *in)
{
    struct item *s = send_prepare(t, out), *r = receive_prepare(t, in);

    world_say("round %u: sends %d bytes to %d and receives from %d", t->round, out->n_bytes,
              out->to, r->source);
    r->error = MPI_Sendrecv(s->buffer.start, s->buffer.count, s->buffer.type, out->to, out->tag,
                            r->buffer.start, r->buffer.count, r->buffer.type, r->source, r->tag,
                            t->meeting->comm, &r->status);
    s->done = r->done = true;
}

/* A receive that nothing can match is taken back. */
static void cancel_one(struct talk *t)
{
    MPI_Request request;
    MPI_Status status;
    int word = 0, cancelled = 0;

    CHECK(MPI_Irecv(&word, 1, MPI_INT, t->meeting->rank, TAG_NEVER, t->meeting->comm, &request));
    program_dawdle(t->program);
    CHECK(MPI_Cancel(&request));
    CHECK(MPI_Wait(&request, &status));
    CHECK(MPI_Test_cancelled(&status, &cancelled));
    if (!cancelled)
        world_fail("a receive without a message could not be cancelled");
}

/* ---- completion ---- */

static void finish_item(struct talk *t, struct item *it)
{
    if (it->persistent)
        CHECK(MPI_Request_free(&it->request));
    it->done = true;
    (void)t;
}

/* Waits for one after the other, in any order. */
static void wait_singly(struct talk *t)
{
    int first = (int)program_draw(&t->program->own, (uint64_t)t->n_items + 1);

    for (int i = 0; i < t->n_items; i++) {
        struct item *it = &t->items[(first + i) % t->n_items];
        int flag = 0;
        if (it->done)
            continue;
        if (program_draw(&t->program->own, 2))
            MPI_Request_get_status(it->request, &flag, &it->status);
        it->error = MPI_Wait(&it->request, &it->status);
        finish_item(t, it);
    }
}

static int list_open(struct talk *t, MPI_Request *requests, struct item **items)
{
    int n = 0;

    for (int i = 0; i < t->n_items; i++) {
        if (t->items[i].done)
            continue;
        items[n] = &t->items[i];
        requests[n++] = t->items[i].request;
    }
    return n;
}

/* What a call on all said of those it names (which: NULL, all of them). */
static void take_results(struct talk *t, int n, const int *which, int error,
                         const MPI_Request *requests, const MPI_Status *statuses,
                         struct item **items)
{
    for (int i = 0; i < n; i++) {
        struct item *it = items[which ? which[i] : i];
        it->status = statuses[i];
        it->error = error == MPI_ERR_IN_STATUS ? statuses[i].MPI_ERROR : error;
        it->request = requests[which ? which[i] : i];
        finish_item(t, it);
    }
}

static void wait_all(struct talk *t, bool test)
{
    MPI_Request requests[2 * TALK_MESSAGES];
    MPI_Status statuses[2 * TALK_MESSAGES];
    struct item *items[2 * TALK_MESSAGES];
    int n = list_open(t, requests, items), flag = !test, error = MPI_SUCCESS;

    if (test)
        while (!flag) {
            error = MPI_Testall(n, requests, &flag, statuses);
            if (!flag)
                process_pause(program_draw(&t->program->own, 50000));
        }
    else
        error = MPI_Waitall(n, requests, statuses);
    take_results(t, n, NULL, error, requests, statuses, items);
}

static void wait_some(struct talk *t, bool test)
{
    MPI_Request requests[2 * TALK_MESSAGES];
    MPI_Status statuses[2 * TALK_MESSAGES];
    struct item *items[2 * TALK_MESSAGES];
    int which[2 * TALK_MESSAGES], n;

    while ((n = list_open(t, requests, items)) > 0) {
        int n_done = 0;
        int error = test ? MPI_Testsome(n, requests, &n_done, which, statuses)
                         : MPI_Waitsome(n, requests, &n_done, which, statuses);
        if (n_done == 0)
            process_pause(program_draw(&t->program->own, 50000));
        take_results(t, n_done, which, error, requests, statuses, items);
    }
}

static void wait_any(struct talk *t, bool test)
{
    MPI_Request requests[2 * TALK_MESSAGES];
    struct item *items[2 * TALK_MESSAGES];
    MPI_Status status;
    int n;

    while ((n = list_open(t, requests, items)) > 0) {
        int which = MPI_UNDEFINED, flag = 1;
        int error = test ? MPI_Testany(n, requests, &which, &flag, &status)
                         : MPI_Waitany(n, requests, &which, &status);
        if (!flag || which == MPI_UNDEFINED)
            process_pause(program_draw(&t->program->own, 50000));
        else
            take_results(t, 1, &which, error, requests, &status, items);
    }
}

static void check_received(struct talk *t, struct item *it)
{
    int n_bytes = -1, wanted = it->n_room >= 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    struct message *m = claim(t, it->status.MPI_SOURCE, it->status.MPI_TAG);

    if (class_of(it->error) != wanted)
        world_fail("round %u: a receive from %d, tag %d ends with error %d", t->round, it->source,
                   it->tag, it->error);
    if (!m || (it->source != MPI_ANY_SOURCE && m->from != it->source) ||
        (it->tag != MPI_ANY_TAG && m->tag != it->tag))
        world_fail("round %u: a receive from %d, tag %d got a message from %d, tag %d", t->round,
                   it->source, it->tag, it->status.MPI_SOURCE, it->status.MPI_TAG);
    m->claimed = true;
    CHECK(MPI_Get_count(&it->status, MPI_BYTE, &n_bytes));
    int expected = it->n_room >= 0 ? it->n_room : m->n_bytes;
    if (n_bytes != expected)
        world_fail("round %u: %d bytes from %d, tag %d instead of %d", t->round, n_bytes, m->from,
                   m->tag, expected);
    const char *wrong = layout_differs(&it->buffer, n_bytes, m->salt);
    if (wrong)
        world_fail("round %u: message of %d bytes from %d, tag %d: %s", t->round, n_bytes, m->from,
                   m->tag, wrong);
}

/* For the report on a failure: what is still open, the first of it by name. */
static void say_open(const struct talk *t)
{
    const struct item *first = NULL;
    int n = 0;

    for (int i = 0; i < t->n_items; i++) {
        if (t->items[i].done)
            continue;
        first = first ? first : &t->items[i];
        n++;
    }
    if (!first)
        world_say("round %u on %llx: has all", t->round, (unsigned long long)t->meeting->id);
    else if (first->sent)
        world_say("round %u on %llx (asks %d, order %d): waits for %d requests, a send of %d bytes "
                  "to %d, tag %d",
                  t->round, (unsigned long long)t->meeting->id, t->asks, t->order, n,
                  first->sent->n_bytes, first->sent->to, first->sent->tag);
    else
        world_say("round %u on %llx (asks %d, order %d): waits for %d requests, a receive from %d, "
                  "tag %d",
                  t->round, (unsigned long long)t->meeting->id, t->asks, t->order, n, first->source,
                  first->tag);
}

void talk_end(struct talk *t)
{
    say_open(t);
    switch (program_draw(&t->program->own, 7)) {
    case 0:
        wait_singly(t);
        break;
    case 1:
        wait_some(t, false);
        break;
    case 2:
        wait_some(t, true);
        break;
    case 3:
        wait_any(t, false);
        break;
    case 4:
        wait_any(t, true);
        break;
    default:
        wait_all(t, program_draw(&t->program->own, 2));
        break;
    }
    for (int i = 0; i < t->n_items; i++) {
        if (!t->items[i].sent)
            check_received(t, &t->items[i]);
        else if (t->items[i].error)
            world_fail("round %u: a send ends with error %d", t->round, t->items[i].error);
        layout_free(&t->items[i].buffer);
    }
    for (int i = 0; i < t->n_messages; i++)
        if (t->messages[i].to == t->meeting->rank && !t->messages[i].claimed)
            world_fail("round %u: no receive had message %d", t->round, i);
    if (t->quiet)
        CHECK(MPI_Barrier(t->meeting->comm));
    sim_free(t);
}

/* ---- the round ---- */

/* The receives in another order: which one gets which message does not depend on it. */
static int shuffle_receives(struct talk *t, const struct message **ret_in)
{
    int n = 0;

    for (int i = 0; i < t->n_messages; i++)
        if (t->messages[i].to == t->meeting->rank)
            ret_in[n++] = &t->messages[i];
    for (int i = n - 1; i > 0 && n > 0; i--) {
        int j = (int)program_draw(&t->program->own, (uint64_t)i + 1);
        const struct message *m = ret_in[i];
        ret_in[i] = ret_in[j];
        ret_in[j] = m;
    }
    return n;
}

static void start_all(struct talk *t)
{
    const struct message *in[TALK_MESSAGES], *out[TALK_MESSAGES];
    int n_in = shuffle_receives(t, in), n_out = 0, i = 0, k = 0;

    for (int m = 0; m < t->n_messages; m++)
        if (t->messages[m].from == t->meeting->rank)
            out[n_out++] = &t->messages[m];
    if (t->order == RECEIVE_FIRST) {
        /* The last of each in one call, which waits for both: nobody may have waited before. */
        bool both = n_out > 0 && n_in > 0 && !t->ready && program_draw(&t->program->own, 2);
        while (i < n_in - both)
            receive_message(t, in[i++], false);
        if (t->ready)
            CHECK(MPI_Barrier(t->meeting->comm));
        while (k < n_out - both)
            send_message(t, out[k++], !both);
        if (both)
            send_and_receive(t, out[k], in[i]);
    } else if (t->order == SEND_FIRST) {
        while (k < n_out)
            send_message(t, out[k++], false);
        while (i < n_in)
            receive_message(t, in[i++], true);
    } else {
        while (i < n_in || k < n_out) {
            if (k == n_out || (i < n_in && program_draw(&t->program->own, 2)))
                receive_message(t, in[i++], false);
            else
                send_message(t, out[k++], false);
        }
    }
}

struct talk *talk_begin(struct program *p, struct meeting *m, bool quiet)
{
    struct rand plan = program_plan(m);
    struct talk *t = sim_calloc(1, sizeof *t);

    if (!t)
        world_fail("no memory for a round");
    t->program = p;
    t->meeting = m;
    t->round = m->n_rounds;
    t->quiet = quiet;
    t->asks =
        quiet ? (program_draw(&plan, 2) ? ASKS_ANY : ASKS_KEY) : (enum asks)program_draw(&plan, 3);
    t->order = (enum order)program_draw(&plan, 3);
    t->ready = t->order == RECEIVE_FIRST && program_draw(&plan, 3) == 0;
    if (!quiet && program_draw(&plan, 12) == 0)
        draw_flood(t, &plan);
    else
        draw_messages(t, &plan);
    for (int i = 0; i < t->n_messages; i++)
        t->messages[i].salt =
            (uint32_t)hash_mix64(m->id + ((uint64_t)t->round << 32) + (uint64_t)i);
    if (quiet)
        CHECK(MPI_Barrier(m->comm));
    if (program_draw(&p->own, 8) == 0)
        cancel_one(t);
    start_all(t);
    return t;
}
