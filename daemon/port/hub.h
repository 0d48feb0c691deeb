/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the channels of a node share: the arena of blocks, the handover rings between them, who owns
 * which incoming flow, and how to wake one another. Made by the control thread before the channels;
 * afterwards it consists of rings and atomics for their threads.
 */
#pragma once

#include <stdatomic.h>

#include "daemon/net/block.h"
#include "daemon/port/handover.h"
#include "proto/bell.h"
#include "proto/hop.h"

struct hub_config {
    uint32_t node_id;
    uint32_t epoch;               /* this daemon's incarnation, not 0 */
    uint32_t n_channels;          /* at most HOP_MAX_CHANNELS */
    uint32_t blocks_per_channel;  /* 0: default (2048) */
    bool fenced;                  /* membarrier is missing: see base/thread.h */
    const struct hop_table *hops; /* packet_bytes must be set; outlives the hub */
};

struct hub_wake {
    _Alignas(64) struct bell bell; /* only `sleeping` is used */
    int event_fd;
};

struct hub {
    /* Read-only after hub_new, but for what the pointers lead to. */
    struct hub_config config;
    struct arena arena;
    uint32_t blocks_per_channel;
    struct handover *give; /* [(from * n_channels + to) * WIRE_CLASSES + class]: see hub_give */
    struct handover *back; /* [from * n_channels + to]: see hub_back */
    uint32_t *handover_entries;
    /* [(slot * HOP_MAX_CHANNELS + flow channel) * WIRE_CLASSES + class]: channel + 1 that receives
     * this flow; any channel, once each */
    _Atomic uint8_t *rx_owner;

    struct hub_wake wake[HOP_MAX_CHANNELS]; /* each written by its channel */
};

/* 0 or negative errno. The hub outlives its channels. */
int hub_new(const struct hub_config *config, struct hub **ret_hub);
void hub_free(struct hub *hub);

/* The ring by which one channel gives packets of a class to another, and that by which blocks go
 * home. */
static inline struct handover *hub_give(const struct hub *hub, uint32_t from, uint32_t to,
                                        enum wire_class cls)
{
    return &hub->give[(from * hub->config.n_channels + to) * WIRE_CLASSES + cls];
}

static inline struct handover *hub_back(const struct hub *hub, uint32_t from, uint32_t to)
{
    return &hub->back[from * hub->config.n_channels + to];
}

/* Wakes a channel's thread, after a push to one of its rings. */
void hub_wake(struct hub *hub, uint32_t idx);
/* The channel that owns the incoming flow of this packet from the node of this slot: the first to
 * ask. */
uint32_t hub_rx_owner(struct hub *hub, uint32_t slot, const struct wire_header *h, uint32_t asker);
