/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control to channel and back: the only way in which the control thread and a channel thread speak.
 * Commands and events are small fixed structures in two rings in process memory, each with one
 * producer and one consumer.
 *
 * The control thread also publishes routes, by writing the hop table (proto/hop.h) itself: words
 * first, then `generation` with release; channels look at the generation in every turn.
 *
 * The control thread uses the rings through channel.h (channel_command, channel_next_event).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/net/net.h"
#include "proto/segment.h"

struct channel;
struct channel_foreign;
struct channel_job;

/* Where a rank of another job runs. */
struct channel_place {
    uint32_t node_id, slot; /* in the hop table */
    uint32_t stamp;         /* SEGMENT_STAMP_SHIFT, in place */
};

enum cmd_type {
    CMD_ADD_LINK = 1,   /* a neighbour answers at this address; adding it again with another address
                           or secret replaces it */
    CMD_REMOVE_LINK,    /* it is gone; packets waiting for it take another way or go back to their
                           flows */
    CMD_ATTACH_JOB,     /* serve this job's rings */
    CMD_DETACH_RANK,    /* take all from the rank's ring, then answer EVENT_RANK_DETACHED */
    CMD_DETACH_JOB,     /* let go of the job's memory at once, then answer EVENT_JOB_DETACHED */
    CMD_ADD_FOREIGN,    /* the ranks of another job are peers of this job's from now on */
    CMD_REMOVE_FOREIGN, /* and not any more: take what lies in the rings for them, then answer
                           EVENT_FOREIGN_REMOVED; not after CMD_DETACH_JOB */
    CMD_SET_WAIT,       /* wait mode of this channel thread */
    CMD_DRAIN, /* answer EVENT_DRAINED when nothing is unacknowledged or waiting any more, or the
                * time is over
                */
    CMD_STOP,  /* end the thread (channel_stop does this) */
};

/* CMD_ADD_LINK */
struct cmd_link {
    uint16_t slot;
    uint16_t len;
    uint8_t address[NET_ADDRESS_BYTES];
    /* What the two ends of this link have in common and nobody else knows: another one as soon as
     * either daemon is another incarnation. */
    uint8_t secret[SEAL_SECRET_BYTES];
};

struct cmd {
    uint32_t type; /* enum cmd_type */
    union {
        struct cmd_link add_link;
        struct {
            uint16_t slot;
        } remove_link;
        struct channel_job *job;         /* CMD_ATTACH_JOB, CMD_DETACH_JOB */
        struct channel_foreign *foreign; /* CMD_ADD_FOREIGN, CMD_REMOVE_FOREIGN */
        struct {
            struct channel_job *job;
            uint32_t local; /* index of the rank on this node */
            uint32_t dead;  /* 1: the rank died, its ring may hold rubbish: throw it away; 0: it
                               finalized, drain */
        } detach_rank;
        uint32_t wait_mode;  /* enum wait_mode */
        uint64_t timeout_ns; /* CMD_DRAIN, from now */
    };
};

/* Whether data passes a link (daemon/port/pulse.h): of a neighbour on a channel, as seen from
 * here. */
enum link_verdict {
    LINK_UNPROVED = 0, /* not known yet */
    LINK_ALIVE,        /* in both directions, packets of full size too */
    LINK_SILENT,       /* nothing of theirs arrives */
    LINK_ONE_WAY,      /* theirs arrives here, ours does not arrive there */
    LINK_LARGE,        /* ours does not arrive there if it is large */
    LINK_BROKEN,       /* the network cannot send to it, and says why */
};
#define LINK_N_VERDICTS 6u

enum event_type {
    EVENT_LINK_ERROR = 1, /* this neighbour's address cannot be used */
    EVENT_LINK,           /* whether data passes this link has changed */
    EVENT_RTT,            /* a probe over this link was answered */
    EVENT_RANK_DETACHED,
    EVENT_JOB_DETACHED,    /* the channel holds nothing of the job any more: free it */
    EVENT_FOREIGN_REMOVED, /* the channel holds nothing of the connection any more: free it */
    EVENT_UNREACHABLE,     /* no route to this node for long: its packets were given up */
    EVENT_RESTARTED, /* this node came back as a new incarnation: packets of jobs that are over were
                      * dropped
                      */
    EVENT_BACKLOG_OVERFLOW, /* a rank did not drain for long: to be named in the log; only its own
                            senders wait for it */
    EVENT_POISONED,         /* rubbish in a rank's ring: end its job */
    EVENT_DRAINED,
    EVENT_FAILED, /* the channel's endpoint is lost; the thread goes on to serve rings and other
                     channels */
};

struct cmd_event {
    uint32_t type;    /* enum event_type */
    uint32_t slot;    /* LINK_ERROR, LINK, RTT, UNREACHABLE, RESTARTED */
    uint64_t job;     /* job id: RANK_DETACHED, JOB_DETACHED, BACKLOG_OVERFLOW, POISONED */
    uint32_t rank;    /* local rank: RANK_DETACHED; world rank: BACKLOG_OVERFLOW, POISONED */
    int32_t error;    /* LINK_ERROR, LINK (LINK_BROKEN), FAILED: negative errno */
    uint32_t verdict; /* LINK: enum link_verdict */
    uint64_t value; /* RTT: nanoseconds; LINK (LINK_LARGE): size of the largest packet that passes;
                       UNREACHABLE, RESTARTED: packets dropped; BACKLOG_OVERFLOW: bytes;   DRAINED:
                       left over; FOREIGN_REMOVED: the connection's number on its way in */
    const char *text; /* POISONED: what was found (a constant string); else NULL */
};

/*
 * What a channel needs to know of a job. The tables are the daemon's own copies, never the
 * segment's, which the ranks can write. They and the segment's mapping stay valid until this
 * channel's EVENT_JOB_DETACHED.
 */
struct cmd_job {
    uint64_t job;  /* not 0 */
    void *segment; /* base of the mapping */
    const struct segment_layout *layout;
    const struct segment_world *world; /* shape.n_world entries */
    const struct segment_node *nodes;  /* shape.n_nodes entries; node_id and slot are used */
    int event_fd; /* this job's eventfd of this channel, as passed to its ranks; stays the caller's
                   */
    uint32_t uid; /* whose job it is */
    bool fenced;  /* as in the attach reply */
    uint32_t backlog_bytes; /* most that waits here for one rank that does not drain; 0: default (16
                               MiB) */
};

#define CMD_RING   256u
#define EVENT_RING 1024u

/* The two rings between the control thread and a channel's, in lines by who writes them. */
struct cmd_rings {
    struct cmd *cmds; /* set once */
    struct cmd_event *events;
    int event_fd;
    struct { /* the control thread's */
        _Alignas(64) _Atomic uint32_t cmd_tail;
        _Atomic uint32_t event_head;
    };
    struct { /* the channel's thread's */
        _Alignas(64) _Atomic uint32_t cmd_head;
        _Atomic uint32_t event_tail;
    };
};

/* 0 or -errno. */
int cmd_init(struct cmd_rings *r);
void cmd_deinit(struct cmd_rings *r);
/* Control: sends a command, without waking anybody. 0, or -EAGAIN when the ring is full. Copies
 * *cmd. */
int cmd_push(struct cmd_rings *r, const struct cmd *cmd);
/* Channel: takes the next command. False when there is none. */
bool cmd_pop(struct cmd_rings *r, struct cmd *ret_cmd);
/* Channel: is there one? */
bool cmd_pending(const struct cmd_rings *r);
/* Channel: sends an event and makes `event_fd` readable. False if the ring is full. */
bool cmd_push_event(struct cmd_rings *r, const struct cmd_event *event);
/* Control: fetches the next event. False when there is none. */
bool cmd_pop_event(struct cmd_rings *r, struct cmd_event *ret_event);
