/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/port/link.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"

/* Packets of one class given to the driver for one neighbour at once; the rest waits in the link's
 * queue, where it can be taken back. */
#define LINK_DRIVER_MAX 64u
/* Bytes of bulk likewise: as much as a driver passes on in one call, and 2 ms of 1 Gbit/s for what
 * the driver cannot put in front of it. */
#define LINK_DRIVER_BYTES (256u << 10)
/* While bulk waits, one packet of it goes after so many bytes of quick ones. */
#define LINK_QUICK_RUN (64u << 10)
#define RETRY_NS       (5 * CLOCK_NS_PER_MS)
#define FLUSH_PER_LINK 64u
/* Between probes of a link over which packets go: a fault is found within this time and that which
 * pulse.h takes to decide. */
#define TRAFFIC_EVERY_NS (250 * CLOCK_NS_PER_MS)
/* Nobody needs the link: every probe wakes two nodes. */
#define PROBES_RARELY 24u
/* There are jobs, and no packets. */
#define PROBES_FOR_JOBS 2u
/* The first round trip is told to control, and of each so many that follow the least. */
#define RTTS_TOLD 4u
/* A new connection is made so often at most; with libfabric all others are made anew along with
 * it. */
#define RENEW_NS     (500 * CLOCK_NS_PER_MS)
#define RENEW_ALL_NS (4 * CLOCK_NS_PER_S)
/* Packets from this size on show that large ones are wanted; so many between two probes that one
 * of full size beside them does not matter. */
#define LARGE_BYTES   1024u
#define LARGE_PACKETS 8u

int link_init(struct links *links, struct port *port, uint64_t probe_every_ns)
{
    *links = (struct links){
        .port = port,
        .probe_every_ns = probe_every_ns,
        .probe_due_ns = UINT64_MAX,
        .bulk_bytes = port->info.bulk_bytes ? port->info.bulk_bytes : LINK_DRIVER_BYTES,
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

/* A probe of this link is due within this time. */
static void link_hurry(struct links *links, struct link *link, uint64_t within_ns)
{
    if (links->probe_every_ns == UINT64_MAX)
        return;
    pulse_hurry(&link->pulse, within_ns, links->port->now_ns);
    if (link->pulse.due_ns < links->probe_due_ns)
        links->probe_due_ns = link->pulse.due_ns;
}

void link_on_error(struct links *links, struct link *link, int error)
{
    link->errors++;
    count_add(&links->port->count, COUNT_SEND_ERRORS, 1);
    link->retry_ns = links->port->now_ns + RETRY_NS;
    if (links->probe_every_ns == UINT64_MAX)
        return;
    pulse_on_break(&link->pulse, error, links->port->now_ns);
    if (link->pulse.due_ns < links->probe_due_ns)
        links->probe_due_ns = link->pulse.due_ns;
}

/* Packets go over it from now on. */
static void link_wake_pulse(struct links *links, struct link *link)
{
    if (link->pulse.verdict == LINK_ALIVE)
        link_hurry(links, link, TRAFFIC_EVERY_NS);
}

/* True if the block left this queue, one way or the other. */
static bool link_try(struct links *links, struct link *link, uint32_t block)
{
    struct port *port = links->port;
    struct link_out *out = &link->out[port->arena->held[block].cls];
    uint32_t len = port->arena->held[block].len;

    if (out->n_driver >= LINK_DRIVER_MAX || link->retry_ns > links->port->now_ns ||
        (out == &link->out[WIRE_BULK] && out->driver_bytes >= links->bulk_bytes))
        return false;
    int rc = links->port->driver->send(links->port->net, link->peer, block, len);
    if (rc == -EAGAIN)
        return false;
    if (rc < 0) {
        link_on_error(links, link, rc);
        port_block_done(links->port, block, rc);
        return true;
    }
    out->moved_ns = links->port->now_ns;
    link->quick_run = out == &link->out[WIRE_QUICK] && link->out[WIRE_BULK].queue.n > 0
                          ? link->quick_run + len
                          : 0;
    link->packets++;
    link->bytes += len;
    if (link->n_since++ == 0)
        link_wake_pulse(links, link);
    link->n_large_since += len >= LARGE_BYTES;
    count_add(&links->port->count, COUNT_PACKETS_OUT, 1);
    count_add(&links->port->count, COUNT_BYTES_OUT, len);
    if (rc == NET_E_DONE) {
        port_block_done(links->port, block, 0);
    } else {
        out->n_driver++;
        out->driver_bytes += len;
    }
    return true;
}

/* Has bulk waited for enough quick packets? */
static bool link_owes_bulk(const struct link *link)
{
    return link->out[WIRE_BULK].queue.n > 0 && link->quick_run >= LINK_QUICK_RUN;
}

void link_send(struct links *links, struct link *link, uint32_t block)
{
    const struct arena *arena = links->port->arena;
    struct block_held *held = &arena->held[block];
    enum wire_class cls = wire_class(port_header(links->port, block));
    struct link_out *out = &link->out[cls];

    held->slot = link->slot;
    held->cls = (uint8_t)cls;
    if (links->port->net_lost || !link_is_alive(link)) {
        port_block_done(links->port, block, -ENETDOWN);
        return;
    }
    bool in_front = cls == WIRE_QUICK ? !link_owes_bulk(link) : link->out[WIRE_QUICK].queue.n == 0;
    if (out->queue.n == 0 && in_front && link_try(links, link, block))
        return;
    if (out->queue.n == 0 && out->n_driver == 0)
        out->moved_ns = links->port->now_ns;
    if (!link_has_queue(link))
        list_append(&links->busy, &link->busy);
    block_queue_push(&out->queue, arena, block);
    out->queue_bytes += held->len;
}

/* Lets the first packet of this class go. False: it stays, or there is none. */
static bool link_flush_one(struct links *links, struct link *link, enum wire_class cls)
{
    const struct arena *arena = links->port->arena;
    struct link_out *out = &link->out[cls];
    uint32_t block = block_queue_pop(&out->queue, arena);

    if (block == BLOCK_NONE)
        return false;
    uint32_t len = arena->held[block].len;
    if (!link_try(links, link, block)) {
        block_queue_push_front(&out->queue, arena, block);
        return false;
    }
    out->queue_bytes -= len;
    return true;
}

uint32_t link_flush(struct links *links)
{
    uint32_t n = 0;

    list_foreach_safe(it, &links->busy) {
        struct link *link = list_entry(it, struct link, busy);
        for (uint32_t i = 0; i < FLUSH_PER_LINK; i++) {
            enum wire_class first = link_owes_bulk(link) ? WIRE_BULK : WIRE_QUICK;
            if (!link_flush_one(links, link, first) &&
                !link_flush_one(links, link, first == WIRE_BULK ? WIRE_QUICK : WIRE_BULK))
                break;
            n++;
        }
        if (!link_has_queue(link))
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
    const struct block_held *held = &links->port->arena->held[block];
    struct link *link = &links->table[held->slot];
    struct link_out *out = &link->out[held->cls];

    if (out->n_driver > 0) {
        out->n_driver--;
        out->driver_bytes -= held->len < out->driver_bytes ? held->len : out->driver_bytes;
    }
    if (out->n_driver == 0)
        out->driver_bytes = 0;
    out->moved_ns = links->port->now_ns;
    if (link->n_disowned > 0)
        link->n_disowned--;
    else if (error)
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
    assert(!link->up && !link_has_queue(link));
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
    memset(link->out, 0, sizeof link->out);
    link->quick_run = 0;
    link->n_disowned = 0;
    link->retry_ns = 0;
    link->rtt_us = link->n_rtts = 0;
    link->n_since = link->n_large_since = 0;
    link->fell = link->renew = false;
    link->told = LINK_UNPROVED;
    link->told_bytes = 0;
    link->told_error = 0;
    link->n_datagrams = link->n_resent = 0;
    link->address_len = (uint16_t)len;
    memcpy(link->address, at->address, len);
    list_append(&links->up, &link->node);
    uint32_t caps = port->info.caps;
    struct pulse_config config = {
        .full_bytes = (uint32_t)sizeof(struct wire_header) + port->packet_bytes,
        .stream = !(caps & NET_CAP_DATAGRAM),
        .split = caps & NET_CAP_CLASSES,
        .renew_every_ns = caps & NET_CAP_DATAGRAM ? UINT64_MAX
                          : caps & NET_CAP_RENEW  ? RENEW_NS
                                                  : RENEW_ALL_NS,
    };
    pulse_start(&link->pulse, &config, port->now_ns);
    if (links->probe_every_ns == UINT64_MAX) {
        link->pulse.verdict = LINK_ALIVE;
        link->pulse.due_ns = UINT64_MAX;
    }
    if (link->pulse.due_ns < links->probe_due_ns)
        links->probe_due_ns = link->pulse.due_ns;
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
    waiting = link_take_queue(links, link);
    link->pulse = (struct pulse){.due_ns = UINT64_MAX};
    struct count_link row = {
        .slot = slot, .packets = link->packets, .bytes = link->bytes, .errors = link->errors};
    count_row_write(&links->rows[slot], &row, sizeof row);
    return waiting;
}

struct block_queue link_take_queue(struct links *links, struct link *link)
{
    struct block_queue waiting = {0};

    for (uint32_t cls = 0; cls < WIRE_CLASSES; cls++) {
        block_queue_join(&waiting, links->port->arena, &link->out[cls].queue);
        link->out[cls].queue_bytes = 0;
    }
    list_remove(&link->busy);
    link->fell = false;
    return waiting;
}

void link_renew(struct links *links, struct link *link)
{
    const struct port *port = links->port;

    link->renew = false;
    link->retry_ns = 0;
    link->n_disowned = link_n_driver(link);
    link->n_datagrams = link->n_resent = 0;
    port->driver->peer_remove(port->net, link->peer);
    int rc = port->driver->peer_add(port->net, link->address, link->address_len, &link->seal,
                                    &link->peer);
    if (rc < 0)
        /* Tried again with the next renewal. */
        link_on_error(links, link, rc);
}

/* Past what waits: behind a queue a probe would only measure that. 0, or negative errno: it did not
 * leave. */
static int link_send_probe(struct links *links, struct link *link, enum wire_type type,
                           const struct wire_probe *probe, uint32_t n_bytes)
{
    struct port *port = links->port;
    uint32_t block = port_note(port, link->slot, type);

    if (block == BLOCK_NONE)
        return -ENOBUFS;
    uint8_t *payload = (uint8_t *)(port_header(port, block) + 1);
    uint32_t n_payload = n_bytes - (uint32_t)sizeof(struct wire_header);
    memset(payload, 0, n_payload);
    memcpy(payload, probe, sizeof *probe);
    /* By the way that messages of its size take. */
    enum wire_class cls = port_class(port, n_payload);
    port_header(port, block)->flow_class = (uint8_t)cls;
    port_note_seal(port, block, n_payload);
    port->arena->held[block].slot = link->slot;
    port->arena->held[block].cls = (uint8_t)cls;
    int rc = port->driver->send(port->net, link->peer, block, n_bytes);
    if (rc < 0) {
        if (rc != -EAGAIN)
            link_on_error(links, link, rc);
        port_block_done(port, block, rc);
        return rc;
    }
    link->packets++;
    link->bytes += n_bytes;
    count_add(&port->count, COUNT_PACKETS_OUT, 1);
    count_add(&port->count, COUNT_BYTES_OUT, n_bytes);
    if (rc == NET_E_DONE) {
        port_block_done(port, block, 0);
    } else {
        link->out[cls].n_driver++;
        link->out[cls].driver_bytes += n_bytes;
    }
    return 0;
}

static void link_ask(struct links *links, struct link *link, bool large)
{
    struct wire_probe probe = {.stamp_ns = links->port->now_ns,
                               .n_bytes = large ? link->pulse.try_bytes : WIRE_PROBE_BYTES,
                               .n_missed = link->pulse.n_missed + (link->pulse.asked_ns != 0)};

    int rc = link_send_probe(links, link, WIRE_PROBE, &probe, probe.n_bytes);
    if (rc == 0)
        pulse_sent(&link->pulse, large, links->port->now_ns);
    else if (rc == -EAGAIN)
        pulse_held(&link->pulse, large, links->port->now_ns);
}

/* Tells control, if it does not know yet. */
static void link_tell(struct links *links, struct link *link)
{
    const struct pulse *p = &link->pulse;
    uint32_t n_bytes = p->verdict == LINK_LARGE ? p->good_bytes : 0;
    int error = p->verdict == LINK_BROKEN ? p->error : 0;

    if (link->told == p->verdict && link->told_bytes == n_bytes && link->told_error == error)
        return;
    struct cmd_event event = {.type = EVENT_LINK,
                              .slot = link->slot,
                              .verdict = p->verdict,
                              .error = error,
                              .value = n_bytes};
    if (!port_event(links->port, &event))
        return;
    link->told = p->verdict;
    link->told_bytes = n_bytes;
    link->told_error = error;
}

/* Do packets get through, though a probe is not answered? A small one may wait behind anything, one
 * of full size only behind bulk. */
static void link_look_for_progress(const struct links *links, struct link *link)
{
    const struct port *port = links->port;
    struct pulse *p = &link->pulse;
    uint32_t moving = port->driver->moving ? port->driver->moving(port->net, link->peer) : 0;
    uint32_t of_small = moving, of_large = moving;

    for (uint32_t cls = 0; cls < WIRE_CLASSES; cls++) {
        const struct link_out *out = &link->out[cls];
        if (out->queue.n == 0 && out->n_driver == 0)
            continue;
        of_small |= (uint32_t)(out->moved_ns > p->asked_ns) << cls;
        of_large |= (uint32_t)(out->moved_ns > p->large_asked_ns) << cls;
    }
    if (p->asked_ns != 0 && of_small != 0)
        pulse_on_progress(p, false, port->now_ns);
    if (p->large_asked_ns != 0 && of_large & 1u << WIRE_BULK)
        pulse_on_progress(p, true, port->now_ns);
}

static void link_step(struct links *links, struct link *link, bool needed)
{
    struct pulse *p = &link->pulse;
    bool traffic = link->n_since > 0;
    uint64_t every_ns = traffic && TRAFFIC_EVERY_NS < links->probe_every_ns ? TRAFFIC_EVERY_NS
                                                                            : links->probe_every_ns;
    uint32_t times = traffic ? 1 : needed ? PROBES_FOR_JOBS : PROBES_RARELY;
    struct pulse_use use = {.every_ns = times * every_ns,
                            .large = link->n_large_since >= LARGE_PACKETS};

    if (p->asked_ns != 0 || p->large_asked_ns != 0)
        link_look_for_progress(links, link);
    uint32_t todo = pulse_step(p, &use, links->port->now_ns);
    if (p->verdict != LINK_ALIVE && (link_has_queue(link) || link->told == LINK_ALIVE))
        link->fell = links->mend = true;
    if (todo & PULSE_RENEW)
        link->renew = links->mend = true;
    if (todo & PULSE_SEND_SMALL) {
        link->n_since = link->n_large_since = 0;
        link_ask(links, link, false);
    }
    if (todo & PULSE_SEND_LARGE)
        link_ask(links, link, true);
}

void link_probes(struct links *links, bool needed)
{
    uint64_t due = UINT64_MAX;

    if (links->probe_every_ns == UINT64_MAX)
        needed = false;
    list_foreach_safe(it, &links->up) {
        struct link *link = list_entry(it, struct link, node);
        if (link->pulse.due_ns <= links->port->now_ns)
            link_step(links, link, needed);
        link_tell(links, link);
        if (link->pulse.due_ns < due)
            due = link->pulse.due_ns;
    }
    links->probe_due_ns = due;
}

void link_probe_soon(struct links *links)
{
    list_foreach(it, &links->up)
        link_hurry(links, list_entry(it, struct link, node), links->probe_every_ns);
}

void link_doubt(struct links *links, uint32_t slot)
{
    struct link *link = &links->table[slot];

    if (!link->up || links->probe_every_ns == UINT64_MAX)
        return;
    pulse_doubt(&link->pulse, links->port->now_ns);
    if (link->pulse.due_ns < links->probe_due_ns)
        links->probe_due_ns = link->pulse.due_ns;
}

/* The link that a probe or echo came over, and what it says; NULL: none of ours. */
static struct link *link_from(struct links *links, const struct wire_header *h,
                              struct wire_probe *ret_probe)
{
    uint32_t slot = port_slot_of(links->port, h->src_node);

    if (slot == UINT32_MAX || !links->table[slot].up || h->len < sizeof *ret_probe)
        return NULL;
    memcpy(ret_probe, h + 1, sizeof *ret_probe);
    return &links->table[slot];
}

void link_on_probe(struct links *links, const struct wire_header *h)
{
    struct wire_probe probe;
    struct link *link = link_from(links, h, &probe);

    /* What says of itself that it is larger than what came is none. */
    if (!link || probe.n_bytes != sizeof *h + h->len)
        return;
    if (links->probe_every_ns != UINT64_MAX) {
        pulse_on_probe(&link->pulse, &probe, links->port->now_ns);
        if (link->pulse.due_ns < links->probe_due_ns)
            links->probe_due_ns = link->pulse.due_ns;
    }
    probe.n_missed = 0;
    link_send_probe(links, link, WIRE_ECHO, &probe, WIRE_PROBE_BYTES);
}

/* Of several round trips the least is told: the others were waiting for a thread. */
static void link_tell_rtt(struct links *links, struct link *link, uint64_t rtt_ns)
{
    if (link->n_rtts == 0 || rtt_ns < link->least_rtt_ns)
        link->least_rtt_ns = rtt_ns;
    if (link->n_rtts++ % RTTS_TOLD != 0)
        return;
    struct cmd_event event = {.type = EVENT_RTT, .slot = link->slot, .value = link->least_rtt_ns};
    port_event(links->port, &event);
    link->least_rtt_ns = UINT64_MAX;
}

void link_on_echo(struct links *links, const struct wire_header *h)
{
    uint64_t now_ns = links->port->now_ns;
    struct wire_probe echo;
    struct link *link = link_from(links, h, &echo);

    if (!link || h->len != sizeof echo || echo.stamp_ns > now_ns ||
        now_ns - echo.stamp_ns > 60 * CLOCK_NS_PER_S)
        return;
    uint64_t rtt_ns = now_ns - echo.stamp_ns;
    if (links->probe_every_ns != UINT64_MAX) {
        bool alive = link_is_alive(link);
        pulse_on_echo(&link->pulse, &echo, rtt_ns, now_ns);
        links->revived |= !alive && link_is_alive(link);
        link_tell(links, link);
        if (link->pulse.due_ns < links->probe_due_ns)
            links->probe_due_ns = link->pulse.due_ns;
    }
    if (echo.n_bytes != WIRE_PROBE_BYTES)
        return;
    link->rtt_us = (uint32_t)(rtt_ns / CLOCK_NS_PER_US);
    link_tell_rtt(links, link, rtt_ns);
}

/* What the driver did since the last time. */
static void link_count_path(struct links *links, struct link *link, const struct net_path *path)
{
    struct count *count = &links->port->count;

    count_add(count, COUNT_DATAGRAMS, path->n_sent - link->n_datagrams);
    count_add(count, COUNT_FRAGMENTS_RESENT, path->n_resent - link->n_resent);
    link->n_datagrams = path->n_sent;
    link->n_resent = path->n_resent;
}

uint32_t link_snapshot(struct links *links)
{
    const struct port *port = links->port;
    uint32_t n_queued = 0;

    list_foreach(it, &links->up) {
        struct link *link = list_entry(it, struct link, node);
        struct net_path path = {0};
        if (port->driver->path && !port->net_lost)
            port->driver->path(port->net, link->peer, &path);
        if (path.n_sent > 0)
            link_count_path(links, link, &path);
        struct count_link row = {
            .slot = link->slot,
            .up = 1,
            .queued = link->out[WIRE_QUICK].queue.n + link->out[WIRE_BULK].queue.n,
            .in_driver = link_n_driver(link),
            .rtt_us = link->rtt_us,
            .packets = link->packets,
            .bytes = link->bytes,
            .errors = link->errors,
            .heard_ns = link->pulse.answered_ns,
            .verdict = link->pulse.verdict,
            .datagram_bytes = path.searching ? 0 : path.bytes,
            .datagram_most = path.most_bytes,
            .datagrams = path.n_sent,
            .resent = path.n_resent,
        };
        count_row_write(&links->rows[link->slot], &row, sizeof row);
        n_queued += row.queued;
    }
    return n_queued;
}
