/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching to the daemon: question and answer of proto/attach.h, mapping the segments, leaving. */
#include "client/transport/transport.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/thread.h"
#include "client/client.h"
#include "proto/attach.h"
#include "proto/frame.h"

/* A daemon that is up answers in microseconds; one that starts many ranks on a busy node may take a
 * while. */
#define ATTACH_TIMEOUT_NS (60 * CLOCK_NS_PER_S)
/* The daemon's channels empty the rings of a leaving rank within this, or the network is down and
 * the job with it. */
#define DETACH_TIMEOUT_NS (30 * CLOCK_NS_PER_S)

static struct transport transport_first;
struct transport *transport_here = &transport_first;

/* A job of one. */
static void transport_reset(void)
{
    *transport_here = (struct transport){.sock = -1, .n_world = 1, .n_local = 1, .n_nodes = 1};
}
CLIENT_PART(transport_here, transport_first, .init = transport_reset);

/* Keeps the text for transport_reason and returns the error. */
__attribute__((format(printf, 2, 3))) static int refuse(int error, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(transport_here->reason, sizeof transport_here->reason, fmt, args);
    va_end(args);
    return error;
}

const char *transport_reason(void)
{
    return transport_here->reason;
}

static int alone(void)
{
    transport_reset();
    transport_here->local_to_world = calloc(1, sizeof(uint32_t));
    return transport_here->local_to_world ? 0 : refuse(-ENOMEM, "no memory for the table of ranks");
}

static int parse_number(const char *name, int base, uint64_t limit, uint64_t *ret_value)
{
    const char *text = getenv(name);
    char *end;

    if (!text || !*text)
        return refuse(-EPROTO, "the environment variable %s is missing although MOTET_JOB is set",
                      name);
    errno = 0;
    unsigned long long value = strtoull(text, &end, base);
    if (errno || *end || value > limit)
        return refuse(
            -EPROTO,
            "the environment variable %s has the value '%s', which is not a number in its range",
            name, text);
    *ret_value = value;
    return 0;
}

static int parse_key(uint8_t key[16])
{
    const char *text = getenv("MOTET_KEY");

    if (!text || strlen(text) != 32)
        return refuse(-EPROTO,
                      "the environment variable MOTET_KEY must have 32 hexadecimal digits");
    for (int i = 0; i < 16; i++) {
        unsigned byte;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1)
            return refuse(-EPROTO,
                          "the environment variable MOTET_KEY must have 32 hexadecimal digits");
        key[i] = (uint8_t)byte;
    }
    return 0;
}

/* Sends the request and reads the reply with its descriptors. */
static int attach_ask(int sock, const struct attach_request *request, struct attach_reply *reply,
                      int *fds, int *ret_n_fds)
{
    struct {
        struct frame_header header;
        struct attach_reply reply;
    } frame = {0};
    uint64_t deadline_ns = clock_now_ns() + ATTACH_TIMEOUT_NS;

    int sent = frame_send(sock, ATTACH_REQUEST, request, sizeof *request, deadline_ns);
    /* A daemon that wants no connection says so and hangs up, perhaps before the request is there.
     */
    int rc = fd_recv_fds(sock, &frame, sizeof frame, fds, FD_MAX_PASS, ret_n_fds, deadline_ns);
    if (rc < 0 && sent < 0)
        rc = sent;
    if (rc < 0)
        return refuse(-EPROTO, "the daemon at %s did not answer the attach request: %s",
                      getenv("MOTET_SOCKET"), strerror(-rc));
    if (frame_check(&frame.header) < 0 || frame.header.type != ATTACH_REPLY ||
        frame.header.len != sizeof frame.reply)
        return refuse(-EPROTO,
                      "the daemon at %s answered with an unknown frame (type %u, %u bytes)",
                      getenv("MOTET_SOCKET"), frame.header.type, frame.header.len);
    *reply = frame.reply;
    reply->text[sizeof reply->text - 1] = '\0';
    if (reply->error)
        return refuse(-EPROTO, "the daemon refused this rank: %s (%s)", reply->text,
                      strerror(reply->error));
    if (reply->version != ATTACH_VERSION || segment_shape_check(&reply->shape) < 0 ||
        reply->local_rank >= reply->shape.n_local ||
        *ret_n_fds != (int)(2 + reply->shape.n_channels))
        return refuse(-EPROTO,
                      "the daemon's attach reply does not fit this library (version %u, here %u)",
                      reply->version, ATTACH_VERSION);
    return 0;
}

static int map_segments(const struct attach_reply *reply, const int *fds)
{
    segment_layout(&reply->shape, &transport_here->layout);
    void *base = mmap(NULL, transport_here->layout.total, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, fds[0], 0);
    if (base == MAP_FAILED)
        return refuse(-EPROTO, "cannot map the job segment of %zu bytes: %s",
                      transport_here->layout.total, strerror(errno));
    void *hops = mmap(NULL, sizeof(struct hop_table), PROT_READ, MAP_SHARED, fds[1], 0);
    if (hops == MAP_FAILED)
        return refuse(-EPROTO, "cannot map the node segment: %s", strerror(errno));

    const struct segment_header *header = base;
    /* acquire: pairs with the release with which the daemon stores the version last. */
    if (atomic_load_explicit(&header->version, memory_order_acquire) != SEGMENT_VERSION ||
        header->magic != SEGMENT_MAGIC)
        return refuse(-EPROTO, "the job segment has version %u, this library expects %u",
                      atomic_load_explicit(&header->version, memory_order_relaxed),
                      SEGMENT_VERSION);
    transport_here->base = base;
    transport_here->hops = hops;
    if (transport_here->hops->magic != HOP_MAGIC || transport_here->hops->version != HOP_VERSION)
        return refuse(-EPROTO, "the node segment has version %u, this library expects %u",
                      transport_here->hops->version, HOP_VERSION);
    return 0;
}

int transport_attach(void)
{
    struct attach_request request = {.version = ATTACH_VERSION, .pid = getpid()};
    struct attach_reply reply;
    int fds[FD_MAX_PASS];
    int n_fds = 0;
    uint64_t rank = 0, size = 0;

    if (!getenv("MOTET_JOB"))
        return alone();
    int err = parse_number("MOTET_JOB", 16, UINT64_MAX, &request.job);
    err = err ? err : parse_number("MOTET_RANK", 10, UINT32_MAX, &rank);
    err = err ? err : parse_number("MOTET_SIZE", 10, UINT32_MAX, &size);
    err = err ? err : parse_key(request.key);
    if (err)
        return err;
    const char *path = getenv("MOTET_SOCKET");
    if (!path)
        return refuse(-EPROTO,
                      "the environment variable MOTET_SOCKET is missing although MOTET_JOB is set");
    request.world_rank = (uint32_t)rank;
    request.fenced = thread_barrier_register() < 0;

    int sock = fd_unix_connect(path);
    if (sock < 0)
        return refuse(-EPROTO, "cannot connect to the daemon at %s: %s", path, strerror(-sock));
    transport_here->sock = sock;
    err = attach_ask(sock, &request, &reply, fds, &n_fds);
    if (!err)
        err = map_segments(&reply, fds);
    for (int i = 0; i < n_fds; i++) {
        if (!err && i >= 2)
            transport_here->event_fds[i - 2] = fds[i];
        else
            close(fds[i]);
    }
    if (err)
        return err;

    const struct segment_shape *shape = &transport_here->layout.shape;
    transport_here->job = request.job;
    transport_here->world_rank = (uint32_t)rank;
    transport_here->local_rank = reply.local_rank;
    transport_here->n_world = shape->n_world;
    transport_here->n_local = shape->n_local;
    transport_here->n_nodes = shape->n_nodes;
    transport_here->n_channels = shape->n_channels;
    transport_here->fenced = reply.fenced;
    transport_here->packet_bytes = transport_here->hops->packet_bytes;
    transport_here->me =
        segment_rank_at(transport_here->base, &transport_here->layout, transport_here->local_rank);
    if (size != shape->n_world || rank >= shape->n_world)
        return refuse(-EPROTO, "MOTET_RANK=%u and MOTET_SIZE=%u do not fit a job of %u ranks",
                      (unsigned)rank, (unsigned)size, shape->n_world);
    transport_here->node = transport_world((uint32_t)rank)->node;
    transport_here->local_to_world = calloc(shape->n_local, sizeof(uint32_t));
    if (!transport_here->local_to_world)
        return refuse(-ENOMEM, "no memory for the table of ranks");
    for (uint32_t r = 0; r < shape->n_world; r++)
        if (transport_world(r)->node == transport_here->node &&
            transport_world(r)->local < shape->n_local)
            transport_here->local_to_world[transport_world(r)->local] = r;
    /* Ranks of one job read each other's memory for large messages; where Yama restricts that to
     * descendants, this permits it. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    atomic_store_explicit(&transport_here->me->state, RANK_ATTACHED, memory_order_release);
    return 0;
}

void transport_detach(void)
{
    if (transport_here->sock >= 0) {
        struct frame_header answer;
        uint64_t deadline_ns = clock_now_ns() + DETACH_TIMEOUT_NS;
        atomic_store_explicit(&transport_here->me->state, RANK_FINALIZED, memory_order_release);
        if (frame_send(transport_here->sock, ATTACH_DETACH, NULL, 0, deadline_ns) == 0)
            frame_recv_header(transport_here->sock, &answer, deadline_ns);
        close(transport_here->sock);
        transport_here->sock = -1;
    }
    for (uint32_t i = 0; i < transport_here->n_channels; i++)
        close(transport_here->event_fds[i]);
    if (transport_here->base)
        munmap(transport_here->base, transport_here->layout.total);
    if (transport_here->hops)
        munmap((void *)transport_here->hops, sizeof(struct hop_table));
    free(transport_here->local_to_world);
    transport_reset();
}

bool transport_abort(int code, const char *text)
{
    struct attach_abort body = {.code = code};

    if (transport_here->sock < 0)
        return false;
    snprintf(body.text, sizeof body.text, "%s", text ? text : "");
    return frame_send(transport_here->sock, ATTACH_ABORT, &body, sizeof body,
                      clock_now_ns() + CLOCK_NS_PER_S) == 0;
}

bool transport_alive(void)
{
    struct pollfd p = {.fd = transport_here->sock, .events = POLLRDHUP};

    return transport_here->sock < 0 || poll(&p, 1, 0) == 0 ||
           !(p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}
