/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/dynamic/connections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/list.h"
#include "base/log.h"
#include "daemon/jobs/placement.h"
#include "proto/attach.h"

/* A node that has claimed the connection once. */
struct connection_node {
    uint32_t node_id;
    bool uses, held; /* now; ever */
};

struct connection_side {
    uint64_t job;
    struct connection_node *nodes;
    uint32_t n_nodes, n_using;
};

struct connection {
    struct list link;
    uint64_t number; /* of side 0 */
    struct connection_side sides[2];
    bool claimed; /* by a node of each side, once */
    /* Who wait to hear that both have; request 0: nobody. */
    struct {
        uint32_t node_id, rank, request, peer_rank;
    } ends[2];
};

struct connections {
    const struct connections_ops *ops;
    void *ctx;
    struct list all;
};

struct connections *connections_new(const struct connections_ops *ops, void *ctx)
{
    struct connections *all = calloc(1, sizeof *all);

    if (!all)
        return NULL;
    all->ops = ops;
    all->ctx = ctx;
    list_init(&all->all);
    return all;
}

static void connection_free(struct connection *c)
{
    list_remove(&c->link);
    free(c->sides[0].nodes);
    free(c->sides[1].nodes);
    free(c);
}

void connections_free(struct connections *all)
{
    if (!all)
        return;
    list_foreach_safe(it, &all->all)
        connection_free(list_entry(it, struct connection, link));
    free(all);
}

static struct connection *connections_find(const struct connections *all, uint64_t number)
{
    list_foreach(it, &all->all) {
        struct connection *c = list_entry(it, struct connection, link);
        if (c->number == (number & ~UINT64_C(1)))
            return c;
    }
    return NULL;
}

uint64_t connections_make(struct connections *all, uint64_t job, uint64_t other)
{
    struct connection *c = calloc(1, sizeof *c);
    uint64_t number = 0;

    while (c && (number < 2 || connections_find(all, number)))
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
            free(c);
            c = NULL;
        }
    if (!c)
        return 0;
    list_init(&c->link);
    c->number = number & ~UINT64_C(1);
    c->sides[0].job = job;
    c->sides[1].job = other;
    list_append(&all->all, &c->link);
    return c->number;
}

/* ---- to nodes ---- */

static void connection_tell(struct connections *all, const struct connection *c, int side,
                            uint32_t node_id, uint32_t rank, uint32_t request, int64_t peer_rank)
{
    const struct placement *places = all->ops->places(all->ctx, c->sides[!side].job);
    Motet__Connect msg = MOTET__CONNECT__INIT;

    msg.job = c->sides[side].job;
    msg.number = c->number + (uint64_t)side;
    msg.ok = places != NULL;
    msg.error = places ? NULL : (char *)"the other job is over";
    msg.has_peer_job = true;
    msg.peer_job = c->sides[!side].job;
    msg.n_placements = places ? places->n_placements : 0;
    msg.placements = places ? places->placements : NULL;
    msg.has_request = request != 0;
    msg.request = request;
    msg.has_rank = request != 0;
    msg.rank = rank;
    msg.has_peer_rank = peer_rank >= 0;
    msg.peer_rank = (uint32_t)peer_rank;
    all->ops->to_node(all->ctx, node_id, MOTET__FRAME_TYPE__CONNECT, &msg.base);
}

static void connections_refuse(struct connections *all, uint32_t node_id, uint64_t job,
                               uint64_t number, const char *error, uint32_t rank, uint32_t request)
{
    Motet__Connect msg = MOTET__CONNECT__INIT;

    msg.job = job;
    msg.number = number;
    msg.ok = false;
    msg.error = (char *)error;
    msg.has_request = request != 0;
    msg.request = request;
    msg.has_rank = request != 0;
    msg.rank = rank;
    all->ops->to_node(all->ctx, node_id, MOTET__FRAME_TYPE__CONNECT, &msg.base);
}

/* All nodes of a side that know the connection. */
static void connection_tell_over(struct connections *all, const struct connection *c, int side,
                                 bool failed, int32_t code, const char *text)
{
    Motet__PeerOver msg = MOTET__PEER_OVER__INIT;

    msg.job = c->sides[side].job;
    msg.number = c->number + (uint64_t)side;
    msg.failed = failed;
    msg.has_code = failed;
    msg.code = code;
    msg.text = (char *)text;
    for (uint32_t i = 0; i < c->sides[side].n_nodes; i++)
        all->ops->to_node(all->ctx, c->sides[side].nodes[i].node_id, MOTET__FRAME_TYPE__PEER_OVER,
                          &msg.base);
}

void connections_answer_spawn(struct connections *all, uint32_t node_id, uint64_t job,
                              uint32_t rank, uint32_t request, uint64_t number, const char *error)
{
    const struct connection *c = number ? connections_find(all, number) : NULL;

    if (c && !error)
        connection_tell(all, c, (int)(number & 1), node_id, rank, request, -1);
    else
        connections_refuse(all, node_id, job, number, error, rank, request);
}

/* A rank that has connected or accepted is to hear of it, by the number of packets to its job: its
 * node is told, and when both nodes have claimed the connection, both ranks. */
static void connections_tell_met(struct connections *all, uint64_t number,
                                 const struct port_end *end, uint32_t peer_rank)
{
    struct connection *c = connections_find(all, number);
    int side = (int)(number & 1);

    if (!c)
        return;
    c->ends[side].node_id = end->node_id;
    c->ends[side].rank = end->rank;
    c->ends[side].request = end->request;
    c->ends[side].peer_rank = peer_rank;
    connection_tell(all, c, side, end->node_id, end->rank, end->request, peer_rank);
}

/* Both nodes have made the other's rank a peer: now the two may send. */
static void connection_say_met(struct connections *all, struct connection *c)
{
    for (int side = 0; side < 2; side++) {
        Motet__Answered msg = MOTET__ANSWERED__INIT;
        if (c->ends[side].request == 0)
            continue;
        msg.job = c->sides[side].job;
        msg.rank = c->ends[side].rank;
        msg.request = c->ends[side].request;
        msg.has_number = msg.has_peer_rank = true;
        msg.number = c->number + (uint64_t)side;
        msg.peer_rank = c->ends[side].peer_rank;
        c->ends[side].request = 0;
        all->ops->to_node(all->ctx, c->ends[side].node_id, MOTET__FRAME_TYPE__ANSWERED, &msg.base);
    }
}

/* ---- ports ---- */

static void connections_answer(void *ctx, const struct port_end *to, const Motet__Answered *answer)
{
    struct connections *all = ctx;
    Motet__Answered msg = *answer;

    msg.job = to->job;
    msg.rank = to->rank;
    msg.request = to->request;
    all->ops->to_node(all->ctx, to->node_id, MOTET__FRAME_TYPE__ANSWERED, &msg.base);
}

static void connections_meet(void *ctx, const struct port_end *acceptor,
                             const struct port_end *connector)
{
    struct connections *all = ctx;
    bool one_job = acceptor->job == connector->job;
    uint64_t number = one_job ? 0 : connections_make(all, acceptor->job, connector->job);
    Motet__Answered msg = MOTET__ANSWERED__INIT;

    if (number) {
        connections_tell_met(all, number, acceptor, connector->rank);
        connections_tell_met(all, connections_other(number), connector, acceptor->rank);
        return;
    }
    if (!one_job || getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
        msg.error = ATTACH_E_OTHER;
        msg.text = (char *)"no memory or no random numbers for a connection";
    }
    msg.has_number = msg.has_peer_rank = msg.error == 0;
    msg.number = number;
    msg.peer_rank = connector->rank;
    connections_answer(all, acceptor, &msg);
    msg.peer_rank = acceptor->rank;
    connections_answer(all, connector, &msg);
}

const struct ports_ops connections_ports_ops = {.answer = connections_answer,
                                                .meet = connections_meet};

/* ---- from nodes ---- */

static struct connection_node *side_node(struct connection_side *s, uint32_t node_id)
{
    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (s->nodes[i].node_id == node_id)
            return &s->nodes[i];
    struct connection_node *grown = realloc(s->nodes, (s->n_nodes + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    s->nodes = grown;
    s->nodes[s->n_nodes] = (struct connection_node){.node_id = node_id};
    return &s->nodes[s->n_nodes++];
}

static bool places_have(const struct placement *places, uint32_t node_id)
{
    for (size_t i = 0; places && i < places->n_placements; i++)
        if (places->placements[i]->node_id == node_id)
            return true;
    return false;
}

void connections_on_claim(struct connections *all, uint32_t node_id, const Motet__Claim *msg)
{
    struct connection *c = connections_find(all, msg->number);
    int side = (int)(msg->number & 1);

    if (!c || c->sides[side].job != msg->job ||
        !places_have(all->ops->places(all->ctx, msg->job), node_id)) {
        if (msg->held)
            connections_refuse(all, node_id, msg->job, msg->number,
                               "this job has no such connection, or it is closed", 0, 0);
        return;
    }
    struct connection_side *s = &c->sides[side];
    struct connection_node *n = side_node(s, node_id);
    if (!n) {
        connections_refuse(all, node_id, msg->job, msg->number, "out of memory", 0, 0);
        return;
    }
    if (!msg->held && !n->held)
        connection_tell_over(all, c, !side, true, 1, "its end of the connection could not be made");
    n->held |= msg->held;
    s->n_using += (uint32_t)msg->held - (uint32_t)n->uses;
    n->uses = msg->held;
    c->claimed |= c->sides[0].n_nodes > 0 && c->sides[1].n_nodes > 0;
    if (c->sides[0].n_using > 0 && c->sides[1].n_using > 0)
        connection_say_met(all, c);
    if (msg->held) {
        connection_tell(all, c, side, node_id, 0, 0, -1);
    } else if (c->claimed && c->sides[0].n_using == 0 && c->sides[1].n_using == 0) {
        connection_tell_over(all, c, 0, false, 0, NULL);
        connection_tell_over(all, c, 1, false, 0, NULL);
        connection_free(c);
    }
}

bool connections_is_used(const struct connections *all, uint64_t number)
{
    const struct connection *c = connections_find(all, number);

    return c && c->sides[!(number & 1)].n_using > 0;
}

/* ---- the ends of jobs ---- */

void connections_on_failing(struct connections *all, uint64_t job, int32_t code, const char *text)
{
    list_foreach_safe(it, &all->all) {
        struct connection *c = list_entry(it, struct connection, link);
        for (int side = 0; side < 2; side++)
            if (c->sides[side].job == job)
                connection_tell_over(all, c, !side, true, code, text);
    }
}

void connections_on_over(struct connections *all, uint64_t job, bool failed, int32_t code,
                         const char *text)
{
    list_foreach_safe(it, &all->all) {
        struct connection *c = list_entry(it, struct connection, link);
        if (c->sides[0].job != job && c->sides[1].job != job)
            continue;
        connection_tell_over(all, c, c->sides[0].job == job ? 1 : 0, failed, code, text);
        connection_free(c);
    }
}
