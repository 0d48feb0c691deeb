/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of performance variables. */
#include "client/object/handle.h"
#include "client/progress/async.h"
#include "client/progress/progress.h"
#include "client/tools/counts.h"
#include "client/tools/pvar.h"
#include "client/transport/transport.h"

#define N_OF(array) ((int)(sizeof(array) / sizeof *(array)))

static const char *const helper_items[] = {"none", "runs", "forbidden"};
static const struct enumeration helper_enum = {"state of the helper thread", N_OF(helper_items),
                                               helper_items};
static const char *const wait_items[] = {"adaptive", "spin", "event"};
static const struct enumeration wait_enum = {"how ranks wait", N_OF(wait_items), wait_items};

/* A reader of one member of struct counts or struct counts_levels. */
#define READ_COUNT(member)                                                                         \
    static bool read_##member(const struct tools_bound *bound, union pvar_value *ret_value)        \
    {                                                                                              \
        struct counts counts;                                                                      \
        (void)bound;                                                                               \
        counts_read(&counts);                                                                      \
        ret_value->n = counts.member;                                                              \
        return true;                                                                               \
    }
#define READ_LEVEL(member)                                                                         \
    static bool read_##member(const struct tools_bound *bound, union pvar_value *ret_value)        \
    {                                                                                              \
        struct counts_levels levels;                                                               \
        (void)bound;                                                                               \
        counts_read_levels(&levels);                                                               \
        ret_value->n = levels.member;                                                              \
        return true;                                                                               \
    }

READ_COUNT(sent_msgs)
READ_COUNT(sent_bytes)
READ_COUNT(recv_msgs)
READ_COUNT(recv_bytes)
READ_COUNT(daemon_sent_msgs)
READ_COUNT(daemon_sent_bytes)
READ_COUNT(daemon_recv_msgs)
READ_COUNT(daemon_recv_bytes)
READ_COUNT(rendezvous_out)
READ_COUNT(rendezvous_in)
READ_COUNT(credit_stalls)
READ_COUNT(room_stalls)
READ_COUNT(sleeps)
READ_LEVEL(posted)
READ_LEVEL(unexpected)
READ_LEVEL(unexpected_bytes)
READ_LEVEL(pending)
READ_LEVEL(rendezvous)

static bool read_slept(const struct tools_bound *bound, union pvar_value *ret_value)
{
    struct counts counts;

    (void)bound;
    counts_read(&counts);
    ret_value->real = 1e-9 * (double)counts.slept_ns;
    return true;
}

static bool read_allowance(const struct tools_bound *bound, union pvar_value *ret_value)
{
    struct counts_levels levels;

    (void)bound;
    counts_read_levels(&levels);
    ret_value->real = levels.allowance;
    return true;
}

static bool read_high_posted(const struct tools_bound *bound, union pvar_value *ret_value)
{
    uint64_t posted, unexpected;

    (void)bound;
    counts_high(&posted, &unexpected);
    ret_value->n = posted;
    return true;
}

static bool read_high_unexpected(const struct tools_bound *bound, union pvar_value *ret_value)
{
    uint64_t posted, unexpected;

    (void)bound;
    counts_high(&posted, &unexpected);
    ret_value->n = unexpected;
    return true;
}

static bool read_comm_posted(const struct tools_bound *bound, union pvar_value *ret_value)
{
    const struct comm *comm = tools_comm(bound);
    uint64_t posted, unexpected;

    if (!comm)
        return false;
    counts_of_comm(comm, &posted, &unexpected);
    ret_value->n = posted;
    return true;
}

static bool read_comm_unexpected(const struct tools_bound *bound, union pvar_value *ret_value)
{
    const struct comm *comm = tools_comm(bound);
    uint64_t posted, unexpected;

    if (!comm)
        return false;
    counts_of_comm(comm, &posted, &unexpected);
    ret_value->n = unexpected;
    return true;
}

static bool read_win_operations(const struct tools_bound *bound, union pvar_value *ret_value)
{
    const struct win *win = tools_win(bound);

    if (!win)
        return false;
    ret_value->n = counts_of_win(win);
    return true;
}

static bool read_windows(const struct tools_bound *bound, union pvar_value *ret_value)
{
    (void)bound;
    ret_value->n = counts_windows();
    return true;
}

static bool read_handles(const struct tools_bound *bound, union pvar_value *ret_value)
{
    (void)bound;
    ret_value->n = handle_count();
    return true;
}

static bool read_segment(const struct tools_bound *bound, union pvar_value *ret_value)
{
    (void)bound;
    ret_value->n = transport_here->base ? transport_here->layout.total : 0;
    return true;
}

static bool read_helper(const struct tools_bound *bound, union pvar_value *ret_value)
{
    (void)bound;
    ret_value->item = (int)async_here->state;
    return true;
}

static bool read_wait_mode(const struct tools_bound *bound, union pvar_value *ret_value)
{
    struct segment_header *header = transport_here->base;

    (void)bound;
    ret_value->item = 0;
    if (header)
        ret_value->item =
            (int)(atomic_load_explicit(&header->wait_mode, memory_order_relaxed) % WAIT_N_MODES);
    return true;
}

#define BASIC  MPI_T_VERBOSITY_USER_BASIC
#define DETAIL MPI_T_VERBOSITY_USER_DETAIL
#define TUNER  MPI_T_VERBOSITY_TUNER_DETAIL
#define FREE   MPI_T_BIND_NO_OBJECT
#define NUMBER MPI_UNSIGNED_LONG_LONG

const struct pvar pvar_table[] = {
    {"motet_sent_messages", "messages sent to other ranks", CATEGORY_MESSAGES, BASIC,
     MPI_T_PVAR_CLASS_COUNTER, FREE, NUMBER, NULL, read_sent_msgs},
    {"motet_sent_bytes", "bytes of messages sent to other ranks", CATEGORY_MESSAGES, BASIC,
     MPI_T_PVAR_CLASS_AGGREGATE, FREE, NUMBER, NULL, read_sent_bytes},
    {"motet_received_messages", "messages and packets of large messages that came from other ranks",
     CATEGORY_MESSAGES, BASIC, MPI_T_PVAR_CLASS_COUNTER, FREE, NUMBER, NULL, read_recv_msgs},
    {"motet_received_bytes", "bytes that came through rings", CATEGORY_MESSAGES, BASIC,
     MPI_T_PVAR_CLASS_AGGREGATE, FREE, NUMBER, NULL, read_recv_bytes},
    {"motet_daemon_sent_messages", "messages sent through the daemon, to other nodes",
     CATEGORY_MESSAGES, BASIC, MPI_T_PVAR_CLASS_COUNTER, FREE, NUMBER, NULL, read_daemon_sent_msgs},
    {"motet_daemon_sent_bytes", "bytes sent through the daemon, announcements included",
     CATEGORY_MESSAGES, BASIC, MPI_T_PVAR_CLASS_AGGREGATE, FREE, NUMBER, NULL,
     read_daemon_sent_bytes},
    {"motet_daemon_received_messages", "messages that came through the daemon, from other nodes",
     CATEGORY_MESSAGES, BASIC, MPI_T_PVAR_CLASS_COUNTER, FREE, NUMBER, NULL, read_daemon_recv_msgs},
    {"motet_daemon_received_bytes", "bytes that came through the daemon, announcements included",
     CATEGORY_MESSAGES, BASIC, MPI_T_PVAR_CLASS_AGGREGATE, FREE, NUMBER, NULL,
     read_daemon_recv_bytes},
    {"motet_large_sent", "large messages announced to other ranks", CATEGORY_MESSAGES, DETAIL,
     MPI_T_PVAR_CLASS_COUNTER, FREE, NUMBER, NULL, read_rendezvous_out},
    {"motet_large_received", "large messages of other ranks that met their receive",
     CATEGORY_MESSAGES, DETAIL, MPI_T_PVAR_CLASS_COUNTER, FREE, NUMBER, NULL, read_rendezvous_in},
    {"motet_large_under_way", "large messages under way, sent and received", CATEGORY_MESSAGES,
     DETAIL, MPI_T_PVAR_CLASS_LEVEL, FREE, NUMBER, NULL, read_rendezvous},
    {"motet_credit_stalls", "short messages that were announced since the allowance was used up",
     CATEGORY_MESSAGES, TUNER, MPI_T_PVAR_CLASS_COUNTER, FREE, NUMBER, NULL, read_credit_stalls},
    {"motet_room_stalls", "sends that found no room in a ring, or no way", CATEGORY_MESSAGES, TUNER,
     MPI_T_PVAR_CLASS_COUNTER, FREE, NUMBER, NULL, read_room_stalls},
    {"motet_allowance_used", "of what one peer may be sent unasked, the largest part in use",
     CATEGORY_MESSAGES, TUNER, MPI_T_PVAR_CLASS_PERCENTAGE, FREE, MPI_DOUBLE, NULL, read_allowance},
    {"motet_pending_sends", "sends that wait for room in a ring, or for a way", CATEGORY_MESSAGES,
     DETAIL, MPI_T_PVAR_CLASS_LEVEL, FREE, NUMBER, NULL, read_pending},
    {"motet_posted_receives", "receives that wait for a message", CATEGORY_MESSAGES, BASIC,
     MPI_T_PVAR_CLASS_LEVEL, FREE, NUMBER, NULL, read_posted},
    {"motet_posted_receives_most", "the most receives that waited at one time", CATEGORY_MESSAGES,
     BASIC, MPI_T_PVAR_CLASS_HIGHWATERMARK, FREE, NUMBER, NULL, read_high_posted},
    {"motet_unexpected_messages", "messages that no receive has taken", CATEGORY_MESSAGES, BASIC,
     MPI_T_PVAR_CLASS_LEVEL, FREE, NUMBER, NULL, read_unexpected},
    {"motet_unexpected_messages_most", "the most messages that no receive had taken",
     CATEGORY_MESSAGES, BASIC, MPI_T_PVAR_CLASS_HIGHWATERMARK, FREE, NUMBER, NULL,
     read_high_unexpected},
    {"motet_unexpected_bytes", "bytes of messages that no receive has taken", CATEGORY_MESSAGES,
     DETAIL, MPI_T_PVAR_CLASS_LEVEL, FREE, NUMBER, NULL, read_unexpected_bytes},
    {"motet_comm_posted_receives", "receives on a communicator that wait for a message",
     CATEGORY_MESSAGES, DETAIL, MPI_T_PVAR_CLASS_LEVEL, MPI_T_BIND_MPI_COMM, NUMBER, NULL,
     read_comm_posted},
    {"motet_comm_unexpected_messages", "messages on a communicator that no receive has taken",
     CATEGORY_MESSAGES, DETAIL, MPI_T_PVAR_CLASS_LEVEL, MPI_T_BIND_MPI_COMM, NUMBER, NULL,
     read_comm_unexpected},
    {"motet_segment_bytes", "address space of the job's shared memory on this node",
     CATEGORY_MESSAGES, TUNER, MPI_T_PVAR_CLASS_SIZE, FREE, NUMBER, NULL, read_segment},
    {"motet_sleeps", "how often a wait has slept", CATEGORY_WAITING, DETAIL,
     MPI_T_PVAR_CLASS_COUNTER, FREE, NUMBER, NULL, read_sleeps},
    {"motet_sleep_time", "seconds that waits have slept", CATEGORY_WAITING, BASIC,
     MPI_T_PVAR_CLASS_TIMER, FREE, MPI_DOUBLE, NULL, read_slept},
    {"motet_wait_mode", "how the ranks of the job wait", CATEGORY_WAITING, DETAIL,
     MPI_T_PVAR_CLASS_STATE, FREE, MPI_INT, &wait_enum, read_wait_mode},
    {"motet_helper_thread", "whether a helper thread advances transfers", CATEGORY_WAITING, DETAIL,
     MPI_T_PVAR_CLASS_STATE, FREE, MPI_INT, &helper_enum, read_helper},
    {"motet_handles", "handles of MPI objects in use", CATEGORY_CHECKING, BASIC,
     MPI_T_PVAR_CLASS_LEVEL, FREE, NUMBER, NULL, read_handles},
    {"motet_windows", "windows, their library's own included", CATEGORY_WINDOWS, BASIC,
     MPI_T_PVAR_CLASS_LEVEL, FREE, NUMBER, NULL, read_windows},
    {"motet_win_operations", "operations of a window that are queued or under way as messages",
     CATEGORY_WINDOWS, DETAIL, MPI_T_PVAR_CLASS_LEVEL, MPI_T_BIND_MPI_WIN, NUMBER, NULL,
     read_win_operations},
};
const int pvar_n = N_OF(pvar_table);
