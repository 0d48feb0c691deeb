/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Argument checks of the generated bindings.
 *
 * The bindings (and nothing else) use this, with the library lock held. What is tested on each call
 * is inline and short; the functions that word a message are cold and in check.c. Each of those
 * returns the error class.
 */
#ifndef MOTET_CLIENT_ABI_CHECK_H
#define MOTET_CLIENT_ABI_CHECK_H

#include <limits.h>
#include <stddef.h>

#include "client/abi/semantics.h"
#include "client/datatype/datatype.h"
#include "client/io/file.h"
#include "client/object/comm.h"
#include "client/object/err.h"
#include "client/object/errhandler.h"
#include "client/object/group.h"
#include "client/object/handle.h"
#include "client/object/intvec.h"
#include "client/object/raise.h"
#include "client/process/phase.h"
#include "client/progress/calls.h"
#include "client/progress/vci_choose.h"
#include "client/rma/win.h"

#define CHECK_LIKELY(x)   __builtin_expect(!!(x), 1)
#define CHECK_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CHECK_COLD        __attribute__((cold, noinline))

/* The calls before and after a session with MPI end here; see phase.h. */
static inline void check_phase(const char *function)
{
    if (CHECK_UNLIKELY(phase_here->now != PHASE_ACTIVE))
        phase_refuse(function);
}

/* Handle of an output object, or the null handle. */
static inline uintptr_t check_handle_of(const void *object, uintptr_t null_handle)
{
    return object ? ((const struct object *)object)->handle : null_handle;
}

/* Number of ranks that dest, source and root index. */
static inline int check_n_peers(const struct comm *comm)
{
    return comm->remote_group ? comm->remote_group->size : comm->size;
}

static inline bool check_dest_ok(const struct comm *comm, int rank)
{
    return (unsigned)rank < (unsigned)check_n_peers(comm) || rank == MPI_PROC_NULL;
}

static inline bool check_source_ok(const struct comm *comm, int rank)
{
    return check_dest_ok(comm, rank) || rank == MPI_ANY_SOURCE;
}

static inline bool check_root_ok(const struct comm *comm, int root)
{
    return (unsigned)root < (unsigned)check_n_peers(comm) ||
           (comm->remote_group && (root == MPI_ROOT || root == MPI_PROC_NULL));
}

/* Whether the arguments that count at the root only count here. */
static inline bool check_at_root(const struct comm *comm, int root)
{
    return comm->remote_group ? root == MPI_ROOT : root == comm->rank;
}

/* In a rooted collective over an intercommunicator the other processes of the root's group take no
 * part ... */
static inline bool check_takes_part(const struct comm *comm, int root)
{
    return !comm->remote_group || root != MPI_PROC_NULL;
}

/* ... and what the root itself contributes or keeps in other cases does not count there. */
static inline bool check_is_opposite(const struct comm *comm, int root)
{
    return !comm->remote_group || root >= 0;
}

/* A buffer at address 0 is right for a type whose displacements are addresses; those begin above
 * 0. */
static inline bool check_buffer_ok(const void *buf, MPI_Count count, const struct datatype *type)
{
    return CHECK_LIKELY(buf != NULL) || count == 0 || type->size == 0 || type->true_lb > 0;
}

static inline bool check_any_data(MPI_Count count, const struct datatype *type)
{
    return count > 0 && type->size > 0;
}

/* What a rank gives to or takes from each rank: `each` (or with counts): a block for each rank,
 * else one. Counts without displacements say how long the one is. */
struct check_blocks {
    const void *buf;
    const struct datatype *type;
    const MPI_Datatype *types; /* instead of type: of each block, displacements in bytes */
    MPI_Count count;
    struct intvec counts, displs;
    bool each;
};
/* Whether a block of one lies where a block of the other does, for certain: looks at the blocks for
 * this rank and for rank 0, and at the lowest byte of their first element. */
bool check_overlap(const struct comm *comm, const struct check_blocks *a,
                   const struct check_blocks *b);

/* Counts that do not fit into the int of the small form (MPI-5.0 section 2.5.8). */
static inline int check_fit_int(MPI_Count value)
{
    return value > INT_MAX || value < INT_MIN ? MPI_UNDEFINED : (int)value;
}

/* MPI_DATATYPE_NULL for no elements: programs give it where they send nothing, and other libraries
 * take it. NULL if it is not that. */
CHECK_COLD struct datatype *check_type_of_nothing(MPI_Datatype type, MPI_Count count);

/* The type of `count` elements in a buffer; NULL for rubbish. */
static inline struct datatype *check_type_of(MPI_Datatype type, MPI_Count count)
{
    struct datatype *found = (struct datatype *)handle_get(OBJECT_DATATYPE, (uintptr_t)type);

    return CHECK_LIKELY(found != NULL) ? found : check_type_of_nothing(type, count);
}

CHECK_COLD int check_bad_handle(enum object_kind kind, const char *argument, uintptr_t handle);
CHECK_COLD int check_bad_type(const char *argument, const struct datatype *type);
CHECK_COLD int check_negative(int mpi_class, const char *argument, MPI_Count value);
CHECK_COLD int check_not_positive(int mpi_class, const char *argument, MPI_Count value);
CHECK_COLD int check_bad_rank(const char *argument, int rank, const struct comm *comm,
                              bool any_source);
CHECK_COLD int check_bad_root(const char *argument, int root, const struct comm *comm);
CHECK_COLD int check_bad_member(const char *argument, int rank, const struct comm *comm);
CHECK_COLD int check_bad_tag(const char *argument, int tag, bool any_tag);
CHECK_COLD int check_bad_keyval(const char *argument, int keyval);
CHECK_COLD int check_null_pointer(int mpi_class, const char *argument);
CHECK_COLD int check_null_buffer(const char *argument, MPI_Count count,
                                 const struct datatype *type);
CHECK_COLD int check_same_buffer(const char *argument, const char *other, bool in_place_allowed);
CHECK_COLD int check_same_place(const char *argument, const char *other, const char *in_place);
CHECK_COLD int check_bad_in_place(const char *argument, const struct comm *comm_or_null);

/* Arrays of `n` elements; 0 when all is well. A count of a NULL array is an error only when n >
 * 0. */
int check_counts(const char *argument, struct intvec counts, MPI_Count n);
int check_requests(const char *argument, const MPI_Request *requests, MPI_Count n);
/* Types must be committed if asked; with counts, only those with a count above 0 are looked at. */
int check_types(const char *argument, const MPI_Datatype *types, MPI_Count n, bool committed,
                const struct intvec *counts_or_null);

/* The error that an unimplemented function raises. */
CHECK_COLD int check_unsupported(const char *function);

/* Raises with an error handler that came as an argument, and with that of a session; the default
 * one where it is NULL. */
CHECK_COLD int check_raise_with(struct errhandler *handler, int err, const char *function);
CHECK_COLD int check_raise_session(struct session *session, int err, const char *function);

/* Raises for functions on objects that have no module of their own yet. */
CHECK_COLD int check_raise_default(int err, const char *function);

#endif
