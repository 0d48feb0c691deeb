/* SPDX-License-Identifier: BSD-3-Clause */
/* Views and file pointers: where a rank's next access begins (MPI-5.0 sections 14.3, 14.4.3,
 * 14.4.4). */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "client/abi/semantics.h"
#include "client/coll/op/op.h"
#include "client/datatype/construct.h"
#include "client/datatype/datatype.h"
#include "client/io/access/datarep.h"
#include "client/io/access/view.h"
#include "client/io/aggregators.h"
#include "client/io/file.h"
#include "client/io/pointer.h"
#include "client/object/err.h"
#include "client/object/info.h"

/* ---- views ---- */

/* In which all ranks must agree, each with its negative: the greatest tell of differences. */
struct view_terms {
    int64_t error, etype_bytes, no_etype_bytes, rep, no_rep;
};

static int view_agree(struct file *file, int err, MPI_Count etype_bytes, const char *datarep)
{
    int64_t rep = (int64_t)(hash_fnv1a(datarep, strlen(datarep)) >> 1);
    struct view_terms terms = {err, etype_bytes, -etype_bytes, rep, -rep};
    int failed =
        mpi_allreduce(MPI_IN_PLACE, &terms, sizeof terms / sizeof(int64_t),
                      datatype_predefined(MPI_INT64_T), op_predefined(MPI_MAX), file->comm);
    if (err || failed)
        return err ? err : failed;
    if (terms.error)
        return err_set((int)terms.error, "%s: the view of another rank is refused", file->name);
    if (terms.rep != -terms.no_rep)
        return err_set(MPI_ERR_NOT_SAME, "%s: the ranks gave different data representations",
                       file->name);
    if (terms.etype_bytes != -terms.no_etype_bytes)
        return err_set(MPI_ERR_NOT_SAME, "%s: the ranks gave etypes of %lld to %lld bytes",
                       file->name, (long long)-terms.no_etype_bytes, (long long)terms.etype_bytes);
    return MPI_SUCCESS;
}

/* The place in the file that the shared pointer is at. */
static int displacement_of_pointer(struct file *file, MPI_Offset *ret_disp)
{
    MPI_Offset position;
    if (!(file->amode & MPI_MODE_SEQUENTIAL))
        return err_set(MPI_ERR_DISP, "%s: MPI_DISPLACEMENT_CURRENT is for MPI_MODE_SEQUENTIAL",
                       file->name);
    int err = pointer_get(file, &position);
    if (!err)
        *ret_disp = view_offset(file->view, position * file->view->etype_bytes);
    return err;
}

static int make_view(struct file *file, MPI_Offset disp, struct datatype *etype,
                     struct datatype *filetype, const char *datarep, struct view **ret_view)
{
    const struct datarep *rep = datarep_find(datarep);
    if (!rep)
        return err_set(MPI_ERR_UNSUPPORTED_DATAREP,
                       "%s: there is no data representation \"%.128s\"", file->name, datarep);
    if (disp == MPI_DISPLACEMENT_CURRENT) {
        int err = displacement_of_pointer(file, &disp);
        if (err)
            return err;
    } else if (file->amode & MPI_MODE_SEQUENTIAL) {
        return err_set(MPI_ERR_DISP,
                       "%s was opened with MPI_MODE_SEQUENTIAL: disp is MPI_DISPLACEMENT_CURRENT",
                       file->name);
    }
    return view_new(disp, etype, filetype, rep, !(file->amode & MPI_MODE_RDONLY), ret_view);
}

int mpi_file_set_view(struct file *fh, MPI_Offset disp, struct datatype *etype,
                      struct datatype *filetype, const char *datarep, struct info *info)
{
    struct view *view = NULL;
    struct file_hints hints = fh->hints;
    int err = make_view(fh, disp, etype, filetype, datarep, &view);
    err = err ? err : file_hints_take(&hints, info);
    /* Everybody has looked at the shared pointer before it goes back. */
    err = view_agree(fh, err, view ? view->etype_bytes : 0, datarep);
    err = err ? err : file_hints_agree(&hints, fh->comm);
    err = err ? err : aggregators_choose(&fh->aggregators, fh->comm, hints.cb_nodes);
    if (!err && fh->comm->rank == 0)
        err = pointer_set(fh, 0);
    if (!err)
        err = mpi_barrier(fh->comm);
    if (err) {
        view_unref(view);
        return err;
    }
    view_unref(fh->view);
    fh->view = view;
    fh->hints = hints;
    fh->position = 0;
    return MPI_SUCCESS;
}

int mpi_file_get_view(struct file *fh, MPI_Offset *ret_disp, struct datatype **ret_etype,
                      struct datatype **ret_filetype, char *datarep)
{
    const struct view *view = fh->view;
    int err = type_hand_out(view->etype, ret_etype);
    if (err)
        return err;
    err = type_hand_out(view->filetype, ret_filetype);
    if (err) {
        type_release_handed_out(*ret_etype);
        return err;
    }
    *ret_disp = view->disp;
    strcpy(datarep, datarep_name(view->rep));
    return MPI_SUCCESS;
}

int mpi_file_get_type_extent(struct file *fh, struct datatype *datatype, MPI_Count *ret_extent)
{
    struct datatype *layout;
    int err = datarep_layout(fh->view->rep, datatype, &layout);
    if (err)
        return err;
    *ret_extent = layout->extent;
    type_unref(layout);
    return MPI_SUCCESS;
}

/* ---- positions ---- */

int mpi_file_get_byte_offset(struct file *fh, MPI_Offset offset, MPI_Offset *ret_disp)
{
    const struct view *view = fh->view;
    MPI_Count at;
    int err = file_check_random(fh);
    if (err)
        return err;
    if (offset < 0 || __builtin_mul_overflow(offset, view->etype_bytes, &at))
        return err_set(MPI_ERR_ARG, "%s: offset is %lld", fh->name, (long long)offset);
    if (view->layout->size == 0)
        return err_set(MPI_ERR_ARG, "%s: the view's filetype has no data", fh->name);
    *ret_disp = view_offset(view, at);
    return MPI_SUCCESS;
}

/* The first etype of the view that lies wholly behind the end of the file. */
static int end_position(const struct file *file, MPI_Offset *ret_position)
{
    const struct view *view = file->view;
    MPI_Offset size;
    int err = file_size(file, &size);
    if (err)
        return err;
    MPI_Count below = view_below(view, size);
    *ret_position = (below + view->etype_bytes - 1) / view->etype_bytes;
    return MPI_SUCCESS;
}

/* Where a seek from `current` leads. */
static int seek_to(const struct file *file, MPI_Offset offset, int whence, MPI_Offset current,
                   MPI_Offset *ret_position)
{
    MPI_Offset base = 0;
    int err = MPI_SUCCESS;
    if (whence == MPI_SEEK_CUR)
        base = current;
    else if (whence == MPI_SEEK_END)
        err = end_position(file, &base);
    else if (whence != MPI_SEEK_SET)
        err = err_set(MPI_ERR_ARG, "whence is %d", whence);
    if (err)
        return err;
    if (__builtin_add_overflow(base, offset, &base) || base < 0)
        return err_set(MPI_ERR_ARG, "%s: offset %lld leads before the beginning", file->name,
                       (long long)offset);
    *ret_position = base;
    return MPI_SUCCESS;
}

int mpi_file_seek(struct file *fh, MPI_Offset offset, int whence)
{
    int err = file_check_random(fh);
    return err ? err : seek_to(fh, offset, whence, fh->position, &fh->position);
}

int mpi_file_get_position(struct file *fh, MPI_Offset *ret_offset)
{
    int err = file_check_random(fh);
    if (!err)
        *ret_offset = fh->position;
    return err;
}

int mpi_file_get_position_shared(struct file *fh, MPI_Offset *ret_offset)
{
    return pointer_get(fh, ret_offset);
}

int mpi_file_seek_shared(struct file *fh, MPI_Offset offset, int whence)
{
    int64_t bounds[4] = {offset, -offset, whence, -whence};
    MPI_Offset current, position;
    int err = file_check_random(fh);
    if (err)
        return err;
    /* What was started before is over, as far as the pointer is concerned, when all are here. */
    err = mpi_allreduce(MPI_IN_PLACE, bounds, 4, datatype_predefined(MPI_INT64_T),
                        op_predefined(MPI_MAX), fh->comm);
    if (err)
        return err;
    if (bounds[0] != -bounds[1] || bounds[2] != -bounds[3])
        return err_set(MPI_ERR_NOT_SAME, "%s: the ranks gave different offsets", fh->name);
    if (fh->comm->rank == 0) {
        err = pointer_get(fh, &current);
        err = err ? err : seek_to(fh, offset, whence, current, &position);
        err = err ? err : pointer_set(fh, position);
    }
    return file_agree(fh, err, "could not move the shared file pointer");
}
