/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job segment: the shared memory of one job on one node. The daemon creates it as a sealed
 * memory file before it spawns the ranks, so messages may wait in it for a rank that has not
 * started. All ranks of the job on the node and the daemon map it; no one else can. It is sparse:
 * pages exist for what was used.
 *
 * Contents, in order: header, table of world ranks, table of nodes, table of networks, who is on
 * them and how far they are apart, who is closed for each channel, one bell per channel, one area
 * per local rank (bell, board of queue records, what it is doing), rings rank to rank (one per
 * ordered pair and vci), rings rank to channel and channel to rank, how large messages of each pair
 * are copied, the cells of collectives. A
 * channel thread has one bell (and one eventfd) per job, so that no job can touch what wakes
 * another one.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "proto/calls.h"
#include "proto/cells.h"
#include "proto/hop.h"
#include "proto/method.h"
#include "proto/queue.h"
#include "proto/ring.h"

#define SEGMENT_MAGIC        0x4d4f5453u /* "MOTS" */
#define SEGMENT_VERSION      9u
#define SEGMENT_MAX_LOCAL    256u
#define SEGMENT_NODE_NAME    64u
#define SEGMENT_JOB_NAME     64u
#define SEGMENT_MAX_NETWORKS 256u
#define SEGMENT_MAX_VCIS     8u
/* Processes of other jobs with which the ranks of a node are connected at a time. */
#define SEGMENT_MAX_FOREIGN 4096u

enum wait_mode { WAIT_ADAPTIVE = 0, WAIT_SPIN = 1, WAIT_EVENT = 2, WAIT_N_MODES };

/* Shape of a job on one node: everything the layout depends on. Sent in the attach reply; both
 * sides compute the layout. */
struct segment_shape {
    uint32_t n_world;        /* ranks of the job */
    uint32_t n_nodes;        /* nodes of the job */
    uint32_t n_local;        /* ranks on this node, at most SEGMENT_MAX_LOCAL */
    uint32_t n_channels;     /* channels of this node, at most HOP_MAX_CHANNELS */
    uint32_t board_records;  /* queue records per rank */
    struct ring_shape local; /* rank to rank */
    struct ring_shape up;    /* rank to channel */
    struct ring_shape down;  /* channel to rank */
    uint32_t cell_bytes;     /* data of a cell, a power of two; 0: no cells */
    uint32_t n_networks;     /* that nodes of the job are on, at most SEGMENT_MAX_NETWORKS */
    uint32_t n_vcis;    /* rings of a pair of local ranks, 1 to SEGMENT_MAX_VCIS: threads use the
                            further ones (client/progress/vci.h) */
    uint32_t n_foreign; /* room for processes of other jobs: the table of world ranks has so many
                           entries more, and the table of nodes one for each of them */
};
static_assert(sizeof(struct segment_shape) == 60, "segment shape");

/* Fills board and ring shapes with the defaults for these numbers (smaller local rings when many
 * ranks share the node). */
void segment_shape_defaults(struct segment_shape *shape);
/* 0, or -EINVAL when a field is outside its limits. */
int segment_shape_check(const struct segment_shape *shape);

struct segment_header {
    uint32_t magic;
    _Atomic uint32_t version; /* stored last by the daemon (release) */
    uint64_t job;             /* job id */
    struct segment_shape shape;
    _Atomic uint32_t wait_mode; /* enum wait_mode; the daemon may change it while the job runs */
    _Atomic uint32_t aborting;  /* 1: the job is being torn down */
    char job_name[SEGMENT_JOB_NAME];
    uint8_t reserved[44];
};
static_assert(sizeof(struct segment_header) == 192, "segment header");

/* One per world rank, written by the daemon before ranks start. Behind them those of processes of
 * other jobs, n_world and up, written before a rank hears of its number: `local` is the stamp that
 * messages from it carry, and each has an entry of its own in the table of nodes, n_nodes and up.
 *
 * Their numbers are used again. So a message from one has the stamp of its use in the highest bits
 * of the source's number, and what was sent under an earlier use is told by another stamp. */
#define SEGMENT_STAMP_SHIFT 24u
struct segment_world {
    uint32_t node;  /* index into the node table */
    uint32_t local; /* index among the ranks of that node */
};

/* One per node of the job. */
struct segment_node {
    uint32_t node_id;
    uint32_t slot; /* in this node's hop table */
    char name[SEGMENT_NODE_NAME - 8];
};
static_assert(sizeof(struct segment_node) == 64, "segment node");

/* One per network that nodes of the job are on, the same on all nodes. Who is on it is told by a
 * byte for each node, behind the table: segment_on_network(). */
struct segment_network {
    char name[SEGMENT_NODE_NAME];
};
static_assert(sizeof(struct segment_network) == 64, "segment network");

enum rank_state { RANK_EMPTY = 0, RANK_ATTACHED = 1, RANK_FINALIZED = 2, RANK_DEAD = 3 };

/* One per local rank. */
struct segment_rank {
    struct bell bell;
    _Alignas(
        64) _Atomic uint32_t state; /* enum rank_state; set by the rank, RANK_DEAD by the daemon */
    _Atomic int32_t pid;      /* in the daemon's pid name space, set by the daemon at attach */
    uint32_t world_rank;      /* set by the daemon */
    _Atomic uint32_t waiting; /* 1 while blocked in an MPI call (for "waits"); set by the rank */
    _Atomic uint64_t waiting_since_ns;
    _Atomic uint32_t board_high; /* records [0, board_high) have been used; set by the rank, checked
                                    by the reader */
    uint32_t reserved0;
    /* Counters, written by the rank only, read by anyone. Bytes count payload. */
    _Atomic uint64_t sent_msgs, sent_bytes, recv_msgs, recv_bytes, rendezvous_out, rendezvous_in,
        polls, sleeps;
};

/* Offsets from the start of the segment. */
struct segment_layout {
    struct segment_shape shape;
    size_t world_off, nodes_off, networks_off, on_network_off, distances_off, closed_off,
        closed_stride, bells_off, ranks_off, rank_stride, board_off,
        calls_off;                                   /* the last two: within a rank's area */
    size_t local_off, local_stride;                  /* ring of (vci, producer, consumer) */
    size_t up_off, up_stride, down_off, down_stride; /* ring of (rank, channel) */
    size_t methods_off;                              /* board of (vci, sender, receiver) */
    size_t cells_off, cells_stride;                  /* cell of (slot, row, rank) */
    size_t total;
};

/* shape must have passed segment_shape_check. */
void segment_layout(const struct segment_shape *shape, struct segment_layout *ret_layout);

static inline struct segment_world *segment_world_at(void *base, const struct segment_layout *l,
                                                     uint32_t world_rank)
{
    return (struct segment_world *)(void *)((char *)base + l->world_off) + world_rank;
}

static inline struct segment_node *segment_node_at(void *base, const struct segment_layout *l,
                                                   uint32_t node)
{
    return (struct segment_node *)(void *)((char *)base + l->nodes_off) + node;
}

static inline struct segment_network *segment_network_at(void *base, const struct segment_layout *l,
                                                         uint32_t network)
{
    return (struct segment_network *)(void *)((char *)base + l->networks_off) + network;
}

/* 1 where a node of the job is on a network, else 0. */
static inline uint8_t *segment_on_network(void *base, const struct segment_layout *l,
                                          uint32_t network, uint32_t node)
{
    return (uint8_t *)base + l->on_network_off + (size_t)network * l->shape.n_nodes + node;
}

/* Gateways between two networks of the job, counted along the shortest way when the job was
 * started; 255: there was none. */
static inline uint8_t *segment_network_distance(void *base, const struct segment_layout *l,
                                                uint32_t from, uint32_t to)
{
    return (uint8_t *)base + l->distances_off + (size_t)from * l->shape.n_networks + to;
}

/* A byte for each world rank and foreign process: 1 while this channel sets aside what is for it
 * (daemon/channel/aside.c). Written by the channel; ranks then send it nothing this way. */
static inline _Atomic uint8_t *segment_closed_at(void *base, const struct segment_layout *l,
                                                 uint32_t channel)
{
    return (_Atomic uint8_t *)(void *)((char *)base + l->closed_off + l->closed_stride * channel);
}

/* Bell of channel `channel` for this job; the up ring of local rank r has bit r. */
static inline struct bell *segment_channel_bell(void *base, const struct segment_layout *l,
                                                uint32_t channel)
{
    return (struct bell *)(void *)((char *)base + l->bells_off) + channel;
}

static inline struct segment_rank *segment_rank_at(void *base, const struct segment_layout *l,
                                                   uint32_t local)
{
    return (struct segment_rank *)(void *)((char *)base + l->ranks_off + l->rank_stride * local);
}

static inline struct queue_record *segment_board_at(void *base, const struct segment_layout *l,
                                                    uint32_t local)
{
    return (struct queue_record *)(void *)((char *)base + l->ranks_off + l->rank_stride * local +
                                           l->board_off);
}

static inline struct calls_board *segment_calls_at(void *base, const struct segment_layout *l,
                                                   uint32_t local)
{
    return (struct calls_board *)(void *)((char *)base + l->ranks_off + l->rank_stride * local +
                                          l->calls_off);
}

/* Ring of a vci from local rank `from` to local rank `to`. */
static inline void *segment_local_ring(void *base, const struct segment_layout *l, uint32_t vci,
                                       uint32_t from, uint32_t to)
{
    return (char *)base + l->local_off +
           l->local_stride * (((size_t)vci * l->shape.n_local + from) * l->shape.n_local + to);
}

/* How large messages of a vci from local rank `from` to local rank `to` are copied. */
static inline struct method_board *segment_method_board(void *base, const struct segment_layout *l,
                                                        uint32_t vci, uint32_t from, uint32_t to)
{
    return (struct method_board *)(void *)((char *)base + l->methods_off) +
           ((size_t)vci * l->shape.n_local + from) * l->shape.n_local + to;
}

/* Bits of a rank's bell: the rings of vci 0 by producer, those of the channels, those of the
 * further vcis. This is the first one of a vci, or with `vci` = n_vcis the number of bits. */
static inline uint32_t segment_first_bit(const struct segment_shape *shape, uint32_t vci)
{
    return vci * shape->n_local + (vci > 0 ? shape->n_channels : 0);
}

/* Ring from local rank `rank` to channel `channel`. Its bit in that channel's bell is `rank`. */
static inline void *segment_up_ring(void *base, const struct segment_layout *l, uint32_t rank,
                                    uint32_t channel)
{
    return (char *)base + l->up_off + l->up_stride * ((size_t)rank * l->shape.n_channels + channel);
}

/* Ring from channel `channel` to local rank `rank`. Its bit in the rank's bell is n_local +
 * channel. */
static inline void *segment_down_ring(void *base, const struct segment_layout *l, uint32_t rank,
                                      uint32_t channel)
{
    return (char *)base + l->down_off +
           l->down_stride * ((size_t)rank * l->shape.n_channels + channel);
}

/* Cell of local rank `local` in a row of a slot; its data follows at CELLS_DATA_OFF. */
#define CELLS_DATA_OFF 12288u
static inline struct cell *segment_cell(void *base, const struct segment_layout *l, uint32_t slot,
                                        uint32_t row, uint32_t local)
{
    size_t idx = ((size_t)slot * CELLS_ROWS + row) * l->shape.n_local + local;
    return (struct cell *)(void *)((char *)base + l->cells_off + l->cells_stride * idx);
}
