/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cells: how the ranks of a node hand each other what a collective needs. A communicator has a
 * slot of the job segment, two numbered rows of steps in it (blocking and nonblocking collectives),
 * and in each row a cell per rank of the node. In a step a rank publishes into its own cell what
 * others want of it, and reads the cells of those it wants something from.
 *
 * Idea: one write, many readers, no copy per pair and no order in which ranks have to run: a step
 * costs a rank as many turns on a crowded core as it depends on others one after the other, mostly
 * one. A cell has one producer, like a ring (proto/ring.h); what differs is that every rank of the
 * communicator consumes it, so a place is free again when all of them have counted past its step
 * (`done`).
 *
 * Steps of all communicators that a slot ever served are numbered upwards without end, so a number
 * never means two things and nothing is cleared when a communicator goes; the members of a new one
 * agree on a number to begin behind (client/coll/node/node.c). Readers trust neither length nor
 * place; who writes nonsense harms the ranks of its own job only.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* communicators of one process that have a slot; the others send messages */
#define CELLS_SLOTS        32u
#define CELLS_ROWS         2u
#define CELLS_DEPTH        128u /* steps that a rank may be ahead of the slowest reader */
#define CELLS_INLINE_BYTES 48u

/* What a rank published in one step. */
struct cell_entry {
    _Atomic uint64_t step; /* stored last (release) */
    uint32_t len;          /* bytes; inline when they fit */
    uint32_t off;          /* of others: where in the cell's data; checked by the reader */
    uint8_t payload[CELLS_INLINE_BYTES];
};
static_assert(sizeof(struct cell_entry) == 64, "an entry is one cache line");
static_assert(offsetof(struct cell_entry, payload) == 16, "operands of 16 bytes are aligned");

/* Followed, at the next page, by the data. */
struct cell {
    _Alignas(
        64) _Atomic uint64_t done; /* this rank reads nothing of any step up to this one any more */
    _Alignas(64) struct cell_entry entries[CELLS_DEPTH];
};
static_assert(sizeof(struct cell) <= 12288, "a cell's head is three pages");
