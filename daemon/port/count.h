/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be seen of a channel: counters, and snapshots of its flows and links. Written by the
 * channel's thread alone, read by the control thread for status at any time; neither waits for the
 * other.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* name in status, what it counts */
#define COUNT_LIST(X)                                                                              \
    X(PACKETS_OUT, "packets_out") /* handed to the driver */                                       \
    X(BYTES_OUT, "bytes_out")     /* header and payload */                                         \
    X(PACKETS_IN, "packets_in")   /* received and found sound */                                   \
    X(BYTES_IN, "bytes_in")                                                                        \
    X(MSGS_UP, "messages_from_ranks")                                                              \
    X(MSGS_DOWN, "messages_to_ranks")                                                              \
    X(MSGS_LOCAL, "messages_local")   /* rank to rank of this node through the channel */          \
    X(FORWARDED, "packets_forwarded") /* received for another node and handed on */                \
    X(HANDED, "packets_handed")       /* given to another channel of this node */                  \
    X(RESENT, "packets_resent")                                                                    \
    X(DATAGRAMS, "datagrams_out") /* of drivers that cut packets themselves */                     \
    X(FRAGMENTS_RESENT, "fragments_resent")                                                        \
    X(TIMEOUTS, "timeouts") /* packets found lost by time */                                       \
    X(ACKS_OUT, "acks_out")                                                                        \
    X(ACKS_IN, "acks_in")                                                                          \
    X(DUPLICATES, "duplicates")                                                                    \
    X(CONGESTED, "congestion_marks") /* set here */                                                \
    X(ASIDE, "messages_aside")       /* put into a backlog at their source */                      \
    X(HELD, "messages_held")         /* waited for a rank that does not drain */                   \
    X(REFUSED, "packets_refused")    /* not taken: rank over its limit, or job not known yet */    \
    X(STOPS, "stops_heard")          /* a destination rank does not drain */                       \
    X(DROP_BAD, "dropped_bad")       /* wire_verify found fault */                                 \
    X(DROP_NODE, "dropped_unknown_node") /* source or destination not in the hop table */          \
    X(DROP_EPOCH, "dropped_epoch")       /* from or for another incarnation */                     \
    X(DROP_JOB, "dropped_unknown_job")   /* job ended or never came */                             \
    X(DROP_RANK, "dropped_bad_rank")     /* no such rank here */                                   \
    X(DROP_HOPS, "dropped_hops")         /* forwarded too often */                                 \
    X(DROP_ROUTE, "dropped_no_route")                                                              \
    X(DROP_QUEUE,                                                                                  \
      "dropped_queue_full") /* forwarding queue at its limit, or no block to receive into */       \
    X(DROP_UNREACHABLE, "dropped_unreachable") /* own packets given up */                          \
    X(POISONED, "rings_poisoned")              /* rubbish found in a rank's ring */                \
    X(SEND_ERRORS, "send_errors")                                                                  \
    X(FORGED, "forged_packets")     /* not from a peer, or damaged on the way */                   \
    X(REPLAYED, "replayed_packets") /* had come before */                                          \
    X(STRANGERS, "strangers")       /* connections that did not prove to be a peer's */            \
    X(RESETS, "flow_resets")                                                                       \
    X(EVENTS_LOST, "events_lost") /* control did not read its events */                            \
    X(TURNS, "turns")                                                                              \
    X(SLEEPS, "sleeps")                                                                            \
    X(BLOCKS_FREE, "blocks_free") /* gauges from here on */                                        \
    X(BLOCKS_TOTAL, "blocks_total")                                                                \
    X(OUT_QUEUED, "out_queued") /* packets waiting for the driver */                               \
    X(HELD_BYTES, "held_bytes")                                                                    \
    X(FLOWS_ACTIVE, "flows_active")                                                                \
    X(JOBS, "jobs")

enum count_id {
#define COUNT_ENUM(id, name) COUNT_##id,
    COUNT_LIST(COUNT_ENUM)
#undef COUNT_ENUM
        COUNT_N
};

/* Name of a counter as status prints it. */
const char *count_name(enum count_id id);

struct count {
    _Atomic uint64_t value[COUNT_N];
};

static inline void count_add(struct count *c, enum count_id id, uint64_t n)
{
    /* One writer: a plain load and store, no locked instruction. */
    uint64_t v = atomic_load_explicit(&c->value[id], memory_order_relaxed);
    atomic_store_explicit(&c->value[id], v + n, memory_order_relaxed);
}

static inline void count_set(struct count *c, enum count_id id, uint64_t v)
{
    atomic_store_explicit(&c->value[id], v, memory_order_relaxed);
}

static inline uint64_t count_get(const struct count *c, enum count_id id)
{
    return atomic_load_explicit(&c->value[id], memory_order_relaxed);
}

/* Snapshot of a flow from this node. */
struct count_flow {
    uint32_t slot;      /* destination, in the hop table */
    uint32_t window;    /* packets that may be under way */
    uint32_t in_flight; /* under way */
    uint32_t queued;    /* numbered, waiting for the window or to be sent again */
    uint32_t srtt_us, rto_us;
    uint32_t next_slot; /* neighbour of the last packet sent */
    uint32_t next_channel;
    uint64_t packets, bytes, resent;
};

/* Snapshot of a link to a neighbour on this channel's network. */
struct count_link {
    uint32_t slot;                          /* neighbour */
    uint32_t up;                            /* 1: usable */
    uint32_t queued;                        /* packets waiting for the driver */
    uint32_t in_driver;                     /* given to the driver, not yet completed */
    uint32_t rtt_us;                        /* of the last probe; 0 unknown */
    uint32_t verdict;                       /* enum link_verdict */
    uint32_t datagram_bytes, datagram_most; /* as struct net_path; 0: the driver does not say */
    uint64_t packets, bytes, errors;
    uint64_t heard_ns; /* when a probe was last answered */
    uint64_t datagrams, resent;
};

/* One row of a table of snapshots: a sequence lock with one writer. Words of the snapshot are
 * stored one by one, relaxed. */
#define COUNT_ROW_WORDS 10u
struct count_row {
    _Atomic uint64_t version; /* odd while being written; 0: never used */
    _Atomic uint64_t word[COUNT_ROW_WORDS];
};

void count_row_write(struct count_row *row, const void *snapshot, uint32_t n_bytes);
/* False if the row was never written, or is being written all the time. */
bool count_row_read(const struct count_row *row, void *ret_snapshot, uint32_t n_bytes);
