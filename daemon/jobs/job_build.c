/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/job_build.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "daemon/cluster/channels.h"
#include "daemon/cluster/forwarding.h"
#include "daemon/control/node.h"
#include "daemon/jobs/networks.h"

#define MAX_RANKS (1u << 20)

static int refuse(char *error, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int refuse(char *error, size_t size, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(error, size, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

/* Fills the world table; every rank must be placed exactly once. */
static int build_world(struct job *job, uint32_t n_world, char *error, size_t size)
{
    const Motet__Launch *l = job->launch;
    uint64_t n_placed = 0;

    for (uint32_t r = 0; r < n_world; r++)
        job->world[r].node = UINT32_MAX;
    for (size_t n = 0; n < l->n_placements; n++) {
        const Motet__Placement *pl = l->placements[n];
        if (!pl->has_node_id || pl->n_ranks == 0 || pl->n_ranks > SEGMENT_MAX_LOCAL ||
            strlen(pl->node) >= sizeof job->nodes[n].name || node_id_of(pl->node) != pl->node_id)
            return refuse(error, size, "placement %zu of the launch message is not valid", n);
        int slot = forwarding_slot(job->node->forwarding, pl->node_id);
        if (slot < 0)
            return refuse(error, size, "the node table of node %s is full", job->node->config.name);
        job->nodes[n].node_id = pl->node_id;
        job->nodes[n].slot = (uint32_t)slot;
        snprintf(job->nodes[n].name, sizeof job->nodes[n].name, "%s", pl->node);
        for (size_t i = 0; i < pl->n_ranks; i++) {
            uint32_t rank = pl->ranks[i];
            if (rank >= n_world || job->world[rank].node != UINT32_MAX ||
                (i > 0 && rank <= pl->ranks[i - 1]))
                return refuse(error, size, "rank %u is placed wrongly in the launch message", rank);
            job->world[rank].node = (uint32_t)n;
            job->world[rank].local = (uint32_t)i;
        }
        n_placed += pl->n_ranks;
    }
    return n_placed == n_world ? 0
                               : refuse(error, size, "%llu of %u ranks are placed",
                                        (unsigned long long)n_placed, n_world);
}

static uint32_t app_of(const Motet__Launch *l, uint32_t rank)
{
    uint32_t app = 0;

    while (app + 1 < l->n_apps && rank >= l->apps[app]->n_ranks)
        rank -= l->apps[app++]->n_ranks;
    return app;
}

static int build_ranks(struct job *job, char *error, size_t size)
{
    const Motet__Launch *l = job->launch;
    const Motet__Placement *own = NULL;

    for (size_t n = 0; n < l->n_placements; n++) {
        for (size_t other = 0; other < n; other++)
            if (l->placements[other]->node_id == l->placements[n]->node_id)
                return refuse(error, size, "node %s is placed twice in the launch message",
                              l->placements[n]->node);
        if (l->placements[n]->node_id == job->node->id)
            own = l->placements[n];
    }
    if (!own)
        return refuse(error, size, "no rank of this job belongs to node %s",
                      job->node->config.name);
    job->ranks = calloc(own->n_ranks, sizeof *job->ranks);
    if (!job->ranks)
        return refuse(error, size, "out of memory on node %s", job->node->config.name);
    job->n_local = (uint32_t)own->n_ranks;
    for (uint32_t i = 0; i < job->n_local; i++) {
        job->ranks[i].world = own->ranks[i];
        job->ranks[i].app = app_of(l, own->ranks[i]);
    }
    return 0;
}

/* The networks of all placements. Names are the message's. Their number, or -EINVAL. */
static int list_networks(const Motet__Launch *l, const char *names[SEGMENT_MAX_NETWORKS],
                         char *error, size_t size)
{
    int n = networks_list(l->placements, l->n_placements, names, SEGMENT_MAX_NETWORKS);

    for (int k = 0; k < n; k++)
        if (strlen(names[k]) >= sizeof(struct segment_network))
            return refuse(error, size, "the name of network %.80s is too long", names[k]);
    if (n < 0)
        return refuse(error, size, "the job's nodes are on more than %u networks",
                      SEGMENT_MAX_NETWORKS);
    if (!l->has_network_distances || l->network_distances.len != (size_t)n * (size_t)n)
        return refuse(error, size,
                      "the launch message says nothing of the distances between its %d networks",
                      n);
    return n;
}

static void fill_networks(struct job *job, const char *names[SEGMENT_MAX_NETWORKS])
{
    const Motet__Launch *l = job->launch;

    for (uint32_t k = 0; k < job->layout.shape.n_networks; k++) {
        snprintf(segment_network_at(job->segment, &job->layout, k)->name,
                 sizeof(struct segment_network), "%s", names[k]);
        for (uint32_t i = 0; i < l->n_placements; i++)
            for (size_t j = 0; j < l->placements[i]->n_networks; j++)
                if (strcmp(l->placements[i]->networks[j], names[k]) == 0)
                    *segment_on_network(job->segment, &job->layout, k, i) = 1;
    }
    if (l->network_distances.len > 0)
        memcpy(segment_network_distance(job->segment, &job->layout, 0, 0),
               l->network_distances.data, l->network_distances.len);
}

static int build_segment(struct job *job, uint32_t n_world, char *error, size_t size)
{
    const Motet__Launch *l = job->launch;
    struct segment_shape shape = {.n_world = n_world,
                                  .n_nodes = (uint32_t)l->n_placements,
                                  .n_local = job->n_local,
                                  .n_channels = channels_n_channels(job->node->channels)};
    const char *networks[SEGMENT_MAX_NETWORKS];
    void *base;

    int n_networks = list_networks(l, networks, error, size);
    if (n_networks < 0)
        return n_networks;
    shape.n_networks = (uint32_t)n_networks;
    segment_shape_defaults(&shape);
    if (segment_shape_check(&shape) < 0)
        return refuse(error, size, "the job has a shape that node %s cannot hold",
                      job->node->config.name);
    segment_layout(&shape, &job->layout);
    job->segment_fd = fd_memory("motet-job", job->layout.total, false, &base);
    if (job->segment_fd < 0)
        return refuse(error, size, "node %s: shared memory of %zu bytes: %s",
                      job->node->config.name, job->layout.total, strerror(-job->segment_fd));
    job->segment = base;
    memcpy(segment_world_at(base, &job->layout, 0), job->world, sizeof *job->world * n_world);
    memcpy(segment_node_at(base, &job->layout, 0), job->nodes, sizeof *job->nodes * shape.n_nodes);
    fill_networks(job, networks);
    for (uint32_t i = 0; i < job->n_local; i++)
        segment_rank_at(base, &job->layout, i)->world_rank = job->ranks[i].world;
    struct segment_header *h = base;
    h->magic = SEGMENT_MAGIC;
    h->job = job->id;
    h->shape = shape;
    atomic_store_explicit(&h->wait_mode, l->wait_mode, memory_order_relaxed);
    snprintf(h->job_name, sizeof h->job_name, "%s", job->name);
    /* release: pairs with the acquire of the ranks; the version says that the rest is there. */
    atomic_store_explicit(&h->version, SEGMENT_VERSION, memory_order_release);
    for (uint32_t ch = 0; ch < shape.n_channels; ch++) {
        job->event_fds[ch] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (job->event_fds[ch] < 0)
            return refuse(error, size, "node %s: eventfd: %s", job->node->config.name,
                          strerror(errno));
    }
    return 0;
}

int job_build(struct job *job, char *error, size_t error_size)
{
    const Motet__Launch *l = job->launch;
    const char *here = job->node->config.name;
    uint64_t n_world = 0;

    job->segment_fd = -1;
    for (int i = 0; i < (int)HOP_MAX_CHANNELS; i++)
        job->event_fds[i] = -1;
    for (size_t i = 0; i < l->n_apps; i++) {
        n_world += l->apps[i]->n_ranks;
        if (l->apps[i]->n_argv == 0 || l->apps[i]->n_ranks == 0)
            return refuse(error, error_size, "part %zu of the job has no program or no ranks", i);
    }
    if (l->key.len != sizeof job->key || n_world == 0 || n_world > MAX_RANKS ||
        l->n_placements == 0 || l->n_placements > HOP_MAX_NODES || l->wait_mode >= WAIT_N_MODES)
        return refuse(error, error_size, "the launch message is not valid");
    if (geteuid() != 0 && (l->uid != geteuid() || l->gid != getegid()))
        return refuse(error, error_size,
                      "the daemon on node %s runs as user %u and group %u and cannot start ranks "
                      "for user %u, group %u",
                      here, (unsigned)geteuid(), (unsigned)getegid(), l->uid, l->gid);
    memcpy(job->key, l->key.data, sizeof job->key);
    job->id = l->job;
    job->home_node = l->home_node;
    job->uid = l->uid;
    job->gid = l->gid;
    job->fenced = job->node->fenced;
    snprintf(job->name, sizeof job->name, "%s", l->name);
    job->world = calloc((size_t)n_world, sizeof *job->world);
    job->nodes = calloc(l->n_placements, sizeof *job->nodes);
    if (!job->world || !job->nodes)
        return refuse(error, error_size, "out of memory on node %s", here);
    int rc = build_world(job, (uint32_t)n_world, error, error_size);
    if (rc == 0)
        rc = build_ranks(job, error, error_size);
    if (rc == 0)
        rc = build_segment(job, (uint32_t)n_world, error, error_size);
    return rc;
}

void job_build_free(struct job *job)
{
    for (int i = 0; i < (int)HOP_MAX_CHANNELS; i++)
        fd_closep(&job->event_fds[i]);
    if (job->segment)
        munmap(job->segment, job->layout.total);
    fd_closep(&job->segment_fd);
    free(job->ranks);
    free(job->world);
    free(job->nodes);
    if (job->launch)
        motet__launch__free_unpacked(job->launch, NULL);
}

struct env_list {
    char **items;
    size_t n, size;
    bool failed;
};

/* Takes the string over; an earlier one of the same name is replaced. */
static void env_put(struct env_list *env, char *item)
{
    size_t name_len = item ? strcspn(item, "=") : 0;

    if (!item || env->failed) {
        env->failed = true;
        free(item);
        return;
    }
    if (item[name_len] != '=' || name_len == 0) {
        free(item);
        return;
    }
    for (size_t i = 0; i < env->n; i++) {
        if (strncmp(env->items[i], item, name_len + 1) == 0) {
            free(env->items[i]);
            env->items[i] = item;
            return;
        }
    }
    if (env->n + 1 >= env->size) {
        size_t size = env->size ? env->size * 2 : 64;
        char **grown = realloc(env->items, size * sizeof *grown);
        if (!grown) {
            env->failed = true;
            free(item);
            return;
        }
        env->items = grown;
        env->size = size;
    }
    env->items[env->n++] = item;
    env->items[env->n] = NULL;
}

static void env_number(struct env_list *env, const char *name, uint64_t value)
{
    char *item;

    if (asprintf(&item, "%s=%llu", name, (unsigned long long)value) < 0)
        item = NULL;
    env_put(env, item);
}

static void env_text(struct env_list *env, const char *name, const char *value)
{
    char *item;

    if (asprintf(&item, "%s=%s", name, value) < 0)
        item = NULL;
    env_put(env, item);
}

char **job_env_new(const struct job *job, uint32_t local, size_t *ret_n)
{
    struct env_list env = {0};
    const struct job_rank *rank = &job->ranks[local];
    const Motet__App *app = job->launch->apps[rank->app];
    char text[64];

    for (size_t i = 0; i < job->launch->n_env; i++)
        env_put(&env, strdup(job->launch->env[i]));
    for (size_t i = 0; i < app->n_env; i++)
        env_put(&env, strdup(app->env[i]));
    env_text(&env, "MOTET_SOCKET", job->node->config.client_socket);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)job->id);
    env_text(&env, "MOTET_JOB", text);
    for (size_t i = 0; i < sizeof job->key; i++)
        snprintf(text + 2 * i, 3, "%02x", job->key[i]);
    env_text(&env, "MOTET_KEY", text);
    env_text(&env, "MOTET_NODE", job->node->config.name);
    /* The same four numbers under the names that scripts know from Hydra, Open MPI and Intel
     * MPI. */
    static const char *const names[4][4] = {
        {"MOTET_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"},
        {"MOTET_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", NULL},
        {"MOTET_LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_LOCAL_RANK"},
        {"MOTET_LOCAL_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE"},
    };
    const uint64_t values[4] = {rank->world, job->layout.shape.n_world, local, job->n_local};
    for (int v = 0; v < 4; v++)
        for (int n = 0; n < 4 && names[v][n]; n++)
            env_number(&env, names[v][n], values[v]);
    env_number(&env, "MOTET_APP", rank->app);
    if (env.failed) {
        job_env_free(env.items);
        return NULL;
    }
    *ret_n = env.n;
    return env.items;
}

void job_env_free(char **env)
{
    for (size_t i = 0; env && env[i]; i++)
        free(env[i]);
    free(env);
}
