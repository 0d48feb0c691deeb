/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/rma/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/abi/semantics.h"
#include "client/coll/op/op.h"
#include "client/datatype/datatype.h"
#include "client/object/err.h"
#include "client/object/group.h"
#include "client/process/job.h"

/* Parts begin on pages unless they are to be contiguous, so that no two ranks write to one. */
#define PAGE ((size_t)4096)

/* How the processes of a node find the file. */
struct address {
    int32_t pid, fd;
};

static bool is_here(const struct win *win, int rank)
{
    return job_is_local(win->comm->group->procs[rank]);
}

static int leader_of(const struct win *win)
{
    int rank = 0;
    while (!is_here(win, rank))
        rank++;
    return rank;
}

static bool round_up(size_t *n, size_t to)
{
    size_t sum;
    if (__builtin_add_overflow(*n, to - 1, &sum))
        return false;
    *n = sum & ~(to - 1);
    return true;
}

/* Where each rank of the node has its part; the whole size. False: it does not fit into memory's
 * addresses. */
static bool lay_out(const struct win *win, const struct memory_part *parts, bool with_parts,
                    bool contiguous, size_t *offsets, size_t *ret_total)
{
    size_t total = 0;
    for (int i = 0; i < win->comm->size; i++)
        if (is_here(win, i))
            total += sizeof(struct ticket_lock);
    bool fits = round_up(&total, PAGE);
    for (int i = 0; with_parts && i < win->comm->size; i++) {
        if (!is_here(win, i))
            continue;
        size_t align = parts[i].alignment > PAGE ? parts[i].alignment : PAGE;
        if (!contiguous || i == leader_of(win))
            fits = fits && round_up(&total, align);
        offsets[i] = total;
        fits = fits && !__builtin_add_overflow(total, (size_t)parts[i].bytes, &total);
    }
    *ret_total = total;
    return fits && round_up(ret_total, PAGE) && *ret_total <= INT64_MAX;
}

static int make_file(size_t total)
{
    int fd = memfd_create("motet-window", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)total) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int open_file(const struct address *at)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)at->pid, (int)at->fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* All say whether it went well for them: the worst of them. */
static int agree(const struct win *win, bool well, bool *ret_all)
{
    int all = well;
    int err = mpi_allreduce(MPI_IN_PLACE, &all, 1, datatype_predefined(MPI_INT),
                            op_predefined(MPI_MIN), win->comm);
    *ret_all = all;
    return err;
}

/* The leaders make the files, everybody maps the one of its node. */
static int map_node(struct win *win, size_t total, bool well, bool *ret_all)
{
    int n = win->comm->size, leader = leader_of(win), fd = -1;
    struct address *addresses = calloc((size_t)n, sizeof *addresses);
    struct address own = {.pid = (int32_t)getpid(), .fd = -1};
    if (!addresses)
        return err_set(MPI_ERR_NO_MEM, "no memory for a window");
    if (win->comm->rank == leader && well)
        own.fd = fd = make_file(total);
    int err = mpi_allgather(&own, sizeof own, datatype_predefined(MPI_BYTE), addresses, sizeof own,
                            datatype_predefined(MPI_BYTE), win->comm);
    if (!err && win->comm->rank != leader && addresses[leader].fd >= 0)
        fd = open_file(&addresses[leader]);
    void *base = MAP_FAILED;
    if (fd >= 0)
        base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    free(addresses);
    if (!err)
        err = agree(win, well && base != MAP_FAILED, ret_all);
    /* Everybody has opened it. */
    if (fd >= 0)
        close(fd);
    if (base != MAP_FAILED) {
        win->mapping = (struct win_mapping){.base = base, .n_bytes = total};
        if (err || !*ret_all)
            memory_release(win);
    }
    return err;
}

int memory_share(struct win *win, const struct memory_part *parts, bool with_parts, bool contiguous,
                 bool *ret_shared)
{
    size_t total = 0, *offsets = calloc((size_t)win->comm->size, sizeof *offsets);
    bool fits = offsets && lay_out(win, parts, with_parts, contiguous, offsets, &total);
    int err = map_node(win, total, fits, ret_shared);
    struct ticket_lock *locks = win->mapping.base;
    for (int i = 0; !err && *ret_shared && i < win->comm->size; i++) {
        if (!is_here(win, i))
            continue;
        win->targets[i].lock = locks++;
        if (with_parts) {
            win->targets[i].local = (char *)win->mapping.base + offsets[i];
            win->targets[i].direct = true;
            win->shared = win->shared || i != win->comm->rank;
        }
    }
    free(offsets);
    return err;
}

void memory_release(struct win *win)
{
    if (win->mapping.base)
        munmap(win->mapping.base, win->mapping.n_bytes);
    win->mapping = (struct win_mapping){0};
}
