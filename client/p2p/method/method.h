/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way a large message takes between two ranks of a node: through the rings, read by the
 * receiver, or copied by both (proto/method.h). Which is the fastest depends on the processor, the
 * kernel, the size and the program, so it is tried while the program runs (trial.h): the receiver
 * times messages and puts its choice on the board of the pair in the job segment, and the sender
 * looks there. Outside of trials no clock is read. With the vci's lock.
 */
#ifndef MOTET_CLIENT_P2P_METHOD_METHOD_H
#define MOTET_CLIENT_P2P_METHOD_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "client/p2p/method/trial.h"
#include "proto/msg.h"

/* Below this both copying is not tried: the hand-shake costs more than the second core brings. */
#define METHOD_BOTH_BYTES (64u << 10)
/* Of messages in windows, those from this size on are not tried and go through the rings: all of a
 * window are announced before the first one is there, so that a step of a trial lasts whole
 * windows, and by the slowest method that is most of a short program's life. */
#define METHOD_WINDOW_BYTES (1u << 20)
/* The setting: METHOD_N is "auto". */
#define METHOD_AUTO METHOD_N

/* What one rank keeps for one other rank of its node, and one vci. */
struct method_table {
    struct method_board *in;        /* of what comes from it; this rank writes */
    const struct method_board *out; /* of what goes there */
    uint8_t fixed;                  /* enum method or METHOD_AUTO */
    uint64_t last_ns;               /* when the last timed message had arrived */
    struct trial trials[METHOD_KINDS][METHOD_CLASSES];
};

/* A message on its way in whose time is taken. */
struct method_sample {
    bool timed;
    uint8_t method, kind, class;
    uint64_t start_ns, bytes;
};

/* MOTET_COPY: sets *ret_fixed to what it says. MPI_ERR_ARG with a text: to something unknown. */
int method_read_setting(uint8_t *ret_fixed);

/* For local ranks `me` and `other`. NULL: no memory, then all goes through the rings. Free with
 * free(). */
struct method_table *method_new(uint32_t vci, uint32_t me, uint32_t other, uint8_t fixed);

/* Sender: the method for a message. *ret_timed: the receiver wants to know when it began. */
enum method method_for(const struct method_table *m, uint64_t bytes, bool alone, bool *ret_timed);

/* Receiver: an announcement has met its receive, which was `expected` or came later. Sets up the
 * sample. */
void method_arrived(struct method_table *m, const struct msg_rts *rts, bool expected,
                    uint32_t first_len, struct method_sample *s);

/* Receiver: the message is there whole. */
void method_timed(struct method_table *m, const struct method_sample *s);
static inline void method_done(struct method_table *m, const struct method_sample *s)
{
    if (__builtin_expect(s->timed, 0))
        method_timed(m, s);
}

/* Receiver: the kernel does not let it read. */
void method_refused(struct method_table *m);

#endif
