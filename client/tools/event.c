/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/tools/event.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/abi/semantics.h"
#include "client/object/comm.h"
#include "client/object/info.h"
#include "client/p2p/envelope.h"

#define PART(type, member, datatype_)                                                              \
    {                                                                                              \
        .datatype = datatype_, .displacement = (MPI_Aint)offsetof(struct event_data, member),      \
        .n_bytes = sizeof(type)                                                                    \
    }

static const struct event_element of_message[] = {PART(int, peer, MPI_INT), PART(int, tag, MPI_INT),
                                                  PART(MPI_Count, amount, MPI_COUNT)};
static const struct event_element of_time[] = {PART(MPI_Count, amount, MPI_COUNT)};

const struct event event_table[] = {
    [NOTICE_UNEXPECTED] = {"motet_message_unexpected",
                           "a message came that no receive waits for: its source, tag, bytes",
                           CATEGORY_MESSAGES, MPI_T_VERBOSITY_USER_BASIC, MPI_T_BIND_MPI_COMM,
                           of_message, 3},
    [NOTICE_STALLED] = {"motet_send_stalled",
                        "a message waits for room in a ring, or is announced since the allowance "
                        "is used up: rank in MPI_COMM_WORLD, tag, bytes",
                        CATEGORY_MESSAGES, MPI_T_VERBOSITY_USER_DETAIL, MPI_T_BIND_NO_OBJECT,
                        of_message, 3},
    [NOTICE_ANNOUNCED] =
        {"motet_large_message_announced",
         "a message is announced that is too large to be sent unasked, or is to be "
         "synchronous: rank in MPI_COMM_WORLD, tag, bytes",
         CATEGORY_MESSAGES, MPI_T_VERBOSITY_USER_DETAIL, MPI_T_BIND_NO_OBJECT, of_message, 3},
    [NOTICE_SLEPT] = {"motet_rank_slept", "a wait for others has slept: nanoseconds",
                      CATEGORY_WAITING, MPI_T_VERBOSITY_USER_BASIC, MPI_T_BIND_NO_OBJECT, of_time,
                      1},
};
const int event_n = NOTICES;

static const struct event *event_at(int i)
{
    return i >= 0 && i < event_n ? &event_table[i] : NULL;
}

int event_level(MPI_T_cb_safety safety)
{
    switch (safety) {
    case MPI_T_CB_REQUIRE_NONE:
        return 0;
    case MPI_T_CB_REQUIRE_MPI_RESTRICTED:
        return 1;
    case MPI_T_CB_REQUIRE_THREAD_SAFE:
        return 2;
    case MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE:
        return 3;
    }
    return -1;
}

static struct event_registration *event_registration_of(MPI_T_event_registration handle)
{
    return tools_get(REGISTRY_REGISTRATION, handle);
}

/* No hint is known, so none is in use. */
static int event_no_hints(struct info **ret_info)
{
    struct info *info;
    int err = info_new(&info);

    if (err)
        return MPI_T_ERR_MEMORY;
    return info_publish(MPI_SUCCESS, info, ret_info) ? MPI_T_ERR_MEMORY : MPI_SUCCESS;
}

/* ---- what there is ---- */

int mpi_t_event_get_num(int *num_events)
{
    *num_events = event_n;
    return MPI_SUCCESS;
}

int mpi_t_event_get_info(int event_index, char *name, int *name_len, int *verbosity,
                         MPI_Datatype *array_of_datatypes, MPI_Aint *array_of_displacements,
                         int *num_elements, MPI_T_enum *enumtype, MPI_Info *info, char *desc,
                         int *desc_len, int *bind)
{
    const struct event *event = event_at(event_index);

    if (!event)
        return MPI_T_ERR_INVALID_INDEX;
    tools_give_text(event->name, name, name_len);
    tools_give_text(event->desc, desc, desc_len);
    tools_give_int(verbosity, event->verbosity);
    tools_give_int(bind, event->bind);
    for (int i = 0; num_elements && i < event->n_elements && i < *num_elements; i++) {
        if (array_of_datatypes)
            array_of_datatypes[i] = event->elements[i].datatype;
        if (array_of_displacements)
            array_of_displacements[i] = event->elements[i].displacement;
    }
    tools_give_int(num_elements, event->n_elements);
    if (enumtype)
        *enumtype = MPI_T_ENUM_NULL;
    if (info) {
        struct info *made = NULL;
        int err = event_no_hints(&made);
        *info = made ? (MPI_Info)made->obj.handle : MPI_INFO_NULL;
        return err;
    }
    return MPI_SUCCESS;
}

int mpi_t_event_get_index(const char *name, int *event_index)
{
    for (int i = 0; i < event_n; i++)
        if (strcmp(event_table[i].name, name) == 0) {
            *event_index = i;
            return MPI_SUCCESS;
        }
    return MPI_T_ERR_INVALID_NAME;
}

/* ---- registrations ---- */

int mpi_t_event_handle_alloc(int event_index, void *obj_handle, struct info *info,
                             MPI_T_event_registration *event_registration)
{
    const struct event *event = event_at(event_index);
    struct tools_bound bound;

    (void)info;
    if (!event)
        return MPI_T_ERR_INVALID_INDEX;
    if (!event_registration)
        return MPI_T_ERR_INVALID;
    int err = tools_bind(event->bind, obj_handle, &bound);
    if (err)
        return err;
    struct event_registration *r = event_queue_is_full() ? NULL : calloc(1, sizeof *r);
    if (!r)
        return MPI_T_ERR_OUT_OF_HANDLES;
    r->notice = (enum notice)event_index;
    r->bound = bound;
    if (bound.bind == MPI_T_BIND_MPI_COMM)
        r->context = tools_comm(&bound)->context_id + P2P_CONTEXT_USER;
    r->since_ns = clock_now_ns();
    r->handle = tools_add(REGISTRY_REGISTRATION, r);
    if (!r->handle) {
        free(r);
        return MPI_T_ERR_OUT_OF_HANDLES;
    }
    event_queue_add(r);
    event_listen();
    *event_registration = r->handle;
    return MPI_SUCCESS;
}

int mpi_t_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
                            MPI_T_event_free_cb_function free_cb_function)
{
    struct event_registration *r = event_registration_of(event_registration);

    if (!r)
        return MPI_T_ERR_INVALID_HANDLE;
    event_deliver();
    event_queue_remove(r);
    event_deafen();
    tools_remove(REGISTRY_REGISTRATION, event_registration);
    free(r);
    if (free_cb_function)
        free_cb_function(event_registration, MPI_T_CB_REQUIRE_NONE, user_data);
    return MPI_SUCCESS;
}

int mpi_t_event_register_callback(MPI_T_event_registration event_registration,
                                  MPI_T_cb_safety cb_safety, struct info *info, void *user_data,
                                  MPI_T_event_cb_function event_cb_function)
{
    struct event_registration *r = event_registration_of(event_registration);
    int level = event_level(cb_safety);

    (void)info;
    if (!r)
        return MPI_T_ERR_INVALID_HANDLE;
    if (level < 0)
        return MPI_T_ERR_INVALID;
    r->callbacks[level] = event_cb_function;
    r->user_data[level] = user_data;
    return MPI_SUCCESS;
}

int mpi_t_event_set_dropped_handler(MPI_T_event_registration event_registration,
                                    MPI_T_event_dropped_cb_function dropped_cb_function)
{
    struct event_registration *r = event_registration_of(event_registration);

    if (!r)
        return MPI_T_ERR_INVALID_HANDLE;
    r->dropped_fn = dropped_cb_function;
    return MPI_SUCCESS;
}

int mpi_t_event_handle_set_info(MPI_T_event_registration event_registration, struct info *info)
{
    (void)info;
    return event_registration_of(event_registration) ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;
}

int mpi_t_event_handle_get_info(MPI_T_event_registration event_registration,
                                struct info **ret_info_used)
{
    return event_registration_of(event_registration) ? event_no_hints(ret_info_used)
                                                     : MPI_T_ERR_INVALID_HANDLE;
}

/* A callback that is registered at this level. */
static int event_has_callback(MPI_T_event_registration handle, MPI_T_cb_safety cb_safety)
{
    const struct event_registration *r = event_registration_of(handle);
    int level = event_level(cb_safety);

    if (!r)
        return MPI_T_ERR_INVALID_HANDLE;
    return level < 0 || !r->callbacks[level] ? MPI_T_ERR_INVALID : MPI_SUCCESS;
}

int mpi_t_event_callback_set_info(MPI_T_event_registration event_registration,
                                  MPI_T_cb_safety cb_safety, struct info *info)
{
    (void)info;
    return event_has_callback(event_registration, cb_safety);
}

int mpi_t_event_callback_get_info(MPI_T_event_registration event_registration,
                                  MPI_T_cb_safety cb_safety, struct info **ret_info_used)
{
    int err = event_has_callback(event_registration, cb_safety);

    return err ? err : event_no_hints(ret_info_used);
}

/* ---- instances ---- */

int mpi_t_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
    const struct event_instance *e = tools_get(REGISTRY_INSTANCE, event_instance);

    if (!e)
        return MPI_T_ERR_INVALID_HANDLE;
    const struct event *event = &event_table[e->notice];
    if (element_index < 0 || element_index >= event->n_elements)
        return MPI_T_ERR_INVALID_INDEX;
    if (!buffer)
        return MPI_T_ERR_INVALID;
    const struct event_element *element = &event->elements[element_index];
    memcpy(buffer, (const char *)&e->data + element->displacement, element->n_bytes);
    return MPI_SUCCESS;
}

int mpi_t_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
    const struct event_instance *e = tools_get(REGISTRY_INSTANCE, event_instance);

    if (!e)
        return MPI_T_ERR_INVALID_HANDLE;
    if (!buffer)
        return MPI_T_ERR_INVALID;
    memcpy(buffer, &e->data, sizeof e->data);
    return MPI_SUCCESS;
}

int mpi_t_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
    const struct event_instance *e = tools_get(REGISTRY_INSTANCE, event_instance);

    if (!e)
        return MPI_T_ERR_INVALID_HANDLE;
    if (event_timestamp)
        *event_timestamp = (MPI_Count)e->ns;
    return MPI_SUCCESS;
}

int mpi_t_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
    if (!tools_get(REGISTRY_INSTANCE, event_instance))
        return MPI_T_ERR_INVALID_HANDLE;
    *source_index = 0;
    return MPI_SUCCESS;
}

/* ---- the one source: this rank's library ---- */

int mpi_t_source_get_num(int *num_sources)
{
    *num_sources = 1;
    return MPI_SUCCESS;
}

int mpi_t_source_get_info(int source_index, char *name, int *name_len, char *desc, int *desc_len,
                          MPI_T_source_order *ordering, MPI_Count *ticks_per_second,
                          MPI_Count *max_ticks, MPI_Info *info)
{
    if (source_index != 0)
        return MPI_T_ERR_INVALID_INDEX;
    tools_give_text("motet", name, name_len);
    tools_give_text("this rank's library, by the monotonic clock of its node", desc, desc_len);
    if (ordering)
        *ordering = MPI_T_SOURCE_ORDERED;
    if (ticks_per_second)
        *ticks_per_second = (MPI_Count)CLOCK_NS_PER_S;
    if (max_ticks)
        *max_ticks = INT64_MAX;
    if (info) {
        struct info *made = NULL;
        int err = event_no_hints(&made);
        *info = made ? (MPI_Info)made->obj.handle : MPI_INFO_NULL;
        return err;
    }
    return MPI_SUCCESS;
}

int mpi_t_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
    if (source_index != 0)
        return MPI_T_ERR_INVALID_INDEX;
    if (timestamp)
        *timestamp = (MPI_Count)clock_now_ns();
    return MPI_SUCCESS;
}
