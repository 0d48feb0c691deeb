/* SPDX-License-Identifier: BSD-3-Clause */
/* See closure.h. */
#include "client/fortran/closure.h"

#include <ffi.h>
#include <pthread.h>
#include <stdlib.h>

#define CLOSURE_MAX_ARGS 4

struct closure {
    struct closure *next;
    void (*fortran)(void);
    closure_body *body;
    void *code;
    ffi_cif cif;
    ffi_type *types[CLOSURE_MAX_ARGS];
};

static struct closure *closures;
static pthread_mutex_t closures_mutex = PTHREAD_MUTEX_INITIALIZER;

static void closure_call(ffi_cif *cif, void *result, void **args, void *user)
{
    (void)cif;
    (void)result;
    const struct closure *c = user;
    c->body(c->fortran, (void *const *const *)args);
}

static struct closure *closure_new(void (*fortran)(void), closure_body *body, unsigned n_args)
{
    struct closure *c = calloc(1, sizeof *c);
    void *code = NULL;
    ffi_closure *writable = c ? ffi_closure_alloc(sizeof *writable, &code) : NULL;
    if (!writable) {
        free(c);
        return NULL;
    }
    for (unsigned i = 0; i < n_args && i < CLOSURE_MAX_ARGS; i++)
        c->types[i] = &ffi_type_pointer;
    c->fortran = fortran;
    c->body = body;
    c->code = code;
    if (ffi_prep_cif(&c->cif, FFI_DEFAULT_ABI, n_args, &ffi_type_void, c->types) == FFI_OK &&
        ffi_prep_closure_loc(writable, &c->cif, closure_call, c, code) == FFI_OK)
        return c;
    ffi_closure_free(writable);
    free(c);
    return NULL;
}

void *closure_of(void (*fortran)(void), closure_body *body, unsigned n_args)
{
    pthread_mutex_lock(&closures_mutex);
    struct closure *c = closures;
    while (c && (c->fortran != fortran || c->body != body))
        c = c->next;
    if (!c) {
        c = closure_new(fortran, body, n_args);
        if (c) {
            c->next = closures;
            closures = c;
        }
    }
    pthread_mutex_unlock(&closures_mutex);
    return c ? c->code : NULL;
}
