/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/rma/region.h"

#include <stdlib.h>
#include <string.h>

#include "client/abi/semantics.h"
#include "client/object/err.h"

/* The last region that begins at or before the address, or -1. */
static int region_before(const struct win *win, uintptr_t address)
{
    int low = 0, high = win->n_regions;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (win->regions[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static bool is_attached(const struct win *win, int64_t low, int64_t high)
{
    uintptr_t start = (uintptr_t)low, end = (uintptr_t)high;
    int i = region_before(win, start);
    /* Pieces attached one after the other without a gap are one. */
    while (i >= 0 && win->regions[i].n_bytes == 0)
        i--;
    if (i < 0 || end < start || start - win->regions[i].start > win->regions[i].n_bytes)
        return false;
    uintptr_t reach = win->regions[i].start + win->regions[i].n_bytes;
    while (reach < end && ++i < win->n_regions && win->regions[i].start <= reach)
        reach = win->regions[i].start + win->regions[i].n_bytes;
    return end <= reach;
}

bool region_has(const struct win *win, const struct pieces *pieces)
{
    bool dynamic = win->flavor == MPI_WIN_FLAVOR_DYNAMIC;
    for (uint32_t i = 0; i < pieces->n; i++) {
        int64_t low, high;
        if (!piece_span(&pieces->at[i], &low, &high))
            return false;
        if (dynamic ? !is_attached(win, low, high) : low < 0 || high > win->bytes)
            return false;
    }
    return true;
}

static int check_dynamic(const struct win *win, const char *function)
{
    return win->flavor == MPI_WIN_FLAVOR_DYNAMIC
               ? MPI_SUCCESS
               : err_set(MPI_ERR_RMA_FLAVOR,
                         "%s is for windows of MPI_Win_create_dynamic, which %s is not", function,
                         win_text(win));
}

int mpi_win_attach(struct win *win, void *base, MPI_Aint size)
{
    int err = check_dynamic(win, "MPI_Win_attach");
    if (err)
        return err;
    uintptr_t start = (uintptr_t)base;
    int i = region_before(win, start);
    bool behind = i >= 0 && start - win->regions[i].start < win->regions[i].n_bytes;
    bool before = i + 1 < win->n_regions && win->regions[i + 1].start - start < (uintptr_t)size;
    if (size > 0 && (!base || behind || before))
        return err_set(MPI_ERR_RMA_ATTACH, "memory at %p (%lld bytes) cannot be attached to %s: %s",
                       base, (long long)size, win_text(win),
                       base ? "some of it is attached already" : "it is a null pointer");
    if (win->n_regions == win->max_regions) {
        int max = win->max_regions ? 2 * win->max_regions : 8;
        struct win_region *grown = realloc(win->regions, (size_t)max * sizeof *grown);
        if (!grown)
            return err_set(MPI_ERR_RMA_ATTACH, "no memory to attach memory to %s", win_text(win));
        win->regions = grown;
        win->max_regions = max;
    }
    memmove(&win->regions[i + 2], &win->regions[i + 1],
            (size_t)(win->n_regions - i - 1) * sizeof win->regions[0]);
    win->regions[i + 1] = (struct win_region){.start = start, .n_bytes = (size_t)size};
    win->n_regions++;
    return MPI_SUCCESS;
}

int mpi_win_detach(struct win *win, const void *base)
{
    int err = check_dynamic(win, "MPI_Win_detach");
    if (err)
        return err;
    int i = region_before(win, (uintptr_t)base);
    if (i < 0 || win->regions[i].start != (uintptr_t)base)
        return err_set(MPI_ERR_RMA_ATTACH, "nothing at %p is attached to %s", base, win_text(win));
    win->n_regions--;
    memmove(&win->regions[i], &win->regions[i + 1],
            (size_t)(win->n_regions - i) * sizeof win->regions[0]);
    return MPI_SUCCESS;
}
