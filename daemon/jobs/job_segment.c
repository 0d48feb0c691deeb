/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/job_segment.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "daemon/jobs/networks.h"

static int segment_refuse(char *error, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int segment_refuse(char *error, size_t size, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(error, size, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

/* The networks of all placements. Names are the message's. Their number, or -EINVAL. */
static int segment_list_networks(const Motet__Launch *l, const char *names[SEGMENT_MAX_NETWORKS],
                                 char *error, size_t size)
{
    int n = networks_list(l->placements, l->n_placements, names, SEGMENT_MAX_NETWORKS);

    for (int k = 0; k < n; k++)
        if (strlen(names[k]) >= sizeof(struct segment_network))
            return segment_refuse(error, size, "the name of network %.80s is too long", names[k]);
    if (n < 0)
        return segment_refuse(error, size, "the job's nodes are on more than %u networks",
                              SEGMENT_MAX_NETWORKS);
    if (!l->has_network_distances || l->network_distances.len != (size_t)n * (size_t)n)
        return segment_refuse(
            error, size, "the launch message says nothing of the distances between its %d networks",
            n);
    return n;
}

static void segment_fill_networks(struct job *job, const char *names[SEGMENT_MAX_NETWORKS])
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

int job_segment_make(struct job *job, uint32_t n_channels, const char *here, char *error,
                     size_t size)
{
    const Motet__Launch *l = job->launch;
    uint32_t n_world = job->layout.shape.n_world;
    struct segment_shape shape = {.n_world = n_world,
                                  .n_nodes = (uint32_t)l->n_placements,
                                  .n_local = job->n_local,
                                  .n_channels = n_channels};
    const char *networks[SEGMENT_MAX_NETWORKS];
    void *base;

    int n_networks = segment_list_networks(l, networks, error, size);
    if (n_networks < 0)
        return n_networks;
    shape.n_networks = (uint32_t)n_networks;
    segment_shape_defaults(&shape);
    if (segment_shape_check(&shape) < 0)
        return segment_refuse(error, size, "the job has a shape that node %s cannot hold", here);
    segment_layout(&shape, &job->layout);
    job->segment_fd = fd_memory("motet-job", job->layout.total, false, &base);
    if (job->segment_fd < 0)
        return segment_refuse(error, size, "node %s: shared memory of %zu bytes: %s", here,
                              job->layout.total, strerror(-job->segment_fd));
    job->segment = base;
    memcpy(segment_world_at(base, &job->layout, 0), job->world, sizeof *job->world * n_world);
    memcpy(segment_node_at(base, &job->layout, 0), job->nodes, sizeof *job->nodes * shape.n_nodes);
    segment_fill_networks(job, networks);
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
            return segment_refuse(error, size, "node %s: eventfd: %s", here, strerror(errno));
    }
    return 0;
}

void job_segment_free(struct job *job)
{
    for (int i = 0; i < (int)HOP_MAX_CHANNELS; i++)
        fd_closep(&job->event_fds[i]);
    if (job->segment)
        munmap(job->segment, job->layout.total);
    job->segment = NULL;
    fd_closep(&job->segment_fd);
}
