/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/p2p/eager.h"

bool eager_send(struct peer *p, const struct buffer *message, MPI_Count bytes, uint32_t context,
                int32_t source, int32_t tag)
{
    void *payload;

    if (!eager_fits(p, bytes))
        return false;
    struct ring_producer *ring = peer_ring(p, false);
    if (!ring)
        return false;
    struct ring_slot *slot = ring_claim(ring, (uint32_t)bytes, &payload);
    if (!slot)
        return false;
    transfer_pack_all(message, payload, (size_t)bytes);
    credit_take(&p->credit, (uint64_t)bytes);
    engine_count_sent(p->engine, (uint64_t)bytes);
    peer_publish(p, ring, slot, MSG_EAGER, context, source, tag);
    return true;
}
