/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/status/status_calls.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/jobs/job.h"
#include "daemon/status/status_node.h"

static const char *const form_names[CALLS_FORMS] = {[CALLS_BLOCKING] = "blocking",
                                                    [CALLS_NONBLOCKING] = "nonblocking",
                                                    [CALLS_PERSISTENT] = "persistent"};

static const struct calls_board *calls_board(const struct job *job, uint32_t local)
{
    return segment_calls_at(job->segment, &job->layout, local);
}

/* Text that a rank wrote: ended, and of plain characters. */
static void calls_clean(char *text, size_t room)
{
    text[room - 1] = '\0';
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
}

typedef uint64_t __attribute__((may_alias)) calls_word;
static_assert(sizeof(struct calls_record) % sizeof(calls_word) == 0 &&
                  sizeof(struct calls_comm) % sizeof(calls_word) == 0,
              "copied word by word");

/* Copies what a rank may write meanwhile, with acquire loads: what is loaded after the copy, the
 * second look at the entry's state, was not loaded before it. */
static void calls_copy(void *to, const void *shared, size_t n_bytes)
{
    const calls_word *from = shared;

    for (size_t i = 0; i < n_bytes / sizeof *from; i++) {
        calls_word word = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
        memcpy((char *)to + i * sizeof word, &word, sizeof word);
    }
}

/* Consistent copies. False: free, or changing; a mixture of two entries of one state is possible,
 * which only a display sees. */
static bool calls_read_record(const struct calls_record *shared, struct calls_record *copy)
{
    /* acquire: pairs with the release of the rank's last store. */
    uint32_t before = atomic_load_explicit(&shared->state, memory_order_acquire);

    if (before == CALLS_FREE || before >= CALLS_N_STATES)
        return false;
    calls_copy(copy, shared, sizeof *copy);
    if (atomic_load_explicit(&shared->state, memory_order_relaxed) != before)
        return false;
    atomic_store_explicit(&copy->state, before, memory_order_relaxed);
    calls_clean(copy->function, sizeof copy->function);
    if (copy->form >= CALLS_FORMS || copy->context == CALLS_NO_CONTEXT)
        copy->sequence = 0;
    return true;
}

static bool calls_read_comm(const struct calls_comm *shared, struct calls_comm *copy)
{
    /* acquire: pairs with the release of the rank's last store. */
    if (atomic_load_explicit(&shared->state, memory_order_acquire) != 1)
        return false;
    calls_copy(copy, shared, sizeof *copy);
    if (atomic_load_explicit(&shared->state, memory_order_relaxed) != 1)
        return false;
    calls_clean(copy->name, sizeof copy->name);
    for (int form = 0; form < CALLS_FORMS; form++)
        calls_clean(copy->last[form], sizeof copy->last[form]);
    return true;
}

static json_int_t age_ms(uint64_t since_ns, uint64_t now_ns)
{
    return since_ns == 0 || since_ns > now_ns ? 0
                                              : (json_int_t)((now_ns - since_ns) / CLOCK_NS_PER_MS);
}

static json_t *calls_row(const struct job *job, uint32_t local)
{
    char id[32];

    snprintf(id, sizeof id, "%016llx", (unsigned long long)job->id);
    return json_pack("{s:s, s:i, s:s}", "job", id, "rank", (int)job->ranks[local].world, "node",
                     job->node_name);
}

static bool calls_find_comm(const struct job *job, uint32_t local, uint32_t context,
                            struct calls_comm *ret_comm)
{
    const struct calls_board *board = calls_board(job, local);

    for (uint32_t i = 0; i < CALLS_COMMS; i++)
        if (__atomic_load_n(&board->comms[i].context, __ATOMIC_RELAXED) == context &&
            calls_read_comm(&board->comms[i], ret_comm) && ret_comm->context == context)
            return true;
    return false;
}

void status_calls_name(json_t *row, const struct job *job, uint32_t local, uint32_t context)
{
    struct calls_comm comm;
    bool found = context != CALLS_NO_CONTEXT && calls_find_comm(job, local, context, &comm);

    json_object_set_new(row, "communicator_name",
                        found && comm.name[0] ? json_string(comm.name) : json_null());
    json_object_set_new(row, "members",
                        found ? json_integer((json_int_t)comm.size + comm.remote_size)
                              : json_null());
}

void status_calls_rows(const struct job *job, uint32_t local, uint64_t now_ns, uint32_t limit,
                       json_t *rows)
{
    const struct calls_board *board = calls_board(job, local);
    struct calls_record r;

    for (uint32_t i = 0; i < CALLS_RECORDS && json_array_size(rows) < limit; i++) {
        if (!calls_read_record(&board->records[i], &r))
            continue;
        bool collective = r.sequence > 0;
        bool waits = atomic_load_explicit(&r.state, memory_order_relaxed) == CALLS_WAITS;
        json_t *row = calls_row(job, local);
        json_object_set_new(row, "queue", json_string(waits ? "call" : "running"));
        json_object_set_new(row, "call", json_string(r.function));
        json_object_set_new(row, "collective", json_boolean(collective));
        json_object_set_new(row, "communicator",
                            collective ? json_integer(r.context) : json_null());
        status_calls_name(row, job, local, collective ? r.context : CALLS_NO_CONTEXT);
        json_object_set_new(row, "form",
                            collective ? json_string(form_names[r.form]) : json_null());
        json_object_set_new(row, "sequence", collective ? json_integer(r.sequence) : json_null());
        json_object_set_new(row, "thread", json_integer(r.thread));
        json_object_set_new(row, "age_ms", json_integer(age_ms(r.since_ns, now_ns)));
        json_array_append_new(rows, row);
    }
}

void status_calls_communicators(const struct job *job, uint32_t local, uint32_t limit, json_t *rows)
{
    const struct calls_board *board = calls_board(job, local);
    struct calls_comm c;

    for (uint32_t i = 0; i < CALLS_COMMS && json_array_size(rows) < limit; i++) {
        if (!calls_read_comm(&board->comms[i], &c))
            continue;
        json_t *row = calls_row(job, local), *entered = json_object();
        json_object_set_new(row, "communicator", json_integer(c.context));
        json_object_set_new(row, "communicator_name",
                            c.name[0] ? json_string(c.name) : json_null());
        json_object_set_new(row, "leader_world", json_integer(c.leader));
        json_object_set_new(row, "rank_in_it", json_integer(c.rank));
        json_object_set_new(row, "members", json_integer((json_int_t)c.size + c.remote_size));
        json_object_set_new(row, "between_groups", json_boolean(c.remote_size > 0));
        for (int form = 0; form < CALLS_FORMS; form++) {
            json_t *count =
                json_integer(atomic_load_explicit(&c.entered[form], memory_order_relaxed));
            json_object_set_new(entered, form_names[form],
                                json_pack("{s:o, s:s}", "count", count, "last", c.last[form]));
        }
        json_object_set_new(row, "entered", entered);
        json_array_append_new(rows, row);
    }
}

bool status_calls_longest(const struct job *job, uint32_t local, char ret_function[CALLS_FUNCTION],
                          uint64_t *ret_since_ns)
{
    const struct calls_board *board = calls_board(job, local);
    struct calls_record r;
    bool found = false;

    for (uint32_t i = 0; i < CALLS_RECORDS; i++) {
        if (!calls_read_record(&board->records[i], &r) ||
            atomic_load_explicit(&r.state, memory_order_relaxed) != CALLS_WAITS ||
            (found && r.since_ns >= *ret_since_ns))
            continue;
        found = true;
        *ret_since_ns = r.since_ns;
        memcpy(ret_function, r.function, CALLS_FUNCTION);
    }
    return found;
}
