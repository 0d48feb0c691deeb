/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Scan and MPI_Exscan: choice. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/hierarchy/noncommutative.h"
#include "client/coll/node/node.h"

static void scan(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                 bool inclusive)
{
    if (recv.count == 0)
        return;
    if (send == MPI_IN_PLACE)
        send = recv.base;
    switch (select_algorithm(SELECT_SCAN, s, buffer_size(recv), op->commutative)) {
    case SCAN_NODES:
        noncommutative_scan(s, hierarchy_nodes(s), send, recv, op, inclusive);
        break;
    case SCAN_NETWORKS:
        noncommutative_scan(s, hierarchy_networks(s), send, recv, op, inclusive);
        break;
    case SCAN_SHARED:
        if (inclusive)
            shared_scan(s, send, recv, op);
        else
            shared_exscan(s, send, recv, op);
        break;
    default:
        scan_doubling(s, send, recv, op, inclusive);
        break;
    }
}

void coll_scan(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    scan(s, send, recv, op, true);
}

void coll_exscan(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    scan(s, send, recv, op, false);
}
