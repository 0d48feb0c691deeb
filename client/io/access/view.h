/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Views: which bytes of a file a rank sees, and in which order (MPI-5.0 section 14.3).
 *
 * The data that a view lets through form a stream without gaps, counted in bytes from the view's
 * beginning; etypes are a unit of it. Where a byte of the stream lies in the file is a question to
 * the filetype, repeated for ever from the displacement on. It is answered by the cursor of
 * datatypes (client/datatype), with offsets in the file in place of addresses, so no list of pieces
 * is ever made.
 *
 * A view is immutable; counted references, because operations under way keep the one that they
 * began with. Library lock held but for cursors.
 */
#ifndef MOTET_CLIENT_IO_VIEW_H
#define MOTET_CLIENT_IO_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "mpi.h"

#include "client/datatype/datatype.h"

struct datarep;

struct view {
    int refs;
    MPI_Offset disp;                   /* bytes from the beginning of the file */
    struct datatype *etype, *filetype; /* as the application gave them; referenced */
    const struct datarep *rep;
    struct datatype *layout; /* filetype as the bytes of its representation lie; referenced */
    MPI_Count etype_bytes;   /* of an etype in the file */
    bool sorted;             /* offsets never go down along the stream */
    bool disjoint;           /* and no byte of the file appears twice */
};

/* The default view: bytes from 0 on. */
int view_new_bytes(struct view **ret_view);
/* writable: the file may be written, so nothing may overlap (MPI-5.0 section 14.3). Conditions:
 * MPI_ERR_ARG, MPI_ERR_IO (what a filetype may not be), MPI_ERR_CONVERSION, MPI_ERR_NO_MEM. */
int view_new(MPI_Offset disp, struct datatype *etype, struct datatype *filetype,
             const struct datarep *rep, bool writable, struct view **ret_view);
void view_unref(struct view *view); /* NULL is fine */
static inline void view_ref(struct view *view)
{
    view->refs++;
}

/* A cursor over n_bytes of the stream from `from` on, whose addresses are offsets in the file. */
void view_cursor(const struct view *view, MPI_Count from, MPI_Count n_bytes,
                 struct type_cursor *ret_cursor);

/* Where byte `at` of the stream lies in the file. The view must have data. */
MPI_Offset view_offset(const struct view *view, MPI_Count at);

/* Bytes of the stream that lie below an offset of the file. Sorted views. */
MPI_Count view_below(const struct view *view, MPI_Offset offset);

#endif
