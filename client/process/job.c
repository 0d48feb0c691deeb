/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/process/job.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/client.h"
#include "client/transport/transport.h"

struct job {
    bool attached;
    char own_name[SEGMENT_NODE_NAME]; /* of the node, where no daemon gives it one */
};
static struct job job_first;
static struct job *job_here = &job_first;
CLIENT_PART(job_here, job_first);

int job_attach(void)
{
    int rc = transport_attach();

    job_here->attached = rc == 0;
    return rc;
}

void job_detach(void)
{
    job_here->attached = false;
    transport_detach();
}

bool job_attached(void)
{
    return job_here->attached;
}

int job_size(void)
{
    return (int)transport_here->n_world;
}

int job_rank(void)
{
    return (int)transport_here->world_rank;
}

int job_n_nodes(void)
{
    return (int)transport_here->n_nodes;
}

int job_node_of(int world_rank)
{
    return transport_here->base ? (int)transport_world((uint32_t)world_rank)->node : 0;
}

int job_local_rank_of(int world_rank)
{
    return transport_here->base ? (int)transport_world((uint32_t)world_rank)->local : 0;
}

int job_local_size(void)
{
    return (int)transport_here->n_local;
}

int job_local_rank(void)
{
    return (int)transport_here->local_rank;
}

bool job_is_local(int world_rank)
{
    return job_node_of(world_rank) == (int)transport_here->node;
}

const char *job_node_name(int node)
{
    if (transport_here->base && node >= 0 &&
        node < job_n_nodes() + (int)transport_here->layout.shape.n_foreign)
        return segment_node_at(transport_here->base, &transport_here->layout, (uint32_t)node)->name;
    if (!job_here->own_name[0])
        gethostname(job_here->own_name, sizeof job_here->own_name - 1);
    return job_here->own_name;
}

uint64_t job_node_id(int node)
{
    return transport_here->base
               ? segment_node_at(transport_here->base, &transport_here->layout, (uint32_t)node)
                     ->node_id
               : 0;
}

int job_n_networks(void)
{
    return transport_here->base ? (int)transport_here->layout.shape.n_networks : 0;
}

const char *job_network_name(int network)
{
    return segment_network_at(transport_here->base, &transport_here->layout, (uint32_t)network)
        ->name;
}

bool job_on_network(int node, int network)
{
    return *segment_on_network(transport_here->base, &transport_here->layout, (uint32_t)network,
                               (uint32_t)node) != 0;
}

int job_network_distance(int from, int to)
{
    return *segment_network_distance(transport_here->base, &transport_here->layout, (uint32_t)from,
                                     (uint32_t)to);
}

uint64_t job_id(void)
{
    return transport_here->job;
}
