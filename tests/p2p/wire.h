/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A few ranks in one process, each a client of its own (client/client.h), and the wire between
 * them: it takes the place of client/transport/outbox.c and inbox.c below the real point-to-point
 * layer. A message that a rank publishes goes through a real ring and then flies until it is
 * delivered: in order and at once, or by hand, so that a test decides about order, delay and
 * duplicates. Rings can be stopped, so that they fill. No thread, no clock, no other process.
 */
#ifndef TESTS_P2P_WIRE_H
#define TESTS_P2P_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "client/p2p/peer.h"
#include "client/p2p/protocols.h"
#include "client/progress/request.h"
#include "mpi.h"
#include "proto/ring.h"

#define WIRE_MAX_RANKS    4u
#define WIRE_PACKET_BYTES 8192u /* largest payload to another node */
#define WIRE_RING_SLOTS   256u
#define WIRE_RING_BYTES   (512u << 10)

/* One message on its way. */
struct packet {
    struct list link;
    uint32_t from, to;
    struct ring_slot slot;
    uint8_t payload[];
};

/* Starts ranks 0 .. n_ranks - 1, rank i on node nodes[i]. */
void wire_start(uint32_t n_ranks, const uint32_t *nodes);
/* Ends them. What still flies is lost. */
void wire_stop(void);

uint32_t wire_n_ranks(void);
/* Gives this rank the turn; returns its MPI_COMM_WORLD. */
struct comm *wire_as(uint32_t rank);
struct engine *wire_engine(uint32_t rank);
struct protocols *wire_protocols(uint32_t rank);
/* What `rank` knows of `other`; made if there is nothing yet. */
struct peer *wire_peer(uint32_t rank, uint32_t other);

/* True: messages fly until they are delivered by hand. */
void wire_hold(bool hold);
/* True: the ring from one rank to another is not read, and fills. */
void wire_stop_ring(uint32_t from, uint32_t to, bool stop);
/* True: there is no way from one rank to another, of another node. */
void wire_cut(uint32_t from, uint32_t to, bool cut);
/* What the kernel permits: reading and writing each other's memory. Of reading, `n_calls` more. */
void wire_permit_reading(bool read, bool write);
void wire_permit_reads(int n_calls);
/* Called at each read of another rank's memory, which then goes on: others run meanwhile. */
void wire_on_read(void (*fn)(void));
/* Reads and writes of another rank's memory so far. */
extern int wire_n_reads, wire_n_writes;

/* One turn of a rank: progress_poll. Returns the number of events. */
int wire_turn(uint32_t rank);
/* Turns and deliveries until nothing moves. */
void wire_settle(void);
/* Called by a rank that polls, to let others run while it waits; NULL: nobody. */
void wire_while_waiting(void (*others)(void));

/* Messages flying from one rank to another, and the i-th of them, oldest first. */
uint32_t wire_flying(uint32_t from, uint32_t to);
struct packet *wire_packet(uint32_t from, uint32_t to, uint32_t i);
/* The first that flies of this kind, or NULL. */
struct packet *wire_find(uint32_t from, uint32_t to, enum msg_kind kind);
/* Hands it over. */
void wire_deliver(struct packet *packet);
/* Hands a copy over; the packet flies on. */
void wire_deliver_copy(const struct packet *packet);
/* Delivers the i-th, counted anew each time: wire_deliver_order(0, 1, 3, (uint32_t[]){2, 0, 0}). */
void wire_deliver_order(uint32_t from, uint32_t to, uint32_t n, const uint32_t *order);
/* Hands a message over that nobody sent. */
void wire_forge(uint32_t from, uint32_t to, const struct ring_slot *slot, const void *payload);

/* ---- shorter ways of saying what tests say often; `bytes` of MPI_BYTE ---- */

struct request *wire_isend(uint32_t from, uint32_t to, int tag, const void *data, MPI_Count bytes);
struct request *wire_irecv(uint32_t at, int from, int tag, void *room, MPI_Count bytes);
/* The request is complete: ends it and returns the error; the status may be MPI_STATUS_IGNORE. */
int wire_finish(uint32_t rank, struct request *r, MPI_Status *status);

/* For cmocka: wire_stop. */
int wire_tear_down(void **state);

#endif
