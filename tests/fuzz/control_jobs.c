/* SPDX-License-Identifier: BSD-3-Clause */
/* What mpiexec and nodes send about a job: submissions, and messages of every kind into the job as
 * a whole. No order of them may leave a job without an end.
 *
 * Input: pieces, each a kind and sender (one byte), two bytes of length, a body. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/jobs/manager.h"
#include "tests/fuzz/fuzz.h"

static int n_clients;

static void to_node(void *ctx, uint32_t node_id, uint16_t type, const ProtobufCMessage *msg)
{
    (void)ctx, (void)node_id, (void)type;
    size_t len = protobuf_c_message_get_packed_size(msg);
    uint8_t *body = malloc(len + 1);
    if (body && protobuf_c_message_pack(msg, body) != len)
        abort();
    free(body);
}

static int to_client(void *ctx, void *client, uint16_t type, const ProtobufCMessage *msg)
{
    (void)client;
    to_node(ctx, 0, type, msg);
    return 0;
}

static size_t client_queued(void *ctx, void *client)
{
    (void)ctx, (void)client;
    return 0;
}

static void client_done(void *ctx, void *client)
{
    (void)ctx, (void)client;
    n_clients--;
}

static size_t nodes(void *ctx, struct placement_node *ret_nodes, size_t max)
{
    static const struct placement_node all[] = {
        {.name = "me", .node_id = 1}, {.name = "a", .node_id = 2}, {.name = "b", .node_id = 3}};

    (void)ctx, (void)max;
    memcpy(ret_nodes, all, sizeof all);
    return 3;
}

static bool reachable(void *ctx, uint32_t node_id)
{
    (void)ctx;
    return node_id != 3;
}

static const struct manager_ops ops = {.to_node = to_node,
                                       .to_client = to_client,
                                       .client_queued = client_queued,
                                       .client_done = client_done,
                                       .reachable = reachable,
                                       .nodes = nodes};

static void submit(struct manager *manager, const uint8_t *body, uint32_t len, uint64_t now_ns)
{
    static const uint8_t key[16] = {1};
    Motet__Submit *msg = motet__submit__unpack(NULL, len, body);
    static int client;

    if (!msg)
        return;
    uint64_t n_ranks = 0;
    for (size_t i = 0; i < msg->n_apps; i++)
        n_ranks += msg->apps[i]->n_ranks;
    if (n_ranks <= 1000 && manager_submit(manager, &client, 1000, 1000, msg, key, now_ns))
        n_clients++;
    motet__submit__free_unpacked(msg, NULL);
}

/* Jobs are found by id, which a fuzzer does not guess: the message gets that of the first one. */
#define UNPACK(Type, type_, call)                                                                  \
    do {                                                                                           \
        Motet__##Type *msg = motet__##type_##__unpack(NULL, len, body);                            \
        if (msg) {                                                                                 \
            msg->job = home->id;                                                                   \
            call;                                                                                  \
            motet__##type_##__free_unpacked(msg, NULL);                                            \
        }                                                                                          \
    } while (0)

static void feed(struct manager *manager, uint8_t kind, const uint8_t *body, uint32_t len,
                 uint64_t now_ns)
{
    struct manager_job *home = manager_first(manager);
    uint32_t node = 1 + (kind >> 4) % 3;

    if (!home)
        return;
    switch (kind & 0x0f) {
    case 1:
        UNPACK(Launched, launched, manager_on_launched(manager, node, msg, now_ns));
        break;
    case 2:
        UNPACK(RankExit, rank_exit, manager_on_rank_exit(manager, node, msg, now_ns));
        break;
    case 3:
        UNPACK(Stdio, stdio, manager_on_stdio(manager, node, msg, now_ns));
        break;
    case 4:
        UNPACK(StdioWindow, stdio_window, manager_on_stdin_window(manager, node, msg));
        break;
    case 5:
        UNPACK(Abort, abort, manager_on_abort(manager, node, msg, now_ns));
        break;
    case 6:
        UNPACK(Kill, kill, manager_on_client_kill(manager, home, msg, now_ns));
        break;
    case 7:
        UNPACK(Stdio, stdio, (void)manager_on_client_stdin(manager, home, msg));
        break;
    case 8:
        manager_on_node_lost(manager, node, "is lost", now_ns);
        break;
    case 9:
        manager_on_client_gone(manager, home);
        n_clients--; /* it went by itself */
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint64_t now_ns = CLOCK_NS_PER_S;
    struct manager *manager = manager_new("me", 1, 7, &ops, NULL);

    log_set_level(LOG_ERROR);
    n_clients = 0;
    while (n >= 3) {
        uint8_t kind = data[0];
        uint32_t len = (uint32_t)(data[1] | data[2] << 8);
        data += 3;
        n -= 3;
        len = len < n ? len : (uint32_t)n;
        if ((kind & 0x0f) == 0)
            submit(manager, data, len, now_ns);
        else
            feed(manager, kind, data, len, now_ns);
        now_ns += 50 * CLOCK_NS_PER_MS;
        manager_run(manager, now_ns);
        data += len;
        n -= len;
    }
    for (int i = 0; i < 5; i++) {
        manager_end_all(manager, "end", now_ns);
        now_ns += 60 * CLOCK_NS_PER_S;
        manager_run(manager, now_ns);
    }
    if (manager_count(manager) != 0 || n_clients != 0)
        abort();
    manager_free(manager);
    return 0;
}
