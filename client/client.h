/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client: one rank's instance of the MPI library.
 *
 * Everything in the library that changes belongs to a client. A module keeps its own in one struct,
 * its part, and reaches it through one pointer, `MODULE_here`, so that an access costs one load; it
 * tells of the part by CLIENT_PART, and nothing else knows what is in it. In the library there is
 * one client, whose parts are static, and the pointers never change. Unit tests and the simulation
 * have as many clients as they like in one process, and say by client_enter() whose turn it is.
 *
 * What remains outside are constants, what belongs to a thread (thread-local variables) and what
 * belongs to the machine (hwloc's topology). One thread at a time may be inside when there are
 * several clients, and a helper thread (client/progress/async.h) enters none but the library's.
 */
#ifndef MOTET_CLIENT_CLIENT_H
#define MOTET_CLIENT_CLIENT_H

#include <stddef.h>

struct client;

/* Whose turn it is: what every MODULE_here belongs to. */
extern struct client *client_here;

/* A new client as the library is before main(); the environment variables that are read there are
 * read now. It does not have the turn. NULL: no memory. */
struct client *client_new(void);

/* Gives it the turn; returns who had it. */
struct client *client_enter(struct client *client);

/* Frees a client of client_new() that does not have the turn and is done with MPI, or never began.
 * Objects that the application has not freed are lost. NULL is fine. */
void client_free(struct client *client);

struct client_part {
    void *here;    /* the module's pointer: T **, to the part of the client whose turn it is */
    void *library; /* T *: the part in the library's own client */
    size_t n_bytes;
    void (*init)(void);    /* fills the part at *here, which is zeroed; may call modules for which
                              zeroed is enough. NULL: zeroed it is as it is to be */
    void (*deinit)(void);  /* frees what the part at *here owns; NULL: nothing */
    struct client **owner; /* has whoever links a part link client.c as well */
};

/* Behind `static struct T first;` and `struct T *MODULE_here = &first;`: CLIENT_PART(MODULE_here,
 * first, .init = MODULE_part_init). The linker makes one list of all parts. */
#define CLIENT_PART(here_, first_, ...)                                                            \
    static const struct client_part here_##_part = {.here = (void *)&here_,                        \
                                                    .library = &first_,                            \
                                                    .n_bytes = sizeof first_,                      \
                                                    .owner = &client_here,                         \
                                                    __VA_ARGS__};                                  \
    static const struct client_part *const here_##_entry                                           \
        __attribute__((section("client_parts"), used)) = &here_##_part

#endif
