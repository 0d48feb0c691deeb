/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/transport/foreign.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "client/client.h"
#include "client/transport/transport.h"
#include "proto/frame.h"

/* A frame comes in one piece; a daemon that stops in the middle of one is as good as gone. */
#define FOREIGN_FRAME_NS (10 * CLOCK_NS_PER_S)

static struct foreign_state foreign_first;
struct foreign_state *foreign_here = &foreign_first;

static void foreign_part_init(void)
{
    list_init(&foreign_here->requests);
}

static void foreign_part_deinit(void)
{
    for (uint32_t i = 0; i < foreign_here->n; i++)
        free(foreign_here->table[i]);
    free(foreign_here->table);
}
CLIENT_PART(foreign_here, foreign_first, .init = foreign_part_init, .deinit = foreign_part_deinit);

uint32_t foreign_n_peers(void)
{
    return transport_here->n_world +
           (transport_here->base ? transport_here->layout.shape.n_foreign : 0);
}

/* ---- the table ---- */

struct foreign *foreign_of(uint32_t peer)
{
    for (uint32_t i = 0; i < foreign_here->n; i++) {
        struct foreign *f = foreign_here->table[i];
        if (peer - f->first < f->n)
            return f;
    }
    return NULL;
}

struct foreign *foreign_with_job(uint64_t job)
{
    for (uint32_t i = 0; i < foreign_here->n; i++)
        if (foreign_here->table[i]->job == job && foreign_here->table[i]->refs > 0)
            return foreign_here->table[i];
    return NULL;
}

/* What is kept of this peer is of its present use from now on. */
static void foreign_renew(uint32_t peer, uint32_t stamp)
{
    uint8_t *kept = &foreign_here->stamps[peer - transport_here->n_world];

    if (*kept == stamp)
        return;
    *kept = (uint8_t)stamp;
    if (foreign_here->forget)
        foreign_here->forget(peer, 1);
}

uint32_t foreign_source(uint32_t stamped)
{
    uint32_t peer = stamped & ((1u << SEGMENT_STAMP_SHIFT) - 1),
             stamp = stamped >> SEGMENT_STAMP_SHIFT;

    if (peer < transport_here->n_world)
        return stamp == 0 ? peer : UINT32_MAX;
    if (peer >= foreign_n_peers() || transport_world(peer)->local != stamp)
        return UINT32_MAX;
    foreign_renew(peer, stamp);
    return peer;
}

/* Earlier connections whose peers have these numbers now are over. */
static void foreign_replace(uint64_t number, uint32_t first, uint32_t n)
{
    for (uint32_t peer = first; peer < first + n; peer++)
        foreign_renew(peer, transport_world(peer)->local);
    for (uint32_t i = foreign_here->n; i-- > 0;) {
        struct foreign *f = foreign_here->table[i];
        if (f->number == number || f->first >= first + n || first >= f->first + f->n)
            continue;
        foreign_here->table[i] = foreign_here->table[--foreign_here->n];
        free(f);
    }
}

static struct foreign *foreign_enter(const struct foreign *a)
{
    if (a->first < transport_here->n_world || a->n > foreign_n_peers() ||
        a->first > foreign_n_peers() - a->n)
        return NULL;
    foreign_replace(a->number, a->first, a->n);
    for (uint32_t i = 0; i < foreign_here->n; i++)
        if (foreign_here->table[i]->number == a->number)
            return foreign_here->table[i];
    struct foreign **grown =
        realloc(foreign_here->table, (foreign_here->n + 1) * sizeof(struct foreign *));
    if (grown)
        foreign_here->table = grown;
    struct foreign *f = grown ? malloc(sizeof *f) : NULL;
    if (!f)
        return NULL;
    *f = *a;
    foreign_here->table[foreign_here->n++] = f;
    return f;
}

static int foreign_send(uint16_t type, const void *body, uint32_t len)
{
    if (transport_here->sock < 0)
        return -ENOTCONN;
    return frame_send(transport_here->sock, type, body, len, clock_now_ns() + FOREIGN_FRAME_NS);
}

static void foreign_release(uint64_t number)
{
    struct attach_claim body = {.connection = number};

    foreign_send(ATTACH_RELEASE, &body, sizeof body);
}

void foreign_ref(struct foreign *f)
{
    if (f->refs++ == 0)
        foreign_here->n_alive++;
}

void foreign_unref(struct foreign *f)
{
    if (--f->refs > 0)
        return;
    foreign_here->n_alive--;
    foreign_release(f->number);
}

/* ---- questions and answers ---- */

static void foreign_ask(struct foreign_request *q, uint16_t answer, uint64_t id)
{
    *q = (struct foreign_request){.answer = answer, .id = id};
    list_init(&q->link);
    list_append(&foreign_here->requests, &q->link);
    foreign_here->n_waiting++;
}

void foreign_request_end(struct foreign_request *q)
{
    if (list_empty(&q->link))
        return;
    list_remove(&q->link);
    list_init(&q->link);
    foreign_here->n_waiting--;
}

int foreign_claim(uint64_t number, struct foreign_request *q)
{
    struct attach_claim body = {.connection = number};

    foreign_ask(q, ATTACH_CLAIMED, number);
    int rc = foreign_send(ATTACH_CLAIM, &body, sizeof body);
    if (rc < 0)
        foreign_request_end(q);
    return rc;
}

static struct foreign *foreign_take_over(const struct foreign *a)
{
    struct foreign *f = foreign_enter(a);

    if (f)
        foreign_ref(f);
    else
        foreign_release(a->number);
    return f;
}

struct foreign *foreign_claimed(const struct foreign_request *q)
{
    const struct attach_claimed *a = &q->claimed;

    return foreign_take_over(&(const struct foreign){
        .number = a->connection, .job = a->job, .first = a->first, .n = a->n});
}

struct foreign *foreign_spawned(const struct foreign_request *q)
{
    const struct attach_spawned *a = &q->spawned;

    return foreign_take_over(&(const struct foreign){
        .number = a->connection, .job = a->job, .first = a->first, .n = a->n});
}

int foreign_spawn(void *body, uint32_t len, struct foreign_request *q)
{
    struct attach_spawn *head = body;

    if (++foreign_here->last_request == 0)
        foreign_here->last_request = 1;
    head->request = foreign_here->last_request;
    foreign_ask(q, ATTACH_SPAWNED, head->request);
    int rc = foreign_send(ATTACH_SPAWN, body, len);
    if (rc < 0)
        foreign_request_end(q);
    return rc;
}

int foreign_ask_daemon(struct attach_ask *body, struct foreign_request *q)
{
    if (++foreign_here->last_request == 0)
        foreign_here->last_request = 1;
    body->request = foreign_here->last_request;
    foreign_ask(q, ATTACH_SPAWNED, body->request);
    int rc = foreign_send(ATTACH_ASK, body, sizeof *body);
    if (rc < 0)
        foreign_request_end(q);
    return rc;
}

void foreign_again(struct foreign_request *q)
{
    if (!q->done)
        return;
    q->done = false;
    list_append(&foreign_here->requests, &q->link);
    foreign_here->n_waiting++;
}

int foreign_spawn_done(struct foreign_request *q)
{
    uint32_t request = (uint32_t)q->id;

    foreign_request_end(q);
    return foreign_send(ATTACH_SPAWN_DONE, &request, sizeof request);
}

/* Gives an answer to those who wait for it: several threads may claim one connection. */
static void foreign_answer(uint16_t type, const void *body)
{
    const struct attach_claimed *claimed = body;
    const struct attach_spawned *spawned = body;
    uint64_t id = type == ATTACH_CLAIMED ? claimed->connection : spawned->request;

    list_foreach_safe(it, &foreign_here->requests) {
        struct foreign_request *q = list_entry(it, struct foreign_request, link);
        if (q->answer != type || q->id != id)
            continue;
        if (type == ATTACH_CLAIMED)
            q->claimed = *claimed;
        else
            q->spawned = *spawned;
        q->claimed.text[sizeof q->claimed.text - 1] = '\0';
        q->spawned.text[sizeof q->spawned.text - 1] = '\0';
        q->spawned.port[sizeof q->spawned.port - 1] = '\0';
        q->done = true;
        foreign_request_end(q);
    }
}

/* One frame. 0, or negative errno. */
static int foreign_take(void)
{
    union {
        struct attach_claimed claimed;
        struct attach_spawned spawned;
    } body;
    struct frame_header header;
    uint64_t deadline_ns = clock_now_ns() + FOREIGN_FRAME_NS;
    int rc = frame_recv_header(transport_here->sock, &header, deadline_ns);

    if (rc < 0)
        return rc;
    if (!(header.type == ATTACH_CLAIMED && header.len == sizeof body.claimed) &&
        !(header.type == ATTACH_SPAWNED && header.len == sizeof body.spawned))
        return -EPROTO;
    rc = fd_read_full(transport_here->sock, &body, header.len, deadline_ns);
    if (rc < 0)
        return rc;
    foreign_answer(header.type, &body);
    return 0;
}

int foreign_poll(void)
{
    struct pollfd p = {.fd = transport_here->sock, .events = POLLIN};
    int n = 0;

    /* An error is the daemon's end, which ends every wait (progress_sleep). */
    while (foreign_here->n_waiting > 0 && p.fd >= 0 && poll(&p, 1, 0) > 0 && (p.revents & POLLIN) &&
           foreign_take() == 0)
        n++;
    return n;
}
