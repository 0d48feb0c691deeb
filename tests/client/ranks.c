/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/client/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/init/init.h"
#include "client/transport/transport.h"
#include "mpi.h"

static struct ranks *job; /* whose ranks attach */
static uint32_t next_rank;
static struct client *library;

int __wrap_transport_attach(void);
void __wrap_transport_detach(void);
bool __wrap_transport_alive(void);

int __wrap_transport_attach(void)
{
    struct transport *t = transport_here;

    t->base = job->base;
    t->layout = job->layout;
    t->hops = &job->hops;
    t->job = 1;
    t->world_rank = t->local_rank = next_rank;
    t->n_world = t->n_local = job->n;
    t->fenced = true;
    t->packet_bytes = job->hops.packet_bytes;
    t->me = segment_rank_at(t->base, &t->layout, t->local_rank);
    t->local_to_world = calloc(job->n, sizeof(uint32_t));
    for (uint32_t r = 0; r < job->n; r++)
        t->local_to_world[r] = r;
    return 0;
}

void __wrap_transport_detach(void)
{
    free(transport_here->local_to_world);
    transport_here->base = NULL;
}

bool __wrap_transport_alive(void)
{
    return true;
}

static void make_segment(struct ranks *r)
{
    struct segment_shape shape = {.n_world = r->n, .n_nodes = 1, .n_local = r->n};

    segment_shape_defaults(&shape);
    segment_layout(&shape, &r->layout);
    r->base = mmap(NULL, r->layout.total, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->base == MAP_FAILED)
        abort();
    struct segment_header *header = r->base;
    header->magic = SEGMENT_MAGIC;
    header->shape = shape;
    for (uint32_t i = 0; i < r->n; i++) {
        *segment_world_at(r->base, &r->layout, i) = (struct segment_world){.node = 0, .local = i};
        segment_rank_at(r->base, &r->layout, i)->world_rank = i;
        atomic_store(&segment_rank_at(r->base, &r->layout, i)->pid, getpid());
    }
    snprintf(segment_node_at(r->base, &r->layout, 0)->name, SEGMENT_NODE_NAME, "here");
    r->hops = (struct hop_table){
        .magic = HOP_MAGIC, .version = HOP_VERSION, .packet_bytes = 16384, .crowded = 1};
}

struct ranks *ranks_new(uint32_t n, int thread_level)
{
    struct ranks *r = calloc(1, sizeof *r);

    r->n = n;
    make_segment(r);
    job = r;
    for (next_rank = 0; next_rank < n; next_rank++) {
        int provided;
        r->clients[next_rank] = client_new();
        struct client *before = client_enter(r->clients[next_rank]);
        if (!library)
            library = before;
        if (MPI_Init_thread(NULL, NULL, thread_level, &provided) != MPI_SUCCESS)
            abort();
    }
    ranks_turn(r, 0);
    return r;
}

void ranks_turn(const struct ranks *r, uint32_t rank)
{
    client_enter(r->clients[rank]);
}

void ranks_free(struct ranks *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        client_enter(r->clients[i]);
        init_release(); /* MPI_Finalize would wait for the others */
    }
    client_enter(library);
    for (uint32_t i = 0; i < r->n; i++)
        client_free(r->clients[i]);
    munmap(r->base, r->layout.total);
    free(r);
}
