/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The board: which of this rank's queue records (proto/queue.h) is whose. Nonblocking receives,
 * unexpected messages, pending and large transfers enter it at once; a blocking receive enters when
 * it has waited for long (board_publish), so that the short path pays nothing.
 */
#ifndef MOTET_CLIENT_P2P_BOARD_H
#define MOTET_CLIENT_P2P_BOARD_H

#include <stdint.h>

#include "proto/queue.h"

struct engine;
struct transfer;
struct unexpected;

void board_init(struct engine *e);
void board_deinit(struct engine *e);

/* Shows a transfer in this state; takes a record if it has none. When all are in use it stays
 * unseen. */
void board_show(struct transfer *t, enum queue_state state);
void board_show_unexpected(struct engine *e, struct unexpected *u);
/* Shows, as a receive that nothing has come for, that a probe waits for a message, or a collective
 * for what a rank puts into shared memory. Called again for the next one. */
void board_show_wait(struct engine *e, struct queue_record **record, uint32_t context, int peer,
                     int32_t peer_world, int tag);
/* Bytes moved so far, for rendezvous. */
void board_moved(struct transfer *t);
/* The record's index + 1, by which the other ranks of the node find it; 0: none. */
uint32_t board_index(const struct queue_record *record);
/* The record of another rank of this node by that number, or NULL. */
struct queue_record *board_of(uint32_t local_rank, uint32_t index);
/* Takes it off; *record may be NULL and is NULL afterwards. */
void board_hide(struct engine *e, struct queue_record **record);

/* Remembers a blocking receive for board_publish; it must be removed (list_remove of t->link)
 * before it completes. */
void board_defer(struct transfer *t);
/* Shows every receive that was deferred, and adds what a vci has counted to the rank's
 * counters. */
void board_publish(struct engine *e);

#endif
