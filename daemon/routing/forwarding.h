/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node segment as its owner sees it: creates the hop table (proto/hop.h), gives slots to nodes,
 * publishes routes. Control thread only; channel threads and ranks read the table.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/hop.h"

struct forwarding;

/* 0 or negative errno. Slot 0 is this node. */
int forwarding_new(uint32_t packet_bytes, uint32_t n_channels, uint32_t node_id, uint32_t epoch,
                   struct forwarding **ret_forwarding);
void forwarding_free(struct forwarding *h);

/* Descriptor of the sealed memory file, for the ranks. Stays the owner's. */
int forwarding_fd(const struct forwarding *h);
struct hop_table *forwarding_table(const struct forwarding *h);

/* Slot of a node; gives it one if it has none. -ENOSPC when the table is full. */
int forwarding_slot(struct forwarding *h, uint32_t node_id);
/* Slot of a node, or -ENOENT. */
int forwarding_find(const struct forwarding *h, uint32_t node_id);
uint32_t forwarding_node_id(const struct forwarding *h, uint32_t slot);
uint32_t forwarding_n_slots(const struct forwarding *h);

/* Routes of one slot: quick word and n_wide words whose shares add up to 65535. Published by
 * forwarding_publish. True if something changed. */
bool forwarding_set(struct forwarding *h, uint32_t slot, uint32_t epoch, hop_word quick,
                    const hop_word *wide, uint32_t n_wide);
/* Makes the changes known. */
void forwarding_publish(struct forwarding *h);
void forwarding_set_crowded(struct forwarding *h, bool crowded);
