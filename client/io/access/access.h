/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Independent access: one rank's bytes between memory and file, by system calls.
 *
 * Knows nothing of views, requests and ranks: two cursors say where the bytes are on either side.
 * Takes no lock of the library and touches none of its state, so it runs on any thread; the types
 * under the cursors must live as long. What is one run on both sides is one system call. Pieces in
 * memory go as vectors, or through a bounce buffer where they are short. Pieces in the file that
 * lie close together are read with what is between them (data sieving, Thakur, Gropp and Lusk,
 * 1999); written that way they are only if the application asks for it, since everything between
 * them must be locked meanwhile, by everybody.
 */
#ifndef MOTET_CLIENT_IO_ACCESS_H
#define MOTET_CLIENT_IO_ACCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpi.h"

#include "client/datatype/datatype.h"

/* What may be read, or read and written back, between two pieces. */
struct access_sieve {
    int64_t buffer_bytes; /* 0: nothing; pieces go one by one */
    int64_t max_gap;
};

struct access_lock {
    pthread_mutex_t *mutex;  /* of the open file: all its threads are one owner to the system */
    MPI_Offset low, n_bytes; /* atomic mode: the whole access; n_bytes 0: without end */
    bool whole;              /* is that to be locked? */
    bool each;               /* no: each write by itself, because others write gaps back */
};

struct access {
    int fd;
    bool write;
    struct type_cursor file; /* addresses are offsets in the file */
    struct type_cursor memory;
    struct access_sieve sieve;
    struct access_lock lock;
    /* Results. */
    MPI_Count done;   /* bytes of the stream that were moved; less than all: end of file or error */
    int errnum;       /* 0: none */
    const char *what; /* what could not be done */
};

/* Moves all bytes that both cursors have. */
void access_run(struct access *a);

/* One run of the file, whole unless the file ends or the system refuses. Returns the bytes moved;
 * *errnum is set on an error. */
size_t access_read(int fd, void *to, size_t n, MPI_Offset at, int *errnum);
size_t access_write(int fd, const void *from, size_t n, MPI_Offset at, int *errnum);

#endif
