/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank sends to itself in an alltoall, for the algorithms of that. */
#ifndef MOTET_CLIENT_COLL_ALGORITHMS_OWN_BLOCK_H
#define MOTET_CLIENT_COLL_ALGORITHMS_OWN_BLOCK_H

#include "client/coll/algorithms/algorithms.h"

static inline void own_block_copy(struct schedule *s, const struct blocks *send,
                                  const struct blocks *recv)
{
    int rank = s->view.rank;
    schedule_copy(s, blocks_buffer(send, rank), blocks_buffer(recv, rank));
}

#endif
