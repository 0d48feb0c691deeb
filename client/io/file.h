/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files: what the ranks of a communicator have open together (MPI-5.0 chapter 14).
 *
 * Called by the bindings and by progress, with the library lock held. Each rank has its own open
 * file of the system, and a private communicator, which carries what the ranks say to one another
 * about the file and has its error handler. The layers, from the bottom up: access.h moves one
 * rank's bytes by system calls; exchange.h has some ranks do that for all (two-phase); fileop.h
 * is one call of reading or writing, in all forms; calls_*.c are the functions of the standard.
 */
#ifndef MOTET_CLIENT_IO_FILE_H
#define MOTET_CLIENT_IO_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi.h"

#include "client/io/file_hints.h"
#include "client/object/comm.h"
#include "client/object/object.h"

struct request;
struct view;
struct win;

/* The ranks that access the file for all, in the order of their shares of it. */
struct aggregators {
    int n;
    int *ranks;
    int own; /* this rank's place among them, or -1 */
};

/* An aggregator's buffer, kept between calls; none: in use, or not needed so far. */
struct file_window {
    char *bytes;
    size_t n_bytes;
};

/* Which split collective is open. */
enum split_form {
    SPLIT_NONE,
    SPLIT_READ,
    SPLIT_READ_AT,
    SPLIT_READ_ORDERED,
    SPLIT_WRITE,
    SPLIT_WRITE_AT,
    SPLIT_WRITE_ORDERED
};

struct file {
    struct object obj;
    struct comm *comm; /* private */
    char *name;
    int fd, amode;
    struct file_hints hints;
    struct view *view;
    MPI_Offset position; /* this rank's pointer, in etypes of the view */
    bool atomic;
    pthread_mutex_t range_mutex; /* access.h */
    struct aggregators aggregators;
    struct file_window window;
    struct win *pointers;    /* the shared pointer, in rank 0's memory; NULL: alone */
    int64_t pointer;         /* where pointers is NULL */
    uint32_t n_exchanges[2]; /* blocking and other two-phase transfers: tags of their messages */
    int n_open;              /* nonblocking transfers under way */
    uint64_t n_turns, turn;  /* collective ones of them: begun, and whose turn it is */
    enum split_form split_form;
    struct request *split;
};

/* Raises an error on a file's error handler; on that of MPI_FILE_NULL where file is NULL. */
int raise_on_file(struct file *file, int err, const char *function);

/* May it be read, or written? MPI_ERR_ACCESS, MPI_ERR_READ_ONLY. */
int file_check_access(const struct file *file, bool write);
/* Files of MPI_MODE_SEQUENTIAL have the shared pointer and nothing else. */
int file_check_random(const struct file *file);
/* The system's size of the file. */
int file_size(const struct file *file, MPI_Offset *ret_size);

/* All ranks tell their error: the worst, or MPI_SUCCESS; `what` is said where it is another's. */
int file_agree(struct file *file, int err, const char *what);

void file_destroy(struct file *file);

#endif
