/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/port/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int cmd_init(struct cmd_rings *r)
{
    r->cmds = calloc(CMD_RING, sizeof *r->cmds);
    r->events = calloc(EVENT_RING, sizeof *r->events);
    r->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int rc = !r->cmds || !r->events ? -ENOMEM : r->event_fd < 0 ? -errno : 0;
    if (rc < 0)
        cmd_deinit(r);
    return rc;
}

void cmd_deinit(struct cmd_rings *r)
{
    /* Rings that were never made, all zero, have none. */
    if ((r->cmds || r->events) && r->event_fd >= 0)
        close(r->event_fd);
    free(r->cmds);
    free(r->events);
    r->cmds = NULL;
    r->events = NULL;
}

int cmd_push(struct cmd_rings *r, const struct cmd *cmd)
{
    uint32_t tail = atomic_load_explicit(&r->cmd_tail, memory_order_relaxed);

    /* acquire: pairs with the release in cmd_pop. */
    if (tail - atomic_load_explicit(&r->cmd_head, memory_order_acquire) >= CMD_RING)
        return -EAGAIN;
    r->cmds[tail % CMD_RING] = *cmd;
    /* seq_cst: publishes the command (pairs with the acquire in cmd_pop) and, commands being rare,
     * orders itself against hub_wake's look at `sleeping` without the other side's barrier. */
    atomic_exchange_explicit(&r->cmd_tail, tail + 1, memory_order_seq_cst);
    return 0;
}

bool cmd_pop(struct cmd_rings *r, struct cmd *ret_cmd)
{
    uint32_t head = atomic_load_explicit(&r->cmd_head, memory_order_relaxed);

    /* acquire: pairs with the exchange in cmd_push. */
    if (atomic_load_explicit(&r->cmd_tail, memory_order_acquire) == head)
        return false;
    *ret_cmd = r->cmds[head % CMD_RING];
    /* release: pairs with the acquire in cmd_push. */
    atomic_store_explicit(&r->cmd_head, head + 1, memory_order_release);
    return true;
}

bool cmd_pending(const struct cmd_rings *r)
{
    return atomic_load_explicit(&r->cmd_tail, memory_order_acquire) !=
           atomic_load_explicit(&r->cmd_head, memory_order_relaxed);
}

bool cmd_push_event(struct cmd_rings *r, const struct cmd_event *event)
{
    uint32_t tail = atomic_load_explicit(&r->event_tail, memory_order_relaxed);

    /* acquire: pairs with the release in cmd_pop_event. */
    if (tail - atomic_load_explicit(&r->event_head, memory_order_acquire) >= EVENT_RING)
        return false;
    r->events[tail % EVENT_RING] = *event;
    /* release: pairs with the acquire in cmd_pop_event. */
    atomic_store_explicit(&r->event_tail, tail + 1, memory_order_release);
    uint64_t one = 1;
    /* Fails only when the counter is full, and then the reader has been told. */
    ssize_t rc = write(r->event_fd, &one, sizeof one);
    (void)rc;
    return true;
}

bool cmd_pop_event(struct cmd_rings *r, struct cmd_event *ret_event)
{
    uint32_t head = atomic_load_explicit(&r->event_head, memory_order_relaxed);

    /* acquire: pairs with the release in cmd_push_event. */
    if (atomic_load_explicit(&r->event_tail, memory_order_acquire) == head)
        return false;
    *ret_event = r->events[head % EVENT_RING];
    /* release: pairs with the acquire in cmd_push_event. */
    atomic_store_explicit(&r->event_head, head + 1, memory_order_release);
    return true;
}
