/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/port/link.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

/* Packets given to the driver for one neighbour at once; the rest waits in the link's queue, where
 * it can be taken back. */
#define LINK_DRIVER_MAX 64u
#define RETRY_NS        (5 * CLOCK_NS_PER_MS)
#define REPORT_NS       (200 * CLOCK_NS_PER_MS)
#define FLUSH_PER_LINK  64u
/* A link on which nothing moves for so long, though something waits, is opened anew: connections of
 * libfabric can get stuck in ways that nobody reports. Control has ended the link before if the
 * neighbour is dead. */
#define STUCK_NS (4 * CLOCK_NS_PER_S)
/* A link is probed often at first, to know what it costs, and while jobs are here or packets pass;
 * so many times more rarely when nobody needs it, since every probe wakes two nodes. */
#define PROBES_FIRST  4u
#define PROBES_RARELY 8u
/* Packets between two probes that are no traffic: a probe and an echo. */
#define PROBE_PACKETS 2u

int link_init(struct links *links, struct port *port, uint64_t probe_every_ns)
{
    *links = (struct links){
        .port = port,
        .probe_every_ns = probe_every_ns,
        .probe_due_ns = UINT64_MAX,
        .table = port_sparse(HOP_MAX_NODES * sizeof *links->table),
        .rows = port_sparse(HOP_MAX_NODES * sizeof *links->rows),
    };
    list_init(&links->up);
    list_init(&links->busy);
    return links->table && links->rows ? 0 : -ENOMEM;
}

void link_deinit(struct links *links)
{
    /* Slots are given in order; a link without a seal was never added. */
    for (uint32_t slot = 0; links->table && slot < links->n_slots; slot++)
        if (links->table[slot].seal.made)
            seal_deinit(&links->table[slot].seal);
    port_sparse_free(links->table, HOP_MAX_NODES * sizeof *links->table);
    port_sparse_free(links->rows, HOP_MAX_NODES * sizeof *links->rows);
}

static void link_report(struct links *links, struct link *link)
{
    if (link->error == 0 ||
        (link->error_ns != 0 && links->port->now_ns - link->error_ns < REPORT_NS))
        return;
    struct cmd_event event = {.type = EVENT_LINK_ERROR, .slot = link->slot, .error = link->error};
    if (port_event(links->port, &event)) {
        link->error = 0;
        link->error_ns = links->port->now_ns;
    }
}

void link_on_error(struct links *links, struct link *link, int error)
{
    link->errors++;
    count_add(&links->port->count, COUNT_SEND_ERRORS, 1);
    link->error = error;
    link->retry_ns = links->port->now_ns + RETRY_NS;
    link_report(links, link);
}

/* True if the block left this queue, one way or the other. */
static bool link_try(struct links *links, struct link *link, uint32_t block)
{
    struct port *port = links->port;
    uint32_t len = port->arena->held[block].len;

    if (link->n_driver >= LINK_DRIVER_MAX || link->retry_ns > links->port->now_ns)
        return false;
    int rc = links->port->driver->send(links->port->net, link->peer, block, len);
    if (rc == -EAGAIN)
        return false;
    if (rc < 0) {
        link_on_error(links, link, rc);
        port_block_done(links->port, block, rc);
        return true;
    }
    link->moved_ns = links->port->now_ns;
    link->packets++;
    link->bytes += len;
    count_add(&links->port->count, COUNT_PACKETS_OUT, 1);
    count_add(&links->port->count, COUNT_BYTES_OUT, len);
    if (rc == NET_E_DONE)
        port_block_done(links->port, block, 0);
    else
        link->n_driver++;
    return true;
}

void link_send(struct links *links, struct link *link, uint32_t block)
{
    links->port->arena->held[block].slot = link->slot;
    if (links->port->net_lost || !link->up) {
        port_block_done(links->port, block, -ENETDOWN);
        return;
    }
    if (link->queue.n == 0 && link_try(links, link, block))
        return;
    if (link->queue.n == 0 && link->n_driver == 0)
        link->moved_ns = links->port->now_ns;
    if (link->queue.n == 0)
        list_append(&links->busy, &link->busy);
    block_queue_push(&link->queue, links->port->arena, block);
}

uint32_t link_flush(struct links *links)
{
    uint32_t n = 0;

    list_foreach_safe(it, &links->busy) {
        struct link *link = list_entry(it, struct link, busy);
        for (uint32_t i = 0; i < FLUSH_PER_LINK && link->queue.n > 0; i++) {
            uint32_t block = block_queue_pop(&link->queue, links->port->arena);
            if (!link_try(links, link, block)) {
                block_queue_push_front(&link->queue, links->port->arena, block);
                break;
            }
            n++;
        }
        if (link->queue.n == 0)
            list_remove(&link->busy);
    }
    return n;
}

void link_on_peer_down(struct links *links, uint32_t peer, int error)
{
    list_foreach_safe(it, &links->up) {
        struct link *link = list_entry(it, struct link, node);
        if (link->peer == peer)
            link_on_error(links, link, error);
    }
}

void link_on_sent(struct links *links, uint32_t block, int error)
{
    struct link *link = &links->table[links->port->arena->held[block].slot];

    if (link->n_driver > 0)
        link->n_driver--;
    link->moved_ns = links->port->now_ns;
    if (error)
        link_on_error(links, link, error);
    port_block_done(links->port, block, error);
}

bool link_is_at(const struct links *links, const struct cmd_link *at)
{
    const struct link *link = &links->table[at->slot < HOP_MAX_NODES ? at->slot : 0];

    return link->up && link->address_len == at->len &&
           memcmp(link->address, at->address, at->len) == 0 && seal_is_of(&link->seal, at->secret);
}

/* The seal for this secret: that of before if it is the same one. */
static int link_set_seal(struct links *links, struct link *link, const struct cmd_link *at)
{
    const struct port *port = links->port;
    uint32_t node_id =
        atomic_load_explicit(&port->hops->entries[at->slot].node_id, memory_order_relaxed);

    if (seal_is_of(&link->seal, at->secret))
        return 0;
    if (link->seal.made)
        seal_deinit(&link->seal);
    if (links->n_slots <= at->slot)
        links->n_slots = at->slot + 1u;
    return seal_init(&link->seal, at->secret, port->node_id < node_id, port->protect);
}

void link_add(struct links *links, const struct cmd_link *at)
{
    struct port *port = links->port;
    uint32_t slot = at->slot, len = at->len;

    if (slot == 0 || slot >= HOP_MAX_NODES || len > NET_ADDRESS_BYTES || port->net_lost)
        return;
    struct link *link = &links->table[slot];
    assert(!link->up && link->queue.n == 0);
    uint32_t peer;
    int rc = link_set_seal(links, link, at);
    if (rc == 0)
        rc = port->driver->peer_add(port->net, at->address, len, &link->seal, &peer);
    if (rc < 0) {
        log_warn("channel %s: address of neighbour in slot %u not usable: %s", port->name, slot,
                 strerror(-rc));
        struct cmd_event event = {.type = EVENT_LINK_ERROR, .slot = slot, .error = rc};
        port_event(port, &event);
        return;
    }
    if (link->node.next == NULL) {
        list_init(&link->node);
        list_init(&link->busy);
    }
    link->up = true;
    link->slot = (uint16_t)slot;
    link->peer = peer;
    link->n_driver = 0;
    link->error = 0;
    link->error_ns = link->retry_ns = 0;
    link->heard_ns = 0;
    link->moved_ns = port->now_ns;
    link->rtt_us = 0;
    link->n_probes = 0;
    link->probed_packets = link->packets;
    link->address_len = (uint16_t)len;
    memcpy(link->address, at->address, len);
    list_append(&links->up, &link->node);
    link->probe_ns = links->probe_every_ns == UINT64_MAX ? UINT64_MAX : port->now_ns;
    if (link->probe_ns < links->probe_due_ns)
        links->probe_due_ns = link->probe_ns;
}

struct block_queue link_remove(struct links *links, uint32_t slot)
{
    struct block_queue waiting = {0};

    if (slot == 0 || slot >= HOP_MAX_NODES || !links->table[slot].up)
        return waiting;
    struct link *link = &links->table[slot];
    link->up = false;
    list_remove(&link->node);
    list_remove(&link->busy);
    links->port->driver->peer_remove(links->port->net, link->peer);
    waiting = link->queue;
    link->queue = (struct block_queue){0};
    struct count_link row = {
        .slot = slot, .packets = link->packets, .bytes = link->bytes, .errors = link->errors};
    count_row_write(&links->rows[slot], &row, sizeof row);
    return waiting;
}

uint32_t link_stuck(const struct links *links)
{
    list_foreach(it, &links->up) {
        const struct link *link = list_entry(it, struct link, node);
        if ((link->queue.n > 0 || link->n_driver > 0) &&
            links->port->now_ns - link->moved_ns > STUCK_NS)
            return link->slot;
    }
    return 0;
}

static void link_send_probe(struct links *links, struct link *link, enum wire_type type,
                            uint64_t stamp)
{
    uint32_t block = port_note(links->port, link->slot, type);

    if (block == BLOCK_NONE)
        return;
    memcpy(port_header(links->port, block) + 1, &stamp, sizeof stamp);
    port_note_seal(links->port, block, sizeof stamp);
    link_send(links, link, block);
}

void link_probes(struct links *links, bool needed)
{
    uint64_t due = UINT64_MAX;

    list_foreach(it, &links->up) {
        struct link *link = list_entry(it, struct link, node);
        link_report(links, link);
        if (link->probe_ns <= links->port->now_ns) {
            bool often = needed || link->packets - link->probed_packets > PROBE_PACKETS ||
                         link->n_probes++ < PROBES_FIRST;
            link->probe_ns =
                links->port->now_ns + links->probe_every_ns * (often ? 1 : PROBES_RARELY);
            link->probed_packets = link->packets;
            /* Behind a queue a probe would only measure the queue. */
            if (link->queue.n == 0)
                link_send_probe(links, link, WIRE_PROBE, links->port->now_ns);
        }
        if (link->probe_ns < due)
            due = link->probe_ns;
    }
    links->probe_due_ns = due;
}

void link_probe_soon(struct links *links)
{
    list_foreach(it, &links->up) {
        struct link *link = list_entry(it, struct link, node);
        if (link->probe_ns == UINT64_MAX ||
            link->probe_ns <= links->port->now_ns + links->probe_every_ns)
            continue;
        link->probe_ns = links->port->now_ns + links->probe_every_ns;
        if (link->probe_ns < links->probe_due_ns)
            links->probe_due_ns = link->probe_ns;
    }
}

static struct link *link_from(struct links *links, const struct wire_header *h)
{
    uint32_t slot = port_slot_of(links->port, h->src_node);

    if (slot == UINT32_MAX || !links->table[slot].up || h->len != sizeof(uint64_t))
        return NULL;
    return &links->table[slot];
}

void link_on_probe(struct links *links, const struct wire_header *h)
{
    struct link *link = link_from(links, h);
    uint64_t stamp;

    if (!link || link->queue.n > 0)
        return;
    memcpy(&stamp, h + 1, sizeof stamp);
    link_send_probe(links, link, WIRE_ECHO, stamp);
}

void link_on_echo(struct links *links, const struct wire_header *h)
{
    struct link *link = link_from(links, h);
    uint64_t stamp;

    if (!link)
        return;
    memcpy(&stamp, h + 1, sizeof stamp);
    if (stamp > links->port->now_ns || links->port->now_ns - stamp > 60 * CLOCK_NS_PER_S)
        return;
    uint64_t rtt_ns = links->port->now_ns - stamp;
    link->heard_ns = links->port->now_ns;
    link->rtt_us = (uint32_t)(rtt_ns / CLOCK_NS_PER_US);
    struct cmd_event event = {.type = EVENT_RTT, .slot = link->slot, .value = rtt_ns};
    port_event(links->port, &event);
}

uint32_t link_snapshot(const struct links *links)
{
    uint32_t n_queued = 0;

    list_foreach(it, &links->up) {
        const struct link *link = list_entry(it, struct link, node);
        struct count_link row = {
            .slot = link->slot,
            .up = 1,
            .queued = link->queue.n,
            .in_driver = link->n_driver,
            .rtt_us = link->rtt_us,
            .packets = link->packets,
            .bytes = link->bytes,
            .errors = link->errors,
            .heard_ns = link->heard_ns,
        };
        count_row_write(&links->rows[link->slot], &row, sizeof row);
        n_queued += link->queue.n;
    }
    return n_queued;
}
