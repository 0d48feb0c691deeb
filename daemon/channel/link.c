/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links: this channel's neighbours, the queue of blocks towards each, and the probes that measure
 * them. A link exists from CMD_ADD_LINK to CMD_REMOVE_LINK; a broken connection is reported and
 * retried, it is control that declares a neighbour dead.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "daemon/channel/state.h"

#define RETRY_NS       (5 * CLOCK_NS_PER_MS)
#define REPORT_NS      (200 * CLOCK_NS_PER_MS)
#define FLUSH_PER_LINK 64u
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

static struct wire_header *header(const struct channel *ch, uint32_t block)
{
    return arena_header(&ch->hub->arena, block);
}

static void report_error(struct channel *ch, struct link *link)
{
    if (link->error == 0 || (link->error_ns != 0 && ch->now_ns - link->error_ns < REPORT_NS))
        return;
    struct cmd_event event = {.type = EVENT_LINK_ERROR, .slot = link->slot, .error = link->error};
    if (cmd_event(ch, &event)) {
        link->error = 0;
        link->error_ns = ch->now_ns;
    }
}

void link_on_error(struct channel *ch, struct link *link, int error)
{
    link->errors++;
    count_add(&ch->count, COUNT_SEND_ERRORS, 1);
    link->error = error;
    link->retry_ns = ch->now_ns + RETRY_NS;
    report_error(ch, link);
}

/* True if the block left this queue, one way or the other. */
static bool try_send(struct channel *ch, struct link *link, uint32_t block)
{
    struct block *b = &ch->hub->blocks[block];
    uint32_t len = b->len;

    if (link->n_driver >= LINK_DRIVER_MAX || link->retry_ns > ch->now_ns)
        return false;
    int rc = ch->driver->send(ch->net, link->peer, block, len);
    if (rc == -EAGAIN)
        return false;
    if (rc < 0) {
        link_on_error(ch, link, rc);
        channel_block_done(ch, block, rc);
        return true;
    }
    link->moved_ns = ch->now_ns;
    link->packets++;
    link->bytes += len;
    count_add(&ch->count, COUNT_PACKETS_OUT, 1);
    count_add(&ch->count, COUNT_BYTES_OUT, len);
    if (rc == NET_E_DONE)
        channel_block_done(ch, block, 0);
    else
        link->n_driver++;
    return true;
}

void link_send(struct channel *ch, struct link *link, uint32_t block)
{
    struct block *b = &ch->hub->blocks[block];

    b->slot = link->slot;
    if (ch->net_lost || !link->up) {
        channel_block_done(ch, block, -ENETDOWN);
        return;
    }
    if (link->n_queued == 0 && try_send(ch, link, block))
        return;
    if (link->n_queued == 0 && link->n_driver == 0)
        link->moved_ns = ch->now_ns;
    b->next = BLOCK_NONE;
    if (link->n_queued++ == 0) {
        link->head = block;
        list_append(&ch->busy_links, &link->busy);
    } else {
        ch->hub->blocks[link->tail].next = block;
    }
    link->tail = block;
}

static uint32_t pop(struct channel *ch, struct link *link)
{
    uint32_t block = link->head;

    link->head = ch->hub->blocks[block].next;
    if (--link->n_queued == 0)
        list_remove(&link->busy);
    return block;
}

uint32_t link_flush(struct channel *ch)
{
    uint32_t n = 0;

    list_foreach_safe(it, &ch->busy_links) {
        struct link *link = list_entry(it, struct link, busy);
        for (uint32_t i = 0; i < FLUSH_PER_LINK && link->n_queued > 0; i++) {
            uint32_t block = link->head;
            uint32_t next = ch->hub->blocks[block].next;
            /* On success the block may be free already: nothing of it is looked at afterwards. */
            if (!try_send(ch, link, block))
                break;
            link->head = next;
            if (--link->n_queued == 0)
                list_remove(&link->busy);
            n++;
        }
    }
    return n;
}

void link_on_sent(struct channel *ch, uint32_t block, int error)
{
    struct link *link = &ch->links[ch->hub->blocks[block].slot];

    if (link->n_driver > 0)
        link->n_driver--;
    link->moved_ns = ch->now_ns;
    if (error)
        link_on_error(ch, link, error);
    channel_block_done(ch, block, error);
}

void link_add(struct channel *ch, uint32_t slot, const void *address, uint32_t len)
{
    if (slot == 0 || slot >= HOP_MAX_NODES || len > NET_ADDRESS_BYTES || ch->net_lost)
        return;
    struct link *link = &ch->links[slot];
    if (link->up) {
        if (link->address_len == len && memcmp(link->address, address, len) == 0)
            return;
        link_remove(ch, slot);
    }
    uint32_t peer;
    int rc = ch->driver->peer_add(ch->net, address, len, &peer);
    if (rc < 0) {
        log_warn("channel %s: address of neighbour in slot %u not usable: %s", ch->name, slot,
                 strerror(-rc));
        struct cmd_event event = {.type = EVENT_LINK_ERROR, .slot = slot, .error = rc};
        cmd_event(ch, &event);
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
    link->rtt_us = 0;
    link->n_probes = 0;
    link->probed_packets = link->packets;
    link->address_len = (uint16_t)len;
    memcpy(link->address, address, len);
    list_append(&ch->links_up, &link->node);
    link->probe_ns = ch->config.probe_ns == UINT64_MAX ? UINT64_MAX : ch->now_ns;
    if (link->probe_ns < ch->probe_due_ns)
        ch->probe_due_ns = link->probe_ns;
    /* Packets may have waited for this way. */
    send_no_route(ch);
}

void link_remove(struct channel *ch, uint32_t slot)
{
    if (slot == 0 || slot >= HOP_MAX_NODES || !ch->links[slot].up)
        return;
    struct link *link = &ch->links[slot];
    link->up = false;
    list_remove(&link->node);
    ch->driver->peer_remove(ch->net, link->peer);
    while (link->n_queued > 0) {
        uint32_t block = pop(ch, link);
        const struct wire_header *h = header(ch, block);
        if (h->src_node != ch->node_id && h->type == WIRE_DATA)
            /* Forwarded: perhaps there is another way for it. */
            relay_forward(ch, block, ch->hub->blocks[block].len);
        else
            channel_block_done(ch, block, -ENETDOWN);
    }
    struct count_link row = {
        .slot = slot, .packets = link->packets, .bytes = link->bytes, .errors = link->errors};
    count_row_write(&ch->link_rows[slot], &row, sizeof row);
}

static void send_probe(struct channel *ch, struct link *link, enum wire_type type, uint64_t stamp)
{
    uint32_t block = rx_note(ch, link->slot, type);

    if (block == BLOCK_NONE)
        return;
    struct wire_header *h = header(ch, block);
    h->len = sizeof stamp;
    memcpy(h + 1, &stamp, sizeof stamp);
    wire_seal(h);
    ch->hub->blocks[block].len = (uint32_t)(sizeof *h + sizeof stamp);
    link_send(ch, link, block);
}

/* Takes the peer away from the driver and adds it again. */
static void renew(struct channel *ch, struct link *link)
{
    uint8_t address[NET_ADDRESS_BYTES];
    uint32_t slot = link->slot, len = link->address_len;

    log_warn("channel %s: nothing moves to the neighbour in slot %u, opening the connection anew",
             ch->name, slot);
    memcpy(address, link->address, len);
    link_on_error(ch, link, -ETIMEDOUT);
    link_remove(ch, slot);
    link_add(ch, slot, address, len);
    link->moved_ns = ch->now_ns;
}

void link_probes(struct channel *ch)
{
    uint64_t due = UINT64_MAX;

    list_foreach_safe(it, &ch->links_up) {
        struct link *link = list_entry(it, struct link, node);
        if ((link->n_queued > 0 || link->n_driver > 0) && ch->now_ns - link->moved_ns > STUCK_NS)
            renew(ch, link);
        report_error(ch, link);
        if (link->probe_ns <= ch->now_ns) {
            bool needed = !list_empty(&ch->jobs) ||
                          link->packets - link->probed_packets > PROBE_PACKETS ||
                          link->n_probes++ < PROBES_FIRST;
            link->probe_ns = ch->now_ns + ch->config.probe_ns * (needed ? 1 : PROBES_RARELY);
            link->probed_packets = link->packets;
            /* Behind a queue a probe would only measure the queue. */
            if (link->n_queued == 0)
                send_probe(ch, link, WIRE_PROBE, ch->now_ns);
        }
        if (link->probe_ns < due)
            due = link->probe_ns;
    }
    ch->probe_due_ns = due;
}

void link_probe_soon(struct channel *ch)
{
    list_foreach(it, &ch->links_up) {
        struct link *link = list_entry(it, struct link, node);
        if (link->probe_ns == UINT64_MAX || link->probe_ns <= ch->now_ns + ch->config.probe_ns)
            continue;
        link->probe_ns = ch->now_ns + ch->config.probe_ns;
        if (link->probe_ns < ch->probe_due_ns)
            ch->probe_due_ns = link->probe_ns;
    }
}

static struct link *link_of(struct channel *ch, const struct wire_header *h)
{
    uint32_t slot = channel_slot_of(ch, h->src_node);

    if (slot == UINT32_MAX || !ch->links[slot].up || h->len != sizeof(uint64_t))
        return NULL;
    return &ch->links[slot];
}

void link_on_probe(struct channel *ch, const struct wire_header *h)
{
    struct link *link = link_of(ch, h);
    uint64_t stamp;

    if (!link || link->n_queued > 0)
        return;
    memcpy(&stamp, h + 1, sizeof stamp);
    send_probe(ch, link, WIRE_ECHO, stamp);
}

void link_on_echo(struct channel *ch, const struct wire_header *h)
{
    struct link *link = link_of(ch, h);
    uint64_t stamp;

    if (!link)
        return;
    memcpy(&stamp, h + 1, sizeof stamp);
    if (stamp > ch->now_ns || ch->now_ns - stamp > 60 * CLOCK_NS_PER_S)
        return;
    uint64_t rtt_ns = ch->now_ns - stamp;
    link->heard_ns = ch->now_ns;
    link->rtt_us = (uint32_t)(rtt_ns / CLOCK_NS_PER_US);
    struct cmd_event event = {.type = EVENT_RTT, .slot = link->slot, .value = rtt_ns};
    cmd_event(ch, &event);
}
