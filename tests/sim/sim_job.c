/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/sim_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/segment.h"

void sim_job_place(struct sim *s, struct sim_job *j)
{
    uint32_t room = JOB_LOCAL * s->n_nodes;

    j->n_world = 2 + (uint32_t)sim_draw(s, JOB_WORLD - 2);
    if (j->n_world > room)
        j->n_world = room;
    for (uint32_t r = 0; r < j->n_world; r++) {
        struct sim_place *k = &j->places[r];
        do
            k->node = (uint32_t)sim_draw(s, s->n_nodes);
        while (j->parts[k->node].n_local == JOB_LOCAL);
        k->local = j->parts[k->node].n_local++;
    }
    sim_job_number_nodes(s, j);
}

void sim_job_number_nodes(const struct sim *s, struct sim_job *j)
{
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        if (j->parts[i].n_local > 0) {
            j->node_of[i] = j->n_nodes;
            j->nodes[j->n_nodes++] = i;
        }
    }
}

static bool is_on(const struct sim_node *n, uint32_t network)
{
    for (uint32_t c = 0; c < n->n_nics; c++)
        if (n->nics[c].network == network)
            return true;
    return false;
}

/* Gateways between each two networks, over all nodes whether they are up or not. */
static void measure_networks(const struct sim *s, uint8_t dist[SIM_NETWORKS][SIM_NETWORKS])
{
    memset(dist, 255, SIM_NETWORKS * SIM_NETWORKS);
    for (uint32_t a = 0; a < s->n_networks; a++) {
        dist[a][a] = 0;
        for (uint32_t round = 0; round < s->n_networks; round++)
            for (uint32_t i = 0; i < s->n_nodes; i++)
                for (uint32_t b = 0; b < s->n_networks; b++)
                    for (uint32_t c = 0; c < s->n_networks; c++)
                        if (is_on(&s->nodes[i], b) && is_on(&s->nodes[i], c) &&
                            dist[a][b] + 1 < dist[a][c])
                            dist[a][c] = (uint8_t)(dist[a][b] + 1);
    }
}

/* Networks that nodes of the job are on. */
static uint32_t list_networks(const struct sim *s, const struct sim_job *j, uint32_t *ret_networks)
{
    uint32_t n = 0;

    for (uint32_t w = 0; w < s->n_networks; w++) {
        bool used = false;
        for (uint32_t k = 0; k < j->n_nodes; k++)
            used |= is_on(&s->nodes[j->nodes[k]], w);
        if (used)
            ret_networks[n++] = w;
    }
    return n;
}

static void fill_tables(struct sim *s, struct sim_job *j, uint32_t node)
{
    struct sim_part *p = &j->parts[node];
    uint32_t networks[SIM_NETWORKS], n_networks = list_networks(s, j, networks);
    uint8_t dist[SIM_NETWORKS][SIM_NETWORKS];

    for (uint32_t r = 0; r < j->n_world; r++) {
        *segment_world_at(p->segment, &p->layout, r) = (struct segment_world){
            .node = j->node_of[j->places[r].node], .local = j->places[r].local};
        if (j->places[r].node == node)
            segment_rank_at(p->segment, &p->layout, j->places[r].local)->world_rank = r;
    }
    for (uint32_t k = 0; k < j->n_nodes; k++) {
        struct segment_node *n = segment_node_at(p->segment, &p->layout, k);
        n->node_id = s->nodes[j->nodes[k]].id;
        n->slot = cluster_slot(node, j->nodes[k]);
        snprintf(n->name, sizeof n->name, "node%u", j->nodes[k]);
    }
    measure_networks(s, dist);
    for (uint32_t a = 0; a < n_networks; a++) {
        snprintf(segment_network_at(p->segment, &p->layout, a)->name, SEGMENT_NODE_NAME, "net%u",
                 networks[a]);
        for (uint32_t k = 0; k < j->n_nodes; k++)
            *segment_on_network(p->segment, &p->layout, a, k) =
                is_on(&s->nodes[j->nodes[k]], networks[a]);
        for (uint32_t b = 0; b < n_networks; b++)
            *segment_network_distance(p->segment, &p->layout, a, b) =
                dist[networks[a]][networks[b]];
    }
}

void sim_job_part_make(struct sim *s, struct sim_job *j, uint32_t node,
                       const struct segment_shape *rings)
{
    struct sim_part *p = &j->parts[node];
    struct segment_shape shape = *rings;
    uint32_t networks[SIM_NETWORKS];

    shape.n_world = j->n_world;
    shape.n_nodes = j->n_nodes;
    shape.n_local = p->n_local;
    shape.n_channels = s->nodes[node].n_nics;
    shape.n_networks = list_networks(s, j, networks);
    if (segment_shape_check(&shape) < 0)
        sim_fail(s, "segment shape");
    segment_layout(&shape, &p->layout);
    p->segment = mmap(NULL, p->layout.total, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->segment == MAP_FAILED)
        sim_fail(s, "memory");
    fill_tables(s, j, node);
    struct segment_header *h = p->segment;
    h->magic = SEGMENT_MAGIC;
    h->job = j->id;
    h->shape = shape;
    atomic_store_explicit(&h->version, SEGMENT_VERSION, memory_order_release);
    p->exists = true;
}

void sim_job_part_free(struct sim_part *p)
{
    for (uint32_t c = 0; c < SIM_CHANNELS; c++)
        channel_job_free(p->views[c]);
    if (p->segment)
        munmap(p->segment, p->layout.total);
    *p = (struct sim_part){.n_local = p->n_local};
}

void sim_job_rings_open(struct sim *s, struct sim_job *j, uint32_t rank, struct sim_rings *r)
{
    uint32_t local = j->places[rank].local, n_channels = s->nodes[j->places[rank].node].n_nics;
    struct sim_part *p = &j->parts[j->places[rank].node];
    const struct segment_shape *shape = &p->layout.shape;
    uint32_t n_slots = shape->up.n_slots;

    r->data_end = calloc((size_t)n_channels * n_slots, sizeof *r->data_end);
    if (!r->data_end)
        sim_fail(s, "memory");
    for (uint32_t c = 0; c < n_channels; c++) {
        struct bell_ref bell = {
            .bell = segment_channel_bell(p->segment, &p->layout, c), .bit = local, .event_fd = -1};
        ring_producer_init(&r->up[c], segment_up_ring(p->segment, &p->layout, local, c), &shape->up,
                           r->data_end + (size_t)c * n_slots, &bell);
        ring_consumer_init(&r->down[c], segment_down_ring(p->segment, &p->layout, local, c),
                           &shape->down);
    }
}

void sim_job_rings_close(struct sim_rings *r)
{
    free(r->data_end);
    r->data_end = NULL;
}

void sim_job_attach(struct sim *s, struct sim_job *j, uint32_t node)
{
    struct sim_part *p = &j->parts[node];

    for (uint32_t c = 0; c < s->nodes[node].n_nics; c++) {
        struct cmd_job config = {.job = j->id,
                                 .segment = p->segment,
                                 .layout = &p->layout,
                                 .world = segment_world_at(p->segment, &p->layout, 0),
                                 .nodes = segment_node_at(p->segment, &p->layout, 0),
                                 .event_fd = -1,
                                 .backlog_bytes = j->backlog_bytes};
        struct channel *ch = s->nodes[node].nics[c].ch;
        if (channel_job_new(ch, &config, &p->views[c]) < 0)
            sim_fail(s, "channel_job_new");
        struct cmd cmd = {.type = CMD_ATTACH_JOB, .job = p->views[c]};
        cluster_command(s, ch, &cmd);
    }
    p->attached = true;
}

void sim_job_detach_rank(struct sim *s, struct sim_job *j, uint32_t rank, bool dead)
{
    const struct sim_place *k = &j->places[rank];
    struct sim_part *p = &j->parts[k->node];

    for (uint32_t c = 0; c < s->nodes[k->node].n_nics; c++) {
        struct cmd cmd = {.type = CMD_DETACH_RANK,
                          .detach_rank = {.job = p->views[c], .local = k->local, .dead = dead}};
        cluster_command(s, s->nodes[k->node].nics[c].ch, &cmd);
    }
}

void sim_job_detach(struct sim *s, struct sim_job *j, uint32_t node)
{
    struct sim_part *p = &j->parts[node];

    p->ending = true;
    for (uint32_t c = 0; c < s->nodes[node].n_nics; c++) {
        struct cmd cmd = {.type = CMD_DETACH_JOB, .job = p->views[c]};
        cluster_command(s, s->nodes[node].nics[c].ch, &cmd);
        p->n_waits++;
    }
}

bool sim_job_on_detached(struct sim_job *j, uint32_t node)
{
    struct sim_part *p = &j->parts[node];

    if (!p->ending || --p->n_waits > 0)
        return false;
    sim_job_part_free(p);
    return true;
}
