/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The head of every MPI object (communicator, datatype, request, ...).
 *
 * It is the first member of each object's struct, so that the handle table and the bindings can tell what they hold.
 * Owned by whoever holds the library lock.
 */
#ifndef MOTET_CLIENT_CORE_OBJECT_H
#define MOTET_CLIENT_CORE_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

enum object_kind {
    OBJECT_NONE = 0,
    OBJECT_COMM,
    OBJECT_GROUP,
    OBJECT_DATATYPE,
    OBJECT_OP,
    OBJECT_REQUEST,
    OBJECT_MESSAGE,
    OBJECT_ERRHANDLER,
    OBJECT_INFO,
    OBJECT_WIN,
    OBJECT_FILE,
    OBJECT_SESSION,
    OBJECT_KINDS
};

struct object {
    uintptr_t handle; /* what the application holds; 0 while the object has no handle */
    int32_t refs;
    uint8_t kind; /* enum object_kind */
    bool predefined;
};

/* Name of a kind for messages: "communicator", "datatype", ... */
const char *object_kind_name(enum object_kind kind);

#endif
