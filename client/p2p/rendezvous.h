/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous: messages too large to be sent unasked, sent as they are asked for. Both sides name
 * their transfer by a number (announce.h says how they come together). The receiver grants ranges
 * (PULL) and the sender packs packets into the rings (DATA), which may arrive in any order and by
 * different networks. A receiver never has more granted than its rings hold, so data for it never
 * piles up on the way.
 *
 *   sender:   announced -(PULL)-> sending -(all granted sent)-> announced ...
 *             -(all packed, or FINISHED)-> complete
 *   receiver: matched -(all DATA)-> complete; with an error it tells the sender (FINISHED)
 */
#ifndef MOTET_CLIENT_P2P_RENDEZVOUS_H
#define MOTET_CLIENT_P2P_RENDEZVOUS_H

#include "client/p2p/peer.h"
#include "client/p2p/transfer.h"

/* A grant covers this much beyond what has arrived: the product of bandwidth and delay of 10 Gbit/s
 * and 800 us. */
#define RENDEZVOUS_GRANT_AHEAD (1u << 20)
/* All grants of a rank together; the down ring's data area is 4 MiB and eager messages want some of
 * it. */
#define RENDEZVOUS_GRANT_BUDGET (3u << 20)

struct rendezvous_number;

/* Of one engine. */
struct rendezvous {
    struct engine *engine;
    struct rendezvous_number *numbers;
    uint32_t n_numbers, max_numbers, first_free_number; /* the last: index + 1, 0: none */
    struct list sending;                                /* sends with granted bytes left */
    struct list backlog;                                /* receives that wait for budget */
    uint64_t budget_used;
};

/* A transfer of this protocol. */
struct rendezvous_transfer {
    struct transfer base;
    uint32_t number;   /* own transfer number, 0: none */
    uint32_t remote;   /* the peer's transfer number */
    MPI_Count total;   /* receive: bytes that will arrive: the message, or the buffer if that is
                          smaller */
    MPI_Count granted; /* bytes the sender may have sent by now */
    MPI_Count moved;   /* bytes packed or unpacked so far */
    struct type_cursor cursor;
    struct method_sample sample; /* receive, within a node */
};

static inline struct rendezvous_transfer *rendezvous_of(struct transfer *t)
{
    return (struct rendezvous_transfer *)(void *)t;
}

void rendezvous_init(struct rendezvous *r, struct engine *e);
void rendezvous_deinit(struct rendezvous *r);

/* Sets up what this protocol adds to a transfer: no number, nothing moved. */
void rendezvous_begin(struct rendezvous_transfer *t);

/* Gives the transfer a number by which the peer can name it. False: too many (2^20) or no
 * memory. */
bool rendezvous_take_number(struct rendezvous *r, struct rendezvous_transfer *t);

/* The transfer of this number if it deals with this peer in this direction, or NULL: the number
 * comes from outside. */
struct rendezvous_transfer *rendezvous_find(const struct rendezvous *r, uint32_t number,
                                            uint32_t world, enum transfer_dir dir);

/* The transfer is over: its number and its place in a list here are given up, the request
 * completes. */
void rendezvous_finish(struct rendezvous *r, struct rendezvous_transfer *t, int error);

/* Receiver: asks for what has not come with the announcement. False: that cannot be, and the
 * transfer is over. */
bool rendezvous_pull(struct rendezvous *r, struct rendezvous_transfer *t);

/* Sender: whether a PULL can mean this transfer, and what follows from it. */
bool rendezvous_may_grant(const struct rendezvous_transfer *t, const struct msg_pull *pull);
void rendezvous_on_pull(struct rendezvous *r, struct rendezvous_transfer *t,
                        const struct msg_pull *pull);

/* Transfers that have a number: under way. Walks all numbers. */
uint32_t rendezvous_n_under_way(const struct rendezvous *r);

/* Receiver: all of the message is there. Takes its time if that is wanted. */
void rendezvous_time(struct rendezvous *r, const struct rendezvous_transfer *t);

void rendezvous_on_data(struct rendezvous *r, uint32_t src_world, uint32_t number, uint64_t offset,
                        const void *payload, uint32_t len);

/* Sends what is granted and grants what waits. Returns the number of events. */
int rendezvous_poll(struct rendezvous *r);

#endif
