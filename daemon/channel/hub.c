/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/channel/state.h"

#define BLOCKS_DEFAULT 2048u
#define BLOCKS_MIN     128u
#define GIVE_ENTRIES   1024u

static uint32_t power_of_two(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

int hub_new(const struct hub_config *config, struct hub **ret_hub)
{
    uint32_t n = config->n_channels;
    uint32_t n_blocks = config->blocks_per_channel ? config->blocks_per_channel : BLOCKS_DEFAULT;

    if (n == 0 || n > HOP_MAX_CHANNELS || config->epoch == 0 || n_blocks < BLOCKS_MIN ||
        n_blocks > 1u << 20 || config->hops->packet_bytes == 0)
        return -EINVAL;

    struct hub *hub = calloc(1, sizeof *hub);
    if (!hub)
        return -ENOMEM;
    hub->config = *config;
    hub->blocks_per_channel = n_blocks;
    for (uint32_t i = 0; i < HOP_MAX_CHANNELS; i++)
        hub->wake[i].event_fd = -1;

    uint32_t back_entries = power_of_two(n_blocks);
    hub->blocks = calloc((size_t)n * n_blocks, sizeof *hub->blocks);
    hub->give = aligned_alloc(64, (size_t)n * n * sizeof *hub->give);
    hub->back = aligned_alloc(64, (size_t)n * n * sizeof *hub->back);
    hub->lane_entries =
        calloc((size_t)n * n * (back_entries + GIVE_ENTRIES), sizeof *hub->lane_entries);
    hub->rx_owner = calloc((size_t)HOP_MAX_NODES * HOP_MAX_CHANNELS, sizeof *hub->rx_owner);
    int rc = -ENOMEM;
    if (!hub->blocks || !hub->give || !hub->back || !hub->lane_entries || !hub->rx_owner)
        goto fail;
    memset(hub->give, 0, (size_t)n * n * sizeof *hub->give);
    memset(hub->back, 0, (size_t)n * n * sizeof *hub->back);
    uint32_t *entries = hub->lane_entries;
    for (uint32_t i = 0; i < n * n; i++) {
        hub->give[i].mask = GIVE_ENTRIES - 1;
        hub->give[i].entries = entries;
        entries += GIVE_ENTRIES;
        hub->back[i].mask = back_entries - 1;
        hub->back[i].entries = entries;
        entries += back_entries;
    }
    rc = arena_init(&hub->arena, n * n_blocks, config->hops->packet_bytes);
    if (rc < 0)
        goto fail;
    for (uint32_t i = 0; i < n; i++) {
        hub->wake[i].event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (hub->wake[i].event_fd < 0) {
            rc = -errno;
            goto fail;
        }
    }
    *ret_hub = hub;
    return 0;

fail:
    hub_free(hub);
    return rc;
}

void hub_free(struct hub *hub)
{
    if (!hub)
        return;
    for (uint32_t i = 0; i < HOP_MAX_CHANNELS; i++)
        if (hub->wake[i].event_fd >= 0)
            close(hub->wake[i].event_fd);
    arena_deinit(&hub->arena);
    free((void *)hub->rx_owner);
    free(hub->lane_entries);
    free(hub->back);
    free(hub->give);
    free(hub->blocks);
    free(hub);
}
