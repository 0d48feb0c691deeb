/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The info keys of files (MPI-5.0 section 14.2.8 and those of ROMIO that programs use): what was
 * given, checked, and what is in force. The same on all ranks of a file: rank 0's are taken.
 */
#ifndef MOTET_CLIENT_IO_FILE_HINTS_H
#define MOTET_CLIENT_IO_FILE_HINTS_H

#include <stdint.h>

struct comm;
struct info;

/* romio_cb_*, romio_ds_* */
enum file_hint { FILE_HINT_AUTOMATIC, FILE_HINT_ENABLE, FILE_HINT_DISABLE };

#define FILE_HINTS_TEXT 128

/* Travels from rank 0 to the others as it is. */
struct file_hints {
    uint8_t cb_read, cb_write; /* two-phase collective access: enum file_hint */
    uint8_t ds_read, ds_write; /* data sieving of independent access */
    int32_t cb_nodes;          /* ranks that access the file for all; 0: chosen (aggregators.c) */
    int64_t cb_buffer_size;    /* bytes that each of them has in hand at a time */
    int64_t ind_rd_buffer_size, ind_wr_buffer_size; /* of data sieving */
    int64_t striping_unit;                          /* their shares begin at multiples; 0: any */
    int32_t file_perm;                              /* of a new file, before the umask */
    int32_t striping_factor;                        /* 0: not given */
    char access_style[FILE_HINTS_TEXT];             /* "": not given */
};

void file_hints_init(struct file_hints *hints);
/* Takes over what info has of the keys that are known; MPI_ERR_INFO_VALUE names key and value.
 * `info` may be NULL. */
int file_hints_take(struct file_hints *hints, const struct info *info);
/* Collective: everybody has rank 0's. */
int file_hints_agree(struct file_hints *hints, struct comm *comm);
/* The keys in force as an info object with a handle. */
int file_hints_show(const struct file_hints *hints, int n_aggregators, struct info **ret_info);

#endif
