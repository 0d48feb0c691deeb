/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rooms below count and hold anyway, brought together for performance variables: summed
 * over the vcis. With the library lock. While MPI is not there, nothing is held, and counters stay
 * where MPI_Finalize left them.
 */
#ifndef MOTET_CLIENT_TOOLS_COUNTS_H
#define MOTET_CLIENT_TOOLS_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

struct comm;
struct win;

/* Only grow. */
struct counts {
    uint64_t sent_msgs, sent_bytes, recv_msgs, recv_bytes; /* sent to others, received from them */
    uint64_t daemon_sent_msgs, daemon_sent_bytes, daemon_recv_msgs, daemon_recv_bytes;
    uint64_t rendezvous_out, rendezvous_in;
    uint64_t credit_stalls, room_stalls;
    uint64_t sleeps, slept_ns;
};
void counts_read(struct counts *ret_counts);
/* Keeps what they are: MPI ends. */
void counts_keep(void);

/* At this moment. */
struct counts_levels {
    uint64_t posted, unexpected, unexpected_bytes;
    uint64_t pending;    /* sends that wait for room in a ring */
    uint64_t rendezvous; /* large messages under way, both directions */
    double allowance;    /* of the eager allowance that a peer gives, the largest part in use */
};
void counts_read_levels(struct counts_levels *ret_levels);
/* The same two of one communicator's point-to-point messages. */
void counts_of_comm(const struct comm *comm, uint64_t *ret_posted, uint64_t *ret_unexpected);
/* Parts of operations on a window under way or queued, by messages. */
uint64_t counts_of_win(const struct win *win);
uint64_t counts_windows(void);

/* The most posted receives and unexpected messages of any one vci, summed, since the last
 * counts_watch. */
void counts_watch(bool watched);
void counts_high(uint64_t *ret_posted, uint64_t *ret_unexpected);

#endif
