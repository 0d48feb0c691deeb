/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cooperative copy: a large message between two ranks of one node is copied by both of them at
 * once. The message is cut into chunks; whoever is free takes the next one (an atomic counter in
 * the sender's queue record), the receiver by process_vm_readv, the sender, while it waits in MPI
 * anyway, by process_vm_writev into the buffer that the receiver named. A sender that does not wait
 * takes no chunk, and the receiver copies all. Two cores copy faster than one as long as memory
 * keeps up.
 *
 *   offered -(receiver names its buffer)-> both take chunks -(none left, sender's ones done)->
 *   receiver sends FINISHED
 */
#ifndef MOTET_CLIENT_P2P_COOP_H
#define MOTET_CLIENT_P2P_COOP_H

#include "client/p2p/rendezvous.h"

/* Of one engine. */
struct coop {
    struct rendezvous *rendezvous;
    struct list offers;  /* sends */
    struct list joining; /* receives that wait for the sender's last chunks */
    int n_offers, n_joining;
};

/* A transfer that may be copied so. */
struct coop_transfer {
    struct rendezvous_transfer base;
    bool joined;      /* in one of the lists above */
    uint32_t rest;    /* receive: chunks that the sender has taken */
    uint32_t record;  /* receive: the sender's record */
    uint64_t address; /* receive: the message in the sender's memory */
};

static inline struct coop_transfer *coop_of(struct rendezvous_transfer *t)
{
    return (struct coop_transfer *)t;
}

void coop_init(struct coop *c, struct rendezvous *r);

/* Sets up what this module adds to a transfer: in no list. */
static inline void coop_begin(struct coop_transfer *t)
{
    t->joined = false;
}

/* Sender, before it announces a dense message whose record is shown: the number for
 * msg_rts.record, 0 if the message is too small or has no record. */
uint32_t coop_offer(struct coop *c, struct coop_transfer *t);

/* Receiver of an announcement: copies together with the sender and finishes the transfer, now or
 * when the sender's last chunk is there. False if this is not for cooperative copy; then nothing
 * has happened. */
bool coop_receive(struct coop *c, struct coop_transfer *t, const struct peer *p,
                  const struct msg_rts *rts);

/* Takes a transfer off the lists here. */
void coop_leave(struct coop *c, struct coop_transfer *t);

/* Copies what can be copied. Returns the number of events. */
int coop_poll(struct coop *c);

#endif
