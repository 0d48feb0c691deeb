/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of a channel, for the files of this folder only. Everything in `struct channel`
 * belongs to the channel's thread, except what is marked; `struct hub` is shared by the channels of
 * the node and consists of lanes and atomics.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/list.h"
#include "daemon/channel/channel.h"
#include "daemon/channel/lane.h"
#include "daemon/flow/credit.h"
#include "daemon/flow/flow.h"
#include "daemon/net/block.h"
#include "proto/bell.h"
#include "proto/wire.h"

/* Packets of up to this payload take the quick way, others the wide ones. */
#define ROUTE_SMALL_BYTES 4096u
/* A queue this long is a sign of congestion. */
#define LINK_MARK 64u
/* Packets given to the driver for one neighbour at once; the rest waits in the link's queue, where
 * it can be taken back. */
#define LINK_DRIVER_MAX 64u
#define ENDED_JOBS      256u
#define STRANGER_JOBS   64u
#define NODE_MAP_SIZE   (2u * HOP_MAX_NODES)

struct hub_wake {
    struct bell bell; /* only `sleeping` is used */
    int event_fd;
};

struct hub {
    struct hub_config config;
    struct arena arena;
    struct block
        *blocks; /* each block's owner half belongs to its owner, the holder half to its holder */
    uint32_t blocks_per_channel;
    struct lane *give, *back; /* [from * n_channels + to] */
    uint32_t *lane_entries;
    _Atomic uint8_t *rx_owner; /* [slot * HOP_MAX_CHANNELS + flow channel]: channel + 1 that
                                  receives this flow */
    struct hub_wake wake[HOP_MAX_CHANNELS];
};

/* A neighbour on this channel's network. */
struct link {
    struct list busy; /* in channel.busy_links while something is queued */
    struct list node; /* in channel.links_up */
    bool up;
    uint16_t slot;
    uint16_t address_len;
    uint32_t peer;                 /* the driver's */
    uint32_t head, tail, n_queued; /* blocks waiting for the driver */
    uint32_t n_driver;
    int error;               /* to be reported to control */
    uint64_t error_ns;       /* last report */
    uint64_t retry_ns;       /* nothing is sent before */
    uint64_t probe_ns;       /* next probe */
    uint64_t probed_packets; /* packets sent before the last one */
    uint32_t n_probes;
    uint64_t heard_ns;
    uint64_t moved_ns; /* when the driver last took or finished something */
    uint32_t rtt_us;
    uint64_t packets, bytes, errors;
    uint8_t address[NET_ADDRESS_BYTES];
};

/* The sending end of the flow to one node. */
struct flow {
    struct flow_tx tx;
    struct list active; /* in channel.active_flows while something is unacknowledged */
    struct list dirty;  /* in channel.dirty_flows: may be able to send */
    bool ready;
    uint16_t slot;
    uint32_t dst_epoch;
    uint32_t pick;        /* counter for choosing among ways */
    uint64_t no_route_ns; /* since when there is none; 0: there is */
    uint64_t last_word;
    uint64_t packets, bytes;
};

/* The receiving end of a flow. */
struct flow_in {
    struct flow_rx rx;
    struct list ack; /* in channel.acks_urgent or acks_waiting */
    uint16_t slot;
    uint8_t flow_channel;
    uint8_t ack_state;  /* 0 none, 1 waiting, 2 urgent */
    uint32_t stop_rank; /* to be told to the source with the next acknowledgement: that this rank
                           does not drain, */
    bool stop_over;     /* or drains again */
    uint64_t stop_job;  /* 0: nobody */
    uint64_t stop_ns;   /* when it was told last */
};

/* One rank's ring towards this channel. */
struct up {
    struct ring_consumer ring;
    struct list node; /* in channel.ups_active or ups_quiet */
    struct channel_job *job;
    uint32_t local, world;
    bool known;         /* in one of the lists */
    bool active;        /* polled in every turn */
    bool blocked;       /* its next message waits for a window, a block or a hold */
    bool poisoned;      /* rubbish was found: not read any more */
    bool gone;          /* detached */
    bool draining;      /* to be answered when empty */
    uint32_t n_aside;   /* of its messages that are set aside */
    const char *poison; /* not yet reported */
    uint64_t last_ns;
};

#define HOLD_TOLD 16u

/* One rank's ring from this channel, and what waits for room in it. */
struct down {
    struct ring_producer ring;
    struct list node; /* in channel.holding while something is held */
    struct channel_job *job;
    uint32_t local;
    bool gone;
    uint32_t hold_head,
        hold_tail;     /* blocks of records: wire header and payload, one after the other */
    uint32_t hold_off; /* of the first record in the first block */
    uint32_t n_hold;   /* blocks */
    uint64_t hold_bytes;
    uint64_t refused_ns; /* since when packets are refused without any being drained; 0: not */
    uint64_t reported_ns;
    struct flow_in *told[HOLD_TOLD]; /* flows whose sources were told to stop; more than fit find
                                        out by themselves */
    uint32_t n_told;
};

/* Messages for a rank to which none can go now. */
struct aside {
    struct channel_job *job;
    uint32_t rank;
    uint32_t head, tail; /* blocks of records: wire header and payload, one after the other */
    uint32_t off;        /* of the first record in the first block */
    uint32_t n_blocks;
};
#define ASIDE_MAX CREDIT_STOPS

struct channel_job {
    struct list node;
    struct cmd_job config;
    struct segment_layout layout;
    struct segment_world *world; /* own copies */
    struct segment_node *nodes;
    struct bell *bell;
    _Atomic uint8_t *closed; /* in the segment, by world rank: 1 where messages are set aside */
    struct channel_job *hash_next;
    uint32_t n_local, n_words, hold_max;
    bool attached, detached;
    struct up *ups;
    struct down *downs;
    uint32_t *data_end;
};

#define JOB_HASH 256u

struct channel {
    struct hub *hub;
    const struct hop_table *hops;
    struct channel_config config;
    char name[64];
    uint32_t idx, node_id, epoch, packet_bytes, n_channels;
    bool fenced;

    const struct net_driver *driver;
    struct net *net;
    struct net_info info;
    bool net_lost;

    uint64_t now_ns;
    uint64_t slow_ns;     /* next slow tick: snapshots, gauges, no-route checks */
    uint64_t flow_due_ns; /* no flow times out before */
    uint64_t probe_due_ns;
    uint32_t generation;
    struct pool pool;
    uint32_t n_posted, n_receives, tx_max, hold_max;

    uint32_t map_slots; /* slots of the hop table entered so far */
    struct {
        uint32_t node_id;
        uint32_t slot;
    } * map;

    struct link *links; /* by slot */
    struct list links_up, busy_links;
    struct flow *flows; /* by slot */
    struct list active_flows, dirty_flows;
    uint32_t n_active;
    struct flow_limits limits;
    struct flow_in *flows_in; /* [slot * HOP_MAX_CHANNELS + channel] */
    struct list acks_urgent, acks_waiting;
    uint64_t reset_ns; /* next time a reset may be sent */

    struct list jobs;      /* attached */
    struct list jobs_gone; /* let go of, answer not sent yet */
    struct channel_job *job_hash[JOB_HASH];
    uint64_t ended[ENDED_JOBS];
    uint32_t n_ended;
    struct {
        uint64_t job;
        uint64_t first_ns;
    } strangers[STRANGER_JOBS];
    struct list ups_active, ups_quiet;
    struct list holding;
    uint64_t held_bytes;
    struct credit credit;
    struct aside asides[ASIDE_MAX];
    uint32_t n_asides, n_aside_blocks;
    uint32_t *parked, n_parked; /* blocks with messages that were refused */
    uint64_t park_ns;           /* when they are looked at next */
    uint32_t n_detaching;

    uint64_t drain_until_ns; /* 0: not draining */
    bool stop;
    uint32_t scratch[FLOW_WINDOW];

    /* Thread loop. */
    pthread_t thread;
    bool running; /* control thread's */
    int epoll_fd;
    uint64_t idle_ns;     /* since when there was no work */
    bool resting;         /* slept since then */
    uint32_t n_household; /* probes and echoes of this turn: not a reason to stay awake */
    _Atomic uint64_t heartbeat;

    /* Shared with control: rings of commands and events, counters, snapshots. */
    _Alignas(64) _Atomic uint32_t wait_mode;
    struct cmd *cmds;
    _Alignas(64) _Atomic uint32_t cmd_head;
    _Alignas(64) _Atomic uint32_t cmd_tail;
    struct cmd_event *events;
    _Alignas(64) _Atomic uint32_t event_head;
    _Alignas(64) _Atomic uint32_t event_tail;
    int event_fd;
    struct count count;
    struct count_row *flow_rows, *link_rows; /* by slot */
};

/* channel.c */
/* The block is no longer needed by this channel; error: it was to be sent, and was not. */
void channel_block_done(struct channel *ch, uint32_t block, int error);
/* Wakes another channel's thread after a push to one of its lanes. */
void channel_wake(struct hub *hub, uint32_t idx);
/* Slot of a node in the hop table; UINT32_MAX if it is not there. */
uint32_t channel_slot_of(struct channel *ch, uint32_t node_id);
/* Brings up-to-date gauges and snapshots. */
void channel_snapshot(struct channel *ch);
/* Is there anything that a turn would do? Before sleeping. */
bool channel_has_work(struct channel *ch);

/* cmd.c */
#define CMD_RING   256u
#define EVENT_RING 1024u
int cmd_init(struct channel *ch);
void cmd_deinit(struct channel *ch);
uint32_t cmd_poll(struct channel *ch);
bool cmd_pending(const struct channel *ch);
/* False if the ring is full. */
bool cmd_event(struct channel *ch, const struct cmd_event *event);

/* loop.c */
int loop_init(struct channel *ch);
void loop_deinit(struct channel *ch);
void loop_add_fd(struct channel *ch, int fd);
void loop_remove_fd(struct channel *ch, int fd);

/* job.c */
void job_attach(struct channel *ch, struct channel_job *job);
void job_detach(struct channel *ch, struct channel_job *job);
void job_detach_rank(struct channel *ch, struct channel_job *job, uint32_t local, bool dead);
struct channel_job *job_find(struct channel *ch, uint64_t id);
/* Positive: the job is not known yet and may still come. 0: it ended or never came. */
bool job_may_come(struct channel *ch, uint64_t id);
/* Sends answers that did not fit the event ring. */
void job_answers(struct channel *ch);

/* link.c */
void link_add(struct channel *ch, uint32_t slot, const void *address, uint32_t len);
void link_remove(struct channel *ch, uint32_t slot);
/* Sends a block of blocks[].len bytes to the neighbour; the block comes back through
 * channel_block_done. */
void link_send(struct channel *ch, struct link *link, uint32_t block);
/* Lets queued blocks go; returns how many went. */
uint32_t link_flush(struct channel *ch);
void link_on_sent(struct channel *ch, uint32_t block, int error);
void link_on_error(struct channel *ch, struct link *link, int error);
void link_on_probe(struct channel *ch, const struct wire_header *h);
void link_on_echo(struct channel *ch, const struct wire_header *h);
/* Sends probes that are due. */
void link_probes(struct channel *ch);
/* Somebody needs the links from now on. */
void link_probe_soon(struct channel *ch);

/* relay.c */
/* The way for a packet to the node of this slot: 0 when there is none. `own`: prefers ways out of
 * this channel. */
hop_word relay_route(struct channel *ch, uint32_t slot, uint32_t len, uint32_t *counter, bool own);
/* Sends a block over this way, from this channel or another one. False if the other channel's lane
 * is full (nothing done). */
bool relay_out(struct channel *ch, hop_word way, uint32_t block);
/* A received packet for another node. Takes the block. */
void relay_forward(struct channel *ch, uint32_t block, uint32_t len);
/* What other channels gave. Returns how much was done. */
uint32_t relay_poll(struct channel *ch, uint32_t budget);

/* tx.c */
uint32_t tx_poll(struct channel *ch, uint32_t budget);
/* True if a ring has a message that could be taken now. */
bool tx_has_work(struct channel *ch);
void tx_activate_up(struct channel *ch, struct up *up);
/* May a message go to this rank of another node now? 0: yes, through *ret_flow, and there is a
 * block for it; TX_E_BLOCKED: window and blocks are used up; TX_E_CLOSED: it has no credit, or its
 * node no way. */
enum { TX_E_BLOCKED = 1, TX_E_CLOSED, TX_E_POISON };
int tx_admit(struct channel *ch, const struct channel_job *job, uint32_t rank,
             struct flow **ret_flow);

/* aside.c */
enum { ASIDE_E_FULL = 1 };
/* The messages set aside for this rank, or NULL: it is open. */
struct aside *aside_find(struct channel *ch, const struct channel_job *job, uint32_t rank);
/* Sets a message aside and closes its destination. 0, or ASIDE_E_FULL. */
int aside_add(struct channel *ch, struct channel_job *job, const struct wire_header *h,
              const void *payload);
/* Sends what can go. Returns how many messages. */
uint32_t aside_poll(struct channel *ch, uint32_t budget);
void aside_release(struct channel *ch, const struct channel_job *job);

/* send.c */
/* The flow to the node of this slot, for its present incarnation. */
struct flow *send_flow(struct channel *ch, uint32_t slot);
/* Puts a packet into a flow with room: header complete but for its number, payload in place. */
void send_add(struct channel *ch, struct flow *f, uint32_t block);
/* The flow may have something that can go. */
void send_dirty(struct channel *ch, struct flow *f);
/* Lets go what can. */
void send_pump_dirty(struct channel *ch);
void send_on_ack(struct channel *ch, uint32_t src_slot, const struct wire_header *h);
void send_on_reset(struct channel *ch, uint32_t src_slot, const struct wire_header *h);
void send_on_refuse(struct channel *ch, uint32_t src_slot, const struct wire_header *h);
/* Sends messages that were refused again, as far as their ranks have credit. */
void send_unpark(struct channel *ch);
/* Sending this block failed. */
void send_on_lost(struct channel *ch, uint32_t block);
/* Routes have changed. */
void send_on_routes(struct channel *ch);
void send_timers(struct channel *ch);
/* Looks again at flows without a way, and gives up what waited too long. */
void send_no_route(struct channel *ch);

/* rx.c */
/* A received packet. Takes the block. */
void rx_packet(struct channel *ch, uint32_t block, uint32_t len);
/* The same for a packet that another channel received and checked. */
void rx_given(struct channel *ch, uint32_t block);
uint32_t rx_acks(struct channel *ch, bool all);
/* Tells the sources that were told to stop that this rank drains again. */
void rx_go(struct channel *ch, struct down *down);
/* Builds a packet of our own without a payload yet; BLOCK_NONE if there is no block. */
uint32_t rx_note(struct channel *ch, uint32_t dst_slot, enum wire_type type);

/* hold.c */
enum { HOLD_E_REFUSED = 1 };
/* Delivers a message to a local rank now, or holds it. `block`: the received block the message lies
 * in, or BLOCK_NONE; *ret_kept says that the block was kept. 0, or HOLD_E_REFUSED. */
int hold_deliver(struct channel *ch, struct channel_job *job, uint32_t local,
                 const struct wire_header *h, const void *payload, uint32_t block, bool *ret_kept);
/* Delivers what is held, as far as there is room. */
uint32_t hold_poll(struct channel *ch);
bool hold_has_work(struct channel *ch);
/* Is so much held for this rank that its senders should stop? */
bool hold_is_high(const struct channel *ch, const struct channel_job *job, uint32_t local);
void hold_release(struct channel *ch, struct down *down);
