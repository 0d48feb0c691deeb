/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/p2p/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/object/group.h"
#include "client/p2p/p2p.h"
#include "client/progress/progress.h"

#define BOARD_RECORDS 64u

/* From one rank to another. */
struct way {
    void *ring;
    uint32_t data_end[WIRE_RING_SLOTS];
    struct ring_producer producer;
    struct ring_consumer consumer;
    struct list flying;
    bool stopped, cut;
};

struct rank {
    struct client *client;
    struct comm *world;
    inbox_handler *handle;
    void *handle_arg;
};

static struct wire {
    uint32_t n_ranks;
    struct rank ranks[WIRE_MAX_RANKS];
    struct way ways[WIRE_MAX_RANKS][WIRE_MAX_RANKS];
    void *segment;
    struct segment_layout layout;
    struct bell bell;
    bool hold, may_read, may_write;
    int reads_left;
    void (*others)(void);
    void (*on_read)(void);
    struct client *before;
} wire;

int wire_n_reads, wire_n_writes;

static const struct ring_shape ring_shape = {WIRE_RING_SLOTS, WIRE_RING_BYTES};

/* ---- in the place of the transport ---- */

int outbox_init(struct outbox *box, uint32_t vci)
{
    *box = (struct outbox){.vci = vci};
    return 0;
}

void outbox_deinit(struct outbox *box)
{
    (void)box;
}

static struct way *own_way(uint32_t to)
{
    return &wire.ways[transport_here->world_rank][to];
}

struct ring_producer *outbox_local(struct outbox *box, uint32_t local_rank)
{
    (void)box;
    return &own_way(local_rank)->producer;
}

struct ring_producer *outbox_remote(struct outbox *box, uint32_t world_rank, uint32_t node,
                                    bool large)
{
    (void)box;
    (void)node;
    (void)large;
    return own_way(world_rank)->cut ? NULL : &own_way(world_rank)->producer;
}

int inbox_init(struct inbox *box, uint32_t vci, inbox_handler *handler, void *arg)
{
    struct rank *r = &wire.ranks[transport_here->world_rank];

    *box = (struct inbox){.handle = handler, .arg = arg, .vci = vci};
    box->rings = (struct inbox_ring *)(void *)r; /* not NULL */
    r->handle = handler;
    r->handle_arg = arg;
    return 0;
}

void inbox_deinit(struct inbox *box)
{
    *box = (struct inbox){0};
}

/* What has been published flies. */
static void collect(uint32_t from, uint32_t to)
{
    struct way *w = &wire.ways[from][to];
    struct ring_slot *slot;

    while (!w->stopped && (slot = ring_peek(&w->consumer)) != NULL) {
        uint32_t len = slot->len;
        struct packet *p = malloc(sizeof *p + len);
        p->from = from;
        p->to = to;
        memcpy(&p->slot, slot, sizeof p->slot);
        memcpy(p->payload, ring_payload(&w->consumer, slot, len, slot->data_line), len);
        list_append(&w->flying, &p->link);
        ring_advance(&w->consumer, len);
        ring_release(&w->consumer);
    }
}

int inbox_poll(struct inbox *box)
{
    uint32_t to = transport_here->world_rank;
    int n = 0;

    (void)box;
    if (wire.others) {
        void (*others)(void) = wire.others;
        wire.others = NULL;
        others();
        wire_as(to);
        wire.others = others;
    }
    for (uint32_t from = 0; from < wire.n_ranks && !wire.hold; from++) {
        collect(from, to);
        while (!list_empty(&wire.ways[from][to].flying)) {
            wire_deliver(wire_packet(from, to, 0));
            n++;
        }
    }
    return n;
}

bool inbox_has_news(struct inbox *box)
{
    (void)box;
    return false;
}

void inbox_sleep_begin(void)
{
}

void inbox_sleep(uint64_t timeout_ns)
{
    (void)timeout_ns;
}

void inbox_sleep_end(void)
{
}

bool inbox_sleep_announced(void)
{
    return true;
}

void inbox_wake_all(void)
{
}

/* ---- in the place of the kernel ---- */

static ssize_t move(const struct iovec *to, unsigned long n_to, const struct iovec *from,
                    unsigned long n_from)
{
    size_t at_to = 0, at_from = 0;
    ssize_t moved = 0;

    for (unsigned long i = 0, k = 0; i < n_to && k < n_from;) {
        size_t left_to = to[i].iov_len - at_to, left_from = from[k].iov_len - at_from;
        size_t n = left_to < left_from ? left_to : left_from;
        memcpy((char *)to[i].iov_base + at_to, (const char *)from[k].iov_base + at_from, n);
        moved += (ssize_t)n;
        at_to = n == left_to ? 0 : at_to + n;
        i += n == left_to;
        at_from = n == left_from ? 0 : at_from + n;
        k += n == left_from;
    }
    return moved;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local,
                         const struct iovec *remote, unsigned long n_remote, unsigned long flags)
{
    (void)flags;
    assert_int_equal(pid, getpid());
    wire_n_reads++;
    if (!wire.may_read || wire.reads_left == 0)
        return -1;
    wire.reads_left--;
    if (wire.on_read) {
        uint32_t reader = transport_here->world_rank;
        wire.on_read();
        wire_as(reader);
    }
    return move(local, n_local, remote, n_remote);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n_local,
                          const struct iovec *remote, unsigned long n_remote, unsigned long flags)
{
    (void)flags;
    assert_int_equal(pid, getpid());
    wire_n_writes++;
    return wire.may_write ? move(remote, n_remote, local, n_local) : -1;
}

/* ---- life ---- */

static void make_segment(uint32_t n_ranks, const uint32_t *nodes)
{
    struct segment_shape shape = {.n_world = n_ranks,
                                  .n_nodes = n_ranks,
                                  .n_local = n_ranks,
                                  .n_channels = 1,
                                  .board_records = BOARD_RECORDS,
                                  .local = ring_shape,
                                  .up = ring_shape,
                                  .down = ring_shape,
                                  .n_vcis = 1};

    segment_layout(&shape, &wire.layout);
    wire.segment = aligned_alloc(4096, (wire.layout.total + 4095) / 4096 * 4096);
    memset(wire.segment, 0, wire.layout.total);
    struct segment_header *header = wire.segment;
    header->shape = shape;
    header->wait_mode = WAIT_SPIN;
    for (uint32_t i = 0; i < n_ranks; i++) {
        *segment_world_at(wire.segment, &wire.layout, i) =
            (struct segment_world){.node = nodes[i], .local = i};
        struct segment_rank *r = segment_rank_at(wire.segment, &wire.layout, i);
        r->world_rank = i;
        r->pid = getpid();
    }
}

static void make_way(struct way *w)
{
    struct bell_ref bell = {.bell = &wire.bell, .event_fd = -1};
    size_t size = ring_size(&ring_shape);

    w->ring = aligned_alloc(RING_LINE, size);
    memset(w->ring, 0, size);
    ring_producer_init(&w->producer, w->ring, &ring_shape, w->data_end, &bell);
    ring_consumer_init(&w->consumer, w->ring, &ring_shape);
    ((struct ring_shared *)w->ring)->active = 1;
    list_init(&w->flying);
}

static void start_rank(uint32_t i, const uint32_t *nodes)
{
    struct group *group;

    wire.ranks[i].client = client_new();
    assert_non_null(wire.ranks[i].client);
    client_enter(wire.ranks[i].client);
    transport_here->base = wire.segment;
    transport_here->layout = wire.layout;
    transport_here->me = segment_rank_at(wire.segment, &wire.layout, i);
    transport_here->world_rank = transport_here->local_rank = i;
    transport_here->n_world = transport_here->n_local = transport_here->n_nodes = wire.n_ranks;
    transport_here->node = nodes[i];
    transport_here->packet_bytes = WIRE_PACKET_BYTES;
    assert_int_equal(datatype_init(), MPI_SUCCESS);
    group_set_own_proc((int)i);
    assert_int_equal(p2p_init(), MPI_SUCCESS);
    assert_int_equal(group_new_row(0, (int)wire.n_ranks, &group), MPI_SUCCESS);
    assert_int_equal(comm_new(COMM_CONTEXT_WORLD, group, NULL, &wire.ranks[i].world), MPI_SUCCESS);
    group_unref(group);
}

void wire_start(uint32_t n_ranks, const uint32_t *nodes)
{
    wire = (struct wire){.n_ranks = n_ranks,
                         .may_read = true,
                         .may_write = true,
                         .reads_left = -1,
                         .before = client_here};
    wire_n_reads = wire_n_writes = 0;
    make_segment(n_ranks, nodes);
    for (uint32_t a = 0; a < n_ranks; a++)
        for (uint32_t b = 0; b < n_ranks; b++)
            make_way(&wire.ways[a][b]);
    for (uint32_t i = 0; i < n_ranks; i++)
        start_rank(i, nodes);
}

void wire_stop(void)
{
    wire.others = NULL;
    wire.on_read = NULL;
    for (uint32_t i = 0; i < wire.n_ranks; i++) {
        comm_unref(wire_as(i));
        p2p_deinit();
        client_enter(wire.before);
        client_free(wire.ranks[i].client);
    }
    for (uint32_t a = 0; a < wire.n_ranks; a++)
        for (uint32_t b = 0; b < wire.n_ranks; b++) {
            list_foreach_safe(it, &wire.ways[a][b].flying)
                free(list_entry(it, struct packet, link));
            free(wire.ways[a][b].ring);
        }
    free(wire.segment);
    wire.n_ranks = 0;
}

struct comm *wire_as(uint32_t rank)
{
    client_enter(wire.ranks[rank].client);
    return wire.ranks[rank].world;
}

struct engine *wire_engine(uint32_t rank)
{
    return wire_as(rank)->vci->engine;
}

struct protocols *wire_protocols(uint32_t rank)
{
    return protocols_of(wire_engine(rank));
}

struct peer *wire_peer(uint32_t rank, uint32_t other)
{
    return peer_get(wire_engine(rank), other);
}

/* ---- what the test decides ---- */

void wire_hold(bool hold)
{
    wire.hold = hold;
}

void wire_stop_ring(uint32_t from, uint32_t to, bool stop)
{
    wire.ways[from][to].stopped = stop;
}

void wire_cut(uint32_t from, uint32_t to, bool cut)
{
    wire.ways[from][to].cut = cut;
}

void wire_permit_reading(bool read, bool write)
{
    wire.may_read = read;
    wire.may_write = write;
}

void wire_permit_reads(int n_calls)
{
    wire.reads_left = n_calls;
}

void wire_on_read(void (*fn)(void))
{
    wire.on_read = fn;
}

void wire_while_waiting(void (*others)(void))
{
    wire.others = others;
}

int wire_turn(uint32_t rank)
{
    wire_as(rank);
    return progress_poll();
}

void wire_settle(void)
{
    bool moved = true;

    for (int quiet = 0; quiet < 3; quiet = moved ? 0 : quiet + 1) {
        moved = false;
        for (uint32_t i = 0; i < wire.n_ranks; i++)
            moved |= wire_turn(i) > 0;
    }
}

uint32_t wire_flying(uint32_t from, uint32_t to)
{
    uint32_t n = 0;

    collect(from, to);
    list_foreach(it, &wire.ways[from][to].flying)
        n++;
    return n;
}

struct packet *wire_packet(uint32_t from, uint32_t to, uint32_t i)
{
    collect(from, to);
    list_foreach(it, &wire.ways[from][to].flying)
        if (i-- == 0)
            return list_entry(it, struct packet, link);
    fail_msg("so many packets do not fly from %u to %u", from, to);
    return NULL;
}

struct packet *wire_find(uint32_t from, uint32_t to, enum msg_kind kind)
{
    collect(from, to);
    list_foreach(it, &wire.ways[from][to].flying)
        if (list_entry(it, struct packet, link)->slot.kind == kind)
            return list_entry(it, struct packet, link);
    return NULL;
}

void wire_deliver_copy(const struct packet *p)
{
    wire_forge(p->from, p->to, &p->slot, p->payload);
}

void wire_deliver(struct packet *p)
{
    list_remove(&p->link);
    wire_deliver_copy(p);
    free(p);
}

void wire_deliver_order(uint32_t from, uint32_t to, uint32_t n, const uint32_t *order)
{
    for (uint32_t i = 0; i < n; i++)
        wire_deliver(wire_packet(from, to, order[i]));
}

void wire_forge(uint32_t from, uint32_t to, const struct ring_slot *slot, const void *payload)
{
    struct client *before = client_here;
    const struct rank *r = &wire.ranks[to];

    client_enter(r->client);
    r->handle(r->handle_arg, from, slot, slot->len, payload);
    client_enter(before);
}

/* ---- in short ---- */

struct request *wire_isend(uint32_t from, uint32_t to, int tag, const void *data, MPI_Count bytes)
{
    struct comm *world = wire_as(from);
    struct request *r = NULL;

    assert_int_equal(
        mpi_isend(data, bytes, datatype_from_handle(MPI_BYTE), (int)to, tag, world, &r),
        MPI_SUCCESS);
    return r;
}

struct request *wire_irecv(uint32_t at, int from, int tag, void *room, MPI_Count bytes)
{
    struct comm *world = wire_as(at);
    struct request *r = NULL;

    assert_int_equal(mpi_irecv(room, bytes, datatype_from_handle(MPI_BYTE), from, tag, world, &r),
                     MPI_SUCCESS);
    return r;
}

int wire_finish(uint32_t rank, struct request *r, MPI_Status *status)
{
    wire_as(rank);
    assert_true(request_is_complete(r));
    return request_finish(r, status);
}

int wire_tear_down(void **state)
{
    (void)state;
    wire_stop();
    return 0;
}

uint32_t wire_n_ranks(void)
{
    return wire.n_ranks;
}
