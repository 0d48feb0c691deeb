/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the network to the ranks: checks each packet, passes it to the channel that owns its flow,
 * finds out whether it is new, has it delivered and acknowledged. Packets for other nodes go to the
 * relay. Whatever a packet says is checked against the hop table and the job's tables before it is
 * used. Belongs to the channel's thread.
 *
 * The receiving end of a flow belongs to the channel on which its first packet arrived, for ever:
 * threads do not die, NICs do.
 */
#pragma once

#include "daemon/channel/backlog.h"
#include "daemon/channel/delivery.h"
#include "daemon/port/relay.h"

struct rx {
    struct port *port;
    struct links *links;
    struct relay *relay;
    struct job_table *jobs;
    struct acks *acks;
    struct delivery *delivery;
    struct backlog *backlog;
};

/* A received packet. Takes the block. */
void rx_packet(struct rx *rx, uint32_t block, uint32_t len);
/* The same for a packet that another channel received and checked. */
void rx_given(struct rx *rx, uint32_t block);
