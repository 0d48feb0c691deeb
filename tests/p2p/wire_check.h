/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests on the wire (wire.h) say and look at again and again. */
#ifndef TESTS_P2P_WIRE_CHECK_H
#define TESTS_P2P_WIRE_CHECK_H

#include "tests/p2p/wire.h"

/* Bytes that differ from their neighbours and from those of another seed. */
void wire_fill(unsigned char *data, MPI_Count n, int seed);
/* n bytes of `data` are sent from rank 0 to rank 1, `early` before their receive, and arrive in
 * `room`, which is one byte longer. Then nothing is left of them. */
void wire_check_transfer(unsigned char *data, unsigned char *room, MPI_Count n, bool early);
/* No rank keeps anything of any transfer. */
void wire_check_quiet(void);
void wire_check_status(const MPI_Status *status, int source, int tag, MPI_Count n);
struct datatype *wire_byte(void);

/* ---- three ranks on a node each, one message to send and room for one ---- */

#define WIRE_LARGE 50000 /* bytes: too many to be eager */

extern unsigned char wire_data[WIRE_LARGE], wire_room[WIRE_LARGE + 1];
/* For cmocka: starts the ranks and fills both. */
int wire_set_up_apart(void **state);
/* The receive of rank 1 into `wire_room` has the first n bytes of `wire_data`; the room is clean
 * again. */
void wire_check_received(struct request *recv, int source, int tag, MPI_Count n);
/* Rank 1 probes. */
int wire_iprobe(int source, int tag, MPI_Status *status);

#endif
