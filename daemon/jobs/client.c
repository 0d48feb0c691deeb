/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/listener.h"
#include "daemon/cluster/stream.h"
#include "daemon/config.h"
#include "daemon/jobs/dynamic/foreign.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/manager.h"
#include "daemon/jobs/quota.h"
#include "proto/attach.h"
#include "proto/frame.h"

/* A connection says within this time what it is. */
#define FIRST_FRAME_NS (10 * CLOCK_NS_PER_S)
/* What a rank sends is small, but for the command lines of jobs that it starts; what mpiexec sends
 * may hold the environment and a long command line. */
#define RANK_FRAME_BYTES  ATTACH_SPAWN_BYTES
#define SMALL_FRAME_BYTES 65536u
/* One user's connections that may send a large first frame at the same time: a bound for the memory
 * that strangers can take. */
#define MAX_LARGE_NEW      16u
#define RANK_QUEUE_BYTES   (64u << 10)
#define CLIENT_QUEUE_BYTES (512u << 20) /* 1 MiB per node of the job may be under way */
#define CLIENT_DRAIN_BYTES (256u << 10)

enum client_kind { CLIENT_NEW, CLIENT_RANK, CLIENT_MPIEXEC };

struct client {
    struct list link;
    struct clients *clients;
    struct stream *stream;
    enum client_kind kind;
    bool charged; /* to its user, as a connection */
    uid_t uid;
    gid_t gid;
    pid_t pid;
    uint64_t since_ns;
    /* CLIENT_RANK; job NULL once it is over. */
    struct job *job;
    uint32_t local;
    /* CLIENT_MPIEXEC; NULL when there is no job (any more). */
    uint64_t job_id;
    bool has_job;
};

struct clients {
    struct clients_setup setup;
    struct listener *listener;
    struct event *sweep;
    struct list all;
    unsigned n;
};

unsigned clients_count(const struct clients *clients)
{
    return clients->n;
}

/* It does not count as one of its user's connections any more. */
static void client_discharge(struct client *s)
{
    if (s->charged)
        quota_give(s->clients->setup.quota, QUOTA_CLIENTS, s->uid, 1);
    s->charged = false;
}

static void client_free(struct client *s)
{
    list_remove(&s->link);
    s->clients->n--;
    client_discharge(s);
    stream_free(s->stream);
    free(s);
}

static struct manager_job *client_job(const struct client *s)
{
    return s->has_job ? manager_find(s->clients->setup.manager, s->job_id) : NULL;
}

/* Its own, or one that came of that. */
static struct manager_job *client_any_job(const struct client *s)
{
    return s->has_job ? manager_of_family(s->clients->setup.manager, s->job_id) : NULL;
}

int client_send(struct client *s, uint16_t type, const ProtobufCMessage *msg)
{
    if (!s->stream)
        return -EPIPE;
    int rc = stream_send_msg(s->stream, type, msg);
    if (rc == -ENOBUFS)
        log_warn("mpiexec %d does not take its output, %zu bytes wait, dropping", (int)s->pid,
                 stream_queued(s->stream));
    return rc;
}

size_t client_queued(const struct client *s)
{
    return s->stream ? stream_queued(s->stream) : 0;
}

void client_finish(struct client *s)
{
    s->has_job = false;
    stream_finish(s->stream);
    s->stream = NULL;
    client_free(s);
}

void client_detached(struct client *s)
{
    stream_send(s->stream, ATTACH_DETACHED, NULL, 0);
}

void client_to_rank(struct client *s, uint16_t type, const void *body, uint32_t len)
{
    int rc = s->stream ? stream_send(s->stream, type, body, len) : -EPIPE;

    if (rc < 0)
        log_warn("rank %u of job %016llx does not take an answer: %s", s->local,
                 (unsigned long long)(s->job ? s->job->id : 0), strerror(-rc));
}

void client_end_rank(struct client *s)
{
    s->job = NULL;
    client_finish(s);
}

static int client_on_attach(struct client *s, const uint8_t *body, uint32_t len)
{
    struct attach_request req;
    struct attach_reply reply;
    int fds[HOP_MAX_CHANNELS + 2], n_fds = 0;

    if (len != sizeof req || s->kind != CLIENT_NEW)
        return -EPROTO;
    memcpy(&req, body, sizeof req);
    int error = jobs_attach(s->clients->setup.jobs, s, &req, s->uid, s->pid, &reply, fds, &n_fds,
                            &s->job, &s->local);
    if (error != 0) {
        log_notice("process %d of user %u cannot attach as rank %u of job %016llx: %s", (int)s->pid,
                   (unsigned)s->uid, req.world_rank, (unsigned long long)req.job, reply.text);
        stream_send(s->stream, ATTACH_REPLY, &reply, sizeof reply);
        client_finish(s);
        return 0;
    }
    s->kind = CLIENT_RANK;
    client_discharge(s); /* the rank is charged itself */
    stream_set_max_frame(s->stream, RANK_FRAME_BYTES);
    return stream_send_fds(s->stream, ATTACH_REPLY, &reply, sizeof reply, fds, n_fds);
}

/* What concerns other jobs. */
static int client_on_foreign_frame(struct client *s, uint16_t type, const uint8_t *body,
                                   uint32_t len, uint64_t now_ns)
{
    struct attach_claim claim;
    struct attach_ask ask;
    uint32_t request;

    if (type == ATTACH_SPAWN) {
        foreign_on_spawn(s->job, s->local, body, len, now_ns);
        return 0;
    }
    if (type == ATTACH_ASK && len == sizeof ask) {
        memcpy(&ask, body, sizeof ask);
        foreign_on_ask(s->job, s->local, &ask, now_ns);
        return 0;
    }
    if (type == ATTACH_SPAWN_DONE && len == sizeof request) {
        memcpy(&request, body, sizeof request);
        foreign_on_spawn_done(s->job, s->local, request, now_ns);
        return 0;
    }
    if ((type != ATTACH_CLAIM && type != ATTACH_RELEASE) || len != sizeof claim)
        return -EPROTO;
    memcpy(&claim, body, sizeof claim);
    if (type == ATTACH_CLAIM)
        foreign_on_claim(s->job, s->local, claim.connection, now_ns);
    else
        foreign_on_release(s->job, s->local, claim.connection, now_ns);
    return 0;
}

static int client_on_rank_frame(struct client *s, uint16_t type, const uint8_t *body, uint32_t len)
{
    if (!s->job)
        return 0;
    if (type == ATTACH_DETACH) {
        job_on_detach(s->job, s->local);
        return 0;
    }
    if (type == ATTACH_ABORT && len == sizeof(struct attach_abort)) {
        struct attach_abort abort_request;
        memcpy(&abort_request, body, sizeof abort_request);
        abort_request.text[sizeof abort_request.text - 1] = '\0';
        /* The text goes to logs and terminals, and as protobuf string through other daemons:
         * printable characters only. */
        for (char *p = abort_request.text; *p; p++)
            if ((unsigned char)*p < ' ' || (unsigned char)*p >= 127)
                *p = '?';
        job_on_abort(s->job, s->local, abort_request.code, abort_request.text, clock_now_ns());
        return 0;
    }
    return client_on_foreign_frame(s, type, body, len, clock_now_ns());
}

static int client_on_submit(struct client *s, const uint8_t *body, uint32_t len)
{
    const struct clients_setup *setup = &s->clients->setup;
    Motet__Submit *msg = s->kind == CLIENT_NEW ? motet__submit__unpack(NULL, len, body) : NULL;
    uint8_t key[16];

    if (!msg)
        return -EPROTO;
    s->kind = CLIENT_MPIEXEC;
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key) {
        motet__submit__free_unpacked(msg, NULL);
        return -EIO;
    }
    stream_set_drain(s->stream, CLIENT_DRAIN_BYTES);
    struct manager_job *job =
        manager_submit(setup->manager, s, s->uid, s->gid, msg, key, clock_now_ns());
    motet__submit__free_unpacked(msg, NULL);
    if (!job) {
        client_finish(s);
        return 0;
    }
    cluster_note_busy(setup->cluster);
    s->job_id = job->id;
    s->has_job = true;
    return 0;
}

static int client_on_mpiexec_frame(struct client *s, uint16_t type, const uint8_t *body,
                                   uint32_t len)
{
    struct manager *manager = s->clients->setup.manager;
    struct manager_job *job = client_job(s);
    int rc = -EPROTO;

    if (type == MOTET__FRAME_TYPE__STDIO) {
        Motet__Stdio *msg = motet__stdio__unpack(NULL, len, body);
        if (msg) {
            rc = job ? manager_on_client_stdin(manager, job, msg) : 0;
            motet__stdio__free_unpacked(msg, NULL);
        }
    } else if (type == MOTET__FRAME_TYPE__KILL) {
        Motet__Kill *msg = motet__kill__unpack(NULL, len, body);
        if (msg) {
            rc = 0;
            job = manager_find(manager, msg->job);
            if (job && job->client == s)
                manager_on_client_kill(manager, job, msg, clock_now_ns());
            motet__kill__free_unpacked(msg, NULL);
        }
    }
    return rc;
}

static int client_on_frame(void *ctx, uint16_t type, const uint8_t *body, uint32_t len)
{
    struct client *s = ctx;
    int rc = -EPROTO;

    if (s->kind == CLIENT_NEW) {
        if (type == ATTACH_REQUEST)
            rc = client_on_attach(s, body, len);
        else if (type == MOTET__FRAME_TYPE__SUBMIT)
            rc = client_on_submit(s, body, len);
    } else if (s->kind == CLIENT_RANK) {
        rc = client_on_rank_frame(s, type, body, len);
    } else {
        rc = client_on_mpiexec_frame(s, type, body, len);
    }
    if (rc == -EPROTO)
        log_warn("client process %d of user %u sent a frame of type %u that cannot be, closing its "
                 "connection",
                 (int)s->pid, (unsigned)s->uid, type);
    return rc;
}

static void client_on_closed(void *ctx, int error)
{
    struct client *s = ctx;

    if (error)
        log_info("connection of process %d: %s", (int)s->pid, strerror(error));
    struct manager_job *job = client_any_job(s);
    if (job)
        manager_on_client_gone(s->clients->setup.manager, job);
    else if (s->kind == CLIENT_RANK && s->job)
        job_on_disconnect(s->job, s->local, clock_now_ns());
    client_free(s);
}

static void client_on_drained(void *ctx)
{
    struct client *s = ctx;
    struct manager_job *job = client_any_job(s);

    if (job)
        manager_on_client_drained(s->clients->setup.manager, job);
}

static const struct stream_ops ops = {
    .frame = client_on_frame, .closed = client_on_closed, .drained = client_on_drained};

/* Says why, in the one form that ranks and mpiexec both understand. Whether it is read or not: the
 * connection ends. */
static void clients_refuse(int fd, const char *why)
{
    struct {
        struct frame_header header;
        struct attach_reply reply;
    } frame = {.header = {.len = sizeof frame.reply, .type = ATTACH_REPLY, .magic = FRAME_MAGIC},
               .reply = {.version = ATTACH_VERSION, .error = EUSERS}};

    snprintf(frame.reply.text, sizeof frame.reply.text, "%s", why);
    ssize_t sent = send(fd, &frame, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent;
    close(fd);
}

static void clients_on_connection(void *ctx, int fd, const struct ucred *peer)
{
    struct clients *all = ctx;
    char why[QUOTA_WHY_BYTES];
    unsigned n_new = 0;

    if (quota_take(all->setup.quota, QUOTA_CLIENTS, peer->uid, 1, clock_now_ns(), why) != 0) {
        clients_refuse(fd, why);
        return;
    }
    list_foreach(it, &all->all) {
        const struct client *other = list_entry(it, struct client, link);
        n_new += other->kind == CLIENT_NEW && other->uid == peer->uid;
    }
    struct client *s = calloc(1, sizeof *s);
    if (s)
        s->stream = stream_new(all->setup.base, fd, &ops, s,
                               n_new < MAX_LARGE_NEW ? FRAME_MAX_BYTES : SMALL_FRAME_BYTES,
                               CLIENT_QUEUE_BYTES);
    if (!s || !s->stream) {
        quota_give(all->setup.quota, QUOTA_CLIENTS, peer->uid, 1);
        clients_refuse(fd, "the daemon is out of memory");
        free(s);
        return;
    }
    s->charged = true;
    s->clients = all;
    s->uid = peer->uid;
    s->gid = peer->gid;
    s->pid = peer->pid;
    s->since_ns = clock_now_ns();
    list_append(&all->all, &s->link);
    all->n++;
}

/* Connections that never say what they are go away. */
static void clients_on_sweep(evutil_socket_t fd, short what, void *ctx)
{
    struct clients *all = ctx;
    uint64_t now_ns = clock_now_ns();

    (void)fd, (void)what;
    list_foreach_safe(it, &all->all) {
        struct client *s = list_entry(it, struct client, link);
        if (s->kind == CLIENT_NEW && now_ns - s->since_ns > FIRST_FRAME_NS) {
            log_info("process %d connected and said nothing for 10 s, closing", (int)s->pid);
            client_free(s);
        }
    }
}

struct clients *clients_new(const struct clients_setup *setup, int listen_fd)
{
    struct clients *all = calloc(1, sizeof *all);
    struct timeval every = {.tv_sec = 5};

    if (!all) {
        close(listen_fd);
        return NULL;
    }
    all->setup = *setup;
    list_init(&all->all);
    all->listener = listener_new(setup->base, listen_fd, clients_on_connection, all);
    all->sweep = event_new(setup->base, -1, EV_PERSIST, clients_on_sweep, all);
    if (!all->listener || !all->sweep || event_add(all->sweep, &every) < 0) {
        clients_free(all);
        return NULL;
    }
    return all;
}

void clients_stop_accepting(struct clients *all)
{
    listener_stop(all->listener);
}

void clients_free(struct clients *all)
{
    if (!all)
        return;
    list_foreach_safe(it, &all->all) {
        struct client *s = list_entry(it, struct client, link);
        if (s->kind == CLIENT_RANK && s->job)
            job_forget_client(s->job, s->local);
        client_free(s);
    }
    listener_free(all->listener);
    if (all->sweep)
        event_free(all->sweep);
    free(all);
}
