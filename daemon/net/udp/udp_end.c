/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/udp/udp_end.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/net/block.h"

#define PEERS_MAX  8192u
#define TABLE_SIZE (2u * PEERS_MAX)
#define MTU_FLOOR  548u
/* Encrypted datagrams of one batch. */
#define SCRATCH_BYTES (1u << 20)
/* Datagrams of one peer in a row, so that the others have their turn. */
#define TURN_MAX 128u
/* Addresses that were nobody's when something came from there, remembered for a peer that knows us
 * before we know it. */
#define EARLY 16u

struct end_peer {
    struct list active; /* in udp_end.active */
    uint32_t idx;
    uint32_t address_len;
    uint8_t address[NET_ADDRESS_BYTES];
    struct seal *seal;            /* NULL: not protected */
    uint32_t moved[WIRE_CLASSES]; /* fragments that had arrived when udp_end_moving was asked */
    struct udp_peer peer;
};

struct end_done {
    uint32_t block, peer;
    int error;
};

struct udp_end {
    struct udp_end_config config;
    struct udp_posts posts;
    struct rand rand;
    struct list active; /* peers for which something is to be done */
    struct end_peer **peers;
    uint32_t n_peers; /* no index above is in use */
    uint32_t n_down;  /* peers whose session broke and nobody was told */
    bool starved;     /* somebody was told that there is no block */
    uint32_t *table;  /* by address: peer + 1 */
    struct end_done *done;
    uint32_t n_done;
    uint8_t *scratch;
    uint32_t n_scratch; /* bytes of it in use */
    struct udp_end_count count;
    struct end_early {
        uint32_t address_len;
        uint8_t address[NET_ADDRESS_BYTES];
        uint64_t n;
    } early[EARLY];
    uint32_t next_early;
};

uint32_t udp_end_mtu_least(uint32_t max_bytes)
{
    uint32_t least = (max_bytes + UDP_PARTS_MAX - 1) / UDP_PARTS_MAX +
                     (uint32_t)(UDP_DATA_BYTES + sizeof(struct seal_mark));

    return least < MTU_FLOOR ? MTU_FLOOR : least;
}

int udp_end_new(const struct udp_end_config *config, struct udp_end **ret_end)
{
    struct udp_end *end = calloc(1, sizeof *end);

    if (!end)
        return -ENOMEM;
    end->config = *config;
    end->rand.state = config->seed;
    list_init(&end->active);
    end->posts = (struct udp_posts){.arena = config->arena, .max_bytes = config->max_bytes};
    end->posts.blocks = calloc(config->arena->n_blocks, sizeof *end->posts.blocks);
    end->done = calloc(config->arena->n_blocks, sizeof *end->done);
    end->peers = calloc(PEERS_MAX, sizeof(struct end_peer *));
    end->table = calloc(TABLE_SIZE, sizeof *end->table);
    end->scratch = config->encrypts ? malloc(SCRATCH_BYTES) : NULL;
    if (!end->posts.blocks || !end->done || !end->peers || !end->table ||
        (config->encrypts && !end->scratch)) {
        udp_end_free(end);
        return -ENOMEM;
    }
    *ret_end = end;
    return 0;
}

void udp_end_free(struct udp_end *end)
{
    if (!end)
        return;
    for (uint32_t i = 0; i < end->n_peers; i++)
        free(end->peers[i]);
    free(end->peers);
    free(end->table);
    free(end->scratch);
    free(end->done);
    free(end->posts.blocks);
    free(end);
}

static uint32_t udp_end_hash(const void *address, uint32_t len)
{
    /* FNV-1a. */
    const uint8_t *bytes = address;
    uint32_t h = 2166136261u;

    for (uint32_t i = 0; i < len; i++)
        h = (h ^ bytes[i]) * 16777619u;
    return (h ^ h >> 15) % TABLE_SIZE;
}

/* Where in the table this address is, or would be. */
static uint32_t udp_end_place(const struct udp_end *end, const void *address, uint32_t len)
{
    uint32_t at = udp_end_hash(address, len);

    for (; end->table[at] != 0; at = (at + 1) % TABLE_SIZE) {
        const struct end_peer *p = end->peers[end->table[at] - 1];
        if (p->address_len == len && memcmp(p->address, address, len) == 0)
            break;
    }
    return at;
}

static void udp_end_activate(struct udp_end *end, struct end_peer *p)
{
    if (list_empty(&p->active))
        list_append(&end->active, &p->active);
}

static struct end_early *udp_end_find_early(struct udp_end *end, const void *address, uint32_t len)
{
    for (uint32_t i = 0; i < EARLY; i++)
        if (end->early[i].n > 0 && end->early[i].address_len == len &&
            memcmp(end->early[i].address, address, len) == 0)
            return &end->early[i];
    return NULL;
}

/* A datagram from an address that nobody has. */
static void udp_end_note_early(struct udp_end *end, const void *address, uint32_t len)
{
    struct end_early *e = udp_end_find_early(end, address, len);

    end->count.guard.forged++;
    if (!e) {
        e = &end->early[end->next_early++ % EARLY];
        *e = (struct end_early){.address_len = len};
        memcpy(e->address, address, len);
    }
    e->n++;
}

/* What came from this address was no stranger's. */
static void udp_end_take_early(struct udp_end *end, const void *address, uint32_t len)
{
    struct end_early *e = udp_end_find_early(end, address, len);

    if (!e)
        return;
    end->count.guard.forged -= e->n;
    e->n = 0;
}

int udp_end_peer_add(struct udp_end *end, const void *address, uint32_t len, struct seal *seal,
                     uint64_t now_ns, uint32_t *ret_peer)
{
    bool sealed = seal && seal->mode != SEAL_NONE;
    uint32_t idx = 0, at = udp_end_place(end, address, len);

    if (end->table[at] != 0)
        return -EEXIST;
    if (sealed && seal->mode == SEAL_ENCRYPT && !end->scratch)
        return -EINVAL;
    while (idx < end->n_peers && end->peers[idx])
        idx++;
    if (idx == PEERS_MAX)
        return -ENOSPC;
    struct end_peer *p = malloc(sizeof *p);
    if (!p)
        return -ENOMEM;
    struct udp_peer_config pc = {.mtu_least = end->config.mtu_least,
                                 .mtu_most = end->config.mtu_most,
                                 .room = end->config.room,
                                 .n_mark = sealed ? (uint32_t)sizeof(struct seal_mark) : 0,
                                 .seed = rand_next(&end->rand)};
    list_init(&p->active);
    p->idx = idx;
    p->seal = sealed ? seal : NULL;
    memset(p->moved, 0, sizeof p->moved);
    p->address_len = len;
    memcpy(p->address, address, len);
    udp_peer_init(&p->peer, &pc, now_ns);
    end->peers[idx] = p;
    end->n_peers += idx == end->n_peers;
    end->table[at] = idx + 1;
    udp_end_take_early(end, address, len);
    udp_end_activate(end, p);
    *ret_peer = idx;
    return 0;
}

/* The peer's blocks that are the channel's again. */
static void udp_end_take_done(struct udp_end *end, struct end_peer *p)
{
    struct udp_tx *tx = &p->peer.tx;

    for (uint32_t i = 0; i < tx->n_done; i++)
        end->done[end->n_done++] = (struct end_done){
            .block = tx->done[i].block, .peer = p->idx, .error = tx->done[i].error};
    tx->n_done = 0;
    if (p->peer.down)
        end->n_down = 1;
}

void udp_end_peer_remove(struct udp_end *end, uint32_t peer)
{
    struct end_peer *p = peer < end->n_peers ? end->peers[peer] : NULL;

    if (!p)
        return;
    udp_peer_deinit(&p->peer, &end->posts);
    udp_end_take_done(end, p);
    list_remove(&p->active);
    end->count.n_sent += p->peer.tx.n_datagrams;
    end->count.n_resent += p->peer.tx.n_resent;
    uint32_t at = udp_end_place(end, p->address, p->address_len);
    end->table[at] = 0;
    end->peers[peer] = NULL;
    free(p);
    /* Those behind it in the table may have stood there because of it. */
    for (at = (at + 1) % TABLE_SIZE; end->table[at] != 0; at = (at + 1) % TABLE_SIZE) {
        uint32_t entry = end->table[at];
        const struct end_peer *other = end->peers[entry - 1];
        end->table[at] = 0;
        end->table[udp_end_place(end, other->address, other->address_len)] = entry;
    }
}

const void *udp_end_peer_address(const struct udp_end *end, uint32_t peer, uint32_t *ret_len)
{
    *ret_len = end->peers[peer]->address_len;
    return end->peers[peer]->address;
}

const struct udp_peer *udp_end_peer(const struct udp_end *end, uint32_t peer)
{
    return peer < end->n_peers && end->peers[peer] ? &end->peers[peer]->peer : NULL;
}

int udp_end_send(struct udp_end *end, uint32_t peer, uint32_t block, uint32_t len, uint64_t now_ns)
{
    struct end_peer *p = end->peers[peer];

    udp_end_activate(end, p);
    enum wire_class cls = end->config.arena->held[block].cls == WIRE_BULK ? WIRE_BULK : WIRE_QUICK;
    return udp_peer_send(&p->peer, block, cls, arena_at(end->config.arena, block), len, now_ns);
}

uint32_t udp_end_moving(struct udp_end *end, uint32_t peer)
{
    struct end_peer *p = end->peers[peer];
    uint32_t moving = 0;

    for (uint32_t cls = 0; cls < WIRE_CLASSES; cls++) {
        uint32_t n_arrived = p->peer.tx.lines[cls].n_arrived;
        if (n_arrived != p->moved[cls] && !udp_tx_idle(&p->peer.tx))
            moving |= 1u << cls;
        p->moved[cls] = n_arrived;
    }
    return moving;
}

void udp_end_path(const struct udp_end *end, uint32_t peer, struct net_path *ret_path)
{
    const struct udp_tx *tx = &end->peers[peer]->peer.tx;

    *ret_path = (struct net_path){.bytes = tx->mtu.now,
                                  .most_bytes = tx->mtu.most,
                                  .searching = udp_mtu_searching(&tx->mtu),
                                  .n_sent = tx->n_datagrams,
                                  .n_resent = tx->n_resent};
}

int udp_end_post(struct udp_end *end, uint32_t block)
{
    end->posts.blocks[end->posts.n++] = block;
    if (!end->starved)
        return 0;
    /* Whoever was told to wait need not any more. */
    end->starved = false;
    for (uint32_t i = 0; i < end->n_peers; i++) {
        struct end_peer *p = end->peers[i];
        if (!p || !p->peer.starved)
            continue;
        p->peer.starved = false;
        p->peer.rx.ack_now = p->peer.rx.begun;
        udp_end_activate(end, p);
    }
    return 0;
}

/* Is this datagram, mark and all, by the peer and new? 0, SEAL_E_CODE or SEAL_E_OLD. */
static int udp_end_unseal(const struct end_peer *p, uint8_t *data, uint32_t n)
{
    struct seal_mark mark;

    if (n < sizeof mark)
        return SEAL_E_CODE;
    memcpy(&mark, data, sizeof mark);
    data += sizeof mark;
    n -= (uint32_t)sizeof mark;
    uint32_t n_head = udp_peer_head_bytes(data, n);
    if (n_head == 0 || le64toh(mark.id) != p->seal->in_id)
        return SEAL_E_CODE;
    return seal_unwrap(p->seal, &mark, data, n_head, data + n_head, n - n_head, data + n_head);
}

static void udp_end_seal(struct udp_end *end, const struct end_peer *p, struct udp_out *out)
{
    const uint8_t *from =
        (out->copy ? out->copy : (const uint8_t *)arena_at(end->config.arena, out->block)) +
        out->offset;
    void *to = (void *)(uintptr_t)from;

    if (out->n_data == 0)
        from = to = out->head;
    if (p->seal->mode == SEAL_ENCRYPT && out->n_data > 0) {
        to = end->scratch + end->n_scratch;
        end->n_scratch += out->n_data;
        out->copy = to;
        out->offset = 0;
    }
    seal_wrap(p->seal, &out->mark, out->head, out->n_head, from, out->n_data, to);
}

bool udp_end_input(struct udp_end *end, const void *address, uint32_t address_len, uint8_t *data,
                   uint32_t n, uint64_t now_ns, struct net_event *ret_event)
{
    uint32_t entry = end->table[udp_end_place(end, address, address_len)];
    struct udp_whole whole;

    if (entry == 0) {
        udp_end_note_early(end, address, address_len);
        return false;
    }
    struct end_peer *p = end->peers[entry - 1];
    int rc = p->seal ? udp_end_unseal(p, data, n) : 0;
    end->count.guard.forged += rc == SEAL_E_CODE;
    end->count.guard.replayed += rc == SEAL_E_OLD;
    if (rc != 0)
        return false;
    uint32_t n_mark = p->peer.n_mark;
    rc = udp_peer_receive(&p->peer, &end->posts, data + n_mark, n - n_mark, now_ns, &whole);
    udp_end_activate(end, p);
    udp_end_take_done(end, p);
    end->starved |= p->peer.starved;
    end->count.n_ignored += rc == UDP_PEER_IGNORED;
    if (rc != UDP_PEER_WHOLE)
        return false;
    *ret_event = (struct net_event){.kind = NET_RECEIVED, .block = whole.block, .len = whole.len};
    return true;
}

static uint32_t udp_end_output_of(struct udp_end *end, struct end_peer *p, uint64_t now_ns,
                                  struct udp_out *outs, uint32_t max)
{
    uint32_t n = 0;

    if (max > TURN_MAX)
        max = TURN_MAX;
    if (now_ns >= udp_peer_due(&p->peer)) {
        udp_peer_timeout(&p->peer, &end->posts, now_ns);
        udp_end_take_done(end, p);
    }
    for (; n < max && (!end->scratch || SCRATCH_BYTES - end->n_scratch > UINT16_MAX) &&
           udp_peer_next(&p->peer, now_ns, &outs[n]);
         n++) {
        outs[n].peer = p->idx;
        if (p->seal)
            udp_end_seal(end, p, &outs[n]);
    }
    return n;
}

uint32_t udp_end_output(struct udp_end *end, uint32_t peer, uint64_t now_ns, struct udp_out *outs,
                        uint32_t max)
{
    uint32_t n = 0;

    end->n_scratch = 0;
    if (peer != UINT32_MAX)
        return udp_end_output_of(end, end->peers[peer], now_ns, outs, max);
    list_foreach_safe(it, &end->active) {
        struct end_peer *p = list_entry(it, struct end_peer, active);
        if (n == max) {
            /* The next time it is the first. */
            list_remove(&end->active);
            list_insert_before(&p->active, &end->active);
            break;
        }
        n += udp_end_output_of(end, p, now_ns, outs + n, max - n);
        if (udp_peer_idle(&p->peer))
            list_remove(&p->active);
    }
    return n;
}

void udp_end_unsent(struct udp_end *end, const struct udp_out *out)
{
    struct end_peer *p = end->peers[out->peer];

    udp_peer_unsent(&p->peer, out);
    udp_end_activate(end, p);
}

bool udp_end_has_report(const struct udp_end *end)
{
    return end->n_done > 0 || end->n_down > 0;
}

int udp_end_report(struct udp_end *end, struct net_event *events, int max)
{
    int n = 0;

    while (n < max && end->n_done > 0) {
        const struct end_done *d = &end->done[--end->n_done];
        events[n++] = (struct net_event){.kind = d->error == 0 ? NET_SENT : NET_FAILED,
                                         .block = d->block,
                                         .peer = d->peer,
                                         .error = d->error};
    }
    if (end->n_down == 0)
        return n;
    for (uint32_t i = 0; i < end->n_peers; i++) {
        struct end_peer *p = end->peers[i];
        if (!p || !p->peer.down)
            continue;
        if (n == max)
            return n;
        p->peer.down = false;
        events[n++] = (struct net_event){.kind = NET_PEER_DOWN, .peer = i, .error = -ETIMEDOUT};
    }
    end->n_down = 0;
    return n;
}

uint64_t udp_end_due(const struct udp_end *end)
{
    uint64_t due = UINT64_MAX;

    list_foreach(it, &end->active) {
        uint64_t one = udp_peer_due(&list_entry(it, struct end_peer, active)->peer);
        if (one < due)
            due = one;
    }
    return due;
}

uint32_t udp_end_posted(const struct udp_end *end)
{
    return end->posts.n;
}

void udp_end_count(const struct udp_end *end, struct udp_end_count *ret_count)
{
    *ret_count = end->count;
    for (uint32_t i = 0; i < end->n_peers; i++) {
        if (!end->peers[i])
            continue;
        ret_count->n_sent += end->peers[i]->peer.tx.n_datagrams;
        ret_count->n_resent += end->peers[i]->peer.tx.n_resent;
    }
}
