/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the receiving ends of flows say to their sources: acknowledgements, which also carry that a
 * rank does not drain (stop) or drains again (go), refusals of single packets, and resets. Belongs
 * to the channel's thread.
 */
#pragma once

#include "base/list.h"
#include "daemon/flow/flow.h"
#include "daemon/port/link.h"

/* The receiving end of a flow. */
struct flow_in {
    struct flow_rx rx;
    struct list ack; /* in acks.urgent or acks.waiting */
    uint16_t slot;
    uint8_t flow_channel;
    uint8_t flow_class;
    uint8_t ack_state;  /* 0 none, 1 waiting, 2 urgent */
    uint32_t stop_rank; /* to be told to the source with the next acknowledgement: that this rank
                           does not drain, */
    bool stop_over;     /* or drains again */
    uint64_t stop_job;  /* 0: nobody */
    uint64_t stop_ns;   /* when it was told last */
};

struct acks {
    struct port *port;
    struct links *links;
    uint64_t delay_ns;
    struct flow_in *table; /* [(slot * HOP_MAX_CHANNELS + flow channel) * WIRE_CLASSES + class] */
    struct list urgent, waiting;
    uint64_t reset_ns; /* no reset is sent before */
};

/* 0 or -ENOMEM; ack_deinit in any case. */
int ack_init(struct acks *acks, struct links *links, uint64_t delay_ns);
void ack_deinit(struct acks *acks);

/* The receiving end of the flow of this packet from the node of this slot, for its present
 * incarnation. */
struct flow_in *ack_flow(struct acks *acks, uint32_t slot, const struct wire_header *h);
/* Its source shall hear what has arrived: at once, or soon. */
void ack_want(struct acks *acks, struct flow_in *in, bool urgent);
/* Tells the source that this rank does not drain, now and then. */
void ack_stop(struct acks *acks, struct flow_in *in, uint64_t job, uint32_t rank);
/* Tells it that the rank drains again. */
void ack_go(struct acks *acks, struct flow_in *in, uint64_t job, uint32_t rank);
/* Tells it that this packet was refused. If this is lost the packet comes again, and so does
 * this. */
void ack_refuse(struct acks *acks, const struct flow_in *in, const struct wire_header *h);
/* Tells it that its packet was meant for another incarnation of this node. */
void ack_reset(struct acks *acks, uint32_t slot, const struct wire_header *h);
/* Sends what is due; `all`: and what could wait. Returns how many acknowledgements. */
uint32_t ack_poll(struct acks *acks, bool all);
/* When the next one is due; UINT64_MAX: none is waiting. */
uint64_t ack_due(const struct acks *acks);
