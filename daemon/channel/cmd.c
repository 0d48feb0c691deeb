/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/channel/state.h"

#define CMDS_PER_TURN 16u

int cmd_init(struct channel *ch)
{
    ch->cmds = calloc(CMD_RING, sizeof *ch->cmds);
    ch->events = calloc(EVENT_RING, sizeof *ch->events);
    ch->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (!ch->cmds || !ch->events)
        return -ENOMEM;
    return ch->event_fd < 0 ? -errno : 0;
}

void cmd_deinit(struct channel *ch)
{
    free(ch->cmds);
    free(ch->events);
    if (ch->event_fd >= 0)
        close(ch->event_fd);
}

int cmd_send(struct channel *ch, const struct cmd *cmd)
{
    uint32_t tail = atomic_load_explicit(&ch->cmd_tail, memory_order_relaxed);

    /* acquire: pairs with the release in cmd_poll. */
    if (tail - atomic_load_explicit(&ch->cmd_head, memory_order_acquire) >= CMD_RING)
        return -EAGAIN;
    ch->cmds[tail % CMD_RING] = *cmd;
    /* seq_cst: publishes the command (pairs with the acquire in cmd_poll) and, commands being rare,
     * orders itself against channel_wake's look at `sleeping` without the other side's barrier. */
    atomic_exchange_explicit(&ch->cmd_tail, tail + 1, memory_order_seq_cst);
    channel_wake(ch->hub, ch->idx);
    return 0;
}

bool cmd_next_event(struct channel *ch, struct cmd_event *ret_event)
{
    uint32_t head = atomic_load_explicit(&ch->event_head, memory_order_relaxed);

    /* acquire: pairs with the release in cmd_event. */
    if (atomic_load_explicit(&ch->event_tail, memory_order_acquire) == head)
        return false;
    *ret_event = ch->events[head % EVENT_RING];
    /* release: pairs with the acquire in cmd_event. */
    atomic_store_explicit(&ch->event_head, head + 1, memory_order_release);
    return true;
}

int cmd_event_fd(const struct channel *ch)
{
    return ch->event_fd;
}

bool cmd_event(struct channel *ch, const struct cmd_event *event)
{
    uint32_t tail = atomic_load_explicit(&ch->event_tail, memory_order_relaxed);

    /* acquire: pairs with the release in cmd_next_event. */
    if (tail - atomic_load_explicit(&ch->event_head, memory_order_acquire) >= EVENT_RING) {
        count_add(&ch->count, COUNT_EVENTS_LOST, 1);
        return false;
    }
    ch->events[tail % EVENT_RING] = *event;
    /* release: pairs with the acquire in cmd_next_event. */
    atomic_store_explicit(&ch->event_tail, tail + 1, memory_order_release);
    uint64_t one = 1;
    /* Fails only when the counter is full, and then the reader has been told. */
    ssize_t rc = write(ch->event_fd, &one, sizeof one);
    (void)rc;
    return true;
}

bool cmd_pending(const struct channel *ch)
{
    return atomic_load_explicit(&ch->cmd_tail, memory_order_acquire) !=
           atomic_load_explicit(&ch->cmd_head, memory_order_relaxed);
}

static void run(struct channel *ch, const struct cmd *cmd)
{
    switch ((enum cmd_type)cmd->type) {
    case CMD_ADD_LINK:
        link_add(ch, cmd->add_link.slot, cmd->add_link.address, cmd->add_link.len);
        break;
    case CMD_REMOVE_LINK:
        link_remove(ch, cmd->remove_link.slot);
        break;
    case CMD_ATTACH_JOB:
        job_attach(ch, cmd->job);
        break;
    case CMD_DETACH_RANK:
        job_detach_rank(ch, cmd->detach_rank.job, cmd->detach_rank.local,
                        cmd->detach_rank.dead != 0);
        break;
    case CMD_DETACH_JOB:
        job_detach(ch, cmd->job);
        break;
    case CMD_SET_WAIT:
        atomic_store_explicit(&ch->wait_mode, cmd->wait_mode, memory_order_relaxed);
        break;
    case CMD_DRAIN:
        ch->drain_until_ns = ch->now_ns + cmd->timeout_ns;
        break;
    case CMD_STOP:
        ch->stop = true;
        break;
    }
}

uint32_t cmd_poll(struct channel *ch)
{
    uint32_t n = 0;

    while (n < CMDS_PER_TURN) {
        uint32_t head = atomic_load_explicit(&ch->cmd_head, memory_order_relaxed);
        /* acquire: pairs with the exchange in cmd_send. */
        if (atomic_load_explicit(&ch->cmd_tail, memory_order_acquire) == head)
            break;
        struct cmd cmd = ch->cmds[head % CMD_RING];
        /* release: pairs with the acquire in cmd_send. */
        atomic_store_explicit(&ch->cmd_head, head + 1, memory_order_release);
        run(ch, &cmd);
        n++;
    }
    return n;
}
