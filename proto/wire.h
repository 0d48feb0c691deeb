/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet: what one channel thread sends to another, over any network and through any number of
 * gateways. Little endian. Document: doc/wire.md, changed together with this file.
 *
 * A *flow* is the numbered stream of one class from one channel of a source node (`src_node`,
 * `src_epoch`, `flow_channel`, `flow_class`) to one destination node, whatever way its packets
 * take. The destination acknowledges cumulatively and selectively; what is not acknowledged is sent
 * again, over the way that the hop table names then.
 *
 * Quick packets go in front of bulk ones wherever packets wait. Each class has numbers and a window
 * of its own, so that overtaking between them is no loss, and neither waits for the other's
 * window.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAGIC   0x4d54u /* "TM" on the wire, read as a number "MT" */
#define WIRE_VERSION 3u
/* A packet is dropped after this many forwardings: routes may loop for a moment while topology
 * changes spread. */
#define WIRE_MAX_HOPS 16u

enum wire_type {
    WIRE_DATA = 1,  /* payload for a rank */
    WIRE_ACK = 2,   /* payload: struct wire_ack without the selective words that are 0 at its end */
    WIRE_PROBE = 3, /* asks a neighbour for an echo: whether data passes a link, and how long it
                       takes; payload: struct wire_probe, and anything up to the size to be tried */
    WIRE_ECHO = 4,  /* the answer, always small; payload: struct wire_probe */
    WIRE_RESET = 5, /* destination is another incarnation than dst_epoch of a packet said: source
                       begins the flow again */
    WIRE_REFUSE = 6, /* destination does not take packet `seq` now, for rank dst_rank of `job`, and
                      * never will under this number: source sends the number empty (job 0) and the
                      * message again later under another one */
};

/* Class of a packet, by which it takes its place in queues. */
enum wire_class {
    WIRE_QUICK = 0, /* short messages, control between ranks and between daemons */
    WIRE_BULK = 1,
    WIRE_CLASSES
};
/* A message of up to so many bytes is quick. */
#define WIRE_QUICK_BYTES 1024u

/* Packet flags. */
/* set by any node whose queue for the next hop is above its mark (RFC 3168 in spirit) */
#define WIRE_F_CONGESTED 0x01
/* nothing before this `seq` will come: the receiver starts, or goes on, with it */
#define WIRE_F_FIRST 0x02
/* the source's window is used up: the receiver acknowledges without delay */
#define WIRE_F_ACK 0x04
/* `job` is the number of a connection between two jobs in this direction, and src_rank a rank of
 * the one that sends */
#define WIRE_F_FOREIGN 0x08

struct wire_header {
    uint16_t magic;    /* WIRE_MAGIC; every node checks */
    uint8_t version;   /* WIRE_VERSION; every node checks */
    uint8_t type;      /* enum wire_type */
    uint8_t hops_left; /* set to WIRE_MAX_HOPS by the source, decremented by gateways */
    uint8_t
        flow_channel;   /* channel index at the source that owns the flow; the ack returns to it */
    uint8_t flags;      /* WIRE_F_* */
    uint8_t flow_class; /* enum wire_class; DATA: the class of the flow; ACK, RESET, REFUSE: that of
                           the flow which they speak of; PROBE, ECHO: by which queues they go */
    uint32_t src_node;  /* node ids; checked against the hop table */
    uint32_t dst_node;
    uint32_t src_epoch; /* incarnation of the source daemon */
    uint32_t dst_epoch; /* incarnation the source believes the destination to have; a mismatch is
                           dropped */
    uint64_t job; /* DATA: job id; a job that is over: dropped and acknowledged; one that may still
                   * come: refused; 0: nothing inside, only the number counts (its job is over at
                   * the source). ACK: not 0: rank dst_rank of this job does not drain, its senders
                   * shall stop for a while (msg_context 0), or it drains again (msg_context 1) */
    uint32_t seq; /* number in the flow, from 1 */
    uint32_t len; /* payload bytes after this header; checked against what arrived */
    uint32_t src_rank; /* world ranks; set by the source channel, never by the rank */
    uint32_t dst_rank;
    /* The message header of proto/ring.h, as the rank wrote it. */
    uint8_t msg_kind;
    uint8_t msg_flags;
    uint16_t reserved1; /* 0 */
    uint32_t msg_context;
    int32_t msg_source;
    int32_t msg_tag;
    uint32_t msg_order;
    uint32_t sent_us; /* source's clock when (re)sent, low 32 bits of microseconds; returned in the
                         ack for the round trip */
    uint32_t check;   /* CRC-32C of the header with this field 0: rubbish and misdirected data are
                         told apart from packets */
    uint32_t reserved2; /* 0 */
};
static_assert(sizeof(struct wire_header) == 80, "wire header");
static_assert(offsetof(struct wire_header, src_node) == 8, "wire header");
static_assert(offsetof(struct wire_header, job) == 24, "wire header");
static_assert(offsetof(struct wire_header, seq) == 32, "wire header");
static_assert(offsetof(struct wire_header, msg_kind) == 48, "wire header");
static_assert(offsetof(struct wire_header, check) == 72, "wire header");

/* Acknowledgement of one flow, sent by the destination node to the source node. */
#define WIRE_ACK_WORDS 8u
struct wire_ack {
    uint32_t cumulative;                /* every number up to and including this one has arrived */
    uint32_t sent_us;                   /* sent_us of the packet that caused this ack */
    uint32_t congested;                 /* packets with WIRE_F_CONGESTED since the last ack */
    uint32_t received;                  /* packets since the last ack */
    uint64_t selective[WIRE_ACK_WORDS]; /* bit i: number cumulative + 2 + i has arrived */
};
static_assert(sizeof(struct wire_ack) == 80, "wire ack");

/* The class in which this packet takes its place in queues: what daemons say of flows is quick. */
static inline enum wire_class wire_class(const struct wire_header *h)
{
    return h->flow_class != WIRE_QUICK && h->type != WIRE_ACK && h->type != WIRE_RESET &&
                   h->type != WIRE_REFUSE
               ? WIRE_BULK
               : WIRE_QUICK;
}

/* Payload of a probe, and of the echo, which returns it. */
struct wire_probe {
    uint64_t stamp_ns; /* the prober's clock */
    uint32_t n_bytes;  /* header and payload of the probe */
    uint32_t n_missed; /* the prober's last probes that were not answered in time; echo: 0 */
};
static_assert(sizeof(struct wire_probe) == 16, "wire probe");
/* The smallest probe. */
#define WIRE_PROBE_BYTES ((uint32_t)(sizeof(struct wire_header) + sizeof(struct wire_probe)))

/* Computes and stores `check`. */
void wire_seal(struct wire_header *h);

/* Checks magic, version, check sum, reserved fields, type, class and that len fits n_bytes (header
 * and payload as received). Returns 0, or the reason as one of the positive conditions below. */
enum { WIRE_E_SHORT = 1, WIRE_E_MAGIC, WIRE_E_VERSION, WIRE_E_CHECK, WIRE_E_TYPE, WIRE_E_LENGTH };
int wire_verify(const struct wire_header *h, size_t n_bytes);
const char *wire_error(int condition);
