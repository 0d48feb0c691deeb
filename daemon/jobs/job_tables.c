/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/job_tables.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/routing/node_name.h"
#include "proto/binding.h"

#define MAX_RANKS (1u << 20)

static int tables_refuse(char *error, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int tables_refuse(char *error, size_t size, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(error, size, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

/* Fills the world table; every rank must be placed exactly once. */
static int tables_build_world(struct job *job, uint32_t n_world, char *error, size_t size)
{
    const Motet__Launch *l = job->launch;
    uint64_t n_placed = 0;

    for (uint32_t r = 0; r < n_world; r++)
        job->world[r].node = UINT32_MAX;
    for (size_t n = 0; n < l->n_placements; n++) {
        const Motet__Placement *pl = l->placements[n];
        if (!pl->has_node_id || pl->n_ranks == 0 || pl->n_ranks > SEGMENT_MAX_LOCAL ||
            strlen(pl->node) >= sizeof job->nodes[n].name || node_name_id(pl->node) != pl->node_id)
            return tables_refuse(error, size, "placement %zu of the launch message is not valid",
                                 n);
        job->nodes[n].node_id = pl->node_id;
        snprintf(job->nodes[n].name, sizeof job->nodes[n].name, "%s", pl->node);
        for (size_t i = 0; i < pl->n_ranks; i++) {
            uint32_t rank = pl->ranks[i];
            if (rank >= n_world || job->world[rank].node != UINT32_MAX ||
                (i > 0 && rank <= pl->ranks[i - 1]))
                return tables_refuse(error, size, "rank %u is placed wrongly in the launch message",
                                     rank);
            job->world[rank].node = (uint32_t)n;
            job->world[rank].local = (uint32_t)i;
        }
        n_placed += pl->n_ranks;
    }
    return n_placed == n_world ? 0
                               : tables_refuse(error, size, "%llu of %u ranks are placed",
                                               (unsigned long long)n_placed, n_world);
}

static uint32_t tables_app_of(const Motet__Launch *l, uint32_t rank)
{
    uint32_t app = 0;

    while (app + 1 < l->n_apps && rank >= l->apps[app]->n_ranks)
        rank -= l->apps[app++]->n_ranks;
    return app;
}

static int tables_build_ranks(struct job *job, uint32_t own_id, const char *here, char *error,
                              size_t size)
{
    const Motet__Launch *l = job->launch;
    const Motet__Placement *own = NULL;

    for (size_t n = 0; n < l->n_placements; n++) {
        for (size_t other = 0; other < n; other++)
            if (l->placements[other]->node_id == l->placements[n]->node_id)
                return tables_refuse(error, size, "node %s is placed twice in the launch message",
                                     l->placements[n]->node);
        if (l->placements[n]->node_id == own_id)
            own = l->placements[n];
    }
    if (!own)
        return tables_refuse(error, size, "no rank of this job belongs to node %s", here);
    job->ranks = calloc(own->n_ranks, sizeof *job->ranks);
    if (!job->ranks)
        return tables_refuse(error, size, "out of memory on node %s", here);
    job->n_local = (uint32_t)own->n_ranks;
    for (uint32_t i = 0; i < job->n_local; i++) {
        job->ranks[i].world = own->ranks[i];
        job->ranks[i].app = tables_app_of(l, own->ranks[i]);
    }
    return 0;
}

static bool tables_binding_ok(const Motet__Binding *b)
{
    return !b || (b->to < BINDING_N_LEVELS && b->over < BINDING_N_LEVELS && b->width > 0 &&
                  b->width <= BINDING_WIDTH_MAX);
}

int job_tables_build(struct job *job, uint32_t own_id, const char *here, char *error,
                     size_t error_size)
{
    const Motet__Launch *l = job->launch;
    uint64_t n_world = 0;

    for (size_t i = 0; i < l->n_apps; i++) {
        n_world += l->apps[i]->n_ranks;
        if (l->apps[i]->n_argv == 0 || l->apps[i]->n_ranks == 0)
            return tables_refuse(error, error_size,
                                 "part %zu of the job has no program or no ranks", i);
    }
    if (l->key.len != sizeof job->key || n_world == 0 || n_world > MAX_RANKS ||
        l->n_placements == 0 || l->n_placements > HOP_MAX_NODES || l->wait_mode >= WAIT_N_MODES ||
        !tables_binding_ok(l->binding))
        return tables_refuse(error, error_size, "the launch message is not valid");
    memcpy(job->key, l->key.data, sizeof job->key);
    job->id = l->job;
    job->home_node = l->home_node;
    job->uid = l->uid;
    job->gid = l->gid;
    snprintf(job->name, sizeof job->name, "%s", l->name);
    job->world = calloc((size_t)n_world, sizeof *job->world);
    job->nodes = calloc(l->n_placements, sizeof *job->nodes);
    if (!job->world || !job->nodes)
        return tables_refuse(error, error_size, "out of memory on node %s", here);
    job->layout.shape.n_world = (uint32_t)n_world;
    job->layout.shape.n_nodes = (uint32_t)l->n_placements;
    int rc = tables_build_world(job, (uint32_t)n_world, error, error_size);
    if (rc == 0)
        rc = tables_build_ranks(job, own_id, here, error, error_size);
    return rc;
}

void job_tables_free(struct job *job)
{
    free(job->ranks);
    free(job->world);
    free(job->nodes);
    if (job->launch)
        motet__launch__free_unpacked(job->launch, NULL);
}
