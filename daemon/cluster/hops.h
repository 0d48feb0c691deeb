/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node segment as its owner sees it: creates the hop table (proto/hop.h), gives slots to nodes,
 * publishes routes. Control thread only; channel threads and ranks read the table.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/hop.h"

struct hops;

/* 0 or negative errno. Slot 0 is this node. */
int hops_new(uint32_t packet_bytes, uint32_t n_channels, uint32_t node_id, uint32_t epoch,
             struct hops **ret_hops);
void hops_free(struct hops *h);

/* Descriptor of the sealed memory file, for the ranks. Stays the owner's. */
int hops_fd(const struct hops *h);
struct hop_table *hops_table(const struct hops *h);

/* Slot of a node; gives it one if it has none. -ENOSPC when the table is full. */
int hops_slot(struct hops *h, uint32_t node_id);
/* Slot of a node, or -ENOENT. */
int hops_find(const struct hops *h, uint32_t node_id);
uint32_t hops_node_id(const struct hops *h, uint32_t slot);
uint32_t hops_n_slots(const struct hops *h);

/* Routes of one slot: quick word and n_wide words whose shares add up to 65535. Published by
 * hops_publish. True if something changed. */
bool hops_set(struct hops *h, uint32_t slot, uint32_t epoch, hop_word quick, const hop_word *wide,
              uint32_t n_wide);
/* Makes the changes known. */
void hops_publish(struct hops *h);
void hops_set_crowded(struct hops *h, bool crowded);
