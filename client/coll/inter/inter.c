/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/inter/inter.h"

#include "client/coll/hierarchy/noncommutative.h"
#include "client/coll/hierarchy/tree.h"
#include "client/object/group.h"
#include "client/process/job.h"

#define LINEAR_WINDOW 32 /* transfers under way at a time in linear exchanges */

static struct schedule_view enter_local(struct schedule *s)
{
    struct comm *local = s->view.comm->local_comm;
    return schedule_enter(
        s, (struct schedule_view){.comm = local, .rank = local->rank, .size = local->size});
}

static int remote_size(const struct schedule *s)
{
    return comm_remote_size(s->view.comm);
}

/* ---- a payload for the whole other group ---- */

/* A long payload goes on in pieces, while its next ones come. */
#define PIECE_BYTES (256 << 10)

/* Of the other group: who takes what comes from a node. */
struct tops {
    int n, *ranks;
};

static bool find_tops(struct schedule *s, int job_node, struct tops *ret_tops)
{
    const struct shape *c = coll_remote_shape_of(s->view.comm);
    struct node_tree tree;
    if (!tree_from(s, c, job_node, &tree))
        return false;
    ret_tops->ranks = tree_children(s, &tree, NODE_TREE_TOP, &ret_tops->n);
    for (int i = 0; i < ret_tops->n; i++)
        ret_tops->ranks[i] = c->leaders[ret_tops->ranks[i]];
    return !s->broken;
}

static int own_job_node(const struct schedule *s)
{
    return coll_node_of(s->view.comm, s->view.comm->group->procs[s->view.rank]);
}

/* Complete at the next wait. */
static void isend_to_tops(struct schedule *s, const struct tops *tops, struct buffer buf)
{
    for (int i = 0; i < tops->n; i++)
        schedule_isend(s, buf, tops->ranks[i]);
}

/* The place of a rank in the tree along which its group hands on what comes from the other one. */
struct spread {
    struct schedule_view inter, local, node;
    const struct shape *shape;
    bool leads;
    int leader, parent; /* place in `node`; in `local`, -1: the source itself */
    int n_children, *children;
};

static bool find_spread(struct schedule *s, int job_node, struct spread *ret_spread)
{
    struct schedule_view inter = s->view;
    struct comm *local = inter.comm->local_comm;
    const struct shape *c = coll_shape_of(local);
    struct node_tree tree;
    if (!tree_from(s, c, job_node, &tree))
        return false;
    struct spread *p = ret_spread;
    *p = (struct spread){.inter = inter,
                         .shape = c,
                         .local = {.comm = local, .rank = local->rank, .size = local->size}};
    p->node = (struct schedule_view){
        .comm = local, .rank = c->my_member, .size = c->n_members, .map = c->members};
    int my_node = c->node_of[local->rank], above = tree.parent[my_node];
    p->leads = c->leaders[my_node] == local->rank; /* the lowest rank: the first member */
    p->parent = above < 0 ? -1 : c->leaders[above];
    p->children = tree_children(s, &tree, my_node, &p->n_children);
    return p->children != NULL;
}

static void hand_on(struct schedule *s, const struct spread *p, struct buffer buf)
{
    schedule_enter(s, p->local);
    for (int i = 0; p->leads && i < p->n_children; i++)
        schedule_isend(s, buf, p->shape->leaders[p->children[i]]);
    schedule_enter(s, p->node);
    coll_bcast(s, buf, p->leader);
    schedule_leave(s, p->inter);
}

/* Receives what a rank of the other group sends to the tops and hands it on; meanwhile sends a
 * payload of the same length to the tops of the other group, if there are `tops`. Piece by piece in
 * both directions, so that no rank waits for a piece that another one holds back. */
static void inter_exchange(struct schedule *s, const struct tops *tops, const void *send,
                           int source, struct buffer recv)
{
    int job_node = coll_node_of(s->view.comm, s->view.comm->remote_group->procs[source]);
    MPI_Count piece = buffer_elements(recv, PIECE_BYTES);
    struct spread p;
    if (!find_spread(s, job_node, &p))
        return;
    for (MPI_Count at = 0; at < recv.count; at += piece) {
        MPI_Count n = recv.count - at < piece ? recv.count - at : piece;
        void *to = datatype_at(recv.type, recv.base, at);
        if (tops)
            isend_to_tops(s, tops, buffer_of(datatype_at(recv.type, send, at), n, recv.type));
        schedule_enter(s, p.parent < 0 ? p.inter : p.local);
        if (p.leads)
            schedule_irecv(s, buffer_of(to, n, recv.type), p.parent < 0 ? source : p.parent);
        schedule_wait(s);
        hand_on(s, &p, buffer_of(to, n, recv.type));
    }
    schedule_wait(s);
}

void inter_bcast(struct schedule *s, struct buffer buf, int root)
{
    struct tops tops;
    MPI_Count piece = buffer_elements(buf, PIECE_BYTES);
    if (root == MPI_PROC_NULL || buffer_size(buf) == 0)
        return;
    if (root != MPI_ROOT) {
        inter_exchange(s, NULL, NULL, root, buf);
        return;
    }
    if (!find_tops(s, own_job_node(s), &tops))
        return;
    for (MPI_Count at = 0; at < buf.count; at += piece)
        isend_to_tops(s, &tops, buffer_piece(buf, at, piece));
    schedule_wait(s);
}

/* ---- gather and scatter ---- */

/* Posts the receives of one block from every remote rank; they complete at the next wait. */
static void receive_blocks(struct schedule *s, const struct blocks *recv)
{
    for (int i = 0; i < remote_size(s); i++)
        if (blocks_bytes(recv, i) > 0)
            schedule_irecv(s, blocks_buffer(recv, i), i);
}

void inter_gather(struct schedule *s, struct buffer send, const struct blocks *recv, int root)
{
    if (root == MPI_PROC_NULL)
        return;
    if (root == MPI_ROOT) {
        receive_blocks(s, recv);
        schedule_wait(s);
    } else if (buffer_size(send) > 0) {
        schedule_send(s, send, root);
    }
}

void inter_scatter(struct schedule *s, const struct blocks *send, struct buffer recv, int root)
{
    if (root == MPI_PROC_NULL)
        return;
    if (root != MPI_ROOT) {
        if (buffer_size(recv) > 0)
            schedule_recv(s, recv, root);
        return;
    }
    for (int i = 0; i < remote_size(s); i++)
        if (blocks_bytes(send, i) > 0)
            schedule_isend(s, blocks_buffer(send, i), i);
    schedule_wait(s);
}

/* ---- allgather ---- */

/* A group's nodes by the networks that they are on: all of a place send to the same tops, those of
 * its first node. */
struct places {
    int n;
    int *of_node;  /* [nodes] */
    int *job_node; /* [n] the first of each */
};

static bool same_networks(int job_node_a, int job_node_b)
{
    for (int i = 0; job_node_a != NODE_APART && i < job_n_networks(); i++)
        if (job_on_network(job_node_a, i) != job_on_network(job_node_b, i))
            return false;
    return true;
}

static bool find_places(struct schedule *s, const struct shape *c, const struct group *group,
                        struct places *ret_places)
{
    int *ints = schedule_temp(s, 2 * (size_t)c->n_nodes * sizeof(int));
    if (!ints)
        return false;
    struct places *p = ret_places;
    *p = (struct places){.of_node = ints, .job_node = ints + c->n_nodes};
    for (int i = 0; i < c->n_nodes; i++) {
        int job_node = coll_node_of(s->view.comm, group->procs[c->leaders[i]]), place = 0;
        while (place < p->n && !same_networks(p->job_node[place], job_node))
            place++;
        p->of_node[i] = place;
        if (place == p->n)
            p->job_node[p->n++] = job_node;
    }
    return true;
}

/* Where the blocks of the other group lie while they travel: place by place, dense. */
struct packing {
    const struct shape *sources;
    struct places places;
    unsigned char *bytes;
    MPI_Count *at; /* [remote ranks] */
    bool in_place; /* that is where they are to lie */
};

static int place_of(const struct packing *k, int rank)
{
    return k->places.of_node[k->sources->node_of[rank]];
}

static bool inter_pack(struct schedule *s, const struct blocks *recv, struct packing *ret_packing)
{
    int n = remote_size(s);
    struct packing *k = ret_packing;
    MPI_Count next = 0;
    *k = (struct packing){.sources = coll_remote_shape_of(s->view.comm),
                          .at = schedule_temp(s, (size_t)n * sizeof(MPI_Count))};
    if (!k->sources)
        schedule_no_memory(s);
    if (!k->sources || !k->at ||
        !find_places(s, k->sources, s->view.comm->remote_group, &k->places))
        return false;
    for (int place = 0; place < k->places.n; place++) {
        for (int i = 0; i < n; i++) {
            if (place_of(k, i) != place)
                continue;
            k->at[i] = next;
            next += blocks_bytes(recv, i);
        }
    }
    k->in_place = recv->type->contiguous;
    unsigned char *first = blocks_at(recv, 0);
    for (int i = 0; k->in_place && i < n; i++)
        k->in_place = (unsigned char *)blocks_at(recv, i) == first + k->at[i];
    k->bytes = k->in_place ? datatype_run_start(recv->type, first) : schedule_temp(s, (size_t)next);
    return !s->broken;
}

/* The blocks from one place on their way through this group. */
struct stream {
    struct spread spread;
    unsigned char *start;
    MPI_Count n;
};

/* Posts the receives from those who have the blocks, if they send them here. */
static bool open_stream(struct schedule *s, const struct blocks *recv, const struct packing *k,
                        int place, struct stream *ret_stream)
{
    struct spread *p = &ret_stream->spread;
    if (!find_spread(s, k->places.job_node[place], p))
        return false;
    ret_stream->n = 0;
    for (int i = 0; i < remote_size(s); i++) {
        MPI_Count block = blocks_bytes(recv, i);
        if (place_of(k, i) != place || block == 0)
            continue;
        if (ret_stream->n == 0)
            ret_stream->start = k->bytes + k->at[i];
        ret_stream->n += block;
        if (p->leads && p->parent < 0)
            schedule_irecv(s, buffer_of_bytes(k->bytes + k->at[i], block), i);
    }
    return true;
}

/* Each block goes straight to where the branches around its place begin, all of a place together
 * from there on. */
void inter_allgather(struct schedule *s, struct buffer send, const struct blocks *recv)
{
    struct comm *comm = s->view.comm;
    const struct shape *own = coll_shape_of(comm->local_comm);
    struct packing k;
    struct places places;
    struct tops tops;
    if (!own)
        schedule_no_memory(s);
    if (!own || !find_places(s, own, comm->group, &places) || !inter_pack(s, recv, &k) ||
        !find_tops(s, places.job_node[places.of_node[own->node_of[s->view.rank]]], &tops))
        return;
    struct stream *streams = schedule_temp(s, (size_t)k.places.n * sizeof(struct stream));
    if (!streams)
        return;
    for (int place = 0; place < k.places.n; place++)
        if (!open_stream(s, recv, &k, place, &streams[place]))
            return;
    if (buffer_size(send) > 0)
        isend_to_tops(s, &tops, send);
    schedule_wait(s);
    for (int place = 0; !s->broken && place < k.places.n; place++) {
        struct stream *stream = &streams[place];
        if (stream->n == 0)
            continue;
        schedule_enter(s, stream->spread.local);
        if (stream->spread.leads)
            schedule_recv(s, buffer_of_bytes(stream->start, stream->n), stream->spread.parent);
        hand_on(s, &stream->spread, buffer_of_bytes(stream->start, stream->n));
    }
    schedule_wait(s);
    for (int i = 0; !k.in_place && i < remote_size(s); i++)
        schedule_copy(s, buffer_of_bytes(k.bytes + k.at[i], blocks_bytes(recv, i)),
                      blocks_buffer(recv, i));
}

/* ---- alltoall ---- */

void inter_alltoall(struct schedule *s, const struct blocks *send, const struct blocks *recv)
{
    int n = remote_size(s);
    for (int start = 0; start < n; start += LINEAR_WINDOW) {
        int end = start + LINEAR_WINDOW < n ? start + LINEAR_WINDOW : n;
        for (int i = start; i < end; i++)
            if (blocks_bytes(recv, i) > 0)
                schedule_irecv(s, blocks_buffer(recv, i), i);
        for (int i = start; i < end; i++)
            if (blocks_bytes(send, i) > 0)
                schedule_isend(s, blocks_buffer(send, i), i);
        schedule_wait(s);
    }
}

/* ---- reductions ---- */

void inter_reduce(struct schedule *s, const void *send, struct buffer recv, struct op *op, int root)
{
    if (root == MPI_PROC_NULL || recv.count == 0)
        return;
    if (root == MPI_ROOT)
        noncommutative_take_across(s, recv, op);
    else
        noncommutative_reduce_across(s, buffer_like(recv, send), op, root);
}

/* The rank of a group that has its result: on the node that is nearest to the other group's rank
 * 0. */
static int speaker_of(const struct comm *comm, const struct shape *c, const struct group *group,
                      const struct group *other)
{
    int to = coll_node_of(comm, other->procs[0]), best = 0, least = JOB_APART + 1;
    for (int i = 0; i < c->n_nodes; i++) {
        int from = coll_node_of(comm, group->procs[c->leaders[i]]),
            gateways = from == to ? -1 : node_groups_gateways_of_job(from, to);
        if (gateways < least) {
            least = gateways;
            best = i;
        }
    }
    return c->leaders[best];
}

/* Both groups' results, each on its group's speaker. */
struct results {
    int own, other; /* speakers */
    void *own_result;
};

static bool reduce_locally(struct schedule *s, struct buffer send, struct op *op,
                           struct results *ret_results)
{
    struct comm *comm = s->view.comm;
    const struct shape *own = coll_shape_of(comm->local_comm), *other = coll_remote_shape_of(comm);
    if (!own || !other) {
        schedule_no_memory(s);
        return false;
    }
    struct results *r = ret_results;
    *r = (struct results){.own = speaker_of(comm, own, comm->group, comm->remote_group),
                          .other = speaker_of(comm, other, comm->remote_group, comm->group)};
    struct schedule_view inter = enter_local(s);
    r->own_result = s->view.rank == r->own ? schedule_temp_typed(s, send.count, send.type) : NULL;
    coll_reduce(s, send.base, buffer_like(send, r->own_result), op, r->own);
    schedule_leave(s, inter);
    return !s->broken;
}

void inter_allreduce(struct schedule *s, const void *send, struct buffer recv, struct op *op)
{
    struct results r;
    struct tops tops;
    if (recv.count == 0 || !reduce_locally(s, buffer_like(recv, send), op, &r))
        return;
    bool speaks = s->view.rank == r.own;
    if (speaks && !find_tops(s, own_job_node(s), &tops))
        return;
    inter_exchange(s, speaks ? &tops : NULL, r.own_result, r.other, recv);
}

/* A byte from everybody to everybody. */
void inter_barrier(struct schedule *s)
{
    unsigned char *bytes = schedule_temp(s, 2);
    if (!bytes)
        return;
    bytes[0] = 0;
    inter_allreduce(s, bytes, buffer_of_bytes(bytes + 1, 1), op_predefined(MPI_BOR));
}

/* The blocks of this group's ranks below a top, from the other group's result, which the top
 * has. */
static void scatter_below(struct schedule *s, const struct node_tree *tree,
                          const struct blocks *result, void *recv)
{
    const struct shape *c = tree->shape;
    int rank = s->view.rank, *top = schedule_temp(s, (size_t)c->n_nodes * sizeof(int));
    if (!top)
        return;
    for (int i = 0; i < c->n_nodes; i++)
        top[tree->order[i]] =
            tree->parent[tree->order[i]] < 0 ? tree->order[i] : top[tree->parent[tree->order[i]]];
    int mine = c->leaders[top[c->node_of[rank]]];
    for (int i = 0; rank == mine && i < s->view.size; i++)
        if (c->leaders[top[c->node_of[i]]] == rank && i != rank && blocks_count(result, i) > 0)
            schedule_isend(s, blocks_buffer(result, i), i);
    if (rank == mine)
        schedule_copy(s, blocks_buffer(result, rank),
                      buffer_of(recv, blocks_count(result, rank), result->type));
    else if (blocks_count(result, rank) > 0)
        schedule_irecv(s, buffer_of(recv, blocks_count(result, rank), result->type), mine);
}

/* Blocks of one size go straight to their ranks; of others only those who take them know the sizes:
 * they go by the tops. */
void inter_reduce_scatter(struct schedule *s, const void *send, void *recv,
                          const struct blocks *counts, struct op *op)
{
    struct comm *comm = s->view.comm;
    int n_remote = remote_size(s), job_node;
    MPI_Count count = blocks_first(counts, comm->size),
              own_count = blocks_count(counts, s->view.rank);
    struct datatype *type = counts->type;
    struct results r;
    struct tops tops;
    struct node_tree tree;
    if (count == 0 || !reduce_locally(s, buffer_of(send, count, type), op, &r))
        return;
    if (!counts->counts.base) {
        MPI_Count n = count / n_remote;
        for (int i = 0; s->view.rank == r.own && i < n_remote; i++)
            schedule_isend(s, buffer_of(datatype_at(type, r.own_result, i * n), n, type), i);
        schedule_recv(s, buffer_of(recv, own_count, type), r.other);
        schedule_wait(s);
        return;
    }
    if (s->view.rank == r.own && find_tops(s, own_job_node(s), &tops))
        isend_to_tops(s, &tops, buffer_of(r.own_result, count, type));
    job_node = coll_node_of(comm, comm->remote_group->procs[r.other]);
    if (!tree_from(s, coll_shape_of(comm->local_comm), job_node, &tree))
        return;
    struct blocks result = *counts;
    int my_node = tree.shape->node_of[s->view.rank];
    if (tree.parent[my_node] < 0 && tree.shape->leaders[my_node] == s->view.rank) {
        result.buf = schedule_temp_typed(s, count, type);
        if (s->broken)
            return;
        schedule_recv(s, buffer_of(result.buf, count, type), r.other);
    }
    struct schedule_view inter = enter_local(s);
    scatter_below(s, &tree, &result, recv);
    schedule_leave(s, inter);
    schedule_wait(s);
}
