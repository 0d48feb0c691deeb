/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/manager.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "daemon/jobs/dynamic/connections.h"
#include "daemon/jobs/dynamic/ports.h"
#include "daemon/jobs/networks.h"
#include "proto/hop.h"
#include "proto/segment.h"

#define LAUNCH_LIMIT_NS (30 * CLOCK_NS_PER_S)
/* After SIGKILL: then a process hangs in the kernel, or its node does. */
#define KILL_LIMIT_NS (10 * CLOCK_NS_PER_S)
/* So often it is seen whether those that have not ended can be reached at all. */
#define KILL_STEP_NS CLOCK_NS_PER_S
/* Output is acknowledged to its node in steps, while mpiexec takes it. */
#define WINDOW_STEP_BYTES  (256u << 10)
#define CLIENT_QUEUE_BYTES (512u << 10)
/* As promised in proto/control.proto. */
#define STDIN_WINDOW_BYTES (256u << 10)

/* So many ranges of ranks are named in a message. */
#define NAMED_RANGES 8u
/* That run at a time and came of one submit, each of which costs memory in daemons. */
#define FAMILY_JOBS 1024u

struct manager {
    char node_name[64];
    uint32_t node_id, epoch;
    uint64_t next_id;
    uint64_t grace_ns;
    const struct manager_ops *ops;
    void *ctx;
    struct manager_job *table;
    struct connections *connections;
    struct ports *ports;
};

static void connections_to_node(void *ctx, uint32_t node_id, uint16_t type,
                                const ProtobufCMessage *msg)
{
    struct manager *manager = ctx;
    manager->ops->to_node(manager->ctx, node_id, type, msg);
}

static const struct placement *connections_places(void *ctx, uint64_t job)
{
    const struct manager_job *h = manager_find(ctx, job);
    return h ? &h->placement : NULL;
}

static const struct connections_ops manager_connections_ops = {.to_node = connections_to_node,
                                                               .places = connections_places};

struct manager *manager_new(const char *node_name, uint32_t node_id, uint32_t epoch,
                            const struct manager_ops *ops, void *ctx)
{
    struct manager *manager = calloc(1, sizeof *manager);

    if (!manager)
        return NULL;
    snprintf(manager->node_name, sizeof manager->node_name, "%s", node_name);
    manager->node_id = node_id;
    manager->epoch = epoch;
    /* Ids of a daemon that was restarted must not meet those of jobs that its peers still end. */
    manager->next_id = (uint64_t)node_id << 32 | (uint32_t)(hash_mix64(epoch) & 0xffff0000u) | 1;
    manager->grace_ns = CLOCK_NS_PER_S;
    manager->ops = ops;
    manager->ctx = ctx;
    manager->connections = connections_new(&manager_connections_ops, manager);
    manager->ports = ports_new(node_name, &connections_ports_ops, manager->connections);
    if (!manager->connections || !manager->ports) {
        connections_free(manager->connections);
        ports_free(manager->ports);
        free(manager);
        return NULL;
    }
    return manager;
}

static void manager_job_free(struct manager *manager, struct manager_job *h)
{
    HASH_DEL(manager->table, h);
    placement_free(&h->placement);
    free(h->nodes);
    free(h->ranks);
    free(h);
}

void manager_free(struct manager *manager)
{
    struct manager_job *h, *next;

    if (!manager)
        return;
    HASH_ITER(hh, manager->table, h, next)
        manager_job_free(manager, h);
    connections_free(manager->connections);
    ports_free(manager->ports);
    free(manager);
}

struct manager_job *manager_find(const struct manager *manager, uint64_t id)
{
    struct manager_job *h;
    HASH_FIND(hh, manager->table, &id, sizeof id, h);
    return h;
}

struct manager_job *manager_of_family(const struct manager *manager, uint64_t family)
{
    struct manager_job *h = manager->table;

    while (h && h->family != family)
        h = h->hh.next;
    return h;
}

struct manager_job *manager_first(const struct manager *manager)
{
    return manager->table;
}

unsigned manager_count(const struct manager *manager)
{
    return HASH_COUNT(manager->table);
}

bool manager_networked(const struct manager *manager)
{
    for (const struct manager_job *h = manager->table; h; h = h->hh.next)
        if (h->placement.n_placements > 1 ||
            h->placement.placements[0]->node_id != manager->node_id)
            return true;
    return false;
}

void manager_set_grace(struct manager *manager, uint64_t grace_ns)
{
    manager->grace_ns = grace_ns;
}

static void to_all(struct manager *manager, struct manager_job *h, uint16_t type,
                   const ProtobufCMessage *msg)
{
    for (size_t n = 0; n < h->placement.n_placements; n++)
        if (!h->nodes[n].lost)
            manager->ops->to_node(manager->ctx, h->nodes[n].node_id, type, msg);
}

/* To those below the home in the tree, who pass it on. */
static void to_children(struct manager *manager, struct manager_job *h, uint16_t type,
                        const ProtobufCMessage *msg)
{
    for (uint32_t i = 0; i < h->start.n_children; i++)
        manager->ops->to_node(manager->ctx, h->start.children[i], type, msg);
}

/* Why the job is over, for those that are connected with it. */
static void name_reason(const struct manager_job *h, char *text, size_t size)
{
    snprintf(text, size, "'%s' (job %016llx): %s", h->name, (unsigned long long)h->id,
             h->message[0] ? h->message : "ended without calling MPI_Init");
}

/* Jobs that this one has spawned and not met yet have nobody who waits for them: manager_run ends
 * them. */
static void abandon_children(struct manager *manager, const struct manager_job *h)
{
    for (struct manager_job *child = manager->table; child; child = child->hh.next)
        if (child->parent == h->id && !child->begun && !child->failed) {
            child->abandoned = true;
            child->deadline_ns = 0;
        }
}

/* To mpiexec: the job is over. A spawn that failed was its parent's to judge. */
static void tell_over(struct manager *manager, const struct manager_job *h, Motet__JobEnd *msg)
{
    if (!h->client || !h->announced)
        return;
    if (h->parent && !h->begun && !h->ordered) {
        msg->code = 0;
        msg->has_failed_spawn = h->failed;
        msg->failed_spawn = h->failed;
    }
    manager->ops->to_client(manager->ctx, h->client, MOTET__FRAME_TYPE__JOB_END, &msg->base);
}

/* JobEnd to everyone; the job is forgotten. */
static void manager_job_over(struct manager *manager, struct manager_job *h)
{
    Motet__JobEnd msg = MOTET__JOB_END__INIT;
    char text[700];

    msg.job = h->id;
    msg.code = h->code;
    msg.message = h->message[0] ? h->message : NULL;
    /* Also to nodes that are given up: if one comes back, this waits for it, and its ranks do not
     * run on for nobody. */
    for (size_t n = 0; n < h->placement.n_placements; n++)
        manager->ops->to_node(manager->ctx, h->nodes[n].node_id, MOTET__FRAME_TYPE__JOB_END,
                              &msg.base);
    name_reason(h, text, sizeof text);
    connections_on_over(manager->connections, h->id, h->failed, h->code, text);
    abandon_children(manager, h);
    ports_on_over(manager->ports, h->id);
    tell_over(manager, h, &msg);
    if (h->failed)
        log_notice("job %016llx over: %s", (unsigned long long)h->id, h->message);
    else
        log_info("job %016llx over, code %d", (unsigned long long)h->id, h->code);
    void *client = h->client;
    uint64_t family = h->family;
    manager_job_free(manager, h);
    if (client && !manager_of_family(manager, family))
        manager->ops->client_done(manager->ctx, client);
}

static void send_kill(struct manager *manager, struct manager_job *h, int signal)
{
    Motet__Kill msg = MOTET__KILL__INIT;

    msg.job = h->id;
    msg.signal = signal;
    msg.reason = h->failed ? h->message : NULL;
    to_all(manager, h, MOTET__FRAME_TYPE__KILL, &msg.base);
}

static void kill_now(struct manager *manager, struct manager_job *h, uint64_t now_ns)
{
    h->killed = true;
    h->deadline_ns = now_ns + KILL_STEP_NS;
    h->give_up_ns = now_ns + KILL_LIMIT_NS;
    send_kill(manager, h, SIGKILL);
}

/* The job failed: the first reason counts. */
static void manager_job_fail(struct manager *manager, struct manager_job *h, int32_t code,
                             uint64_t now_ns, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
static void manager_job_fail(struct manager *manager, struct manager_job *h, int32_t code,
                             uint64_t now_ns, const char *fmt, ...)
{
    char text[700];
    va_list ap;

    if (h->failed)
        return;
    va_start(ap, fmt);
    vsnprintf(h->message, sizeof h->message, fmt, ap);
    va_end(ap);
    h->failed = true;
    h->code = code;
    name_reason(h, text, sizeof text);
    connections_on_failing(manager->connections, h->id, h->code, text);
    abandon_children(manager, h);
    if (h->state != MANAGER_RUNNING)
        return;
    h->state = MANAGER_ENDING;
    if (manager->grace_ns == 0) {
        kill_now(manager, h, now_ns);
    } else {
        h->deadline_ns = now_ns + manager->grace_ns;
        send_kill(manager, h, SIGTERM);
    }
}

static void refuse_submit(struct manager *manager, void *client, const char *error)
{
    Motet__Submitted msg = MOTET__SUBMITTED__INIT;

    msg.ok = false;
    msg.error = (char *)error;
    manager->ops->to_client(manager->ctx, client, MOTET__FRAME_TYPE__SUBMITTED, &msg.base);
}

static struct manager_job *manager_job_new(struct manager *manager, struct placement *placement)
{
    struct manager_job *h = calloc(1, sizeof *h);

    if (!h)
        return NULL;
    for (size_t n = 0; n < placement->n_placements; n++)
        h->n_ranks += (uint32_t)placement->placements[n]->n_ranks;
    h->nodes = calloc(placement->n_placements, sizeof *h->nodes);
    h->ranks = calloc(h->n_ranks, sizeof *h->ranks);
    if (!h->nodes || !h->ranks ||
        start_init_root(&h->start, placement->placements, placement->n_placements) < 0) {
        free(h->nodes);
        free(h->ranks);
        free(h);
        return NULL;
    }
    h->placement = *placement;
    *placement = (struct placement){0};
    h->id = h->family = manager->next_id++;
    h->n_streams_open = 2 * h->n_ranks;
    for (size_t n = 0; n < h->placement.n_placements; n++) {
        const Motet__Placement *pl = h->placement.placements[n];
        h->nodes[n].node_id = pl->node_id;
        for (size_t i = 0; i < pl->n_ranks; i++) {
            h->ranks[pl->ranks[i]].node = (uint32_t)n;
            h->ranks[pl->ranks[i]].streams_open = 3;
        }
    }
    HASH_ADD(hh, manager->table, id, sizeof h->id, h);
    return h;
}

/* How far apart the networks of the placements are, in *ret_distances (the caller frees its data).
 * 0, or -errno and one line in error. */
static int measure_networks(const struct placement *placement, const struct placement_node *nodes,
                            size_t n_nodes, ProtobufCBinaryData *ret_distances, char *error,
                            size_t error_size)
{
    const char *names[SEGMENT_MAX_NETWORKS];
    int n =
        networks_list(placement->placements, placement->n_placements, names, SEGMENT_MAX_NETWORKS);

    if (n < 0) {
        snprintf(error, error_size, "the job's nodes are on more than %u networks",
                 SEGMENT_MAX_NETWORKS);
        return n;
    }
    ret_distances->len = (size_t)n * (size_t)n;
    ret_distances->data = malloc(ret_distances->len + 1);
    return ret_distances->data
               ? networks_distances(names, (size_t)n, nodes, n_nodes, ret_distances->data)
               : -ENOMEM;
}

static void send_launch(struct manager *manager, struct manager_job *h, const Motet__Submit *submit,
                        const uint8_t key[16], ProtobufCBinaryData distances)
{
    Motet__Launch msg = MOTET__LAUNCH__INIT;

    msg.job = h->id;
    msg.key.data = (uint8_t *)key;
    msg.key.len = 16;
    msg.home_node = manager->node_id;
    msg.has_home_epoch = true;
    msg.home_epoch = manager->epoch;
    msg.n_apps = submit->n_apps;
    msg.apps = submit->apps;
    msg.n_placements = h->placement.n_placements;
    msg.placements = h->placement.placements;
    msg.wdir = submit->wdir;
    msg.n_env = submit->n_env;
    msg.env = submit->env;
    msg.binding = submit->binding;
    msg.wait_mode = submit->wait_mode;
    msg.name = h->name;
    msg.uid = (uint32_t)h->uid;
    msg.gid = (uint32_t)h->gid;
    msg.stdin_to_rank0 = submit->stdin_to_rank0;
    msg.has_umask = submit->has_umask;
    msg.umask = submit->umask;
    msg.has_parent_connection = h->parent != 0;
    msg.parent_connection = connections_other(h->connection);
    msg.has_parent_job = h->parent != 0;
    msg.parent_job = h->parent;
    msg.has_parent_rank = h->parent != 0;
    msg.parent_rank = h->spawn_rank;
    msg.has_network_distances = true;
    msg.network_distances = distances;
    to_children(manager, h, MOTET__FRAME_TYPE__LAUNCH, &msg.base);
}

/* Places a job and gives it its name. NULL, with a reason in error. */
static struct manager_job *manager_make(struct manager *manager, const Motet__Submit *submit,
                                        ProtobufCBinaryData *ret_distances, char *error,
                                        size_t error_size)
{
    struct placement_node *nodes = calloc(HOP_MAX_NODES, sizeof *nodes);
    struct placement placement = {0};
    int rc = -ENOMEM;

    snprintf(error, error_size, "out of memory");
    if (nodes) {
        size_t n_nodes = manager->ops->nodes(manager->ctx, nodes, HOP_MAX_NODES);
        rc = n_nodes > 0 ? placement_make(submit, nodes, n_nodes, &placement, error, error_size)
                         : -EINVAL;
        if (n_nodes == 0)
            snprintf(error, error_size, "node %s is being shut down", manager->node_name);
        if (rc == 0)
            rc = measure_networks(&placement, nodes, n_nodes, ret_distances, error, error_size);
    }
    for (size_t i = 0; rc == 0 && i < submit->n_apps; i++) {
        if (submit->apps[i]->n_argv == 0 || submit->apps[i]->n_ranks == 0) {
            snprintf(error, error_size, "part %zu of the command line has no program or no ranks",
                     i);
            rc = -EINVAL;
        }
    }
    struct manager_job *h = rc == 0 ? manager_job_new(manager, &placement) : NULL;
    free(nodes);
    placement_free(&placement);
    if (!h)
        return NULL;
    const char *program = submit->apps[0]->argv[0];
    const char *slash = strrchr(program, '/');
    snprintf(h->name, sizeof h->name, "%s",
             submit->name && submit->name[0] ? submit->name
             : slash                         ? slash + 1
                                             : program);
    return h;
}

static void manager_launch(struct manager *manager, struct manager_job *h,
                           const Motet__Submit *submit, const uint8_t key[16],
                           ProtobufCBinaryData distances, uint64_t now_ns)
{
    h->since_ns = now_ns;
    h->deadline_ns = now_ns + LAUNCH_LIMIT_NS;
    log_info("job %016llx: '%s', %u ranks on %zu nodes, of user %u", (unsigned long long)h->id,
             h->name, h->n_ranks, h->placement.n_placements, (unsigned)h->uid);
    send_launch(manager, h, submit, key, distances);
}

struct manager_job *manager_submit(struct manager *manager, void *client, uid_t uid, gid_t gid,
                                   const Motet__Submit *submit, const uint8_t key[16],
                                   uint64_t now_ns)
{
    ProtobufCBinaryData distances = {0};
    char error[512];
    struct manager_job *h = manager_make(manager, submit, &distances, error, sizeof error);

    if (h) {
        h->client = client;
        h->uid = uid;
        h->gid = gid;
        manager_launch(manager, h, submit, key, distances, now_ns);
    } else {
        refuse_submit(manager, client, error);
    }
    free(distances.data);
    return h;
}

/* Index of a node in the job, or -1. */
static int node_index(const struct manager_job *h, uint32_t node_id)
{
    for (size_t n = 0; n < h->placement.n_placements; n++)
        if (h->nodes[n].node_id == node_id)
            return (int)n;
    return -1;
}

static void launch_failed(struct manager *manager, struct manager_job *h, const char *error)
{
    if (h->parent)
        connections_answer_spawn(manager->connections, h->spawn_node, h->parent, h->spawn_rank,
                                 h->spawn_request, h->ready ? h->connection : 0, error);
    else if (h->client)
        refuse_submit(manager, h->client, error);
    snprintf(h->message, sizeof h->message, "%s", error);
    h->failed = true;
    manager_job_over(manager, h);
}

static void manager_start(struct manager *manager, struct manager_job *h)
{
    Motet__Submitted submitted = MOTET__SUBMITTED__INIT;
    Motet__Start start = MOTET__START__INIT;

    submitted.ok = true;
    submitted.has_job = true;
    submitted.job = h->id;
    submitted.has_parent_job = h->parent != 0;
    submitted.parent_job = h->parent;
    submitted.n_placements = h->placement.n_placements;
    submitted.placements = h->placement.placements;
    h->announced = true;
    h->state = MANAGER_RUNNING;
    h->deadline_ns = UINT64_MAX;
    if (h->client)
        manager->ops->to_client(manager->ctx, h->client, MOTET__FRAME_TYPE__SUBMITTED,
                                &submitted.base);
    start.job = h->id;
    to_children(manager, h, MOTET__FRAME_TYPE__START, &start.base);
}

void manager_on_launched(struct manager *manager, uint32_t src_node, const Motet__Launched *msg,
                         uint64_t now_ns)
{
    struct manager_job *h = manager_find(manager, msg->job);
    int n = h ? node_index(h, src_node) : -1;

    (void)now_ns;
    if (msg->asks) {
        Motet__JobEnd end = MOTET__JOB_END__INIT;
        end.job = msg->job;
        if (!h || (n >= 0 && h->nodes[n].lost))
            manager->ops->to_node(manager->ctx, src_node, MOTET__FRAME_TYPE__JOB_END, &end.base);
        return;
    }
    if (n < 0 || h->state != MANAGER_LAUNCHING)
        return;
    enum start_next next = start_on_answer(&h->start, src_node, msg->ok);
    if (next == START_FAILED)
        launch_failed(manager, h, msg->error ? msg->error : "a node refused the job");
    if (next != START_READY)
        return;
    if (!h->parent) {
        manager_start(manager, h);
        return;
    }
    /* It starts when the node of its root holds the connection: manager_on_claim. */
    h->ready = true;
    connections_answer_spawn(manager->connections, h->spawn_node, h->parent, h->spawn_rank,
                             h->spawn_request, h->connection, NULL);
}

/* ---- spawned jobs ---- */

static struct manager_job *spawn_make(struct manager *manager, struct manager_job *parent,
                                      const Motet__SpawnJob *msg, ProtobufCBinaryData *distances,
                                      char *error, size_t size)
{
    struct manager_job *h = manager_make(manager, msg->submit, distances, error, size);

    if (!h)
        return NULL;
    h->parent = parent->id;
    h->family = parent->family;
    h->client = parent->client;
    h->uid = parent->uid;
    h->gid = parent->gid;
    h->spawn_rank = msg->rank;
    h->spawn_node = parent->nodes[parent->ranks[msg->rank].node].node_id;
    h->spawn_request = msg->request;
    h->connection = connections_make(manager->connections, parent->id, h->id);
    if (h->connection)
        return h;
    snprintf(error, size, "node %s has no memory or no random numbers", manager->node_name);
    manager_job_free(manager, h);
    return NULL;
}

static unsigned family_size(const struct manager *manager, uint64_t family)
{
    unsigned n = 0;

    for (const struct manager_job *h = manager->table; h; h = h->hh.next)
        n += h->family == family;
    return n;
}

void manager_on_spawn_job(struct manager *manager, uint32_t src_node, const Motet__SpawnJob *msg,
                          uint64_t now_ns)
{
    struct manager_job *parent = manager_find(manager, msg->job);
    int n = parent ? node_index(parent, src_node) : -1;
    ProtobufCBinaryData distances = {0};
    char error[512] = "its own job is being ended";
    uint8_t key[16];

    if (n < 0 || msg->rank >= parent->n_ranks || parent->ranks[msg->rank].node != (uint32_t)n ||
        msg->request == 0)
        return;
    struct manager_job *h = NULL;
    if (family_size(manager, parent->family) >= FAMILY_JOBS)
        snprintf(error, sizeof error, "%u jobs that came of one mpiexec run already", FAMILY_JOBS);
    else if (parent->state == MANAGER_RUNNING &&
             getrandom(key, sizeof key, 0) == (ssize_t)sizeof key)
        h = spawn_make(manager, parent, msg, &distances, error, sizeof error);
    if (h)
        manager_launch(manager, h, msg->submit, key, distances, now_ns);
    else
        connections_answer_spawn(manager->connections, src_node, msg->job, msg->rank, msg->request,
                                 0, error);
    free(distances.data);
}

/* The job of a connection's other end that waits for this claim. */
static struct manager_job *spawn_waiting(struct manager *manager, const Motet__Claim *msg)
{
    struct manager_job *h = manager->table;

    while (h && !(h->parent == msg->job && h->connection == msg->number &&
                  h->state == MANAGER_LAUNCHING && h->ready))
        h = h->hh.next;
    return h;
}

static void spawn_begun(struct manager *manager, uint32_t src_node, const Motet__Claim *msg)
{
    for (struct manager_job *h = manager->table; h; h = h->hh.next)
        if (h->parent == msg->job && h->connection == msg->number && h->spawn_node == src_node)
            h->begun = true;
}

void manager_on_claim(struct manager *manager, uint32_t src_node, const Motet__Claim *msg,
                      uint64_t now_ns)
{
    struct manager_job *h = spawn_waiting(manager, msg);

    (void)now_ns;
    connections_on_claim(manager->connections, src_node, msg);
    if (msg->has_begun && msg->begun)
        spawn_begun(manager, src_node, msg);
    if (!h || src_node != h->spawn_node)
        return;
    if (msg->held)
        manager_start(manager, h);
    else
        launch_failed(manager, h, "the rank that spawned it does not wait for it");
}

void manager_on_ask(struct manager *manager, uint32_t src_node, const Motet__Ask *msg,
                    uint64_t now_ns)
{
    const struct manager_job *h = manager_find(manager, msg->job);
    int n = h ? node_index(h, src_node) : -1;
    const struct port_end from = {
        .job = msg->job, .node_id = src_node, .rank = msg->rank, .request = msg->request};

    if (n < 0 || h->state != MANAGER_RUNNING || msg->rank >= h->n_ranks ||
        h->ranks[msg->rank].node != (uint32_t)n || msg->request == 0)
        return;
    ports_on_ask(manager->ports, &from, h->uid, msg, now_ns);
}

/* True when the job was over and is gone. */
static bool check_over(struct manager *manager, struct manager_job *h)
{
    if (h->n_exited < h->n_ranks || h->n_streams_open > 0)
        return false;
    manager_job_over(manager, h);
    return true;
}

static void judge_exit(struct manager *manager, struct manager_job *h, uint32_t rank,
                       const char *node, int32_t status, const char *reason, uint64_t now_ns)
{
    const struct manager_rank *r = &h->ranks[rank];

    if (reason) {
        int code = WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 128 + SIGKILL;
        manager_job_fail(manager, h, code, now_ns, "rank %u on node %s: %s", rank, node, reason);
    } else if (WIFSIGNALED(status)) {
        manager_job_fail(manager, h, 128 + WTERMSIG(status), now_ns,
                         "rank %u on node %s was killed by signal %d (%s)%s", rank, node,
                         WTERMSIG(status), strsignal(WTERMSIG(status)),
                         WCOREDUMP(status) ? ", core dumped" : "");
    } else if (r->entered && !r->finalized) {
        manager_job_fail(manager, h, WEXITSTATUS(status) ? WEXITSTATUS(status) : 1, now_ns,
                         "rank %u on node %s exited with code %d without calling MPI_Finalize",
                         rank, node, WEXITSTATUS(status));
    } else if (WEXITSTATUS(status) != 0 && !r->entered) {
        manager_job_fail(manager, h, WEXITSTATUS(status), now_ns,
                         "rank %u on node %s exited with code %d", rank, node, WEXITSTATUS(status));
    } else if (WEXITSTATUS(status) != 0 && h->code == 0) {
        /* It had finished with MPI; the others may do so too. */
        h->code = WEXITSTATUS(status);
        snprintf(h->message, sizeof h->message, "rank %u on node %s exited with code %d", rank,
                 node, WEXITSTATUS(status));
    }
}

static void rank_exited(struct manager *manager, struct manager_job *h, uint32_t rank,
                        const char *node, int32_t status, bool finalized, bool entered,
                        const char *reason, uint64_t now_ns)
{
    struct manager_rank *r = &h->ranks[rank];
    Motet__RankExit msg = MOTET__RANK_EXIT__INIT;

    r->exited = true;
    r->status = status;
    r->entered = entered;
    r->finalized = finalized;
    h->n_exited++;
    msg.job = h->id;
    msg.rank = rank;
    msg.node = (char *)node;
    msg.status = status;
    msg.finalized = finalized;
    msg.has_entered = true;
    msg.entered = entered;
    msg.reason = (char *)reason;
    if (h->client)
        manager->ops->to_client(manager->ctx, h->client, MOTET__FRAME_TYPE__RANK_EXIT, &msg.base);
    judge_exit(manager, h, rank, node, status, reason, now_ns);
}

void manager_on_rank_exit(struct manager *manager, uint32_t src_node, const Motet__RankExit *msg,
                          uint64_t now_ns)
{
    struct manager_job *h = manager_find(manager, msg->job);
    int n = h ? node_index(h, src_node) : -1;

    if (n < 0 || h->state == MANAGER_LAUNCHING || msg->rank >= h->n_ranks ||
        h->ranks[msg->rank].node != (uint32_t)n || h->ranks[msg->rank].exited)
        return;
    rank_exited(manager, h, msg->rank, h->placement.placements[n]->node, msg->status,
                msg->finalized, msg->has_entered && msg->entered, msg->reason, now_ns);
    check_over(manager, h);
}

static void stream_ended(struct manager_job *h, uint32_t rank, uint32_t bit)
{
    if (h->ranks[rank].streams_open & bit) {
        h->ranks[rank].streams_open &= (uint8_t)~bit;
        h->n_streams_open--;
    }
}

static void manager_acknowledge(struct manager *manager, struct manager_job *h,
                                struct manager_node *node)
{
    Motet__StdioWindow msg = MOTET__STDIO_WINDOW__INIT;

    node->acknowledged = node->received;
    msg.job = h->id;
    msg.consumed = node->received;
    manager->ops->to_node(manager->ctx, node->node_id, MOTET__FRAME_TYPE__STDIO_WINDOW, &msg.base);
}

void manager_on_stdio(struct manager *manager, uint32_t src_node, const Motet__Stdio *msg,
                      uint64_t now_ns)
{
    struct manager_job *h = manager_find(manager, msg->job);
    int n = h ? node_index(h, src_node) : -1;

    (void)now_ns;
    if (n < 0 || h->state == MANAGER_LAUNCHING || msg->rank >= h->n_ranks ||
        h->ranks[msg->rank].node != (uint32_t)n || msg->stream < 1 || msg->stream > 2)
        return;
    struct manager_node *node = &h->nodes[n];
    if (h->client)
        manager->ops->to_client(manager->ctx, h->client, MOTET__FRAME_TYPE__STDIO, &msg->base);
    if (msg->data.len == 0) {
        stream_ended(h, msg->rank, msg->stream);
        check_over(manager, h);
        return;
    }
    node->received += msg->data.len;
    if (node->received - node->acknowledged >= WINDOW_STEP_BYTES &&
        (!h->client || manager->ops->client_queued(manager->ctx, h->client) <= CLIENT_QUEUE_BYTES))
        manager_acknowledge(manager, h, node);
}

void manager_on_client_drained(struct manager *manager, struct manager_job *job)
{
    for (struct manager_job *h = manager->table; h; h = h->hh.next)
        for (size_t n = 0; h->family == job->family && n < h->placement.n_placements; n++)
            if (h->nodes[n].received > h->nodes[n].acknowledged && !h->nodes[n].lost)
                manager_acknowledge(manager, h, &h->nodes[n]);
}

void manager_on_stdin_window(struct manager *manager, uint32_t src_node,
                             const Motet__StdioWindow *msg)
{
    struct manager_job *h = manager_find(manager, msg->job);
    int n = h ? node_index(h, src_node) : -1;

    if (n < 0 || h->ranks[0].node != (uint32_t)n || msg->consumed > h->stdin_sent ||
        msg->consumed <= h->stdin_consumed)
        return;
    h->stdin_consumed = msg->consumed;
    if (h->client)
        manager->ops->to_client(manager->ctx, h->client, MOTET__FRAME_TYPE__STDIO_WINDOW,
                                &msg->base);
}

int manager_on_client_stdin(struct manager *manager, struct manager_job *h, const Motet__Stdio *msg)
{
    if (msg->job != h->id || msg->stream != 0)
        return -EPROTO;
    if (h->state == MANAGER_LAUNCHING || h->ranks[0].exited || h->nodes[h->ranks[0].node].lost)
        return 0;
    if (h->stdin_sent - h->stdin_consumed + msg->data.len > STDIN_WINDOW_BYTES)
        return -EPROTO;
    h->stdin_sent += msg->data.len;
    manager->ops->to_node(manager->ctx, h->nodes[h->ranks[0].node].node_id,
                          MOTET__FRAME_TYPE__STDIO, &msg->base);
    return 0;
}

void manager_on_client_kill(struct manager *manager, struct manager_job *h, const Motet__Kill *msg,
                            uint64_t now_ns)
{
    if (msg->job != h->id || msg->signal <= 0 || msg->signal >= NSIG)
        return;
    if (h->state == MANAGER_LAUNCHING) {
        launch_failed(manager, h, "ended by mpiexec before it began");
        return;
    }
    h->ordered = true;
    if (msg->signal != SIGKILL) {
        send_kill(manager, h, msg->signal);
        return;
    }
    if (!h->failed) {
        snprintf(h->message, sizeof h->message, "%s",
                 msg->reason ? msg->reason : "killed by mpiexec");
        h->failed = true;
        h->code = msg->has_code ? msg->code : 128 + SIGKILL;
    }
    h->state = MANAGER_ENDING;
    kill_now(manager, h, now_ns);
}

void manager_on_client_gone(struct manager *manager, struct manager_job *job)
{
    uint64_t family = job->family;
    struct manager_job *h;

    for (h = manager->table; h; h = h->hh.next)
        if (h->family == family)
            h->client = NULL;
    while ((h = manager_of_family(manager, family)) != NULL) {
        if (!h->failed)
            snprintf(h->message, sizeof h->message, "mpiexec is gone");
        h->failed = true;
        h->code = 128 + SIGKILL;
        manager_job_over(manager, h);
    }
}

void manager_on_abort(struct manager *manager, uint32_t src_node, const Motet__Abort *msg,
                      uint64_t now_ns)
{
    struct manager_job *h = manager_find(manager, msg->job);
    int n = h ? node_index(h, src_node) : -1;

    if (n < 0 || h->state == MANAGER_LAUNCHING || msg->rank >= h->n_ranks ||
        h->ranks[msg->rank].node != (uint32_t)n)
        return;
    /* What a shell would see of exit(code); an abort is never a success. */
    int code = msg->code & 0xff ? msg->code & 0xff : 1;
    manager_job_fail(manager, h, code, now_ns, "rank %u on node %s ended the job: %s", msg->rank,
                     h->placement.placements[n]->node,
                     msg->text && msg->text[0] ? msg->text : "MPI_Abort");
}

/* The node's ranks that have not ended, as "rank 3" or "ranks 0-5, 7 and 12 more". False: none. */
static bool name_ranks(const struct manager_job *h, const Motet__Placement *pl, char *out,
                       size_t size)
{
    size_t at = 0, n_left = 0, n_alive = 0;
    unsigned n_ranges = 0;
    char list[160] = "";

    for (size_t i = 0; i < pl->n_ranks; i++) {
        uint32_t first = pl->ranks[i], last = first;
        if (h->ranks[first].exited)
            continue;
        n_alive++;
        if (n_ranges == NAMED_RANGES) {
            n_left++;
            continue;
        }
        while (i + 1 < pl->n_ranks && pl->ranks[i + 1] == last + 1 && !h->ranks[last + 1].exited) {
            last++;
            i++;
            n_alive++;
        }
        int n = snprintf(list + at, sizeof list - at, last > first ? "%s%u-%u" : "%s%u",
                         n_ranges ? ", " : "", first, last);
        at += n > 0 ? (size_t)n : 0;
        n_ranges++;
    }
    if (n_left > 0)
        snprintf(list + at, sizeof list - at, " and %zu more", n_left);
    snprintf(out, size, "rank%s %s", n_alive == 1 ? "" : "s", list);
    return n_alive > 0;
}

/* The job cannot be good any more: what ranks there would have done, or the rest of what they
 * wrote, is missing. */
static void fail_with_node(struct manager *manager, struct manager_job *h,
                           const Motet__Placement *pl, const char *why, uint64_t now_ns)
{
    char ranks[200];

    if (name_ranks(h, pl, ranks, sizeof ranks))
        manager_job_fail(manager, h, 128 + SIGKILL, now_ns, "node %s %s; it had %s", pl->node, why,
                         ranks);
    for (size_t i = 0; i < pl->n_ranks; i++)
        if (h->ranks[pl->ranks[i]].streams_open)
            manager_job_fail(manager, h, 1, now_ns,
                             "node %s %s before all that rank %u had written was here", pl->node,
                             why, pl->ranks[i]);
}

void manager_on_node_lost(struct manager *manager, uint32_t node_id, const char *why,
                          uint64_t now_ns)
{
    struct manager_job *h, *next;

    HASH_ITER(hh, manager->table, h, next) {
        int n = node_index(h, node_id);
        if (n < 0 || h->nodes[n].lost)
            continue;
        const Motet__Placement *pl = h->placement.placements[n];
        char reason[160];
        h->nodes[n].lost = true;
        if (h->state == MANAGER_LAUNCHING) {
            snprintf(reason, sizeof reason, "node %s %s while the job was being started", pl->node,
                     why);
            launch_failed(manager, h, reason);
            continue;
        }
        fail_with_node(manager, h, pl, why, now_ns);
        snprintf(reason, sizeof reason, "its node %s", why);
        for (size_t i = 0; i < pl->n_ranks; i++) {
            uint32_t rank = pl->ranks[i];
            if (!h->ranks[rank].exited)
                rank_exited(manager, h, rank, pl->node, SIGKILL, false, h->ranks[rank].entered,
                            reason, now_ns);
            stream_ended(h, rank, 1);
            stream_ended(h, rank, 2);
        }
        check_over(manager, h);
    }
}

void manager_end_all(struct manager *manager, const char *why, uint64_t now_ns)
{
    struct manager_job *h, *next;

    HASH_ITER(hh, manager->table, h, next) {
        if (h->state == MANAGER_LAUNCHING)
            launch_failed(manager, h, why);
        else
            manager_job_fail(manager, h, 128 + SIGTERM, now_ns, "%s", why);
    }
}

uint64_t manager_deadline(const struct manager *manager)
{
    uint64_t when_ns = ports_deadline(manager->ports);

    for (const struct manager_job *h = manager->table; h; h = h->hh.next)
        when_ns = h->deadline_ns < when_ns ? h->deadline_ns : when_ns;
    return when_ns;
}

/* Whether nothing can be heard any more of whatever has not ended. Should such a node come back it
 * gets JobEnd. */
static bool only_unreachable_left(const struct manager *manager, const struct manager_job *h)
{
    for (uint32_t r = 0; r < h->n_ranks; r++)
        if ((!h->ranks[r].exited || h->ranks[r].streams_open) &&
            manager->ops->reachable(manager->ctx, h->nodes[h->ranks[r].node].node_id))
            return false;
    return true;
}

void manager_run(struct manager *manager, uint64_t now_ns)
{
    struct manager_job *h, *next;

    ports_run(manager->ports, now_ns);
    HASH_ITER(hh, manager->table, h, next) {
        if (h->deadline_ns <= now_ns) {
            if (h->state == MANAGER_LAUNCHING) {
                launch_failed(manager, h,
                              h->abandoned ? "the job that has spawned it is over"
                                           : "not all nodes answered within 30 s");
                continue;
            }
            if (h->abandoned && !h->failed) {
                manager_job_fail(manager, h, 128 + SIGTERM, now_ns,
                                 "the job that has spawned it is over");
                continue;
            }
            if (h->killed && now_ns < h->give_up_ns && !only_unreachable_left(manager, h)) {
                h->deadline_ns = now_ns + KILL_STEP_NS;
                continue;
            }
            if (h->killed) {
                log_warn("job %016llx: %u ranks and %u output streams did not end after SIGKILL, "
                         "giving them up",
                         (unsigned long long)h->id, h->n_ranks - h->n_exited, h->n_streams_open);
                manager_job_over(manager, h);
                continue;
            }
            kill_now(manager, h, now_ns);
        }
    }
}
