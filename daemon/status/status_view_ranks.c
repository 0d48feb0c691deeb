/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks, what they do and their queues, read from the job segments while the ranks run, hang or are
 * stopped. Nothing in a segment is believed: every value is copied, checked and used from the copy;
 * a record that changes while it is read is left out.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/channel/channel.h"
#include "daemon/cluster/channels.h"
#include "daemon/jobs/job.h"
#include "daemon/port/count.h"
#include "daemon/routing/forwarding.h"
#include "daemon/routing/topology.h"
#include "daemon/status/status_calls.h"
#include "daemon/status/status_node.h"
#include "daemon/status/status_view.h"
#include "proto/method.h"
#include "proto/queue.h"

static const char *const queue_names[QUEUE_N_STATES] = {[QUEUE_POSTED] = "posted",
                                                        [QUEUE_UNEXPECTED] = "unexpected",
                                                        [QUEUE_PENDING] = "pending",
                                                        [QUEUE_RENDEZVOUS_OUT] = "rendezvous_out",
                                                        [QUEUE_RENDEZVOUS_IN] = "rendezvous_in"};

static const char *const rank_states[] = {[JOB_RANK_PLANNED] = "planned",
                                          [JOB_RANK_STARTING] = "starting",
                                          [JOB_RANK_RUNNING] = "running",
                                          [JOB_RANK_EXITED] = "exited"};

/* The letter of /proc/PID/stat as a word, and the processor time of all its threads. */
static const char *process_state(pid_t pid, json_int_t *ret_cpu_ms)
{
    char path[64], text[512];

    *ret_cpu_ms = 0;
    if (pid <= 0)
        return "none";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return "none";
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    /* The name in parentheses may hold anything, blanks and parentheses included. */
    const char *end = strrchr(text, ')');
    unsigned long long user, system;
    if (end && sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
                      &system) == 2)
        *ret_cpu_ms =
            (json_int_t)((user + system) * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK));
    switch (end && end[1] ? end[2] : '?') {
    case 'R':
        return "running";
    case 'S':
    case 'I':
        return "sleeping";
    case 'D':
        return "disk";
    case 'T':
    case 't':
        return "stopped";
    case 'Z':
    case 'X':
        return "dead";
    default:
        return "unknown";
    }
}

static bool job_visible(const struct job *job, const struct status_request *q)
{
    if (job->state == JOB_CLOSING || (q->has_job && job->id != q->job))
        return false;
    return job->uid == q->uid || status_privileged(q->uid);
}

static json_t *job_id(const struct job *job)
{
    char text[32];

    snprintf(text, sizeof text, "%016llx", (unsigned long long)job->id);
    return json_string(text);
}

static json_int_t rank_counter(const _Atomic uint64_t *c)
{
    return (json_int_t)atomic_load_explicit(c, memory_order_relaxed);
}

static json_int_t age_ms(uint64_t since_ns, uint64_t now_ns)
{
    return since_ns == 0 || since_ns > now_ns ? 0
                                              : (json_int_t)((now_ns - since_ns) / CLOCK_NS_PER_MS);
}

static json_t *rank_row(const struct job *job, uint32_t local, uint64_t now_ns)
{
    const struct job_rank *r = &job->ranks[local];
    const struct segment_rank *s = segment_rank_at(job->segment, &job->layout, local);
    pid_t pid = r->attached_pid ? r->attached_pid : r->pid;
    const char *mpi = r->detached          ? "finalized"
                      : r->disconnected_ns ? "gone"
                      : r->entered         ? "attached"
                                           : "none";
    char function[CALLS_FUNCTION];
    uint64_t since_ns = 0;
    json_int_t cpu_ms = 0;
    const char *process = r->state == JOB_RANK_EXITED ? "none" : process_state(pid, &cpu_ms);
    bool in_call = status_calls_longest(job, local, function, &since_ns);
    bool waiting = in_call || atomic_load_explicit(&s->waiting, memory_order_relaxed) != 0;

    if (!in_call)
        since_ns = atomic_load_explicit(&s->waiting_since_ns, memory_order_relaxed);
    return json_pack(
        "{s:o, s:i, s:s, s:i, s:i, s:s, s:s, s:s, s:b, s:I, s:s?, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I, s:I, s:I}",
        "job", job_id(job), "rank", (int)r->world, "node", job->node_name, "local", (int)local,
        "pid", (int)pid, "state", rank_states[r->state], "process", process, "mpi", mpi, "waiting",
        waiting, "waiting_ms", waiting ? age_ms(since_ns, now_ns) : (json_int_t)0, "call",
        in_call ? function : NULL, "cpu_ms", cpu_ms, "sent_messages", rank_counter(&s->sent_msgs),
        "sent_bytes", rank_counter(&s->sent_bytes), "received_messages",
        rank_counter(&s->recv_msgs), "received_bytes", rank_counter(&s->recv_bytes),
        "rendezvous_out", rank_counter(&s->rendezvous_out), "rendezvous_in",
        rank_counter(&s->rendezvous_in), "polls", rank_counter(&s->polls), "sleeps",
        rank_counter(&s->sleeps));
}

void status_view_ranks(struct status_node *node, const struct status_request *q, json_t *rows)
{
    uint64_t now_ns = clock_now_ns();

    for (struct job *job = jobs_first(node->jobs); job; job = job->hh.next) {
        if (!job_visible(job, q))
            continue;
        for (uint32_t i = 0; i < job->n_local && json_array_size(rows) < q->limit; i++)
            if (q->rank < 0 || job->ranks[i].world == q->rank)
                json_array_append_new(rows, rank_row(job, i, now_ns));
    }
}

static void copies_of_pair(const struct job *job, uint32_t vci, uint32_t from, uint32_t to,
                           size_t limit, json_t *rows)
{
    static const char *const methods[METHOD_N] = {"rings", "read", "both"};
    static const char *const states[METHOD_N_STATES] = {[METHOD_TRYING] = "trying",
                                                        [METHOD_MEASURED] = "measured",
                                                        [METHOD_FIXED] = "fixed",
                                                        [METHOD_REFUSED] = "refused"};
    const struct method_board *board =
        segment_method_board(job->segment, &job->layout, vci, from, to);

    for (uint32_t i = 0; i < METHOD_KINDS * METHOD_CLASSES && json_array_size(rows) < limit; i++) {
        uint32_t kind = i / METHOD_CLASSES, class = i % METHOD_CLASSES, rates[METHOD_N];
        const struct method_entry *e = &board->entries[kind][class];
        uint8_t method = atomic_load_explicit(&e->method, memory_order_relaxed);
        uint8_t state = atomic_load_explicit(&e->state, memory_order_relaxed);
        if (method >= METHOD_N || state >= METHOD_N_STATES || !states[state])
            continue;
        for (int m = 0; m < METHOD_N; m++)
            rates[m] = atomic_load_explicit(&e->mb_per_s[m], memory_order_relaxed);
        json_array_append_new(
            rows, json_pack("{s:o, s:s, s:i, s:i, s:i, s:I, s:b, s:s, s:s, s:I, s:I, s:I}", "job",
                            job_id(job), "node", job->node_name, "rank", (int)job->ranks[to].world,
                            "from", (int)job->ranks[from].world, "vci", (int)vci, "from_bytes",
                            (json_int_t)method_class_bytes(class), "alone", kind == METHOD_ALONE,
                            "method", methods[method], "state", states[state], "rings_mb_per_s",
                            (json_int_t)rates[METHOD_RINGS], "read_mb_per_s",
                            (json_int_t)rates[METHOD_READ], "both_mb_per_s",
                            (json_int_t)rates[METHOD_BOTH]));
    }
}

void status_view_copies(struct status_node *node, const struct status_request *q, json_t *rows)
{
    for (struct job *job = jobs_first(node->jobs); job; job = job->hh.next) {
        uint32_t n = job->n_local;
        for (uint32_t to = 0; job_visible(job, q) && to < n; to++) {
            const struct segment_rank *s = segment_rank_at(job->segment, &job->layout, to);
            /* Looking makes pages of the boards: only where there can be something. */
            if ((q->rank >= 0 && job->ranks[to].world != q->rank) ||
                rank_counter(&s->rendezvous_in) == 0)
                continue;
            for (uint32_t i = 0; i < job->layout.shape.n_vcis * n; i++)
                copies_of_pair(job, i / n, i % n, to, q->limit, rows);
        }
    }
}

/* A consistent copy of a record. False: free, or changing. */
static bool board_read_record(const struct queue_record *shared, struct queue_record *copy)
{
    /* acquire: pairs with the release of the rank's last store; the fields belong to this state. */
    uint32_t before = atomic_load_explicit(&shared->state, memory_order_acquire);

    if (before == QUEUE_FREE || before >= QUEUE_N_STATES)
        return false;
    copy->context = __atomic_load_n(&shared->context, __ATOMIC_ACQUIRE);
    copy->peer = __atomic_load_n(&shared->peer, __ATOMIC_ACQUIRE);
    copy->tag = __atomic_load_n(&shared->tag, __ATOMIC_ACQUIRE);
    copy->bytes = __atomic_load_n(&shared->bytes, __ATOMIC_ACQUIRE);
    copy->done_bytes = __atomic_load_n(&shared->done_bytes, __ATOMIC_ACQUIRE);
    copy->since_ns = __atomic_load_n(&shared->since_ns, __ATOMIC_ACQUIRE);
    copy->peer_world = __atomic_load_n(&shared->peer_world, __ATOMIC_ACQUIRE);
    /* The acquire loads above keep this one after them. A record that was freed and taken again in
     * between in the same state is still a record of this rank; the copy may then mix two of them,
     * which only a display sees. */
    uint32_t after = atomic_load_explicit(&shared->state, memory_order_relaxed);
    atomic_store_explicit(&copy->state, before, memory_order_relaxed);
    return before == after;
}

static json_t *record_row(const struct job *job, uint32_t local, const struct queue_record *r,
                          uint64_t now_ns)
{
    const char *queue = queue_names[atomic_load_explicit(&r->state, memory_order_relaxed)];
    json_t *peer = r->peer == QUEUE_ANY_SOURCE ? json_string("any") : json_integer(r->peer);
    json_t *tag = r->tag == QUEUE_ANY_TAG ? json_string("any") : json_integer(r->tag);
    json_t *world = r->peer_world >= 0 && (uint32_t)r->peer_world < job->layout.shape.n_world
                        ? json_integer(r->peer_world)
                        : json_null();

    json_t *row = json_pack(
        "{s:o, s:i, s:s, s:s, s:I, s:b, s:o, s:o, s:o, s:I, s:I, s:I}", "job", job_id(job), "rank",
        (int)job->ranks[local].world, "node", job->node_name, "queue", queue, "communicator",
        (json_int_t)(r->context & ~3u), "collective", (int)(r->context & 1), "peer", peer,
        "peer_world", world, "tag", tag, "bytes", (json_int_t)(r->bytes & INT64_MAX), "done_bytes",
        (json_int_t)(r->done_bytes & INT64_MAX), "age_ms", age_ms(r->since_ns, now_ns));
    status_calls_name(row, job, local, r->context & ~3u);
    return row;
}

static void add_boards(struct status_node *node, const struct status_request *q, json_t *rows)
{
    uint64_t now_ns = clock_now_ns();

    for (struct job *job = jobs_first(node->jobs); job; job = job->hh.next) {
        if (!job_visible(job, q))
            continue;
        for (uint32_t i = 0; i < job->n_local; i++) {
            if (q->rank >= 0 && job->ranks[i].world != q->rank)
                continue;
            status_calls_rows(job, i, now_ns, q->limit, rows);
            const struct segment_rank *s = segment_rank_at(job->segment, &job->layout, i);
            const struct queue_record *board = segment_board_at(job->segment, &job->layout, i);
            uint32_t high = atomic_load_explicit(&s->board_high, memory_order_acquire);
            if (high > job->layout.shape.board_records)
                high = job->layout.shape.board_records;
            for (uint32_t n = 0; n < high && json_array_size(rows) < q->limit; n++) {
                struct queue_record copy;
                if (board_read_record(&board[n], &copy))
                    json_array_append_new(rows, record_row(job, i, &copy, now_ns));
            }
        }
    }
}

void status_view_communicators(struct status_node *node, const struct status_request *q,
                               json_t *rows)
{
    for (struct job *job = jobs_first(node->jobs); job; job = job->hh.next) {
        for (uint32_t i = 0; job_visible(job, q) && i < job->n_local; i++)
            if (q->rank < 0 || job->ranks[i].world == q->rank)
                status_calls_communicators(job, i, q->limit, rows);
    }
}

/* Does a job that the user may see have ranks on the node of this slot? */
static bool slot_visible(const struct status_node *node, const struct status_request *q,
                         uint32_t slot)
{
    for (const struct job *job = jobs_first(node->jobs); job; job = job->hh.next)
        for (uint32_t n = 0; job_visible(job, q) && n < job->layout.shape.n_nodes; n++)
            if (job->nodes[n].slot == slot)
                return true;
    return false;
}

/* Packets on their way: the flows from this node and, for those who may see everything, what waits
 * for its neighbours. They belong to the nodes, not to a job: who has a job on both sees how many
 * there are, since they tell a slow network from a rank that hangs. */
static void add_packets(struct status_node *node, const struct status_request *q, json_t *rows)
{
    bool all = !q->has_job && status_privileged(q->uid);
    struct count_flow f;
    struct count_link l;

    for (uint32_t ch = 0; ch < channels_count(node->channels); ch++) {
        const struct channel *channel = channels_at(node->channels, ch);
        for (uint32_t slot = 1; slot < forwarding_n_slots(node->forwarding); slot++) {
            const struct topology_node *t =
                topology_find(node->topology, forwarding_node_id(node->forwarding, slot));
            const char *to = t ? t->state->node : "?";
            if (!all && !slot_visible(node, q, slot))
                continue;
            for (int cls = 0; cls < WIRE_CLASSES; cls++) {
                if (!channel_flow(channel, slot, (enum wire_class)cls, &f) ||
                    (f.in_flight == 0 && f.queued == 0))
                    continue;
                json_array_append_new(
                    rows,
                    json_pack("{s:s, s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I}", "queue", "flow",
                              "node", node->config->name, "to", to, "channel", (json_int_t)ch,
                              "class", cls == WIRE_QUICK ? "quick" : "bulk", "window",
                              (json_int_t)f.window, "in_flight", (json_int_t)f.in_flight, "queued",
                              (json_int_t)f.queued, "rtt_us", (json_int_t)f.srtt_us, "resent",
                              (json_int_t)f.resent));
            }
            if (all && channel_link(channel, slot, &l) && (l.queued > 0 || l.in_driver > 0))
                json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "queue",
                                                      "forwarding", "node", node->config->name,
                                                      "to", to, "channel", (json_int_t)ch, "queued",
                                                      (json_int_t)l.queued, "in_driver",
                                                      (json_int_t)l.in_driver));
        }
    }
}

void status_view_queues(struct status_node *node, const struct status_request *q, json_t *rows)
{
    add_boards(node, q, rows);
    if (q->rank < 0 && node->channels)
        add_packets(node, q, rows);
}
