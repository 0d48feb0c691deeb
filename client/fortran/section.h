/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choice buffers of mpi_f08: what TYPE(*), DIMENSION(..) brings (a descriptor after TS 29113) as an
 * address, count and datatype for C.
 *
 * A contiguous array is its address. A section with gaps goes without a temporary wherever one
 * datatype can say where its elements lie: the count of elements that the call transfers is made a
 * single element of a derived type. Where it cannot (reductions, which want predefined types;
 * blocks for each process; types with gaps of their own upon a section with gaps) the section is
 * copied, and copied back when the operation is over: at the end of a blocking call, or when the
 * request of a nonblocking one is completed by a Fortran procedure.
 */
#ifndef MOTET_CLIENT_FORTRAN_SECTION_H
#define MOTET_CLIENT_FORTRAN_SECTION_H

#include <ISO_Fortran_binding.h>
#include <stdbool.h>

#include "client/fortran/support.h"
#include "mpi.h"

enum section_use { SECTION_READ, SECTION_WRITE };

struct section_copy;

/* Lives as long as the call. */
struct section {
    void *base;
    MPI_Count count;
    MPI_Datatype type;
    bool made; /* the type: to be freed */
    struct section_copy *copy;
};

/* Each returns MPI_SUCCESS or an error class, and leaves a section that may be closed. The common
 * case, a scalar or a vector without gaps, is decided here, within the binding. */

int section_describe_any(struct section *s, const CFI_cdesc_t *array, enum section_use use,
                         MPI_Count count, MPI_Datatype type);
int section_copy_any(struct section *s, const CFI_cdesc_t *array, enum section_use use);
int section_address_any(struct section *s, const CFI_cdesc_t *array);
void section_close_made(struct section *s);

static inline bool section_is_plain(struct section *s, const CFI_cdesc_t *array, MPI_Count count,
                                    MPI_Datatype type)
{
    *s = (struct section){.base = fortran_buffer(array->base_addr), .count = count, .type = type};
    return array->rank == 0 ||
           (array->rank == 1 && array->dim[0].sm == (CFI_index_t)array->elem_len);
}

/* `count` elements of `type` in the array. MPI_ERR_COUNT: there are fewer. */
static inline int section_describe(struct section *s, const CFI_cdesc_t *array,
                                   enum section_use use, MPI_Count count, MPI_Datatype type)
{
    return section_is_plain(s, array, count, type)
               ? MPI_SUCCESS
               : section_describe_any(s, array, use, count, type);
}

/* All of the array; one with gaps by a copy. */
static inline int section_copy(struct section *s, const CFI_cdesc_t *array, enum section_use use)
{
    return section_is_plain(s, array, 0, MPI_DATATYPE_NULL) ? MPI_SUCCESS
                                                            : section_copy_any(s, array, use);
}

/* The address; MPI_ERR_BUFFER for an array with gaps, which is more than an address. */
static inline int section_address(struct section *s, const CFI_cdesc_t *array)
{
    return section_is_plain(s, array, 0, MPI_DATATYPE_NULL) ? MPI_SUCCESS
                                                            : section_address_any(s, array);
}

/* For operations whose end is not known here: MPI_ERR_BUFFER if the section is a copy. */
static inline int section_lasting(const struct section *s)
{
    return s->copy ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

/* After a blocking call. */
static inline void section_close(struct section *s)
{
    if (__builtin_expect(s->made || s->copy, 0))
        section_close_made(s);
}

/* After a nonblocking call that returned `err` and, if that is MPI_SUCCESS, this request. */
void section_keep(struct section *s, int err, MPI_Request request);

/* After a call that may have completed requests: the number each had before, and what it is now. */
extern int sections_n_kept;
void sections_settle_now(MPI_Fint was, MPI_Request now);

static inline void sections_settle(MPI_Fint was, MPI_Request now)
{
    if (__builtin_expect(__atomic_load_n(&sections_n_kept, __ATOMIC_RELAXED) != 0, 0))
        sections_settle_now(was, now);
}

static inline void sections_settle_all(MPI_Count n, const MPI_Fint *was, const MPI_Request *now)
{
    if (__builtin_expect(__atomic_load_n(&sections_n_kept, __ATOMIC_RELAXED) != 0, 0))
        for (MPI_Count i = 0; i < n; i++)
            sections_settle_now(was[i], now[i]);
}

#endif
