/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/abi/check.h"

#include "client/object/session.h"

#include <stdio.h>
#include <string.h>

static int class_of_kind(enum object_kind kind)
{
    static const int classes[OBJECT_KINDS] = {
        [OBJECT_NONE] = MPI_ERR_ARG,        [OBJECT_COMM] = MPI_ERR_COMM,
        [OBJECT_GROUP] = MPI_ERR_GROUP,     [OBJECT_DATATYPE] = MPI_ERR_TYPE,
        [OBJECT_OP] = MPI_ERR_OP,           [OBJECT_REQUEST] = MPI_ERR_REQUEST,
        [OBJECT_MESSAGE] = MPI_ERR_REQUEST, [OBJECT_ERRHANDLER] = MPI_ERR_ERRHANDLER,
        [OBJECT_INFO] = MPI_ERR_INFO,       [OBJECT_WIN] = MPI_ERR_WIN,
        [OBJECT_FILE] = MPI_ERR_FILE,       [OBJECT_SESSION] = MPI_ERR_SESSION,
    };

    return classes[kind];
}

/* The values of the null handles, by kind: the first value of each range of the ABI. */
static const struct {
    enum object_kind kind;
    uintptr_t value;
    const char *name;
} null_handles[] = {
    {OBJECT_OP, (uintptr_t)MPI_OP_NULL, "MPI_OP_NULL"},
    {OBJECT_COMM, (uintptr_t)MPI_COMM_NULL, "MPI_COMM_NULL"},
    {OBJECT_GROUP, (uintptr_t)MPI_GROUP_NULL, "MPI_GROUP_NULL"},
    {OBJECT_WIN, (uintptr_t)MPI_WIN_NULL, "MPI_WIN_NULL"},
    {OBJECT_FILE, (uintptr_t)MPI_FILE_NULL, "MPI_FILE_NULL"},
    {OBJECT_SESSION, (uintptr_t)MPI_SESSION_NULL, "MPI_SESSION_NULL"},
    {OBJECT_MESSAGE, (uintptr_t)MPI_MESSAGE_NULL, "MPI_MESSAGE_NULL"},
    {OBJECT_INFO, (uintptr_t)MPI_INFO_NULL, "MPI_INFO_NULL"},
    {OBJECT_ERRHANDLER, (uintptr_t)MPI_ERRHANDLER_NULL, "MPI_ERRHANDLER_NULL"},
    {OBJECT_REQUEST, (uintptr_t)MPI_REQUEST_NULL, "MPI_REQUEST_NULL"},
    {OBJECT_DATATYPE, (uintptr_t)MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL"},
};

static const char *article(const char *noun)
{
    return strchr("aeiou", noun[0]) ? "an" : "a";
}

int check_bad_handle(enum object_kind kind, const char *argument, uintptr_t handle)
{
    const int mpi_class = class_of_kind(kind);
    const char *wanted = object_kind_name(kind);
    const struct object *other = handle_object(handle);

    for (size_t i = 0; i < sizeof(null_handles) / sizeof(null_handles[0]); i++) {
        if (null_handles[i].value == handle)
            return err_set(mpi_class, "%s is %s, not %s %s", argument, null_handles[i].name,
                           article(wanted), wanted);
    }
    if (other) {
        const char *found = object_kind_name((enum object_kind)other->kind);

        return err_set(mpi_class, "%s is the handle of %s %s, not of %s %s", argument,
                       article(found), found, article(wanted), wanted);
    }
    if (handle >= HANDLE_PREDEFINED_MAX && handle >> 56 == (uintptr_t)kind)
        return err_set(mpi_class, "%s (0x%zx) is the handle of %s %s that has been freed", argument,
                       (size_t)handle, article(wanted), wanted);
    return err_set(mpi_class, "%s (0x%zx) is no handle of %s %s", argument, (size_t)handle,
                   article(wanted), wanted);
}

struct datatype *check_type_of_nothing(MPI_Datatype type, MPI_Count count)
{
    return type == MPI_DATATYPE_NULL && count == 0 ? datatype_predefined(MPI_BYTE) : NULL;
}

int check_bad_type(const char *argument, const struct datatype *type)
{
    return err_set(MPI_ERR_TYPE, "%s (%s) has not been committed", argument, datatype_name(type));
}

int check_negative(int mpi_class, const char *argument, MPI_Count value)
{
    return err_set(mpi_class, "%s is %lld, but must not be negative", argument, (long long)value);
}

int check_not_positive(int mpi_class, const char *argument, MPI_Count value)
{
    return err_set(mpi_class, "%s is %lld, but must be positive", argument, (long long)value);
}

static const char *name_of(const struct comm *comm)
{
    return comm->name[0] ? comm->name : "the communicator";
}

int check_bad_rank(const char *argument, int rank, const struct comm *comm, bool any_source)
{
    return err_set(MPI_ERR_RANK,
                   "%s is %d, but %s has %s 0 to %d (MPI_PROC_NULL%s allowed as well)", argument,
                   rank, name_of(comm), comm->remote_group ? "remote ranks" : "ranks",
                   check_n_peers(comm) - 1, any_source ? " and MPI_ANY_SOURCE are" : " is");
}

int check_bad_root(const char *argument, int root, const struct comm *comm)
{
    return err_set(MPI_ERR_ROOT, "%s is %d, but %s has %s 0 to %d", argument, root, name_of(comm),
                   comm->remote_group ? "remote ranks" : "ranks", check_n_peers(comm) - 1);
}

int check_bad_member(const char *argument, int rank, const struct comm *comm)
{
    return err_set(MPI_ERR_RANK, "%s is %d, but %s has ranks 0 to %d", argument, rank,
                   name_of(comm), comm->size - 1);
}

int check_bad_tag(const char *argument, int tag, bool any_tag)
{
    return err_set(MPI_ERR_TAG, "%s is %d, but tags are not negative%s", argument, tag,
                   any_tag ? " (MPI_ANY_TAG is allowed as well)" : "");
}

int check_bad_keyval(const char *argument, int keyval)
{
    return err_set(MPI_ERR_KEYVAL, "%s is %d, no key", argument, keyval);
}

int check_null_pointer(int mpi_class, const char *argument)
{
    return err_set(mpi_class, "%s is a null pointer", argument);
}

int check_null_buffer(const char *argument, MPI_Count count, const struct datatype *type)
{
    return err_set(MPI_ERR_BUFFER, "%s is a null pointer, but is to hold %lld elements of %s",
                   argument, (long long)count, datatype_name(type));
}

int check_same_buffer(const char *argument, const char *other, bool in_place_allowed)
{
    if (in_place_allowed)
        return err_set(MPI_ERR_BUFFER, "%s is the same as %s; give MPI_IN_PLACE as %s", argument,
                       other, other);
    return err_set(MPI_ERR_BUFFER, "%s is the same as %s", argument, other);
}

int check_same_place(const char *argument, const char *other, const char *in_place)
{
    return err_set(MPI_ERR_BUFFER, "%s and %s have data at the same place; give MPI_IN_PLACE as %s",
                   argument, other, in_place);
}

/* Address of the lowest byte of the first element of a block; 0: the block is empty. */
static uintptr_t first_byte(const struct check_blocks *b, int rank, int own)
{
    const struct datatype *type = b->types ? datatype_from_handle(b->types[rank]) : b->type;
    bool v = b->displs.base != NULL;
    MPI_Count count = b->counts.base ? intvec_at(b->counts, v ? rank : own) : b->count;
    if (count == 0 || !type || type->size == 0)
        return 0;
    MPI_Count at = 0;
    if (v)
        at = intvec_at(b->displs, rank) * (b->types ? 1 : type->extent);
    else if (b->each)
        at = rank * count * type->extent;
    return (uintptr_t)b->buf + (uintptr_t)at + (uintptr_t)type->true_lb;
}

bool check_overlap(const struct comm *comm, const struct check_blocks *a,
                   const struct check_blocks *b)
{
    uintptr_t own = first_byte(a, comm->rank, comm->rank), lowest = first_byte(a, 0, comm->rank);
    return (own && own == first_byte(b, comm->rank, comm->rank)) ||
           (lowest && lowest == first_byte(b, 0, comm->rank));
}

int check_bad_in_place(const char *argument, const struct comm *comm_or_null)
{
    if (comm_or_null && comm_or_null->remote_group)
        return err_set(MPI_ERR_BUFFER, "%s is MPI_IN_PLACE, but %s is an intercommunicator",
                       argument, name_of(comm_or_null));
    /* Functions that take MPI_IN_PLACE everywhere do not come here with an intracommunicator. */
    return err_set(MPI_ERR_BUFFER, "%s is MPI_IN_PLACE, which %s", argument,
                   comm_or_null ? "only the root may give" : "is not allowed here");
}

int check_counts(const char *argument, struct intvec counts, MPI_Count n)
{
    if (n > 0 && !counts.base)
        return check_null_pointer(MPI_ERR_ARG, argument);
    for (MPI_Count i = 0; i < n; i++) {
        if (CHECK_UNLIKELY(intvec_at(counts, i) < 0))
            return err_set(MPI_ERR_COUNT, "%s[%lld] is %lld, but must not be negative", argument,
                           (long long)i, (long long)intvec_at(counts, i));
    }
    return MPI_SUCCESS;
}

static int bad_element(enum object_kind kind, const char *argument, MPI_Count i, uintptr_t handle)
{
    char element[128];

    snprintf(element, sizeof(element), "%s[%lld]", argument, (long long)i);
    return check_bad_handle(kind, element, handle);
}

int check_requests(const char *argument, const MPI_Request *requests, MPI_Count n)
{
    if (n > 0 && !requests)
        return check_null_pointer(MPI_ERR_ARG, argument);
    for (MPI_Count i = 0; i < n; i++) {
        if (CHECK_UNLIKELY(requests[i] != MPI_REQUEST_NULL &&
                           !handle_get(OBJECT_REQUEST, (uintptr_t)requests[i])))
            return bad_element(OBJECT_REQUEST, argument, i, (uintptr_t)requests[i]);
    }
    return MPI_SUCCESS;
}

int check_types(const char *argument, const MPI_Datatype *types, MPI_Count n, bool committed,
                const struct intvec *counts_or_null)
{
    if (n > 0 && !types)
        return check_null_pointer(MPI_ERR_ARG, argument);
    for (MPI_Count i = 0; i < n; i++) {
        const struct datatype *type;

        if (counts_or_null && intvec_at(*counts_or_null, i) == 0)
            continue;
        type = (const struct datatype *)handle_get(OBJECT_DATATYPE, (uintptr_t)types[i]);
        if (!type)
            return bad_element(OBJECT_DATATYPE, argument, i, (uintptr_t)types[i]);
        if (committed && !type->committed)
            return err_set(MPI_ERR_TYPE, "%s[%lld] (%s) has not been committed", argument,
                           (long long)i, datatype_name(type));
    }
    return MPI_SUCCESS;
}

int check_unsupported(const char *function)
{
    return err_set(MPI_ERR_UNSUPPORTED_OPERATION, "%s is not implemented by this version of Motet",
                   function);
}

int check_raise_with(struct errhandler *handler, int err, const char *function)
{
    if (!handler)
        return raise_on_comm(NULL, err, function);
    enum errhandler_target target =
        handler->target == ERRHANDLER_ANY ? ERRHANDLER_COMM : handler->target;
    uintptr_t none =
        target == ERRHANDLER_SESSION ? (uintptr_t)MPI_SESSION_NULL : (uintptr_t)MPI_COMM_NULL;

    return errhandler_raise_on(handler, target, none, NULL, err, function);
}

int check_raise_session(struct session *session, int err, const char *function)
{
    if (!session)
        return raise_on_comm(NULL, err, function);
    return errhandler_raise_on(session->errhandler, ERRHANDLER_SESSION, session->obj.handle, NULL,
                               err, function);
}

int check_raise_default(int err, const char *function)
{
    return raise_on_comm(NULL, err, function);
}
