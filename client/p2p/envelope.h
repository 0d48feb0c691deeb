/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The envelope of a message (MPI-5.0 section 3.2.3), as this side gives it: whom it goes to or is
 * wanted from, the tag, the communicator, and which of its contexts. A value.
 */
#ifndef MOTET_CLIENT_P2P_ENVELOPE_H
#define MOTET_CLIENT_P2P_ENVELOPE_H

#include <stdint.h>

struct comm;

enum p2p_mode { P2P_STANDARD, P2P_SYNCHRONOUS, P2P_READY };

/* Added to comm->context_id: traffic inside the library never meets the user's. */
enum p2p_context { P2P_CONTEXT_USER = 0, P2P_CONTEXT_COLL = 1, P2P_CONTEXT_PARTITIONED = 2 };

struct envelope {
    struct comm *comm;
    int32_t rank; /* in comm_peers(comm), or MPI_PROC_NULL; of a receive also MPI_ANY_SOURCE */
    int32_t tag;  /* of a receive also MPI_ANY_TAG */
    enum p2p_context context;
};

static inline struct envelope envelope_of(struct comm *comm, int rank, int tag,
                                          enum p2p_context context)
{
    return (struct envelope){.comm = comm, .rank = rank, .tag = tag, .context = context};
}

/* Of a message of the user's. */
static inline struct envelope envelope_user(struct comm *comm, int rank, int tag)
{
    return envelope_of(comm, rank, tag, P2P_CONTEXT_USER);
}

#endif
