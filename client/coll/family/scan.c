/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Scan and MPI_Exscan: choice. */
#include "client/coll/algorithms/algorithms.h"
#include "client/coll/choice/select.h"
#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/hierarchy/noncommutative.h"
#include "client/coll/node/node.h"

static void scan(struct schedule *s, const void *send, void *recv, MPI_Count count,
                 struct datatype *type, struct op *op, bool inclusive)
{
    if (count == 0)
        return;
    if (send == MPI_IN_PLACE)
        send = recv;
    switch (select_algorithm(SELECT_SCAN, s, count * type->size, op->commutative)) {
    case SCAN_NODES:
        ordered_scan(s, hierarchy_nodes(s), send, recv, count, type, op, inclusive);
        break;
    case SCAN_NETWORKS:
        ordered_scan(s, hierarchy_networks(s), send, recv, count, type, op, inclusive);
        break;
    case SCAN_SHARED:
        if (inclusive)
            shared_scan(s, send, recv, count, type, op);
        else
            shared_exscan(s, send, recv, count, type, op);
        break;
    default:
        scan_doubling(s, send, recv, count, type, op, inclusive);
        break;
    }
}

void coll_scan(struct schedule *s, const void *send, void *recv, MPI_Count count,
               struct datatype *type, struct op *op)
{
    scan(s, send, recv, count, type, op, true);
}

void coll_exscan(struct schedule *s, const void *send, void *recv, MPI_Count count,
                 struct datatype *type, struct op *op)
{
    scan(s, send, recv, count, type, op, false);
}
