/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening, closing and deleting files (MPI-5.0 sections 14.2.1 to 14.2.3). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/abi/semantics.h"
#include "client/comm/create.h"
#include "client/datatype/datatype.h"
#include "client/io/access/view.h"
#include "client/io/aggregators.h"
#include "client/io/fault.h"
#include "client/io/file.h"
#include "client/io/fileop.h"
#include "client/io/identity.h"
#include "client/io/pointer.h"
#include "client/object/err.h"
#include "client/object/errhandler.h"
#include "client/object/group.h"
#include "client/object/handle.h"
#include "client/process/job.h"
#include "client/progress/progress.h"
#include "client/progress/vci.h"

#define ACCESS_MODES (MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY)
#define ALL_MODES                                                                                  \
    (ACCESS_MODES | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE |                   \
     MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND)

/* What rank 0 found, for all. */
struct open_first {
    int32_t error;  /* MPI_SUCCESS: it has opened the file */
    int32_t errnum; /* of the system, or 0 */
    int32_t amode;
    int32_t created;
    struct identity identity;
    struct file_hints hints;
};

/* What became of each rank's opening. */
struct open_result {
    int32_t error, errnum;
    int32_t other_file, other_amode;
};

static int check_amode(int amode)
{
    int access = amode & ACCESS_MODES;
    if (access != MPI_MODE_RDONLY && access != MPI_MODE_RDWR && access != MPI_MODE_WRONLY)
        return err_set(MPI_ERR_AMODE,
                       "amode %#x has not exactly one of MPI_MODE_RDONLY, "
                       "MPI_MODE_RDWR and MPI_MODE_WRONLY",
                       (unsigned)amode);
    if (amode & ~ALL_MODES)
        return err_set(MPI_ERR_AMODE, "amode has bits %#x, which mean nothing",
                       (unsigned)(amode & ~ALL_MODES));
    if (access == MPI_MODE_RDONLY && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)))
        return err_set(MPI_ERR_AMODE, "MPI_MODE_RDONLY goes neither with MPI_MODE_CREATE nor with "
                                      "MPI_MODE_EXCL");
    if (access == MPI_MODE_RDWR && (amode & MPI_MODE_SEQUENTIAL))
        return err_set(MPI_ERR_AMODE, "MPI_MODE_RDWR does not go with MPI_MODE_SEQUENTIAL");
    return MPI_SUCCESS;
}

static int system_flags(int amode)
{
    int access = amode & ACCESS_MODES;
    return O_CLOEXEC | (access == MPI_MODE_RDONLY ? O_RDONLY
                        : access == MPI_MODE_RDWR ? O_RDWR
                                                  : O_WRONLY);
}

/* Opens an existing file; its identity tells the ranks whether all have the same. */
static int open_existing(struct file *file, struct identity *ret_identity)
{
    file->fd = open(file->name, system_flags(file->amode));
    int errnum = file->fd < 0 ? errno : identity_of(file->fd, ret_identity);
    if (errnum && file->fd >= 0) {
        close(file->fd);
        file->fd = -1;
    }
    return errnum;
}

/* Rank 0 alone creates, so that MPI_MODE_EXCL means one thing for all. */
static void open_as_first(struct file *file, struct open_first *first)
{
    int amode = file->amode;
    if (amode & MPI_MODE_CREATE) {
        int fd = open(file->name, system_flags(amode) | O_CREAT | O_EXCL,
                      (mode_t)first->hints.file_perm);
        first->errnum = fd < 0 ? errno : 0;
        if (fd >= 0) {
            first->created = 1;
            file->fd = fd;
            first->errnum = identity_of(fd, &first->identity);
            return;
        }
        if (first->errnum != EEXIST || (amode & MPI_MODE_EXCL))
            return;
    }
    first->errnum = open_existing(file, &first->identity);
}

static const char *node_of(const struct file *file, int rank)
{
    return job_node_name(job_node_of(file->comm->group->procs[rank]));
}

/* The same words on all ranks about the first one that could not open it. */
static int open_complain(const struct file *file, int rank, const struct open_result *r)
{
    char who[160];
    snprintf(who, sizeof who, "cannot open: rank %d on node %s", rank, node_of(file, rank));
    if (r->other_amode)
        return err_set(MPI_ERR_NOT_SAME, "%s: amode of rank %d is not that of rank 0", file->name,
                       rank);
    if (r->other_file || (r->errnum == ENOENT && rank != 0))
        return err_set(r->other_file ? MPI_ERR_NOT_SAME : MPI_ERR_NO_SUCH_FILE,
                       "%s: %s on node %s, where rank %d is, is not the file that rank 0 opened on "
                       "node %s: the two share no file system there",
                       file->name,
                       r->other_file ? "what has this name" : "nothing has this name; it",
                       node_of(file, rank), rank, node_of(file, 0));
    if (r->errnum)
        return fault_say(file->name, who, r->errnum);
    return err_set(r->error, "%s: rank %d gave an argument that is refused", file->name, rank);
}

/* Everybody opens; the result is the same on all ranks. `err`: of this rank's arguments. */
static int open_together(struct file *file, int err, struct file_hints *hints)
{
    struct open_first first = {.error = err, .amode = file->amode, .hints = *hints};
    struct open_result own = {0}, *all;
    struct datatype *byte = datatype_predefined(MPI_BYTE);
    int rank = file->comm->rank, bad = 0;
    if (rank == 0 && !err)
        open_as_first(file, &first);
    int failed = mpi_bcast(&first, sizeof first, byte, 0, file->comm);
    if (failed)
        return failed;
    *hints = first.hints;
    own.error = err;
    if (rank == 0)
        own.errnum = first.errnum;
    own.other_amode = first.amode != file->amode;
    if (rank != 0 && !err && !first.error && !first.errnum && !own.other_amode) {
        struct identity identity;
        own.errnum = open_existing(file, &identity);
        own.other_file = !own.errnum && !identity_same(&identity, &first.identity);
    }
    all = calloc((size_t)file->comm->size, sizeof *all);
    if (!all)
        return err_set(MPI_ERR_NO_MEM, "no memory for a file");
    failed = mpi_allgather(&own, sizeof own, byte, all, sizeof own, byte, file->comm);
    while (!failed && bad < file->comm->size && !all[bad].error && !all[bad].errnum &&
           !all[bad].other_file && !all[bad].other_amode)
        bad++;
    if (!failed && bad < file->comm->size) {
        if (rank == 0 && first.created)
            unlink(file->name);
        /* A rank's own words about its arguments are better than others' about them. */
        failed = err ? err : open_complain(file, bad, &all[bad]);
    }
    free(all);
    return failed;
}

static int move_to_end(struct file *file)
{
    MPI_Offset size;
    if (!(file->amode & MPI_MODE_APPEND))
        return MPI_SUCCESS;
    int err = file_size(file, &size);
    if (err)
        return err;
    file->position = size;
    /* All ranks have the same size here; rank 0's counts. */
    return file->comm->rank == 0 ? pointer_set(file, size) : MPI_SUCCESS;
}

static struct file *file_new(const char *filename, int amode)
{
    struct file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->obj = (struct object){.refs = 1, .kind = OBJECT_FILE};
    file->fd = -1;
    file->amode = amode;
    file->name = strdup(filename);
    pthread_mutex_init(&file->range_mutex, NULL);
    file_hints_init(&file->hints);
    if (file->name)
        return file;
    free(file);
    return NULL;
}

/* The private communicator has the file's error handler, and is called by its name in messages. */
static int dress_comm(struct file *file)
{
    size_t length = strlen(file->name);
    size_t skip = length < sizeof file->comm->name ? 0 : length - sizeof file->comm->name + 1;
    snprintf(file->comm->name, sizeof file->comm->name, "%s", file->name + skip);
    file->comm->vci = &vci_here->table[0]; /* progress serves that one */
    return errhandler_assign(&file->comm->errhandler, errhandler_here->file, ERRHANDLER_FILE);
}

int mpi_file_open(struct comm *comm, const char *filename, int amode, struct info *info,
                  struct file **ret_fh)
{
    if (comm_is_inter(comm))
        return err_set(MPI_ERR_COMM,
                       "%s is an intercommunicator: files are opened over intracommunicators",
                       comm->name);
    struct file *file = file_new(filename, amode);
    if (!file)
        return err_set(MPI_ERR_NO_MEM, "no memory for a file");
    int mine = check_amode(amode);
    mine = mine ? mine : file_hints_take(&file->hints, info);
    if (!mine && !filename[0])
        mine = err_set(MPI_ERR_BAD_FILE, "the name of the file is empty");
    int err = create_private(comm, &file->comm);
    err = err ? err : dress_comm(file);
    err = err ? err : open_together(file, mine, &file->hints);
    if (!err) {
        /* From here on only memory can be missing. */
        err = view_new_bytes(&file->view);
        err = err ? err : aggregators_choose(&file->aggregators, file->comm, file->hints.cb_nodes);
        if (!err && !handle_new(&file->obj))
            err = err_set(MPI_ERR_NO_MEM, "no handle is left for a file");
        err = file_agree(file, err, "could not open it");
    }
    err = err ? err : pointer_open(file);
    err = err ? err : move_to_end(file);
    if (!err)
        err = mpi_barrier(file->comm);
    if (err) {
        file_destroy(file);
        return err;
    }
    file->comm->stands_for = file->obj.handle;
    fileop_init();
    *ret_fh = file;
    return MPI_SUCCESS;
}

/* ---- closing ---- */

void file_destroy(struct file *file)
{
    pointer_close(file);
    if (file->fd >= 0)
        close(file->fd);
    handle_free(&file->obj);
    view_unref(file->view);
    if (file->comm) {
        file->comm->stands_for = (uintptr_t)MPI_FILE_NULL; /* requests may still be waited for */
        comm_unref(file->comm);
    }
    pthread_mutex_destroy(&file->range_mutex);
    free(file->aggregators.ranks);
    free(file->window.bytes);
    free(file->name);
    free(file);
}

int mpi_file_close(struct file **at)
{
    struct file *file = *at;
    if (file->split)
        return err_set(MPI_ERR_FILE, "%s: a split collective has begun and not ended", file->name);
    struct progress_wait wait;
    progress_wait_begin(&wait);
    while (file->n_open > 0)
        progress_wait_step(&wait);
    progress_wait_end(&wait);
    int err = MPI_SUCCESS;
    /* What the file system kept back until now (a quota, a server's disk) is said here. */
    if (close(file->fd) != 0)
        err = fault_say(file->name, "cannot close", errno);
    file->fd = -1;
    err = file_agree(file, err, "could not close it");
    if (file->comm->rank == 0 && (file->amode & MPI_MODE_DELETE_ON_CLOSE) &&
        unlink(file->name) != 0 && errno != ENOENT)
        err = fault_say(file->name, "cannot delete on closing", errno);
    /* Whoever returns finds it gone. */
    if (file->amode & MPI_MODE_DELETE_ON_CLOSE)
        err = file_agree(file, err, "could not delete it on closing");
    file_destroy(file); /* an error is raised on MPI_FILE_NULL then */
    *at = NULL;
    return err;
}

int mpi_file_delete(const char *filename, struct info *info)
{
    (void)info; /* no hint says anything about deleting */
    if (!filename[0])
        return err_set(MPI_ERR_BAD_FILE, "the name of the file is empty");
    return unlink(filename) == 0 ? MPI_SUCCESS : fault_say(filename, "cannot delete", errno);
}
