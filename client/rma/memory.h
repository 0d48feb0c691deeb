/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of windows that ranks of a node share: one memory file per window and node, without a
 * name, so that nothing stays when its processes die. Behind the locks of the node's members lie
 * their parts. The lowest rank makes it; the others open it through /proc, which the kernel allows
 * processes of one user.
 */
#ifndef MOTET_CLIENT_RMA_MEMORY_H
#define MOTET_CLIENT_RMA_MEMORY_H

#include "client/rma/win.h"

/* What every member tells of itself. */
struct memory_part {
    int64_t bytes;
    int64_t disp_unit;
    uint64_t alignment; /* power of two, or 0 */
};

/*
 * Maps the node's memory of the window and sets targets[].local, .lock and .direct of the node's
 * ranks; `parts` has an element for each rank of the window. Without with_parts only the locks are
 * shared. contiguous: parts follow one another without gaps. Collective over the window. All
 * members get the same result: false: some node cannot share, and nothing is mapped anywhere.
 */
int memory_share(struct win *win, const struct memory_part *parts, bool with_parts, bool contiguous,
                 bool *ret_shared);
void memory_release(struct win *win);

#endif
