/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine with the protocols' own state around it, and a transfer with room for what any of them
 * adds to one: what is allocated. Those below see the part that is theirs.
 */
#ifndef MOTET_CLIENT_P2P_PROTOCOLS_H
#define MOTET_CLIENT_P2P_PROTOCOLS_H

#include "client/p2p/coop.h"
#include "client/p2p/engine.h"
#include "client/p2p/rendezvous.h"

struct protocols {
    struct engine engine;
    struct rendezvous rendezvous;
    struct coop coop;
};

#define PROTOCOLS_TRANSFER_BYTES sizeof(struct coop_transfer)

static inline struct protocols *protocols_of(struct engine *e)
{
    return (struct protocols *)(void *)e;
}

#endif
