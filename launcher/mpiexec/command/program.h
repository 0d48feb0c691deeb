/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which MPI library a program will load, as far as its file tells (System V gABI, chapter 5,
 * dynamic section): one that is linked with another library, or led to one by a path inside it,
 * starts as so many jobs of one rank. Called by mpiexec before it submits the job, on programs of
 * this node.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "launcher/cli/words.h"

/* What an executable says of its libraries. */
struct program_links {
    struct words needed;  /* DT_NEEDED, in order */
    struct words runpath; /* the folders of DT_RUNPATH; or, if that is missing, of DT_RPATH */
    int is_rpath;         /* runpath is of DT_RPATH, which goes before LD_LIBRARY_PATH */
};

/* From the bytes of a file. 0; -ENOEXEC: not a dynamic 64-bit ELF file of this byte order, or
 * damaged; -ENOMEM. To be freed either way. */
int program_read(const uint8_t *data, size_t n, struct program_links *ret_links);
void program_links_free(struct program_links *links);

/*
 * Says in `why` what is wrong with the library that this program will load; "" if nothing is known
 * to be. `name`: as the ranks are to start it; `path`: folders to look in, or NULL for PATH;
 * `library_path`: their LD_LIBRARY_PATH, or NULL; `library`: the file of Motet's own libmpi_abi.
 */
void program_check(const char *name, const char *path, const char *library_path,
                   const char *library, char *why, size_t room);
