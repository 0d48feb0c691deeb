/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the bodies of Fortran's procedures are made of: conversion of handles, LOGICALs, strings,
 * statuses and sentinels between Fortran's form and C's. Included by the generated bindings and by
 * the files that are written by hand. Everything here stands on the exported functions of the MPI
 * standard ABI alone, so the library works on any libmpi_abi.
 *
 * A default INTEGER is C's int, a default LOGICAL has its size, an argument is passed by address
 * and the length of a string behind all others (the conventions of gfortran, flang and others on
 * the platforms of the standard ABI). Which values .TRUE. and .FALSE. have is the compiler's:
 * logicals.f90 tells.
 */
#ifndef MOTET_CLIENT_FORTRAN_SUPPORT_H
#define MOTET_CLIENT_FORTRAN_SUPPORT_H

#include <ISO_Fortran_binding.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "mpi.h"

#define FORTRAN_API __attribute__((visibility("default")))
/* A second, weak name of a definition: what a profiling library may replace (MPI-5.0 15.2). */
#define FORTRAN_ALIAS(name, definition)                                                            \
    FORTRAN_API extern __typeof__(definition) name __attribute__((weak, alias(#definition)));

/* ---- handles: MPI_Fint <-> C ---- */

/* Predefined handles have the same small value in both languages (MPI-5.0 section 20.3). */
#define FORTRAN_PREDEFINED 0x1000u
static inline bool fortran_is_predefined(MPI_Fint value)
{
    return (unsigned)value < FORTRAN_PREDEFINED;
}

#define FORTRAN_HANDLE(type, name, word)                                                           \
    static inline type word##_in(MPI_Fint value)                                                   \
    {                                                                                              \
        return fortran_is_predefined(value) ? (type)(uintptr_t)(unsigned)value                     \
                                            : name##_fromint(value);                               \
    }                                                                                              \
    static inline MPI_Fint word##_out(type handle)                                                 \
    {                                                                                              \
        return (uintptr_t)handle < FORTRAN_PREDEFINED ? (MPI_Fint)(uintptr_t)handle                \
                                                      : name##_toint(handle);                      \
    }
FORTRAN_HANDLE(MPI_Comm, MPI_Comm, comm)
FORTRAN_HANDLE(MPI_Datatype, MPI_Type, type)
FORTRAN_HANDLE(MPI_Errhandler, MPI_Errhandler, errhandler)
FORTRAN_HANDLE(MPI_File, MPI_File, file)
FORTRAN_HANDLE(MPI_Group, MPI_Group, group)
FORTRAN_HANDLE(MPI_Info, MPI_Info, info)
FORTRAN_HANDLE(MPI_Message, MPI_Message, message)
FORTRAN_HANDLE(MPI_Op, MPI_Op, op)
FORTRAN_HANDLE(MPI_Request, MPI_Request, request)
FORTRAN_HANDLE(MPI_Session, MPI_Session, session)
FORTRAN_HANDLE(MPI_Win, MPI_Win, win)

/* An array of handles or of ints while a call lasts. */
struct fortran_handles {
    MPI_Count n;
    void *heap;
    void *small[32];
};
/* Room for n handles; a negative n counts as 0, which the C function then refuses. NULL when there
 * is no memory (and n is 0 then). */
void *fortran_handles_open(struct fortran_handles *a, MPI_Count n);
void fortran_handles_close(struct fortran_handles *a);

/* Processes on the other side of a collective: of the remote group, or of the communicator. */
int fortran_peers(MPI_Comm comm);
/* Whether this process is the root of a rooted collective, whose arguments "at the root" count. */
bool fortran_at_root(MPI_Comm comm, int root);
/* Neighbours in the communicator's topology: destinations or sources. */
int fortran_neighbors(MPI_Comm comm, bool destinations);
/* Dimensions of a Cartesian communicator. */
int fortran_dims(MPI_Comm comm);

/* ---- sentinels: variables whose address counts (MPI-5.0 section 2.5.4) ---- */

/* mpif.h has them in COMMON blocks of these names, the modules by BIND(C). */
extern MPI_Fint mpi_fortran_bottom_, mpi_fortran_in_place_, mpi_fortran_buffer_automatic_;
extern MPI_Fint mpi_fortran_status_ignore_[8], mpi_fortran_statuses_ignore_[8];
extern MPI_Fint mpi_fortran_f08_status_ignore_[8], mpi_fortran_f08_statuses_ignore_[8];
extern MPI_Fint mpi_fortran_unweighted_[1], mpi_fortran_weights_empty_[1];
extern MPI_Fint mpi_fortran_errcodes_ignore_[1];
extern char mpi_fortran_argv_null_[1], mpi_fortran_argvs_null_[1];

static inline void *fortran_buffer(void *address)
{
    if (__builtin_expect(address == &mpi_fortran_bottom_, 0))
        return MPI_BOTTOM;
    if (__builtin_expect(address == &mpi_fortran_in_place_, 0))
        return MPI_IN_PLACE;
    if (__builtin_expect(address == &mpi_fortran_buffer_automatic_, 0))
        return MPI_BUFFER_AUTOMATIC;
    return address;
}

static inline bool fortran_is_in_place(const void *address)
{
    return address == &mpi_fortran_in_place_;
}

/* A status has the same eight integers in both languages (MPI-5.0 section 20.4). */
static inline MPI_Status *fortran_status(const MPI_Fint *status)
{
    if (status == mpi_fortran_status_ignore_ || status == mpi_fortran_f08_status_ignore_)
        return MPI_STATUS_IGNORE;
    return (MPI_Status *)(uintptr_t)status;
}

static inline MPI_Status *fortran_statuses(MPI_Fint *statuses)
{
    if (statuses == mpi_fortran_statuses_ignore_ || statuses == mpi_fortran_f08_statuses_ignore_)
        return MPI_STATUSES_IGNORE;
    return (MPI_Status *)statuses;
}

static inline int *fortran_weights(MPI_Fint *weights)
{
    if (weights == mpi_fortran_unweighted_)
        return MPI_UNWEIGHTED;
    return weights == mpi_fortran_weights_empty_ ? MPI_WEIGHTS_EMPTY : weights;
}

/* ---- LOGICAL ---- */

/* logicals.f90: what the compiler means by them; constant after the library is loaded. */
extern const MPI_Fint motet_fortran_true, motet_fortran_false;

static inline MPI_Fint fortran_logical(int value)
{
    return value ? motet_fortran_true : motet_fortran_false;
}

static inline bool fortran_is_true(MPI_Fint value)
{
    return value != motet_fortran_false;
}

/* ---- strings ---- */

/* Without the blanks at its end. Never NULL but for lack of memory; to be freed. */
char *fortran_string(const char *text, size_t length);
/* Without those at its beginning too (info keys and values, MPI-5.0 section 10). */
char *fortran_trimmed(const char *text, size_t length);
/* Into a variable of this length, blanks behind it; what does not fit is left out. */
void fortran_fill(char *target, size_t length, const char *text);

/* ---- end ---- */

static inline void fortran_error(MPI_Fint *ierror, int err)
{
    if (ierror)
        *ierror = err;
}

/*
 * The count of these two is an int in the Forum's header, beside a large form; in MPICH 5.0 it is
 * of any size, and there is no large form. Whichever the C library has is called with a large
 * count.
 */
#pragma weak MPI_Psend_init_c
#pragma weak MPI_Precv_init_c
#define WITH_LARGE_COUNT(name)                                                                     \
    (MPI_##name##_c ? MPI_##name##_c : (__typeof__(&MPI_##name##_c))(void *)MPI_##name)

#endif
