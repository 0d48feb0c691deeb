/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/port/hub.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BLOCKS_DEFAULT 2048u
#define BLOCKS_MIN     128u
#define GIVE_ENTRIES   1024u

static uint32_t hub_power_of_two(uint32_t n)
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

    struct hub *hub = aligned_alloc(_Alignof(struct hub), sizeof *hub);
    if (!hub)
        return -ENOMEM;
    memset(hub, 0, sizeof *hub);
    hub->config = *config;
    hub->blocks_per_channel = n_blocks;
    for (uint32_t i = 0; i < HOP_MAX_CHANNELS; i++)
        hub->wake[i].event_fd = -1;

    uint32_t back_entries = hub_power_of_two(n_blocks);
    size_t give_bytes = (size_t)n * n * WIRE_CLASSES * sizeof *hub->give;
    hub->give = aligned_alloc(64, give_bytes);
    hub->back = aligned_alloc(64, (size_t)n * n * sizeof *hub->back);
    hub->handover_entries = calloc((size_t)n * n * (back_entries + WIRE_CLASSES * GIVE_ENTRIES),
                                   sizeof *hub->handover_entries);
    hub->rx_owner =
        calloc((size_t)HOP_MAX_NODES * HOP_MAX_CHANNELS * WIRE_CLASSES, sizeof *hub->rx_owner);
    int rc = -ENOMEM;
    if (!hub->give || !hub->back || !hub->handover_entries || !hub->rx_owner)
        goto fail;
    memset(hub->give, 0, give_bytes);
    memset(hub->back, 0, (size_t)n * n * sizeof *hub->back);
    uint32_t *entries = hub->handover_entries;
    for (uint32_t i = 0; i < n * n * WIRE_CLASSES; i++) {
        hub->give[i].mask = GIVE_ENTRIES - 1;
        hub->give[i].entries = entries;
        entries += GIVE_ENTRIES;
    }
    for (uint32_t i = 0; i < n * n; i++) {
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
    free(hub->handover_entries);
    free(hub->back);
    free(hub->give);
    free(hub);
}

void hub_wake(struct hub *hub, uint32_t idx)
{
    struct hub_wake *wake = &hub->wake[idx];

    assert(idx < hub->config.n_channels);
    /* seq_cst: pairs with the exchange in bell_sleep_begin. */
    if (__builtin_expect(atomic_load_explicit(&wake->bell.sleeping, memory_order_seq_cst), 0)) {
        struct bell_ref ref = {.bell = &wake->bell, .event_fd = wake->event_fd};
        bell_wake(&ref);
    }
}

uint32_t hub_rx_owner(struct hub *hub, uint32_t slot, const struct wire_header *h, uint32_t asker)
{
    _Atomic uint8_t *word =
        &hub->rx_owner[(slot * HOP_MAX_CHANNELS + h->flow_channel) * WIRE_CLASSES + h->flow_class];
    uint8_t owner = atomic_load_explicit(word, memory_order_relaxed);

    assert(slot < HOP_MAX_NODES && h->flow_channel < HOP_MAX_CHANNELS &&
           h->flow_class < WIRE_CLASSES);
    /* relaxed: the word is all that is shared; the flow's state is made and used by its owner
     * only. */
    if (owner == 0 &&
        atomic_compare_exchange_strong_explicit(word, &owner, (uint8_t)(asker + 1),
                                                memory_order_relaxed, memory_order_relaxed))
        owner = (uint8_t)(asker + 1);
    return owner - 1u;
}
