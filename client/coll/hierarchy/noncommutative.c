/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/coll/hierarchy/noncommutative.h"

#include "client/coll/hierarchy/hierarchy.h"
#include "client/coll/hierarchy/tree.h"
#include "client/object/group.h"
#include "client/process/job.h"

/* Partial results at a node; and a piece, long against the time that two distant ranks take to
 * agree on a transfer. */
#define KEPT_BYTES  (4 << 20)
#define PIECE_BYTES (256 << 10)
/* Pieces of a scan that are under way at a time. */
#define SCAN_DEPTH 4

/* ---- runs ---- */

/* A run of one of those whose operands meet at a node. */
struct part {
    int owner;    /* 0: the node itself; i + 1: child i */
    int place;    /* among the owner's */
    int run;      /* of the node and all behind it */
    int first, n; /* ranks; n 1 where order does not matter */
};

struct runs {
    struct part *parts; /* by rank */
    int n_parts, n;
    int *n_of;   /* [1 + children] parts of each owner */
    int *begins; /* [1 + children] the owner's first part begins with rank 0 */
    bool begins_all,
        ends_all; /* the first run begins with rank 0, the last one ends with the last rank */
};

struct noncommutative {
    struct node_tree tree;
    struct schedule_view whole, node; /* all ranks that bring operands, and those of this node */
    struct schedule_view above;       /* in which `parent` is a rank */
    const int *leaders;               /* [n_nodes] ranks of `whole` */
    int leader;                       /* place in `node` */
    int my_node, parent;              /* parent -1: the result stays here */
    int n_children, *children;        /* nodes */
    struct runs runs;
    MPI_Count piece; /* elements */
};

static bool runs_leads(const struct noncommutative *o)
{
    return o->node.rank == o->leader;
}

/* Who owns the operands of each node: `owner` gets -1 for what is not behind this one. */
static void find_owners(const struct noncommutative *o, int *owner)
{
    const struct node_tree *tree = &o->tree;
    for (int i = 0; i < tree->shape->n_nodes; i++)
        owner[i] = -1;
    for (int i = 0; i < o->n_children; i++)
        owner[o->children[i]] = i + 1;
    if (o->my_node >= 0)
        owner[o->my_node] = 0;
    for (int i = 0; i < tree->shape->n_nodes; i++) {
        int node = tree->order[i], parent = tree->parent[node];
        if (owner[node] < 0 && parent >= 0 && owner[parent] > 0)
            owner[node] = owner[parent];
    }
}

/* `in_order`: else operands are combined as they come, and everything is one run. */
static bool find_runs(struct schedule *s, struct noncommutative *o, int size, bool in_order)
{
    const struct shape *c = o->tree.shape;
    size_t n_owners = (size_t)o->n_children + 1;
    int *owner = schedule_temp(s, (size_t)c->n_nodes * sizeof(int)), n_parts = 0, before = -1;
    struct runs *t = &o->runs;
    *t = (struct runs){.n_of = schedule_temp(s, 2 * n_owners * sizeof(int))};
    if (s->broken)
        return false;
    t->begins = t->n_of + n_owners;
    for (size_t i = 0; i < 2 * n_owners; i++)
        t->n_of[i] = 0;
    find_owners(o, owner);
    for (int r = 0; in_order && r < size; before = owner[c->node_of[r++]])
        n_parts += owner[c->node_of[r]] >= 0 && owner[c->node_of[r]] != before;
    t->parts = schedule_temp(s, (in_order ? (size_t)n_parts : n_owners) * sizeof(struct part));
    if (s->broken)
        return false;
    if (!in_order) {
        for (int i = o->my_node < 0; i <= o->n_children; i++) {
            t->parts[t->n_parts++] = (struct part){.owner = i, .n = 1};
            t->n_of[i] = 1;
        }
        t->n = 1;
        return true;
    }
    before = -1;
    for (int r = 0; r < size; r++) {
        int mine = owner[c->node_of[r]];
        if (mine >= 0 && mine == before) {
            t->parts[t->n_parts - 1].n++;
        } else if (mine >= 0) {
            t->n += before < 0;
            t->begins[mine] |= r == 0;
            t->parts[t->n_parts++] = (struct part){
                .owner = mine, .place = t->n_of[mine]++, .run = t->n - 1, .first = r, .n = 1};
        }
        before = mine;
    }
    t->begins_all = owner[c->node_of[0]] >= 0;
    t->ends_all = before >= 0;
    return true;
}

/* Pieces are of one length everywhere: all know how many runs the nodes have together. */
static MPI_Count noncommutative_piece(const struct noncommutative *o, struct buffer buf, int size,
                                      bool in_order, int depth)
{
    const int *node_of = o->tree.shape->node_of;
    MPI_Count n_runs = 1;
    for (int r = 1; in_order && r < size; r++)
        n_runs += node_of[r] != node_of[r - 1];
    MPI_Count kept = KEPT_BYTES / depth / n_runs;
    return buffer_elements(buf, kept < PIECE_BYTES ? kept : PIECE_BYTES);
}

/* What follows from the tree: the place of this rank in it. `parent_above`: of a top. */
static bool find_place(struct schedule *s, struct noncommutative *o, int parent_above,
                       bool in_order)
{
    const struct shape *c = o->tree.shape;
    int up = o->tree.parent[o->my_node];
    if (up >= 0)
        o->above = o->whole;
    o->parent = up >= 0 ? o->leaders[up] : parent_above;
    for (int i = 0; i < o->node.size; i++)
        if (c->members[i] == o->leaders[o->my_node])
            o->leader = i;
    o->children = tree_children(s, &o->tree, o->my_node, &o->n_children);
    return o->children && find_runs(s, o, o->whole.size, in_order);
}

static struct schedule_view view_of_node(const struct comm *comm, const struct shape *c)
{
    return (struct schedule_view){
        .comm = (struct comm *)comm, .rank = c->my_member, .size = c->n_members, .map = c->members};
}

/* Over the whole communicator; root -1: the top is the groups' centre. */
static bool find_within(struct schedule *s, struct node_groups *groups, int root,
                        struct noncommutative *ret_place)
{
    struct noncommutative *o = ret_place;
    const struct shape *c = groups->shape;
    int top = root < 0 ? groups->nodes[groups->first[groups->centre]] : c->node_of[root];
    *o = (struct noncommutative){
        .whole = s->view, .leaders = c->leaders, .my_node = c->node_of[s->view.rank]};
    o->node = view_of_node(s->view.comm, c);
    if (!tree_of(s, groups, top, NODE_TREE_HALVES, &o->tree))
        return false;
    if (root >= 0 && c->leaders[top] != root) {
        int *leaders = schedule_temp(s, (size_t)c->n_nodes * sizeof(int));
        for (int i = 0; leaders && i < c->n_nodes; i++)
            leaders[i] = i == top ? root : c->leaders[i];
        o->leaders = leaders;
    }
    return !s->broken && find_place(s, o, -1, true);
}

/* ---- combining ---- */

/* Of n elements for each part, at a node that leads. */
struct kept {
    void *own;   /* its parts */
    void **room; /* [children] theirs */
    void *out;   /* its runs; NULL with one run */
};

static bool runs_keep(struct schedule *s, const struct noncommutative *o, MPI_Count n,
                      struct datatype *type, struct kept *ret_kept)
{
    *ret_kept = (struct kept){0};
    if (o->my_node >= 0 && !runs_leads(o))
        return true;
    ret_kept->own = schedule_temp_typed(s, n * o->runs.n_of[0], type);
    ret_kept->room = schedule_temp(s, (size_t)o->n_children * sizeof(void *));
    for (int i = 0; ret_kept->room && i < o->n_children; i++)
        ret_kept->room[i] = schedule_temp_typed(s, n * o->runs.n_of[i + 1], type);
    if (o->runs.n > 1 && o->n_children > 0)
        ret_kept->out = schedule_temp_typed(s, n * o->runs.n, type);
    return !s->broken;
}

static void *part_at(const struct kept *k, const struct part *part, MPI_Count n,
                     const struct datatype *type)
{
    return datatype_at(type, part->owner ? k->room[part->owner - 1] : k->own, part->place * n);
}

/* The parts of a run, from the last one down, into its place in `out`, or where the last one is.
 * Returns where. */
static void *runs_join(struct schedule *s, const struct noncommutative *o, const struct kept *k,
                       int last, struct buffer out, struct op *op)
{
    const struct part *parts = o->runs.parts;
    void *acc = part_at(k, &parts[last], out.count, out.type);
    if (out.base) {
        schedule_copy(s, buffer_like(out, acc), out);
        acc = out.base;
    }
    for (int i = last - 1; i >= 0 && parts[i].run == parts[last].run; i--)
        schedule_reduce(s, part_at(k, &parts[i], out.count, out.type), buffer_like(out, acc), op);
    return acc;
}

/* All runs, one behind the other. `out` NULL: wherever they are best made. */
static void *join_all(struct schedule *s, const struct noncommutative *o, const struct kept *k,
                      struct buffer out, struct op *op)
{
    const struct runs *t = &o->runs;
    if (t->n_parts == 0)
        return NULL;
    if (!out.base && o->n_children == 0)
        return k->own;
    if (!out.base && t->n == 1)
        return runs_join(s, o, k, t->n_parts - 1, buffer_like(out, NULL), op);
    if (!out.base)
        out.base = k->out;
    for (int i = 0; i < t->n_parts; i++)
        if (i + 1 == t->n_parts || t->parts[i + 1].run != t->parts[i].run)
            runs_join(s, o, k, i, buffer_part(out, t->parts[i].run * out.count, out.count), op);
    return out.base;
}

static void post_children(struct schedule *s, const struct noncommutative *o, const struct kept *k,
                          MPI_Count n, struct datatype *type)
{
    for (int i = 0; i < o->n_children; i++)
        schedule_irecv(s, buffer_of(k->room[i], n * o->runs.n_of[i + 1], type),
                       o->leaders[o->children[i]]);
}

/* ---- within a node ---- */

/* The ranks of a part of this node, which begins at place `at` among its ranks. */
static struct schedule_view view_of_part(const struct noncommutative *o, const struct part *part,
                                         int at)
{
    int rank = o->node.rank - at;
    return (struct schedule_view){.comm = o->node.comm,
                                  .rank = rank >= 0 && rank < part->n ? rank : -1,
                                  .size = part->n,
                                  .map = o->node.map + at};
}

/* Goes over the parts of the node: false behind the last one. Begin with *i == -1, *at == 0. */
static bool next_part(const struct noncommutative *o, int *i, int *at)
{
    if (*i >= 0)
        *at += o->runs.parts[*i].n;
    do
        ++*i;
    while (*i < o->runs.n_parts && o->runs.parts[*i].owner != 0);
    return *i < o->runs.n_parts;
}

/* The operands of the node's runs come to its leader. */
static void runs_collect(struct schedule *s, const struct noncommutative *o, const void *send,
                         struct buffer own, struct op *op)
{
    struct blocks blocks = {.buf = own.base, .type = own.type, .count = own.count, .uniform = true};
    int n_own = o->runs.n_of[0];
    schedule_enter(s, o->node);
    if (n_own == 1)
        coll_reduce(s, send, own, op, o->leader);
    else if (n_own == o->node.size)
        coll_gather(s, buffer_like(own, send), &blocks, o->leader);
    for (int i = -1, at = 0; n_own > 1 && n_own < o->node.size && next_part(o, &i, &at);) {
        const struct part *part = &o->runs.parts[i];
        struct schedule_view run = view_of_part(o, part, at);
        bool has_leader = o->leader >= at && o->leader < at + part->n, begins = run.rank == 0;
        void *to = runs_leads(o) ? datatype_at(own.type, own.base, part->place * own.count) : NULL;
        if (!has_leader && begins)
            to = schedule_temp_typed(s, own.count, own.type);
        schedule_enter(s, run);
        if (run.rank >= 0)
            coll_reduce(s, send, buffer_like(own, to), op, has_leader ? o->leader - at : 0);
        schedule_enter(s, o->node);
        if (!has_leader && begins)
            schedule_send(s, buffer_like(own, to), o->leader);
        else if (!has_leader && runs_leads(o))
            schedule_recv(s, buffer_like(own, to), at);
    }
    schedule_leave(s, o->whole);
}

/* What everything up to this node adds up to: at the top into `out`, else to the parent. */
static void pass_up(struct schedule *s, const struct noncommutative *o, const struct kept *k,
                    const void *send, struct buffer out, struct op *op)
{
    schedule_enter(s, o->whole);
    if (runs_leads(o))
        post_children(s, o, k, out.count, out.type);
    runs_collect(s, o, send, buffer_like(out, k->own), op);
    schedule_wait(s);
    if (!runs_leads(o))
        return;
    struct buffer runs = buffer_like(out, o->parent < 0 ? out.base : NULL);
    runs.base = join_all(s, o, k, runs, op);
    if (o->parent < 0)
        return;
    runs.count *= o->runs.n;
    schedule_enter(s, o->above);
    schedule_send(s, runs, o->parent);
    schedule_leave(s, o->whole);
}

/* ---- reduce and allreduce ---- */

void noncommutative_reduce(struct schedule *s, struct node_groups *groups, const void *send,
                           struct buffer recv, struct op *op, int root)
{
    struct noncommutative o;
    struct kept k;
    if (!find_within(s, groups, root, &o))
        return;
    MPI_Count piece = noncommutative_piece(&o, recv, o.whole.size, true, 2);
    if (!runs_keep(s, &o, piece, recv.type, &k))
        return;
    for (MPI_Count at = 0; at < recv.count; at += piece)
        pass_up(s, &o, &k, datatype_at(recv.type, send, at), buffer_piece(recv, at, piece), op);
}

static void pass_down(struct schedule *s, const struct noncommutative *o, struct buffer buf)
{
    if (runs_leads(o)) {
        schedule_recv(s, buf, o->parent);
        for (int i = 0; i < o->n_children; i++)
            schedule_isend(s, buf, o->leaders[o->children[i]]);
    }
    schedule_enter(s, o->node);
    coll_bcast(s, buf, o->leader);
    schedule_leave(s, o->whole);
    schedule_wait(s);
}

/* The pieces go down behind those going up. */
void noncommutative_allreduce(struct schedule *s, struct node_groups *groups, const void *send,
                              struct buffer recv, struct op *op)
{
    struct noncommutative o;
    struct kept k;
    if (!find_within(s, groups, -1, &o))
        return;
    MPI_Count piece = noncommutative_piece(&o, recv, o.whole.size, true, 2),
              lag = 2 * o.tree.height * piece;
    if (!runs_keep(s, &o, piece, recv.type, &k))
        return;
    for (MPI_Count at = 0; at < recv.count + lag; at += piece) {
        MPI_Count down = at - lag;
        if (at < recv.count)
            pass_up(s, &o, &k, datatype_at(recv.type, send, at), buffer_piece(recv, at, piece), op);
        if (down >= 0 && down < recv.count)
            pass_down(s, &o, buffer_piece(recv, down, piece));
    }
}

/* ---- scans ---- */

/* A piece of a scan on its way. */
struct scan {
    struct kept kept;
    void *total;  /* on the last rank of a run: what it adds up to */
    void *before; /* at a leader: for each run, what all ranks before it add up to */
    void **given; /* at a leader: the same for each part of each owner */
    void *prefix; /* on every rank: for its run */
};

static bool open_scan(struct schedule *s, const struct noncommutative *o, MPI_Count n,
                      struct datatype *type, struct scan *ret_scan)
{
    *ret_scan = (struct scan){.total = schedule_temp_typed(s, n, type),
                              .prefix = schedule_temp_typed(s, n, type)};
    if (s->broken || !runs_keep(s, o, n, type, &ret_scan->kept) || !runs_leads(o))
        return !s->broken;
    ret_scan->before = schedule_temp_typed(s, n * o->runs.n, type);
    ret_scan->given = schedule_temp(s, ((size_t)o->n_children + 1) * sizeof(void *));
    for (int i = 0; ret_scan->given && i <= o->n_children; i++)
        ret_scan->given[i] = schedule_temp_typed(s, n * o->runs.n_of[i], type);
    return !s->broken;
}

/* The scan within each run of the node; what the runs add up to comes to the leader. */
static void scan_runs(struct schedule *s, const struct noncommutative *o, const struct scan *c,
                      const void *send, struct buffer recv, struct op *op, bool inclusive)
{
    int n_own = o->runs.n_of[0];
    schedule_enter(s, o->node);
    if (n_own > 1 && n_own == o->node.size) {
        struct blocks blocks = {
            .buf = c->kept.own, .type = recv.type, .count = recv.count, .uniform = true};
        coll_gather(s, buffer_like(recv, send), &blocks, o->leader);
        if (inclusive)
            schedule_copy(s, buffer_like(recv, send), recv);
        schedule_leave(s, o->whole);
        return;
    }
    for (int i = -1, at = 0; next_part(o, &i, &at);) {
        const struct part *part = &o->runs.parts[i];
        struct schedule_view run = view_of_part(o, part, at);
        bool is_last = run.rank == part->n - 1;
        int last = at + part->n - 1;
        const void *total = inclusive ? recv.base : c->total;
        schedule_enter(s, part->n == o->node.size ? o->node : run);
        if (is_last && !inclusive)
            schedule_copy(s, buffer_like(recv, send), buffer_like(recv, c->total));
        if (run.rank >= 0 && inclusive)
            coll_scan(s, send, recv, op);
        else if (run.rank >= 0)
            coll_exscan(s, send, recv, op);
        if (is_last && !inclusive && part->n > 1)
            schedule_reduce(s, recv.base, buffer_like(recv, c->total), op);
        schedule_enter(s, o->node);
        void *own =
            runs_leads(o) ? datatype_at(recv.type, c->kept.own, part->place * recv.count) : NULL;
        if (last == o->leader && is_last)
            schedule_copy(s, buffer_like(recv, total), buffer_like(recv, own));
        else if (is_last)
            schedule_send(s, buffer_like(recv, total), o->leader);
        else if (runs_leads(o))
            schedule_recv(s, buffer_like(recv, own), last);
    }
    schedule_leave(s, o->whole);
}

/* Nobody needs what the run with the last rank adds up to, and before rank 0 there is nothing. */
static MPI_Count n_told(const struct noncommutative *o)
{
    return o->runs.n - o->runs.ends_all;
}

static bool owner_ends(const struct noncommutative *o, int owner)
{
    const struct runs *t = &o->runs;
    return t->ends_all && t->parts[t->n_parts - 1].owner == owner;
}

static void scan_up(struct schedule *s, const struct noncommutative *o, const struct scan *c,
                    const void *send, struct buffer recv, struct op *op, bool inclusive)
{
    for (int i = 0; runs_leads(o) && i < o->n_children; i++)
        if (o->runs.n_of[i + 1] > owner_ends(o, i + 1))
            schedule_irecv(s,
                           buffer_times(buffer_like(recv, c->kept.room[i]),
                                        o->runs.n_of[i + 1] - owner_ends(o, i + 1)),
                           o->leaders[o->children[i]]);
    scan_runs(s, o, c, send, recv, op, inclusive);
    schedule_wait(s);
    if (!runs_leads(o) || o->parent < 0 || n_told(o) == 0)
        return;
    /* The parts stay as they are: they are wanted again on the way down. */
    const struct runs *t = &o->runs;
    void *out = o->n_children ? c->before : c->kept.own;
    for (int i = 0; o->n_children && i < t->n_parts; i++)
        if (t->parts[i].run < n_told(o) &&
            (i + 1 == t->n_parts || t->parts[i + 1].run != t->parts[i].run))
            runs_join(s, o, &c->kept, i,
                      buffer_like(recv, datatype_at(recv.type, out, t->parts[i].run * recv.count)),
                      op);
    schedule_send(s, buffer_of(out, recv.count * n_told(o), recv.type), o->parent);
}

/* From what comes before each run to what comes before each of its parts. */
static void spread_prefixes(struct schedule *s, const struct noncommutative *o,
                            const struct scan *c, MPI_Count n, struct datatype *type, struct op *op)
{
    const struct runs *t = &o->runs;
    void *sum = NULL; /* of all before the part */
    for (int i = 0; i < t->n_parts; i++) {
        const struct part *part = &t->parts[i];
        void *own = part_at(&c->kept, part, n, type);
        if (i == 0 || t->parts[i - 1].run != part->run)
            sum = part->first == 0 ? NULL : datatype_at(type, c->before, part->run * n);
        if (sum)
            schedule_copy(
                s, buffer_of(sum, n, type),
                buffer_of(datatype_at(type, c->given[part->owner], part->place * n), n, type));
        if (i + 1 == t->n_parts || t->parts[i + 1].run != part->run)
            continue;
        if (sum)
            schedule_reduce(s, sum, buffer_of(own, n, type), op);
        sum = own;
    }
}

/* Each rank of the node gets what comes before its run, if there is anything. */
static bool hand_out(struct schedule *s, const struct noncommutative *o, const struct scan *c,
                     MPI_Count n, struct datatype *type)
{
    int n_own = o->runs.n_of[0];
    bool given = false;
    schedule_enter(s, o->node);
    if (n_own > 1 && n_own == o->node.size) {
        struct blocks blocks = {
            .buf = runs_leads(o) ? c->given[0] : NULL, .type = type, .count = n, .uniform = true};
        coll_scatter(s, &blocks, buffer_of(c->prefix, n, type), o->leader);
        schedule_leave(s, o->whole);
        return o->whole.rank > 0;
    }
    for (int i = -1, at = 0; next_part(o, &i, &at);) {
        const struct part *part = &o->runs.parts[i];
        struct schedule_view run = view_of_part(o, part, at);
        bool has_leader = o->leader >= at && o->leader < at + part->n;
        if (part->first == 0)
            continue;
        void *from = runs_leads(o) ? datatype_at(type, c->given[0], part->place * n) : c->prefix;
        if (runs_leads(o) && !has_leader)
            schedule_send(s, buffer_of(from, n, type), at);
        if (run.rank == 0 && !has_leader)
            schedule_recv(s, buffer_of(c->prefix, n, type), o->leader);
        if (run.rank < 0)
            continue;
        schedule_enter(s, part->n == o->node.size ? o->node : run);
        coll_bcast(s, buffer_of(from, n, type), has_leader ? o->leader - at : 0);
        if (has_leader && runs_leads(o))
            schedule_copy(s, buffer_of(from, n, type), buffer_of(c->prefix, n, type));
        schedule_enter(s, o->node);
        given = true;
    }
    schedule_leave(s, o->whole);
    return given;
}

static void scan_down(struct schedule *s, const struct noncommutative *o, const struct scan *c,
                      struct buffer recv, struct op *op, bool inclusive)
{
    const struct runs *t = &o->runs;
    if (runs_leads(o)) {
        if (o->parent >= 0 && t->n > t->begins_all)
            schedule_recv(s,
                          buffer_of(datatype_at(recv.type, c->before, t->begins_all * recv.count),
                                    recv.count * (t->n - t->begins_all), recv.type),
                          o->parent);
        spread_prefixes(s, o, c, recv.count, recv.type, op);
        for (int i = 0; i < o->n_children; i++)
            if (t->n_of[i + 1] > t->begins[i + 1])
                schedule_isend(s,
                               buffer_of(datatype_at(recv.type, c->given[i + 1],
                                                     t->begins[i + 1] * recv.count),
                                         recv.count * (t->n_of[i + 1] - t->begins[i + 1]),
                                         recv.type),
                               o->leaders[o->children[i]]);
    }
    bool given = hand_out(s, o, c, recv.count, recv.type), begins = true;
    for (int i = -1, at = 0; next_part(o, &i, &at);)
        if (o->node.rank > at && o->node.rank < at + t->parts[i].n)
            begins = false;
    if (given && (inclusive || !begins))
        schedule_reduce(s, c->prefix, recv, op);
    else if (given)
        schedule_copy(s, buffer_like(recv, c->prefix), recv);
    schedule_wait(s);
}

static void noncommutative_scan(struct schedule *s, struct node_groups *groups, const void *send,
                                struct buffer recv, struct op *op, bool inclusive)
{
    struct noncommutative o;
    struct scan scans[SCAN_DEPTH];
    if (!find_within(s, groups, -1, &o))
        return;
    /* What a node keeps of a piece: its parts and what it gives for them, its runs. */
    MPI_Count piece = noncommutative_piece(&o, recv, o.whole.size, true, 3 * SCAN_DEPTH),
              n_pieces = (recv.count + piece - 1) / piece;
    int depth = n_pieces < SCAN_DEPTH ? (int)n_pieces : SCAN_DEPTH;
    for (int i = 0; i < depth; i++)
        if (!open_scan(s, &o, piece, recv.type, &scans[i]))
            return;
    for (MPI_Count up = 0; up < n_pieces + depth - 1; up++) {
        MPI_Count down = up - depth + 1, at = up * piece;
        if (up < n_pieces)
            scan_up(s, &o, &scans[up % depth], datatype_at(recv.type, send, at),
                    buffer_piece(recv, at, piece), op, inclusive);
        at = down * piece;
        if (down >= 0)
            scan_down(s, &o, &scans[down % depth], buffer_piece(recv, at, piece), op, inclusive);
    }
}

void scan_nodes(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                bool inclusive)
{
    noncommutative_scan(s, hierarchy_nodes(s), send, recv, op, inclusive);
}

void scan_networks(struct schedule *s, const void *send, struct buffer recv, struct op *op,
                   bool inclusive)
{
    noncommutative_scan(s, hierarchy_networks(s), send, recv, op, inclusive);
}

/* ---- between the groups of an intercommunicator ---- */

void noncommutative_reduce_across(struct schedule *s, struct buffer send, struct op *op, int root)
{
    struct schedule_view inter = s->view;
    struct comm *local = inter.comm->local_comm;
    const struct shape *c = coll_shape_of(local);
    int job_node = coll_node_of(inter.comm, inter.comm->remote_group->procs[root]);
    struct noncommutative o = {.above = inter,
                               .whole = {.comm = local, .rank = local->rank, .size = local->size}};
    struct kept k;
    if (!tree_from(s, c, job_node, &o.tree))
        return;
    o.node = view_of_node(local, c);
    o.leaders = c->leaders;
    o.my_node = c->node_of[local->rank];
    MPI_Count piece = noncommutative_piece(&o, send, local->size, !op->commutative, 2);
    if (!find_place(s, &o, root, !op->commutative) || !runs_keep(s, &o, piece, send.type, &k))
        return;
    for (MPI_Count at = 0; at < send.count; at += piece) {
        struct buffer part = buffer_piece(send, at, piece);
        pass_up(s, &o, &k, part.base, part, op);
    }
    schedule_leave(s, inter);
}

void noncommutative_take_across(struct schedule *s, struct buffer recv, struct op *op)
{
    const struct shape *c = coll_remote_shape_of(s->view.comm);
    int job_node = coll_node_of(s->view.comm, s->view.comm->group->procs[s->view.rank]),
        n_remote = comm_remote_size(s->view.comm);
    struct noncommutative o = {.whole = s->view, .my_node = -1, .parent = -1};
    struct kept k;
    if (!tree_from(s, c, job_node, &o.tree))
        return;
    o.leaders = c->leaders;
    MPI_Count piece = noncommutative_piece(&o, recv, n_remote, !op->commutative, 2);
    o.children = tree_children(s, &o.tree, NODE_TREE_TOP, &o.n_children);
    if (!o.children || !find_runs(s, &o, n_remote, !op->commutative) ||
        !runs_keep(s, &o, piece, recv.type, &k))
        return;
    for (MPI_Count at = 0; at < recv.count; at += piece) {
        struct buffer part = buffer_piece(recv, at, piece);
        post_children(s, &o, &k, part.count, part.type);
        schedule_wait(s);
        join_all(s, &o, &k, part, op);
    }
}
