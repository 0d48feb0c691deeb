/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output of the ranks in files: each name is made from a pattern, and ranks with the same name
 * share the file. Files are emptied when the first byte comes for them, folders above them made.
 * Many more may be in use than can be open at once. Called by the run of a job, on mpiexec's one
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/control.pb-c.h"

struct outfile;

struct outfile_set {
    char *pattern[2]; /* of standard output and error; NULL: no file. Owned */
    bool copy;        /* the terminal gets it, too */
    uint32_t n_ranks;
    const char **node;     /* of each rank; NULL before outfile_place */
    uint32_t *node_number; /* in the order of the placements */
    char *names;           /* what `node` points into */
    struct outfile **of;   /* n_ranks of each stream; NULL: not used yet */
    struct outfile *files; /* by name, the one used longest ago first */
    uint32_t n_open;
};

/* In a pattern: %r the rank, %h its node, %p the number of the node in the job, %g the job's group,
 * always 0, %% a percent sign. 0, or -EINVAL for anything else behind a percent sign. */
int outfile_check(const char *pattern);
/* The pattern of one stream, 0 or 1, for -output-filename: owned by the caller. NULL: no memory. */
char *outfile_pattern_of_folder(const char *folder, int stream, uint32_t n_ranks);

/* Takes over the patterns, also when it fails: 0 or -ENOMEM. */
int outfile_init(struct outfile_set *set, char *pattern[2], bool copy, uint32_t n_ranks);
/* Where the ranks are. 0 or -ENOMEM. */
int outfile_place(struct outfile_set *set, Motet__Placement *const *placements, size_t n);
/*
 * Writes n bytes to the file of a rank's stream, which has a pattern. 0, or, once for each file
 * that cannot be written, negative errno with its name, valid until outfile_deinit; what comes for
 * it afterwards is dropped.
 */
int outfile_write(struct outfile_set *set, int stream, uint32_t rank, const void *data, size_t n,
                  const char **ret_name);
void outfile_deinit(struct outfile_set *set);
