/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node segment: what a node's daemon publishes to everyone on its node, above all the hop
 * table. The control thread writes it; channel threads and ranks read it. Ranks map it read-only
 * (the memory file is sealed against further writable mappings).
 *
 * A node is known by `node_id` (FNV-1a of its configured name; two names with one id are refused by
 * topology) and, on this node, by its *slot*: an index into the table, given when the node is first
 * heard of and never given to another one while the daemon lives. Slot 0 is this node itself.
 *
 * Every word of an entry is complete in itself and read with one atomic load: a reader may see an
 * old next hop, never half of one.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOP_MAX_NODES    4096u
#define HOP_MAX_CHANNELS 8u
#define HOP_MAX_WIDE     4u
#define HOP_NONE         0u

/* One way out, packed in a word: 0 means none. bits 0-15 slot of the neighbour to hand the packet
 * to, 16-23 channel + 1, 24-31 hops to the destination, 32-47 share of large traffic in 1/65535,
 * 48-63 zero. */
typedef uint64_t hop_word;

static inline hop_word hop_pack(uint16_t next_slot, uint8_t channel, uint8_t n_hops, uint16_t share)
{
    return (uint64_t)next_slot | (uint64_t)(channel + 1u) << 16 | (uint64_t)n_hops << 24 |
           (uint64_t)share << 32;
}

static inline uint16_t hop_next_slot(hop_word w)
{
    return (uint16_t)w;
}

static inline uint8_t hop_channel(hop_word w)
{
    return (uint8_t)((uint8_t)(w >> 16) - 1u);
}

static inline uint8_t hop_n_hops(hop_word w)
{
    return (uint8_t)(w >> 24);
}

static inline uint16_t hop_share(hop_word w)
{
    return (uint16_t)(w >> 32);
}

struct hop_entry {
    _Atomic uint32_t node_id; /* 0: slot unused; set once */
    _Atomic uint32_t epoch;   /* incarnation of that node's daemon, 0 while unknown or dead */
    _Atomic uint64_t quick;   /* hop_word for small messages */
    _Atomic uint64_t wide[HOP_MAX_WIDE]; /* hop_words for large ones, in use from the front; their
                                            shares add up to 65535 */
    uint64_t reserved[2];
};
static_assert(sizeof(struct hop_entry) == 64, "an entry is one cache line");

#define HOP_MAGIC   0x4d4f5448u /* "MOTH" */
#define HOP_VERSION 1u

struct hop_table {
    uint32_t magic;
    uint32_t version;
    uint32_t packet_bytes; /* largest payload of a packet in this cluster, a multiple of 64 */
    uint32_t n_channels;
    _Atomic uint32_t generation; /* counts changes of routes */
    _Atomic uint32_t crowded;    /* 1: more runnable threads (ranks, channel threads) than cores;
                                    spinning helps nobody */
    _Atomic uint32_t n_slots;    /* slots in use */
    uint32_t reserved[9];
    struct hop_entry entries[HOP_MAX_NODES];
};
static_assert(offsetof(struct hop_table, entries) == 64, "entries start on their own line");
