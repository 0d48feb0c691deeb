/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The backlog at the source: messages for a rank of another node that does not drain, or whose node
 * has no way. A ring is first in, first out, so such a message would hold up what its sender has
 * for others. It is taken out of the ring into a queue for its destination, and the destination is
 * closed for this channel in the job's segment: ranks keep what they have for it until it is open
 * again. So a destination costs at most what lay in the rings when it closed. Where the room for
 * all of them (a quarter of the blocks) or the table is full, the ring waits after all.
 *
 * A message that its destination refused comes back into the same backlog, in a queue that goes
 * first. Who may send when is the credit's to say (flow/credit). Belongs to the channel's thread.
 */
#pragma once

#include "daemon/channel/send.h"
#include "daemon/flow/credit.h"
#include "daemon/port/record_queue.h"

struct backlog_queue {
    struct channel_job *job;
    uint32_t rank;               /* or another peer of the job */
    struct record_queue refused; /* a block each */
    struct record_queue waiting;
};

#define BACKLOG_QUEUES CREDIT_STOPS

struct backlog {
    struct port *port;
    struct sender *sender;
    const struct job_table *jobs;
    uint32_t blocks_max; /* with messages that wait; flows and backlog together: twice as many */
    struct credit credit;
    struct backlog_queue queues[BACKLOG_QUEUES];
    uint32_t n_queues;
    uint32_t n_waiting, n_refused; /* blocks */
    uint64_t retry_ns;             /* when refused messages are looked at next */
};

void backlog_init(struct backlog *b, struct sender *sender, uint32_t blocks_max);

enum { BACKLOG_E_BLOCKED = 1, BACKLOG_E_CLOSED };
/* May a message of this class go to this rank of another node now? 0: yes, through *ret_flow, and
 * there is a block for it; BACKLOG_E_BLOCKED: window and blocks are used up; BACKLOG_E_CLOSED: it
 * has no credit, its node no way, or others wait for it. */
int backlog_admit(struct backlog *b, const struct channel_job *job, uint32_t rank,
                  enum wire_class cls, struct flow **ret_flow);
enum { BACKLOG_E_FULL = 1 };
/* Adds a message and closes its destination. 0, or BACKLOG_E_FULL. */
int backlog_add(struct backlog *b, struct channel_job *job, const struct wire_header *h,
                const void *payload);
/* An acknowledgement says of a rank that it does not drain, or drains again. */
void backlog_on_word(struct backlog *b, const struct wire_header *h);
/* The node of this slot refused a message: it is taken back. */
void backlog_on_refuse(struct backlog *b, uint32_t src_slot, const struct wire_header *h);
/* Sends what can go. Returns how many messages. */
uint32_t backlog_poll(struct backlog *b, uint32_t budget);
/* Forgets old words. Now and then. */
void backlog_age(struct backlog *b);
/* Does any message wait? */
static inline bool backlog_empty(const struct backlog *b)
{
    return b->n_waiting == 0 && b->n_refused == 0;
}
/* Is there anything that time alone changes? */
static inline bool backlog_needs_time(const struct backlog *b)
{
    return b->n_queues > 0 || b->credit.n > 0;
}
/* Throws away what there is of this job. */
void backlog_release(struct backlog *b, const struct channel_job *job);
/* Do messages of the job wait for any of these n peers? */
bool backlog_has_any(const struct backlog *b, const struct channel_job *job, uint32_t first,
                     uint32_t n);
/* None waits, and none will: the peers are nobody's any more. */
void backlog_forget_peers(struct backlog *b, const struct channel_job *job, uint32_t first,
                          uint32_t n);
