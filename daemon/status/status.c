/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/status/status.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "daemon/cluster/listener.h"
#include "daemon/cluster/mail.h"
#include "daemon/jobs/quota.h"
#include "daemon/routing/topology.h"
#include "daemon/status/status_answer.h"
#include "daemon/status/status_node.h"
#include "daemon/status/status_view.h"
#include "proto/control.pb-c.h"

#define STATUS_VERSION 1
#define MAX_LINE_BYTES 16384u
/* A client with so much that it has not taken is not answered further; what the answers of one user
 * may hold is all of it. */
#define HIGH_OUTPUT_BYTES  (1u << 20)
#define MAX_OUTPUT_BYTES   (64u << 20)
#define ROWS_PER_REPLY     1000u
#define MAX_CLIENT_QUERIES 8u
#define ANSWER_LIMIT_S     2
/* Users that are answered in one turn of the loop. */
#define TURN_USERS 64u

struct status_client {
    struct list link;
    struct status *status;
    struct bufferevent *bev;
    uid_t uid;
    unsigned n_queries; /* unanswered */
    bool ended;         /* the client sent its last line */
    struct list ready;  /* in status.ready while a line of it can be answered */
};

/* A request that waits for other nodes. */
struct query {
    struct list link;
    struct status *status;
    struct status_client *client;
    uint64_t id;
    uid_t uid;
    json_t *client_id;
    json_t *rows;
    json_t *errors;    /* of nodes that had to be asked: objects with node, code and message */
    uint32_t *pending; /* node ids */
    size_t n_pending;
    bool is_set, of_one_node, truncated;
    struct event *timer;
};

struct status {
    struct status_node *node;
    struct listener *listener;
    struct event *turn;
    struct list clients, queries, ready;
    bool in_turn;
    uint64_t next_id;
};

/* ---- replies ---- */

static void client_run(struct status_client *c);

static void client_free(struct status_client *c)
{
    list_remove(&c->link);
    if (!list_empty(&c->ready))
        list_remove(&c->ready);
    quota_give(c->status->node->quota, QUOTA_STATUS, c->uid, 1);
    bufferevent_free(c->bev);
    free(c);
}

/* What the user of this client has been answered and has not taken. */
static size_t client_output_of_user(const struct status_client *c)
{
    size_t n = 0;

    list_foreach(it, &c->status->clients) {
        const struct status_client *other = list_entry(it, struct status_client, link);
        if (other->uid == c->uid)
            n += evbuffer_get_length(bufferevent_get_output(other->bev));
    }
    return n;
}

/* Writes one reply line. Takes `reply`. */
static void client_send(struct status_client *c, json_t *reply)
{
    char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;
    struct evbuffer *out = bufferevent_get_output(c->bev);

    json_decref(reply);
    if (text && client_output_of_user(c) + strlen(text) < MAX_OUTPUT_BYTES) {
        evbuffer_add(out, text, strlen(text));
        evbuffer_add(out, "\n", 1);
    }
    free(text);
}

static void client_send_error(struct status_client *c, json_t *id, const struct status_refusal *why)
{
    client_send(c, json_pack("{s:i, s:O, s:b, s:{s:s, s:s}}", "version", STATUS_VERSION, "id", id,
                             "ok", 0, "error", "code", why->code, "message", why->text));
}

struct row_key {
    json_t *row;
    const char *job, *node;
    json_int_t rank;
};

static const char *row_text(const json_t *row, const char *key)
{
    const char *s = json_string_value(json_object_get(row, key));
    return s ? s : "";
}

static int row_compare(const void *pa, const void *pb)
{
    const struct row_key *a = pa, *b = pb;
    int order = strcmp(a->job, b->job);

    if (order == 0 && a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return order ? order : strcmp(a->node, b->node);
}

/* Rows of several nodes in the order of job, rank, node. Returns the sorted array; takes `rows`. */
static json_t *sort_rows(json_t *rows)
{
    size_t n = json_array_size(rows);
    struct row_key *keys = calloc(n + 1, sizeof *keys);
    json_t *sorted = json_array();

    if (!keys || !sorted) {
        free(keys);
        json_decref(sorted);
        return rows;
    }
    for (size_t i = 0; i < n; i++) {
        json_t *row = json_array_get(rows, i);
        json_t *rank = json_object_get(row, "rank");
        keys[i] = (struct row_key){row, row_text(row, "job"), row_text(row, "node"),
                                   rank ? json_integer_value(rank) : -1};
    }
    qsort(keys, n, sizeof *keys, row_compare);
    for (size_t i = 0; i < n; i++)
        json_array_append(sorted, keys[i].row);
    free(keys);
    json_decref(rows);
    return sorted;
}

static void client_send_rows(struct status_client *c, json_t *id, json_t *rows, json_t *errors,
                             bool truncated)
{
    json_t *reply = json_pack("{s:i, s:O, s:b, s:o}", "version", STATUS_VERSION, "id", id, "ok", 1,
                              "data", rows);

    if (reply && json_array_size(errors) > 0)
        json_object_set(reply, "errors", errors);
    if (reply && truncated)
        json_object_set_new(reply, "truncated", json_true());
    client_send(c, reply);
}

/* ---- questions to other nodes ---- */

static void query_free(struct query *q)
{
    list_remove(&q->link);
    quota_give(q->status->node->quota, QUOTA_REQUESTS, q->uid, 1);
    if (q->timer)
        event_free(q->timer);
    json_decref(q->client_id);
    json_decref(q->rows);
    json_decref(q->errors);
    free(q->pending);
    free(q);
}

static void query_add_error(struct query *q, uint32_t node_id, const char *code,
                            const char *message)
{
    const struct topology_node *t = topology_find(q->status->node->topology, node_id);

    json_array_append_new(q->errors, json_pack("{s:s, s:s, s:s}", "node", t ? t->state->node : "?",
                                               "code", code, "message", message));
}

/* The one node that was asked gave nothing but a reason: that is the answer. */
static void send_node_error(struct status_client *c, json_t *id, json_t *error)
{
    struct status_refusal why = {.code = row_text(error, "code")};

    snprintf(why.text, sizeof why.text, "node %.55s: %.130s", row_text(error, "node"),
             row_text(error, "message"));
    client_send_error(c, id, &why);
}

static void query_finish(struct query *q)
{
    struct status_client *c = q->client;

    if (!c) {
        query_free(q);
        return;
    }
    for (size_t i = 0; i < q->n_pending; i++)
        query_add_error(q, q->pending[i], "no_answer", "no answer within 2 s");
    if (json_array_size(q->errors) > 0 && json_array_size(q->rows) == 0 &&
        (q->is_set || q->of_one_node)) {
        send_node_error(c, q->client_id, json_array_get(q->errors, 0));
    } else if (q->is_set && json_array_size(q->rows) == 0) {
        struct status_refusal why;
        status_refuse(&why, "not_found", "no such job or channel");
        client_send_error(c, q->client_id, &why);
    } else {
        json_t *rows = q->rows;
        q->rows = NULL;
        client_send_rows(c, q->client_id, sort_rows(rows), q->errors, q->truncated);
    }
    c->n_queries--;
    query_free(q);
    client_run(c);
}

static void on_query_timer(evutil_socket_t fd, short what, void *ctx)
{
    (void)fd, (void)what;
    query_finish(ctx);
}

/* True if this node is to be asked. */
static bool query_wants(const struct status_node *node, const struct topology_node *t,
                        const struct status_request *request)
{
    if (t->node_id == node->id)
        return false;
    if (request->node)
        return strcmp(t->state->node, request->node) == 0;
    if (t->lost)
        return false; /* with all that was on it */
    return request->set ? request->has_job : status_view_of_cluster(request->get);
}

/* Asks the others. Returns how many; the query ends by their answers or by time. */
static size_t query_send(struct query *q, const struct status_request *request, const char *line)
{
    struct status_node *node = q->status->node;
    Motet__StatusQuery msg = MOTET__STATUS_QUERY__INIT;

    msg.id = q->id;
    msg.uid = (uint32_t)request->uid;
    msg.request = (char *)line;
    for (struct topology_node *t = topology_first(node->topology); t; t = t->hh.next) {
        if (!query_wants(node, t, request))
            continue;
        int rc = t->reachable
                     ? mail_send_msg(node->mail, t->node_id, MOTET__FRAME_TYPE__STATUS_QUERY,
                                     &msg.base, clock_now_ns())
                     : -EHOSTUNREACH;
        if (rc == 0)
            q->pending[q->n_pending++] = t->node_id;
        else
            query_add_error(q, t->node_id, rc == -EHOSTUNREACH ? "unreachable" : "internal",
                            rc == -EHOSTUNREACH ? "it cannot be reached" : strerror(-rc));
    }
    return q->n_pending;
}

/* NULL with the reason. */
static struct query *query_new(struct status_client *c, json_t *id, struct status_refusal *ret_why)
{
    struct status *s = c->status;
    struct timeval limit = {.tv_sec = ANSWER_LIMIT_S};
    char why[QUOTA_WHY_BYTES];
    struct query *q = calloc(1, sizeof *q);

    if (!q) {
        status_refuse(ret_why, "internal", "out of memory");
        return NULL;
    }
    if (quota_take(s->node->quota, QUOTA_REQUESTS, c->uid, 1, clock_now_ns(), why) != 0) {
        status_refuse(ret_why, "too_busy", why);
        free(q);
        return NULL;
    }
    list_init(&q->link);
    list_append(&s->queries, &q->link);
    q->uid = c->uid;
    q->status = s;
    q->id = s->next_id++;
    q->client_id = json_incref(id);
    q->pending = calloc(topology_count(s->node->topology) + 1, sizeof *q->pending);
    q->errors = json_array();
    q->timer = evtimer_new(s->node->base, on_query_timer, q);
    if (!q->pending || !q->errors || !q->timer || evtimer_add(q->timer, &limit) < 0) {
        status_refuse(ret_why, "internal", "out of memory");
        query_free(q);
        return NULL;
    }
    q->client = c;
    c->n_queries++;
    return q;
}

static void client_on_line(struct status_client *c, const char *line)
{
    struct status *s = c->status;
    struct status_node *node = s->node;
    struct status_request request = {0};
    struct status_refusal why = {0};
    json_error_t error;
    json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    json_t *id = json && json_is_object(json) && json_object_get(json, "id")
                     ? json_incref(json_object_get(json, "id"))
                     : json_null();

    if (!json)
        status_refuse(&why, "bad_request", error.text);
    else
        status_request_parse(json, c->uid, &request, &why);
    if (why.code) {
        client_send_error(c, id, &why);
        json_decref(json);
        json_decref(id);
        return;
    }
    if (request.node && !topology_find_name(node->topology, request.node))
        status_refuse(&why, "not_found", "no such node");
    bool here = !request.node || strcmp(request.node, node->config->name) == 0;
    bool truncated = false;
    json_t *rows = why.code ? NULL
                   : here   ? status_answer(node, &request, &truncated, &why)
                            : json_array();
    struct query *q = rows ? query_new(c, id, &why) : NULL;
    if (!q) {
        if (!why.code)
            status_refuse(&why, "internal", "out of memory");
        client_send_error(c, id, &why);
        json_decref(rows);
    } else {
        q->rows = rows;
        q->is_set = request.set != NULL;
        q->of_one_node = request.node != NULL;
        q->truncated = truncated;
        if (query_send(q, &request, line) == 0)
            query_finish(q);
    }
    json_decref(json);
    json_decref(id);
}

/* The codes that the schema knows. */
static const char *status_code(const char *code)
{
    static const char *const known[] = {"bad_request", "not_found", "denied", "too_busy"};

    for (size_t i = 0; code && i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], code) == 0)
            return known[i];
    return "internal";
}

void status_on_reply(struct status *s, uint32_t src_node, const uint8_t *body, uint32_t len)
{
    Motet__StatusReply *msg = motet__status_reply__unpack(NULL, len, body);
    struct query *q = NULL;

    list_foreach(it, &s->queries) {
        if (msg && list_entry(it, struct query, link)->id == msg->id)
            q = list_entry(it, struct query, link);
    }
    size_t at = 0;
    while (q && at < q->n_pending && q->pending[at] != src_node)
        at++;
    if (q && at < q->n_pending) {
        json_t *rows = msg->rows ? json_loads(msg->rows, 0, NULL) : NULL;
        if (rows && json_is_array(rows)) {
            if (json_array_size(q->rows) + json_array_size(rows) <= STATUS_MAX_ROWS)
                json_array_extend(q->rows, rows);
            else
                q->truncated = true;
        }
        json_decref(rows);
        if (msg->error)
            query_add_error(q, src_node, status_code(msg->code), msg->error);
        q->truncated |= msg->has_truncated && msg->truncated;
        if (msg->last) {
            q->pending[at] = q->pending[--q->n_pending];
            if (q->n_pending == 0)
                query_finish(q);
        }
    }
    if (msg)
        motet__status_reply__free_unpacked(msg, NULL);
}

/* A piece of the rows, or why there are none. */
static void reply_mail(struct status_node *node, uint32_t dst, Motet__StatusReply msg, json_t *rows,
                       bool last)
{
    char *text = rows ? json_dumps(rows, JSON_COMPACT) : NULL;

    msg.last = last;
    msg.rows = text;
    int rc =
        mail_send_msg(node->mail, dst, MOTET__FRAME_TYPE__STATUS_REPLY, &msg.base, clock_now_ns());
    if (rc < 0)
        log_warn("status rows for node %08x are lost: %s", dst, strerror(-rc));
    free(text);
}

void status_on_query(struct status *status, uint32_t src_node, const uint8_t *body, uint32_t len)
{
    struct status_node *node = status->node;
    Motet__StatusQuery *msg = motet__status_query__unpack(NULL, len, body);
    struct status_request request = {0};
    struct status_refusal why = {0};
    json_t *json =
        msg && strlen(msg->request) <= MAX_LINE_BYTES ? json_loads(msg->request, 0, NULL) : NULL;
    json_t *rows = NULL;
    Motet__StatusReply reply = MOTET__STATUS_REPLY__INIT;
    bool truncated = false;

    if (json && status_request_parse(json, msg->uid, &request, &why) == 0)
        rows = status_answer(node, &request, &truncated, &why);
    reply.id = msg ? msg->id : 0;
    reply.has_truncated = reply.truncated = truncated;
    if (msg && !rows) {
        reply.code = (char *)(why.code ? why.code : "bad_request");
        reply.error = why.code ? why.text : (char *)"the request is not understood there";
        reply_mail(node, src_node, reply, NULL, true);
    }
    /* In pieces, so that a large board does not make a frame that is too large. */
    size_t n = json_array_size(rows), at = 0;
    while (rows) {
        json_t *piece = json_array();
        size_t end = at + ROWS_PER_REPLY < n ? at + ROWS_PER_REPLY : n;
        for (; piece && at < end; at++)
            json_array_append(piece, json_array_get(rows, at));
        reply_mail(node, src_node, reply, piece, at >= n || !piece);
        bool more = at < n && piece;
        json_decref(piece);
        if (!more)
            break;
    }
    json_decref(rows);
    json_decref(json);
    if (msg)
        motet__status_query__free_unpacked(msg, NULL);
}

/* ---- clients ---- */

static bool client_has_line(const struct status_client *c)
{
    return evbuffer_search_eol(bufferevent_get_input(c->bev), NULL, NULL, EVBUFFER_EOL_CRLF).pos >=
           0;
}

/* Puts the client in line when something of it can be answered; frees one that has sent its last
 * line when everything is answered and written. */
static void client_run(struct status_client *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t n_output = evbuffer_get_length(bufferevent_get_output(c->bev));
    const struct timeval at_once = {0};

    if (!list_empty(&c->ready))
        return;
    bool has_line = client_has_line(c);
    if (has_line && c->n_queries < MAX_CLIENT_QUERIES && n_output < HIGH_OUTPUT_BYTES) {
        list_append(&c->status->ready, &c->ready);
        if (!c->status->in_turn)
            evtimer_add(c->status->turn, &at_once);
        return;
    }
    if (!has_line && evbuffer_get_length(in) >= MAX_LINE_BYTES) {
        log_info("a client of the status socket sent a line of more than %u bytes, closing",
                 MAX_LINE_BYTES);
        bufferevent_disable(c->bev, EV_READ);
        evbuffer_drain(in, evbuffer_get_length(in));
        c->ended = true;
    }
    if (c->ended && !has_line && c->n_queries == 0 && n_output == 0)
        client_free(c);
}

/* Answers one line. */
static void client_serve(struct status_client *c)
{
    char *line = evbuffer_readln(bufferevent_get_input(c->bev), NULL, EVBUFFER_EOL_CRLF);

    if (line && line[0] != '\0')
        client_on_line(c, line);
    free(line);
}

/* A line of each user in a turn of the loop: whoever asks much waits behind himself, and so do his
 * other connections. */
static void status_on_turn(evutil_socket_t fd, short what, void *ctx)
{
    struct status *s = ctx;
    uid_t served[TURN_USERS];
    unsigned n_served = 0;
    const struct timeval at_once = {0};

    (void)fd, (void)what;
    s->in_turn = true;
    list_foreach_safe(it, &s->ready) {
        struct status_client *c = list_entry(it, struct status_client, ready);
        unsigned i = 0;
        while (i < n_served && served[i] != c->uid)
            i++;
        if (i < n_served)
            continue;
        if (n_served == TURN_USERS)
            break;
        served[n_served++] = c->uid;
        client_serve(c); /* still in line, so that an answer at once does not free it */
        list_remove(&c->ready);
        client_run(c);
    }
    s->in_turn = false;
    if (!list_empty(&s->ready))
        evtimer_add(s->turn, &at_once);
}

static void on_read(struct bufferevent *bev, void *ctx)
{
    (void)bev;
    client_run(ctx);
}

static void on_written(struct bufferevent *bev, void *ctx)
{
    (void)bev;
    client_run(ctx);
}

static void on_end(struct bufferevent *bev, short what, void *ctx)
{
    struct status_client *c = ctx;

    (void)bev;
    if (what & BEV_EVENT_EOF) {
        c->ended = true;
        client_run(c);
        return;
    }
    list_foreach(it, &c->status->queries) {
        struct query *q = list_entry(it, struct query, link);
        if (q->client == c)
            q->client = NULL;
    }
    client_free(c);
}

/* One line of why, and the end. */
static void status_refuse_connection(int fd, const char *why)
{
    json_t *reply = json_pack("{s:i, s:n, s:b, s:{s:s, s:s}}", "version", STATUS_VERSION, "id",
                              "ok", 0, "error", "code", "too_busy", "message", why);
    char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;

    if (text) {
        struct iovec parts[] = {{text, strlen(text)}, {(void *)"\n", 1}};
        struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)sent;
    }
    free(text);
    json_decref(reply);
    close(fd);
}

static void status_on_connection(void *ctx, int fd, const struct ucred *peer)
{
    struct status *s = ctx;
    char why[QUOTA_WHY_BYTES];

    if (quota_take(s->node->quota, QUOTA_STATUS, peer->uid, 1, clock_now_ns(), why) != 0) {
        status_refuse_connection(fd, why);
        return;
    }
    struct status_client *c = calloc(1, sizeof *c);
    if (c)
        c->bev = bufferevent_socket_new(s->node->base, fd,
                                        BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (!c || !c->bev) {
        quota_give(s->node->quota, QUOTA_STATUS, peer->uid, 1);
        status_refuse_connection(fd, "the daemon is out of memory");
        free(c);
        return;
    }
    c->status = s;
    c->uid = peer->uid;
    list_init(&c->ready);
    list_append(&s->clients, &c->link);
    bufferevent_setcb(c->bev, on_read, on_written, on_end, c);
    bufferevent_setwatermark(c->bev, EV_READ, 0, 2 * MAX_LINE_BYTES);
    bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

struct status *status_new(struct status_node *node, int listen_fd)
{
    struct status *s = calloc(1, sizeof *s);

    if (!s) {
        close(listen_fd);
        return NULL;
    }
    s->node = node;
    s->next_id = 1;
    list_init(&s->clients);
    list_init(&s->queries);
    list_init(&s->ready);
    s->listener = listener_new(node->base, listen_fd, status_on_connection, s);
    s->turn = evtimer_new(node->base, status_on_turn, s);
    if (!s->listener || !s->turn) {
        status_free(s);
        return NULL;
    }
    return s;
}

void status_free(struct status *s)
{
    if (!s)
        return;
    list_foreach_safe(it, &s->queries)
        query_free(list_entry(it, struct query, link));
    list_foreach_safe(it, &s->clients)
        client_free(list_entry(it, struct status_client, link));
    if (s->turn)
        event_free(s->turn);
    listener_free(s->listener);
    free(s);
}
