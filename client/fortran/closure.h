/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * C functions made at run time, one for each Fortran function that becomes an operation or an error
 * handler: C gives those no argument by which a common function could find the Fortran one. The
 * closures are libffi's.
 */
#ifndef MOTET_CLIENT_FORTRAN_CLOSURE_H
#define MOTET_CLIENT_FORTRAN_CLOSURE_H

/* How a closure hands its arguments on: args[i] points at the i-th of them, which is a pointer. */
typedef void closure_body(void (*fortran)(void), void *const *const *args);

/* The C function with n_args pointer arguments that calls body(fortran, args). One for each pair of
 * Fortran function and body, which lives as long as the process: an operation that is freed may
 * still be in use. NULL: no memory. */
void *closure_of(void (*fortran)(void), closure_body *body, unsigned n_args);

#endif
