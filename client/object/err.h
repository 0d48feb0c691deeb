/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The detail of an error: what exactly was wrong, in words, and whose error handler is to hear of
 * it.
 *
 * Semantics functions and argument checks return `err_set(class, "...")`. The text stays with the
 * calling thread until the next err_set(); the error handlers that end the job print it. Where the
 * application gets the error, the text is kept for MPI_Error_string.
 *
 * Error codes are their classes, with no room for an index to a text: programs compare what a call
 * returned with MPI_ERR_TRUNCATE and its like, which works with a library whose codes are classes
 * and so must work here. So a text belongs to a class and a thread, and MPI_Error_string calls it
 * the last of its class, which is true whenever it is asked.
 */
#ifndef MOTET_CLIENT_OBJECT_ERR_H
#define MOTET_CLIENT_OBJECT_ERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct comm;

#define ERR_DETAIL_BYTES 512

/* Stores the text (cut at ERR_DETAIL_BYTES) and returns mpi_class. A macro, so that the compiler
 * sees that a constant class is no success and warns of no path that cannot be. */
#define err_set(mpi_class, ...)                                                                    \
    __extension__({                                                                                \
        err_record((mpi_class), __VA_ARGS__);                                                      \
        (mpi_class);                                                                               \
    })

void err_record(int mpi_class, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/* The text of the last err_set() of this thread if that was for mpi_class, else "". */
const char *err_detail(int mpi_class);

/* The application is given the code by a function that was called on an object ("" for none): what
 * is known of it is kept in this thread. What MPI_ERR_IN_STATUS stands for is kept under the class
 * that is in the status. */
void err_keep(int code, const char *function, const char *object_name);

/* "FUNCTION on OBJECT: DETAIL" of the last error of this class that the application got in this
 * thread; false when it is not known any more. */
bool err_kept(int mpi_class, char *text, size_t n_bytes);

/* After err_set(): the error belongs to this communicator though it is no argument of the call
 * (MPI_Wait and its like: the request's). The binding raises it there; the communicator must live
 * until the semantics function has returned and the binding has raised. */
void err_blame(struct comm *comm);

/* What err_blame() said since the last err_set(), or NULL; forgets it. For the bindings. */
struct comm *err_take_blame(void);

/* A thread that finds an error on behalf of another one (the helper thread, or whichever polls)
 * puts the text of its last err_set() aside, and the number under which it lies into *detail,
 * unless there is one already or it has no text for the class. The thread that ends the operation
 * takes the text over, as by err_set() of its own. The last 32 are there to be taken; 0 is nobody's
 * number. */
void err_stow(int mpi_class, uint32_t *detail);
void err_unstow(int mpi_class, uint32_t *detail);

/* Forgets everything: after an error that was handled inside the library. */
void err_clear(void);

#endif
