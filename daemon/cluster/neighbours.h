/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nodes that this one has, or had, a link with on a network: whether the link is up, how far
 * away they are, and what each own channel was told of them. Used by cluster.c and what describes
 * and publishes it; without socket and clock. Control thread.
 *
 * Idea: the channels are brought into step with the links, not told of each event: neighbours_sync
 * compares what a channel should have with what it was told, so nothing depends on the order in
 * which news comes in.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "daemon/config.h"
#include "daemon/routing/node_name.h"
#include "daemon/seal/seal.h"

struct forwarding;
struct topology;

#define NEIGHBOUR_RTT_SAMPLES 8u

/* What the cluster needs of the channels. */
struct cluster_channel_ops {
    /* Network driver and provider in use. */
    const char *(*driver)(void *ctx, uint32_t channel);
    const char *(*provider)(void *ctx, uint32_t channel);
    /* Endpoint address. Bytes used, or negative errno. */
    int (*address)(void *ctx, uint32_t channel, uint8_t *buf, uint32_t size);
    /* True while the channel's endpoint lives. */
    bool (*alive)(void *ctx, uint32_t channel);
    /* The channel can send to the node of this slot at this address, and has this secret in common
     * with the other end; it cannot any more. */
    void (*add_link)(void *ctx, uint32_t channel, uint16_t slot, const uint8_t *address,
                     uint32_t len, const uint8_t secret[SEAL_SECRET_BYTES]);
    void (*remove_link)(void *ctx, uint32_t channel, uint16_t slot);
};

/* What one own channel has with one neighbour. */
struct neighbour_channel {
    uint8_t address[128]; /* as the channel was told */
    uint32_t len;         /* 0: not told */
    uint32_t epoch;       /* of the neighbour, when it was */
    uint64_t bad_until_ns, retry_ns, added_ns;
    uint8_t verdict;     /* enum link_verdict: whether data passes there */
    int error;           /* LINK_BROKEN: why, negative errno */
    uint32_t good_bytes; /* LINK_LARGE: size of the largest packet that passes */
    uint64_t verdict_ns; /* since when */
    bool told_unlike;    /* said that the two ends do not speak the same protocol */
};

struct neighbour_key {
    uint32_t node_id;
    char network[NODE_NAME_BYTES];
};

struct neighbour {
    UT_hash_handle hh;
    struct neighbour_key key;
    uint32_t epoch;
    uint8_t secret[SEAL_SECRET_BYTES]; /* of this incarnation and ours, on this network */
    bool up;
    bool usable;     /* data passes between it and some channel */
    uint64_t rtt_ns; /* least of the last samples: the rest is waiting for a processor, not the
                        network */
    uint64_t samples_ns[NEIGHBOUR_RTT_SAMPLES];
    uint32_t n_samples;
    struct neighbour_channel channels[CONFIG_MAX_CHANNELS];
};

/* The least round trip on a network. Its nodes hang on one switch, so what they measure beyond it
 * is waiting for processors; one figure for all is steady where one for each is not, and what is
 * steady has to be told to nobody. */
struct neighbours_rtt {
    uint64_t least_ns; /* 0: not measured */
    uint64_t first_ns; /* when it was first */
    uint32_t least_node, n_samples;
    uint32_t told_us; /* 0: not measured then */
    uint64_t told_ns, hold_ns;
    bool known; /* measured often enough to be told */
    bool tell;  /* it is to be told anew */
};

struct neighbours {
    const struct config *config;
    const struct topology *topology;
    const struct forwarding *forwarding;
    const struct cluster_channel_ops *ops;
    void *ctx;
    struct neighbour *table;
    struct neighbours_rtt rtts[CONFIG_MAX_CHANNELS]; /* by the first own channel on the network */
};

/* Frees the neighbours, not what the struct refers to. */
void neighbours_deinit(struct neighbours *all);

/* NULL: there is none. */
struct neighbour *neighbours_find(const struct neighbours *all, uint32_t node_id,
                                  const char *network);
/* Makes it if there is none. NULL: no memory. */
struct neighbour *neighbours_get(struct neighbours *all, uint32_t node_id, const char *network);

/* The connection to it is over. */
void neighbour_down(struct neighbour *n);
/* A round trip was measured. True: what is told to others of it is out of date. */
bool neighbours_on_rtt(struct neighbours *all, struct neighbour *n, uint64_t rtt_ns,
                       uint64_t now_ns);
/* What is to be told now of the round trip on its network, in microseconds; 0: not measured. */
uint32_t neighbours_tell_rtt(struct neighbours *all, const struct neighbour *n, uint64_t now_ns);
/* What a channel has found of its link to the node of a slot. */
struct neighbour_news {
    uint32_t channel, slot;
    uint8_t verdict; /* enum link_verdict */
    int error;
    uint32_t good_bytes;
};
/* True: something changed. */
bool neighbours_on_channel_link(struct neighbours *all, const struct neighbour_news *news,
                                uint64_t now_ns);
/* The channel that knows best why no data passes; NULL: some does, or no channel has tried yet. */
const struct neighbour_channel *neighbour_fault(const struct neighbours *all,
                                                const struct neighbour *n);
/* Can data go to it by this channel? */
bool neighbour_carries(const struct neighbour *n, uint32_t channel);
/* The address of a node cannot be used by a channel. True: something changed. */
bool neighbours_on_channel_error(struct neighbours *all, uint32_t channel, uint32_t slot, int error,
                                 uint64_t now_ns);
/* Whether a channel that failed is to be tried again now. */
bool neighbours_retry_due(struct neighbours *all, uint64_t now_ns);
/* Brings every channel into step. True: who is usable has changed. */
bool neighbours_sync(struct neighbours *all, uint64_t now_ns);
