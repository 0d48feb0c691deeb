/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error classes, codes and their texts: the predefined ones and those that the application adds.
 *
 * Every predefined class is its own and only code. User classes and codes are numbered from
 * MPI_ERR_LASTCODE
 * + 1 on, in one row.
 */
#ifndef MOTET_CLIENT_OBJECT_ERRCODE_H
#define MOTET_CLIENT_OBJECT_ERRCODE_H

/* Class of a code; MPI_ERR_UNKNOWN for a number that is none. */
int errcode_class(int code);

/* Text of a code ("" for a user code without text), NULL for a number that is none. */
const char *errcode_text(int code);

/* "MPI_ERR_RANK"; "user-defined error class" for user classes. */
const char *errcode_name(int mpi_class);

/* The attribute MPI_LASTUSEDCODE. */
struct user_code;
struct errcode_state {
    int last_used;
    struct user_code *users;
    int n_users, max_users;
};
extern struct errcode_state *errcode_here;

#endif
