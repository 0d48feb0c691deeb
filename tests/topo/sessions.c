/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions: before, beside and after the world model; process sets; communicators from groups; the
 * buffers of sessions.
 */
#include "check.h"

#include <string.h>

static MPI_Comm comm_of(MPI_Session session, const char *set, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;
    MPI_Group_from_session_pset(session, set, &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    return comm;
}

static void check_sets(MPI_Session session)
{
    int n, found_world = 0, found_self = 0;
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n);
    CHECK(n >= 2, "%d sets", n);
    for (int i = 0; i < n; i++) {
        char name[MPI_MAX_PSET_NAME_LEN], cut[4], value[MPI_MAX_INFO_VAL];
        int length = 0, again, cut_length = sizeof cut, size, flag, value_length = sizeof value;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL);
        again = length;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &again, name);
        CHECK(again == length && (int)strlen(name) == length - 1, "%s: %d, %d", name, length,
              again);
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &cut_length, cut);
        CHECK(strlen(cut) == 3 && !strncmp(cut, name, 3), "%s", cut);
        found_world |= strcmp(name, "mpi://WORLD") == 0;
        found_self |= strcmp(name, "mpi://SELF") == 0;
        MPI_Info info;
        MPI_Group group;
        MPI_Session_get_pset_info(session, name, &info);
        MPI_Info_get_string(info, "mpi_size", &value_length, value, &flag);
        CHECK(flag, "no mpi_size of %s", name);
        MPI_Info_free(&info);
        MPI_Group_from_session_pset(session, name, &group);
        MPI_Group_size(group, &size);
        CHECK(atoi(value) == size, "%s: %s, %d", name, value, size);
        MPI_Group_free(&group);
    }
    CHECK(found_world && found_self, "%d %d", found_world, found_self);
}

static void check_traffic(MPI_Comm comm)
{
    int rank, size, sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size * (size - 1) / 2, "%d ranks: %d", size, sum);
    int token = rank, from = (rank + size - 1) % size;
    MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % size, 5, from, 5, comm,
                         MPI_STATUS_IGNORE);
    CHECK(token == from, "%d from %d", token, from);
}

/* Splitting by the names of sets gives what the sets hold. Both sets of the standard, and where
 * there are some, others. */
static void check_split(MPI_Session session, MPI_Comm world)
{
    int n;
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n);
    for (int i = 0; i < n; i++) {
        char name[MPI_MAX_PSET_NAME_LEN];
        int length = sizeof name, same;
        MPI_Info info;
        MPI_Comm part;
        MPI_Group wanted, group;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name);
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_pset_name", name);
        MPI_Comm_split_type(world, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &part);
        MPI_Info_free(&info);
        if (part == MPI_COMM_NULL)
            continue; /* allowed for any set */
        MPI_Comm_group(part, &group);
        MPI_Group_from_session_pset(session, name, &wanted);
        MPI_Group_compare(group, wanted, &same);
        CHECK(same == MPI_IDENT, "%s: %d", name, same);
        MPI_Group_free(&group);
        MPI_Group_free(&wanted);
        MPI_Comm_free(&part);
    }
}

/* Half of the processes against the other half. */
static void check_inter(MPI_Session session)
{
    MPI_Group world, low, high;
    MPI_Comm inter;
    int size, rank, n_remote;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Group_size(world, &size);
    MPI_Group_rank(world, &rank);
    if (size > 1) {
        int ranges[2][3] = {{0, size / 2 - 1, 1}, {size / 2, size - 1, 1}};
        MPI_Group_range_incl(world, 1, &ranges[0], &low);
        MPI_Group_range_incl(world, 1, &ranges[1], &high);
        int is_low = rank < size / 2;
        MPI_Intercomm_create_from_groups(is_low ? low : high, 0, is_low ? high : low, 0, "halves",
                                         MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inter);
        MPI_Comm_remote_size(inter, &n_remote);
        CHECK(n_remote == (is_low ? size - size / 2 : size / 2), "%d remote ranks", n_remote);
        MPI_Barrier(inter);
        MPI_Comm_free(&inter);
        MPI_Group_free(&low);
        MPI_Group_free(&high);
    }
    MPI_Group_free(&world);
}

static int n_errors;

static void count_errors(MPI_Session *session, int *error, ...)
{
    (void)session;
    (void)error;
    n_errors++;
}

static void check_errors(void)
{
    MPI_Errhandler handler, got;
    MPI_Session session;
    int length = 0;
    MPI_Session_create_errhandler(count_errors, &handler);
    MPI_Session_init(MPI_INFO_NULL, handler, &session);
    MPI_Session_get_errhandler(session, &got);
    CHECK(got == handler, "another handler");
    MPI_Errhandler_free(&got);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 1000000, &length, NULL);
    CHECK(n_errors == 1, "%d errors", n_errors);
    MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN);
    CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, -1, &length, NULL) != MPI_SUCCESS,
          "no error");
    CHECK(n_errors == 1, "%d errors", n_errors);
    MPI_Errhandler_free(&handler);
    MPI_Session_finalize(&session);
    CHECK(session == MPI_SESSION_NULL, "handle left");
}

static void check_buffers(MPI_Session session)
{
    enum { N = 20, BYTES = 3000 };
    MPI_Comm comm = comm_of(session, "mpi://WORLD", "buffers"), copy;
    static char memory[N * (BYTES + MPI_BSEND_OVERHEAD)];
    char message[BYTES];
    int rank, size;
    void *address = NULL;
    MPI_Request flushed;
    MPI_Comm_dup(comm, &copy); /* what comes from the session by way of another communicator uses
                                  its buffer as well */
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Session_attach_buffer(session, memory, (int)sizeof memory);
    for (int i = 0; i < N; i++) {
        memset(message, rank + i, sizeof message);
        MPI_Bsend(message, BYTES, MPI_CHAR, (rank + 1) % size, i, i % 2 ? comm : copy);
    }
    MPI_Session_iflush_buffer(session, &flushed);
    for (int i = N - 1; i >= 0; i--) {
        int from = (rank + size - 1) % size;
        MPI_Recv(message, BYTES, MPI_CHAR, from, i, i % 2 ? comm : copy, MPI_STATUS_IGNORE);
        CHECK(message[0] == (char)(from + i) && message[BYTES - 1] == (char)(from + i),
              "message %d", i);
    }
    MPI_Wait(&flushed, MPI_STATUS_IGNORE);
    MPI_Session_flush_buffer(session);
    int n;
    MPI_Session_detach_buffer(session, &address, &n);
    CHECK(address == memory && n == (int)sizeof memory, "%p, %d", address, n);
    MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0);
    MPI_Bsend(message, BYTES, MPI_CHAR, (rank + 1) % size, 0, comm);
    MPI_Comm_iflush_buffer(comm, &flushed);
    MPI_Recv(message, BYTES, MPI_CHAR, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&flushed, MPI_STATUS_IGNORE);
    MPI_Comm_detach_buffer(comm, &address, &n);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&copy);
}

static void check_session(const char *tag)
{
    MPI_Session session;
    MPI_Info info;
    char value[64];
    int length = sizeof value, flag;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_get_info(session, &info);
    MPI_Info_get_string(info, "thread_level", &length, value, &flag);
    CHECK(flag, "no thread_level");
    MPI_Info_free(&info);
    check_sets(session);
    MPI_Comm world = comm_of(session, "mpi://WORLD", tag),
             self = comm_of(session, "mpi://SELF", tag);
    check_traffic(world);
    check_traffic(self);
    check_split(session, world);
    check_inter(session);
    check_buffers(session);
    MPI_Comm_free(&self);
    MPI_Comm_free(&world);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
    int flag;
    check_session("first");
    check_errors();
    MPI_Initialized(&flag);
    CHECK(!flag, "a session is not MPI_Init");
    check_session("second");

    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Comm world = comm_of(session, "mpi://WORLD", "outlives");
    MPI_Init(&argc, &argv);
    check_traffic(MPI_COMM_WORLD);
    check_session("within");
    check_traffic(world);
    MPI_Finalize();
    MPI_Finalized(&flag);
    CHECK(flag, "not finalized");
    check_traffic(world);
    MPI_Comm_free(&world);
    MPI_Session_finalize(&session);
    check_session("last");
    return 0;
}
