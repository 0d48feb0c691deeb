/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links: this channel's neighbours, the queues of blocks towards each, and the probes that tell
 * whether data passes (pulse.h) and how long it takes. Quick packets go in front of bulk ones, and
 * the driver holds little bulk at once, so that a quick packet never stands behind much of it;
 * while bulk waits it gets its share all the same. A link exists from CMD_ADD_LINK to
 * CMD_REMOVE_LINK, and carries packets while it is alive; control is told when that changes.
 * Belongs to the channel's thread.
 */
#pragma once

#include "base/list.h"
#include "daemon/net/block_queue.h"
#include "daemon/port/port.h"
#include "daemon/port/pulse.h"

/* Packets of one class on their way to a neighbour. */
struct link_out {
    struct block_queue queue; /* waiting for the driver */
    uint64_t queue_bytes;
    uint32_t n_driver; /* given to it, not yet back */
    uint64_t driver_bytes;
    uint64_t moved_ns; /* when the driver last took or finished something */
};

/* A neighbour on this channel's network. */
struct link {
    struct list busy; /* in links.busy while something is queued */
    struct list node; /* in links.up */
    bool up;
    uint16_t slot;
    uint16_t address_len;
    uint32_t peer; /* the driver's */
    struct link_out out[WIRE_CLASSES];
    uint64_t quick_run;              /* bytes of quick packets sent since bulk began to wait */
    uint32_t n_disowned;             /* of those with the driver, given to a connection that was
                                        given up since */
    uint64_t retry_ns;               /* nothing is sent before */
    uint32_t n_since, n_large_since; /* packets, large ones, since the last probe */
    bool fell;                       /* what waits must take another way: relay_mend */
    bool renew;                      /* a new connection is to be made: likewise */
    uint8_t told;                    /* the verdict that control knows */
    uint32_t told_bytes;
    int told_error;
    struct pulse pulse;
    uint32_t rtt_us, n_rtts; /* of the last probe; probes answered */
    uint64_t least_rtt_ns;   /* since it was told */
    uint64_t packets, bytes, errors;
    uint64_t n_datagrams, n_resent; /* of the driver, as counted last */
    uint8_t address[NET_ADDRESS_BYTES];
    /* Stays while the link is down: its numbers never begin again under one secret. */
    struct seal seal;
};

struct links {
    struct port *port;
    uint64_t probe_every_ns; /* UINT64_MAX: never */
    struct link *table;      /* by slot */
    struct list up, busy;
    uint32_t bulk_bytes;    /* what a driver is given for one neighbour at once */
    uint32_t n_slots;       /* of the table that were ever in use */
    uint64_t probe_due_ns;  /* no probe is due before */
    bool mend;              /* some link has fallen or is to be made anew */
    bool revived;           /* some link has come alive: packets may have waited for it */
    uint32_t n_household;   /* probes and echoes of this turn: no reason to stay awake */
    struct count_row *rows; /* by slot; read by control */
};

/* Does it carry packets? */
static inline bool link_is_alive(const struct link *link)
{
    return link->up && link->pulse.verdict == LINK_ALIVE;
}

/* Without probes every link counts as alive. 0 or -ENOMEM; link_deinit in any case. */
int link_init(struct links *links, struct port *port, uint64_t probe_every_ns);
void link_deinit(struct links *links);

/* Is the neighbour of this slot there already, with this address and secret? */
bool link_is_at(const struct links *links, const struct cmd_link *at);
/* Adds one that is not there. Tells control if the address is not usable. */
void link_add(struct links *links, const struct cmd_link *at);
/* Removes it, if it is there; returns what waited for it. */
struct block_queue link_remove(struct links *links, uint32_t slot);
/* Takes what waits for it. */
struct block_queue link_take_queue(struct links *links, struct link *link);
/* Gives up the connection to it and makes a new one; what the driver had comes back. */
void link_renew(struct links *links, struct link *link);

/* Sends a block of held[].len bytes to the neighbour; the block comes back by port_block_done. */
void link_send(struct links *links, struct link *link, uint32_t block);
/* Lets queued blocks go; returns how many went. */
uint32_t link_flush(struct links *links);

/* Packets with the driver, of both classes. */
static inline uint32_t link_n_driver(const struct link *link)
{
    return link->out[WIRE_QUICK].n_driver + link->out[WIRE_BULK].n_driver;
}

/* Do packets of either class wait for the driver? */
static inline bool link_has_queue(const struct link *link)
{
    return link->out[WIRE_QUICK].queue.n > 0 || link->out[WIRE_BULK].queue.n > 0;
}

/* The driver is done with a block. */
void link_on_sent(struct links *links, uint32_t block, int error);
void link_on_error(struct links *links, struct link *link, int error);
/* The connection to one of the driver's peers broke. */
void link_on_peer_down(struct links *links, uint32_t peer, int error);
void link_on_probe(struct links *links, const struct wire_header *h);
void link_on_echo(struct links *links, const struct wire_header *h);

/* Sends probes that are due and tells control what has changed. `needed`: there are jobs here that
 * need the links. Where `mend` is set afterwards, relay_mend is due. */
void link_probes(struct links *links, bool needed);
/* Somebody needs the links from now on. */
void link_probe_soon(struct links *links);
/* What went to this neighbour is not acknowledged in time. */
void link_doubt(struct links *links, uint32_t slot);
/* Brings the rows up to date. Returns how many blocks wait in all. */
uint32_t link_snapshot(struct links *links);
