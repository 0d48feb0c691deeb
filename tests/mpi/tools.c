/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tool information interface (MPI-5.0 section 15.3): what holds of any library, by mpi.h alone;
 * and, where the variables and events of Motet are found by their names, what they tell. Any number
 * of ranks; from 2 on, rank 0 sends what rank 1 does not expect.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) check((condition), #condition, __LINE__)

static void check(int holds, const char *what, int line)
{
    if (holds)
        return;
    fprintf(stderr, "tools.c:%d: %s\n", line, what);
    exit(1);
}

static int rank, size;
/* Also what MPICH 5.0.2 dies of: an index beyond the last, and MPI_T_PVAR_ALL_HANDLES, whose value
 * in the standard ABI it takes for a handle. */
static int wrong;

/* ---- texts ---- */

static void test_text(int i)
{
    char name[256], part[256];
    int whole = 0, length = sizeof name, some = 4;
    memset(part, 'x', sizeof part);
    CHECK(MPI_T_cvar_get_info(i, NULL, &whole, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
          MPI_SUCCESS);
    CHECK(MPI_T_cvar_get_info(i, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
          MPI_SUCCESS);
    CHECK(length == whole && (int)strlen(name) == length - 1);
    CHECK(MPI_T_cvar_get_info(i, part, &some, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
          MPI_SUCCESS);
    CHECK(strlen(part) == 3 && strncmp(part, name, 3) == 0 && part[4] == 'x');
    CHECK(MPI_T_cvar_get_info(i, part, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
          MPI_SUCCESS);
    CHECK(strlen(part) == 3);
}

/* ---- control variables ---- */

static void test_enum(MPI_T_enum items)
{
    int n = 0, value, length;
    char name[256];
    CHECK(MPI_T_enum_get_info(items, &n, NULL, NULL) == MPI_SUCCESS && n > 0);
    for (int i = 0; i < n; i++) {
        length = sizeof name;
        CHECK(MPI_T_enum_get_item(items, i, &value, name, &length) == MPI_SUCCESS && length > 1);
    }
    CHECK(MPI_T_enum_get_item(items, n, &value, name, &length) != MPI_SUCCESS);
}

static void test_cvars(void)
{
    int n = -1, index, count, bind, scope;
    MPI_T_cvar_handle handle;
    CHECK(MPI_T_cvar_get_num(&n) == MPI_SUCCESS && n >= 0);
    for (int i = 0; i < n; i++) {
        char name[256], text[65536];
        int length = sizeof name;
        MPI_Datatype type;
        MPI_T_enum items;
        CHECK(MPI_T_cvar_get_info(i, name, &length, NULL, &type, &items, NULL, NULL, &bind,
                                  &scope) == MPI_SUCCESS);
        CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS && index == i);
        if (i < 20)
            test_text(i);
        if (type == MPI_INT && items != MPI_T_ENUM_NULL)
            test_enum(items);
        if (bind != MPI_T_BIND_NO_OBJECT || i >= 40)
            continue;
        CHECK(MPI_T_cvar_handle_alloc(i, NULL, &handle, &count) == MPI_SUCCESS && count > 0);
        if (type == MPI_INT || (type == MPI_CHAR && count < (int)sizeof text))
            CHECK(MPI_T_cvar_read(handle, text) == MPI_SUCCESS);
        if (scope == MPI_T_SCOPE_CONSTANT)
            CHECK(MPI_T_cvar_write(handle, text) != MPI_SUCCESS);
        CHECK(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS && handle == MPI_T_CVAR_HANDLE_NULL);
    }
    if (wrong)
        CHECK(MPI_T_cvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
              MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_cvar_get_index("no such variable", &index) == MPI_T_ERR_INVALID_NAME);
}

/* A handle of a control variable of Motet, or 0 where there is none of this name. */
static int find_cvar(const char *name, MPI_T_cvar_handle *handle)
{
    int index, count;
    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS)
        return 0;
    CHECK(MPI_T_cvar_handle_alloc(index, NULL, handle, &count) == MPI_SUCCESS);
    return 1;
}

/* Before MPI_Init: what MPI_Init reads. */
static void test_early_writes(void)
{
    MPI_T_cvar_handle handle;
    int value = 4242, read = 0;
    if (!find_cvar("MOTET_APPNUM", &handle))
        return;
    CHECK(MPI_T_cvar_write(handle, &value) == MPI_SUCCESS);
    CHECK(MPI_T_cvar_read(handle, &read) == MPI_SUCCESS && read == value);
    value = -2;
    CHECK(MPI_T_cvar_write(handle, &value) == MPI_T_ERR_INVALID);
    MPI_T_cvar_handle_free(&handle);
    CHECK(find_cvar("MOTET_DEBUG", &handle));
    CHECK(MPI_T_cvar_write(handle, "handles") == MPI_T_ERR_CVAR_SET_NEVER);
    MPI_T_cvar_handle_free(&handle);
    CHECK(MPI_T_cvar_read(handle, &read) == MPI_T_ERR_INVALID_HANDLE);
}

static void test_late_writes(void)
{
    MPI_T_cvar_handle handle;
    int value = 7, *appnum, flag, before, sum = 0, one = 1;
    if (!find_cvar("MOTET_APPNUM", &handle))
        return;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag);
    CHECK(flag && *appnum == 4242);
    CHECK(MPI_T_cvar_write(handle, &value) == MPI_T_ERR_CVAR_SET_NOT_NOW);
    MPI_T_cvar_handle_free(&handle);
    /* Checks of arguments, on and off. */
    CHECK(find_cvar("MOTET_CHECK", &handle));
    CHECK(MPI_T_cvar_read(handle, &before) == MPI_SUCCESS && before == 1);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Send(NULL, 0, MPI_BYTE, 0, -5, MPI_COMM_SELF) == MPI_ERR_TAG);
    value = 0;
    CHECK(MPI_T_cvar_write(handle, &value) == MPI_SUCCESS);
    CHECK(MPI_Send(NULL, 0, MPI_BYTE, MPI_PROC_NULL, -5, MPI_COMM_SELF) == MPI_SUCCESS);
    value = 3;
    CHECK(MPI_T_cvar_write(handle, &value) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_cvar_write(handle, &before) == MPI_SUCCESS);
    CHECK(MPI_Send(NULL, 0, MPI_BYTE, MPI_PROC_NULL, -5, MPI_COMM_SELF) == MPI_ERR_TAG);
    MPI_T_cvar_handle_free(&handle);
    /* The algorithm of a collective, one after the other, for a communicator that has chosen. */
    MPI_T_enum items;
    int index, n, read;
    CHECK(MPI_T_cvar_get_index("MOTET_COLL_ALLREDUCE", &index) == MPI_SUCCESS);
    CHECK(MPI_T_cvar_get_info(index, NULL, NULL, NULL, NULL, &items, NULL, NULL, NULL, NULL) ==
          MPI_SUCCESS);
    CHECK(MPI_T_enum_get_info(items, &n, NULL, NULL) == MPI_SUCCESS && n > 2);
    CHECK(find_cvar("MOTET_COLL_ALLREDUCE", &handle));
    for (int i = n; i-- > 0;) {
        CHECK(MPI_T_cvar_write(handle, &i) == MPI_SUCCESS);
        CHECK(MPI_T_cvar_read(handle, &read) == MPI_SUCCESS && read == i);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == size);
    }
    MPI_T_cvar_handle_free(&handle);
}

/* ---- performance variables ---- */

static int find_pvar(MPI_T_pvar_session session, const char *name, int var_class, void *object,
                     MPI_T_pvar_handle *handle)
{
    int index, count;
    if (MPI_T_pvar_get_index(name, var_class, &index) != MPI_SUCCESS)
        return 0;
    CHECK(MPI_T_pvar_handle_alloc(session, index, object, handle, &count) == MPI_SUCCESS);
    CHECK(count == 1);
    return 1;
}

static unsigned long long number(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    unsigned long long n = 0;
    CHECK(MPI_T_pvar_read(session, handle, &n) == MPI_SUCCESS);
    return n;
}

static void test_one_pvar(MPI_T_pvar_session session, int i)
{
    char name[256], room[65536];
    int length = sizeof name, verbosity, var_class, bind, readonly, continuous, atomic, index,
        count;
    MPI_Datatype type;
    MPI_T_pvar_handle handle;
    CHECK(MPI_T_pvar_get_info(i, name, &length, &verbosity, &var_class, &type, NULL, NULL, NULL,
                              &bind, &readonly, &continuous, &atomic) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_get_index(name, var_class, &index) == MPI_SUCCESS && index == i);
    CHECK(MPI_T_pvar_get_index(name, var_class + 100, &index) == MPI_T_ERR_INVALID_NAME);
    if (bind != MPI_T_BIND_NO_OBJECT)
        return;
    CHECK(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count) == MPI_SUCCESS);
    if (count * 8 <= (int)sizeof room)
        CHECK(MPI_T_pvar_read(session, handle, room) == MPI_SUCCESS);
    if (continuous) {
        CHECK(MPI_T_pvar_start(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP);
        CHECK(MPI_T_pvar_stop(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    } else {
        CHECK(MPI_T_pvar_start(session, handle) == MPI_SUCCESS);
        CHECK(MPI_T_pvar_stop(session, handle) == MPI_SUCCESS);
    }
    if (readonly) {
        CHECK(MPI_T_pvar_write(session, handle, room) == MPI_T_ERR_PVAR_NO_WRITE);
        CHECK(MPI_T_pvar_reset(session, handle) == MPI_T_ERR_PVAR_NO_WRITE);
    } else {
        CHECK(MPI_T_pvar_reset(session, handle) == MPI_SUCCESS);
    }
    if (!atomic)
        CHECK(MPI_T_pvar_readreset(session, handle, room) == MPI_T_ERR_PVAR_NO_ATOMIC);
    CHECK(MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS);
    CHECK(handle == MPI_T_PVAR_HANDLE_NULL);
}

static void test_pvars(void)
{
    int n = -1, index;
    MPI_T_pvar_session session, other;
    MPI_T_pvar_handle handle;
    CHECK(MPI_T_pvar_get_num(&n) == MPI_SUCCESS && n >= 0);
    CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_session_create(&other) == MPI_SUCCESS);
    for (int i = 0; i < n; i++)
        test_one_pvar(session, i);
    CHECK(MPI_T_pvar_get_index("no such variable", MPI_T_PVAR_CLASS_COUNTER, &index) ==
          MPI_T_ERR_INVALID_NAME);
    if (wrong)
        CHECK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
    if (find_pvar(session, "motet_sent_messages", MPI_T_PVAR_CLASS_COUNTER, NULL, &handle)) {
        CHECK(MPI_T_pvar_start(other, handle) == MPI_T_ERR_INVALID_HANDLE);
        CHECK(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &index) == MPI_T_ERR_INVALID_HANDLE);
    }
    CHECK(MPI_T_pvar_session_free(&other) == MPI_SUCCESS && other == MPI_T_PVAR_SESSION_NULL);
    CHECK(MPI_T_pvar_session_free(&session) == MPI_SUCCESS);
}

/* What the variables tell of messages from rank 0 to rank 1. */
static void test_counting(void)
{
    enum { N = 5, BYTES = 100 };
    MPI_T_pvar_session session;
    MPI_T_pvar_handle sent, sent_bytes, level, most, of_comm, of_other;
    MPI_Comm other, world = MPI_COMM_WORLD;
    char data[BYTES] = {0};
    unsigned long long value;
    MPI_T_pvar_session_create(&session);
    if (!find_pvar(session, "motet_sent_messages", MPI_T_PVAR_CLASS_COUNTER, NULL, &sent) ||
        size < 2) {
        MPI_T_pvar_session_free(&session);
        return;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    find_pvar(session, "motet_sent_bytes", MPI_T_PVAR_CLASS_AGGREGATE, NULL, &sent_bytes);
    find_pvar(session, "motet_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL, NULL, &level);
    find_pvar(session, "motet_unexpected_messages_most", MPI_T_PVAR_CLASS_HIGHWATERMARK, NULL,
              &most);
    find_pvar(session, "motet_comm_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL, &world, &of_comm);
    find_pvar(session, "motet_comm_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL, &other, &of_other);
    CHECK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        unsigned long long before = number(session, sent), bytes = number(session, sent_bytes);
        for (int i = 0; i < N; i++)
            MPI_Send(data, BYTES, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
        CHECK(number(session, sent) == before + N);
        CHECK(number(session, sent_bytes) == bytes + N * BYTES);
        MPI_T_pvar_stop(session, sent);
        MPI_Send(data, 0, MPI_BYTE, 1, 8, MPI_COMM_WORLD);
        CHECK(number(session, sent) == before + N); /* it stands still */
        CHECK(MPI_T_pvar_readreset(session, sent, &value) == MPI_SUCCESS && value == before + N);
        CHECK(number(session, sent) == 0);
        value = 1000;
        CHECK(MPI_T_pvar_write(session, sent, &value) == MPI_SUCCESS);
        MPI_T_pvar_start(session, sent);
        MPI_Send(data, 0, MPI_BYTE, 1, 9, other);
        CHECK(number(session, sent) == 1001);
    } else if (rank == 1) {
        MPI_Recv(data, 0, MPI_BYTE, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(number(session, level) >= N && number(session, of_comm) == N);
        CHECK(number(session, most) >= N);
        MPI_Probe(0, 9, other, MPI_STATUS_IGNORE);
        CHECK(number(session, of_other) == 1);
        for (int i = 0; i < N; i++)
            MPI_Recv(data, BYTES, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(number(session, of_comm) == 0 && number(session, most) >= N);
        MPI_Recv(data, 0, MPI_BYTE, 0, 9, other, MPI_STATUS_IGNORE);
        CHECK(MPI_T_pvar_reset(session, most) == MPI_SUCCESS);
        CHECK(number(session, most) < N);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&other);
    CHECK(MPI_T_pvar_read(session, of_other, &value) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_session_free(&session) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_read(session, sent, &value) == MPI_T_ERR_INVALID_SESSION);
}

/* ---- events ---- */

static int n_told, told_tag, n_freed;
static int n_to_cause; /* further events that a callback causes at once */
static MPI_Count told_bytes, told_ns;

static void on_unexpected(MPI_T_event_instance instance, MPI_T_event_registration registration,
                          MPI_T_cb_safety safety, void *user_data)
{
    struct {
        int source, tag;
        MPI_Count bytes;
    } data = {-1, -1, -1};
    int source = -1, rank_there = -1;
    (void)registration;
    (void)safety;
    CHECK(user_data == &n_told);
    CHECK(MPI_T_event_copy(instance, &data) == MPI_SUCCESS);
    CHECK(MPI_T_event_read(instance, 0, &rank_there) == MPI_SUCCESS && rank_there == data.source);
    CHECK(MPI_T_event_read(instance, 3, &source) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_event_get_timestamp(instance, &told_ns) == MPI_SUCCESS);
    CHECK(MPI_T_event_get_source(instance, &source) == MPI_SUCCESS && source == 0);
    n_told++;
    told_tag = data.tag;
    told_bytes = data.bytes;
    for (; n_to_cause > 0; n_to_cause--) {
        MPI_Request request;
        MPI_Isend(NULL, 0, MPI_BYTE, rank, 26, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
}

static MPI_Count n_dropped;

static void on_dropped(MPI_Count count, MPI_T_event_registration registration, int source,
                       MPI_T_cb_safety safety, void *user_data)
{
    (void)registration;
    (void)source;
    (void)safety;
    (void)user_data;
    n_dropped += count;
}

static void on_freed(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *user_data)
{
    (void)registration;
    (void)safety;
    n_freed += user_data == &n_freed;
}

static void test_event_types(void)
{
    int n = -1, index, n_sources = -1;
    CHECK(MPI_T_event_get_num(&n) == MPI_SUCCESS && n >= 0);
    for (int i = 0; i < n; i++) {
        char name[256];
        int length = sizeof name, n_elements = 16, bind;
        MPI_Datatype types[16];
        MPI_Aint displacements[16];
        CHECK(MPI_T_event_get_info(i, name, &length, NULL, types, displacements, &n_elements, NULL,
                                   NULL, NULL, NULL, &bind) == MPI_SUCCESS);
        CHECK(n_elements > 0);
        CHECK(MPI_T_event_get_index(name, &index) == MPI_SUCCESS && index == i);
    }
    CHECK(MPI_T_event_get_index("no such event", &index) == MPI_T_ERR_INVALID_NAME);
    CHECK(MPI_T_source_get_num(&n_sources) == MPI_SUCCESS && n_sources >= 0);
    for (int i = 0; i < n_sources; i++) {
        MPI_Count ticks = 0, now = -1, later = -1;
        CHECK(MPI_T_source_get_info(i, NULL, NULL, NULL, NULL, NULL, &ticks, NULL, NULL) ==
              MPI_SUCCESS);
        CHECK(MPI_T_source_get_timestamp(i, &now) == MPI_SUCCESS);
        CHECK(MPI_T_source_get_timestamp(i, &later) == MPI_SUCCESS && later >= now);
    }
}

static void test_events(void)
{
    enum { MANY = 3000 };
    int index, flag;
    char data[50] = {0};
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_T_event_registration registration;
    MPI_Count before, after;
    MPI_Info info;
    if (MPI_T_event_get_index("motet_message_unexpected", &index) != MPI_SUCCESS || size < 2)
        return;
    CHECK(MPI_T_event_handle_alloc(index, &world, MPI_INFO_NULL, &registration) == MPI_SUCCESS);
    CHECK(MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_NONE, &info) != MPI_SUCCESS);
    CHECK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &n_told,
                                        on_unexpected) == MPI_SUCCESS);
    CHECK(MPI_T_event_set_dropped_handler(registration, on_dropped) == MPI_SUCCESS);
    CHECK(MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_NONE, &info) == MPI_SUCCESS);
    MPI_Info_free(&info);
    CHECK(MPI_T_event_handle_get_info(registration, &info) == MPI_SUCCESS);
    CHECK(MPI_T_event_handle_set_info(registration, info) == MPI_SUCCESS);
    MPI_Info_free(&info);
    MPI_T_source_get_timestamp(0, &before);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Send(data, 50, MPI_BYTE, 1, 23, MPI_COMM_WORLD);
    if (rank == 1) {
        for (flag = 0; !flag || n_told == 0;)
            MPI_Iprobe(0, 23, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_T_source_get_timestamp(0, &after);
        CHECK(n_told == 1 && told_tag == 23 && told_bytes == 50);
        CHECK(before <= told_ns && told_ns <= after);
        MPI_Recv(data, 50, MPI_BYTE, 0, 23, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(n_told == 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* Each is told or counted as dropped. */
    if (rank == 0)
        for (int i = 0; i <= MANY; i++)
            MPI_Send(data, 0, MPI_BYTE, 1, i < MANY ? 24 : 25, MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Recv(data, 0, MPI_BYTE, 0, 25, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < MANY; i++)
            MPI_Recv(data, 0, MPI_BYTE, 0, 24, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(n_told + n_dropped >= MANY);
    }
    /* As well where a callback causes more at once than there is room for; what was dropped is told
     * with the next event. */
    n_told = 0;
    n_dropped = 0;
    n_to_cause = MANY;
    MPI_Send(data, 0, MPI_BYTE, rank, 27, MPI_COMM_WORLD);
    while (n_to_cause > 0)
        MPI_Iprobe(rank, 28, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < MANY; i++)
        MPI_Recv(data, 0, MPI_BYTE, rank, 26, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(data, 0, MPI_BYTE, rank, 27, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 1000 && n_told + n_dropped <= MANY; i++)
        MPI_Iprobe(rank, 28, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(n_told < MANY && n_told + n_dropped == MANY + 1);
    CHECK(MPI_T_event_handle_free(registration, &n_freed, on_freed) == MPI_SUCCESS && n_freed == 1);
    CHECK(MPI_T_event_handle_free(registration, &n_freed, on_freed) != MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- categories ---- */

static void test_categories(void)
{
    int n = -1, index, stamp = -1, again = -1, n_cvars, n_pvars, n_events, n_categories;
    CHECK(MPI_T_category_changed(&stamp) == MPI_SUCCESS);
    CHECK(MPI_T_category_get_num(&n) == MPI_SUCCESS && n >= 0);
    for (int i = 0; i < n; i++) {
        char name[256];
        int length = sizeof name, list[1024];
        CHECK(MPI_T_category_get_info(i, name, &length, NULL, NULL, &n_cvars, &n_pvars,
                                      &n_categories) == MPI_SUCCESS);
        CHECK(MPI_T_category_get_index(name, &index) == MPI_SUCCESS && index == i);
        CHECK(MPI_T_category_get_num_events(i, &n_events) == MPI_SUCCESS);
        CHECK(n_cvars <= 1024 && n_pvars <= 1024);
        CHECK(MPI_T_category_get_cvars(i, n_cvars, list) == MPI_SUCCESS);
        for (int k = 0; k < n_cvars; k++)
            CHECK(MPI_T_cvar_get_info(list[k], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                      NULL) == MPI_SUCCESS);
        CHECK(MPI_T_category_get_pvars(i, n_pvars, list) == MPI_SUCCESS);
        for (int k = 0; k < n_pvars; k++)
            CHECK(MPI_T_pvar_get_info(list[k], NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                      NULL, NULL, NULL) == MPI_SUCCESS);
        CHECK(MPI_T_category_get_events(i, n_events, list) == MPI_SUCCESS);
        CHECK(MPI_T_category_get_categories(i, n_categories, list) == MPI_SUCCESS);
        for (int k = 0; k < n_categories; k++)
            CHECK(list[k] >= 0 && list[k] < n && list[k] != i);
    }
    CHECK(MPI_T_category_get_index("no such category", &index) == MPI_T_ERR_INVALID_NAME);
    CHECK(MPI_T_category_changed(&again) == MPI_SUCCESS && again == stamp);
}

int main(int argc, char **argv)
{
    int n, level, motet;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle sent;
    wrong = argc > 1 && strcmp(argv[1], "wrong") == 0;
    CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level) == MPI_SUCCESS);
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level) == MPI_SUCCESS);
    CHECK(MPI_T_finalize() == MPI_SUCCESS); /* the first still counts */
    test_cvars();
    test_categories();
    test_early_writes();
    MPI_T_pvar_session_create(&session);
    motet = find_pvar(session, "motet_sent_messages", MPI_T_PVAR_CLASS_COUNTER, NULL, &sent);
    if (motet)
        CHECK(MPI_T_pvar_start(session, sent) == MPI_SUCCESS);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_cvars();
    test_late_writes();
    test_pvars();
    test_counting();
    test_event_types();
    test_events();
    test_categories();
    unsigned long long before = motet ? number(session, sent) : 0;
    if (rank == 0)
        printf("tools: variables and events are as they are told of\n");
    MPI_Finalize();

    if (motet)
        CHECK(number(session, sent) >= before); /* what was counted stays */
    CHECK(MPI_T_pvar_session_free(&session) == MPI_SUCCESS);
    test_cvars();
    CHECK(MPI_T_finalize() == MPI_SUCCESS);
    CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    return 0;
}
