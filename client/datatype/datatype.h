/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes: what one element of a message looks like in memory.
 *
 * Called by the bindings, p2p, collectives, RMA and I/O, with the library lock held; a committed
 * type is only read, so cursors may walk it on any thread.
 *
 * The idea: a type is described three times, each time for one purpose. The *map* (type_map.h) is
 * the constructor's call in normal form, over child types; it answers questions about basic
 * elements (get_elements, external32). The *layout* (layout.h) is the same thing as bytes, made
 * once at commit: loops over runs, adjacent runs merged, loops never expanded, shared between
 * types; packing and unpacking walk it. The *contents* (contents.h) are the arguments as the user
 * gave them, for MPI_Type_get_contents.
 */
#ifndef MOTET_CLIENT_DATATYPE_DATATYPE_H
#define MOTET_CLIENT_DATATYPE_DATATYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "mpi.h"

#include "client/object/handle.h"
#include "client/object/object.h"

struct attr_table;
struct layout;
struct type_contents;
struct type_map;

/* Machine form of a basic type: what the processor computes with. Several MPI types share one
 * (MPI_INT, MPI_INTEGER and MPI_INT32_T are all BASIC_INT32). BASIC_NONE marks derived types. */
enum basic_kind {
    BASIC_NONE,
    BASIC_INT8,
    BASIC_INT16,
    BASIC_INT32,
    BASIC_INT64,
    BASIC_INT128,
    BASIC_UINT8,
    BASIC_UINT16,
    BASIC_UINT32,
    BASIC_UINT64,
    BASIC_FLOAT16,
    BASIC_FLOAT32,
    BASIC_FLOAT64,
    BASIC_LONG_DOUBLE,
    BASIC_FLOAT128,
    BASIC_COMPLEX16, /* two BASIC_FLOAT16 */
    BASIC_COMPLEX32,
    BASIC_COMPLEX64,
    BASIC_COMPLEX_LONG_DOUBLE,
    BASIC_COMPLEX128,
    BASIC_BYTE, /* bytes without a meaning: MPI_BYTE, MPI_PACKED */
    BASIC_KINDS,
};

/* The groups into which the standard sorts basic types to say which reductions they allow (MPI-5.0
 * section 6.9.2). */
enum basic_class {
    CLASS_NONE, /* derived types */
    CLASS_C_INTEGER,
    CLASS_FORTRAN_INTEGER,
    CLASS_FLOATING,
    CLASS_LOGICAL,
    CLASS_COMPLEX,
    CLASS_BYTE,
    CLASS_MULTI_LANGUAGE, /* MPI_AINT, MPI_OFFSET, MPI_COUNT */
    CLASS_CHARACTER,      /* MPI_CHAR, MPI_WCHAR, MPI_CHARACTER */
    CLASS_PACKED,
    CLASS_PAIR, /* value and index, for MPI_MINLOC and MPI_MAXLOC */
};

/* One part of a layout: `size` stream bytes that start `offset` bytes from wherever the part is
 * placed. Without an inner layout it is one dense run; with one, inner->size == size. */
struct layout_part {
    MPI_Count offset;
    MPI_Count size;
    struct layout *inner;
};

/* Fingerprint of a type signature (the sequence of basic types); equal signatures have equal
 * fingerprints however the types were built. */
struct type_signature {
    uint64_t hash;
    MPI_Count n_elements;
};

struct datatype {
    struct object obj;

    /* Read by everyone. Bytes. extent may be negative; size never is. */
    MPI_Count size, lb, extent, true_lb, true_extent;
    bool contiguous; /* count elements are one dense run of count * size bytes starting at buf +
                        true_lb */
    bool committed;

    /* The engine's own. */
    bool dense; /* one element is one dense run (contiguous asks in addition that extent == size) */
    bool has_lb_marker; /* lb was set by MPI_Type_create_resized somewhere below */
    bool has_ub_marker;
    bool laid_out;           /* layout is valid */
    uint8_t basic;           /* enum basic_kind; of a pair type: the value's */
    uint8_t class;           /* enum basic_class */
    uint8_t pair_index;      /* enum basic_kind of a pair type's index, else BASIC_NONE */
    uint16_t depth;          /* nesting of constructors: 0 for a basic type */
    uint32_t align;          /* strictest alignment of the basic types inside, bytes */
    MPI_Count external_size; /* bytes in the external32 representation */
    struct type_signature signature;
    const struct datatype
        *element; /* the predefined type that all elements have; NULL: several, or no element */
    struct layout_part layout;
    struct type_map *map;           /* NULL for a basic type */
    struct type_contents *contents; /* NULL for a basic type */
    struct attr_table *attrs;
    char *name; /* NULL: no name */
};

/* Looks up a handle; NULL for MPI_DATATYPE_NULL and for anything that is no datatype. */
static inline struct datatype *datatype_from_handle(MPI_Datatype handle)
{
    return (struct datatype *)handle_get(OBJECT_DATATYPE, (uintptr_t)handle);
}

/* The predefined type of a handle constant such as MPI_INT, for use inside the library. */
static inline struct datatype *datatype_predefined(MPI_Datatype handle)
{
    return (struct datatype *)handle_here->predefined[(uintptr_t)handle].object;
}

/* One reference is held by the user's handle, one by each pending operation and each type built on
 * it. The last type_unref frees. Predefined types are never freed. */
static inline void type_ref(struct datatype *type)
{
    if (!type->obj.predefined)
        object_ref(&type->obj);
}
void type_last_unref(struct datatype *type);
static inline void type_unref(struct datatype *type)
{
    if (!type->obj.predefined && object_unref(&type->obj))
        type_last_unref(type);
}

/* Creates the tables of predefined types. Called once by the initialisation of the library, before
 * any other function of this folder; further calls do nothing. */
int datatype_init(void);

/* True when `count` elements are one dense run, which then starts at buf + type->true_lb and is
 * count * size long. */
static inline bool datatype_is_run(const struct datatype *type, MPI_Count count)
{
    return type->contiguous || (count == 1 && type->dense);
}

/* Distance from the buffer's address to the lowest and behind the highest byte that `count`
 * elements have. */
void datatype_span(const struct datatype *type, MPI_Count count, MPI_Count *ret_low,
                   MPI_Count *ret_high);

/* Address of the first byte of a dense run. Integer arithmetic, so that MPI_BOTTOM (a null pointer)
 * with absolute displacements is well defined. */
static inline void *datatype_run_start(const struct datatype *type, const void *buf)
{
    return (void *)((uintptr_t)buf + (uintptr_t)type->true_lb);
}

/* Address of the element `idx` of a buffer. */
static inline void *datatype_at(const struct datatype *type, const void *buf, MPI_Count idx)
{
    return (void *)((uintptr_t)buf + (uintptr_t)(idx * type->extent));
}

/* Signature fingerprint of `count` elements. */
struct type_signature datatype_signature(const struct datatype *type, MPI_Count count);

/* Number of whole basic elements that lie in the first `n_bytes` of the stream of a type repeated
 * for ever, and what is left over of the last one. A type of size 0 yields 0 elements. */
MPI_Count datatype_elements_of_bytes(const struct datatype *type, MPI_Count n_bytes,
                                     MPI_Count *ret_rest);

/* Stream bytes of the first `n_elements` basic elements. */
MPI_Count datatype_bytes_of_elements(const struct datatype *type, MPI_Count n_elements);

/* Name for messages: the type's name, or "derived datatype". Valid as long as the type. */
const char *datatype_name(const struct datatype *type);

/* Copies `count` elements between two buffers of this process, which must not overlap: what
 * receives from itself and the local parts of collectives need. The two sides may use different
 * types; the shorter stream decides. Returns the bytes copied. */
MPI_Count datatype_copy(const void *src, MPI_Count src_count, struct datatype *src_type, void *dst,
                        MPI_Count dst_count, struct datatype *dst_type);

/* A place in the packed stream of (buf, count, type). Holds no reference: the owner of the cursor
 * keeps the type alive. Nothing is allocated; a cursor may be copied. Moving to any position costs
 * nothing: each call below descends from the root of the layout, in time proportional to its depth
 * (and the logarithm of the blocks of irregular types). */
struct type_cursor {
    const struct datatype *type;
    uintptr_t base; /* the buffer's address; 0 for MPI_BOTTOM */
    MPI_Count count;
    MPI_Count position; /* stream bytes already passed */
    MPI_Count total;    /* stream bytes of the whole message */
};

void type_cursor_init(struct type_cursor *c, const struct datatype *type, MPI_Count count,
                      const void *buf);

/* Copies the next bytes of the stream to out. Returns how many: max_bytes, less at the end of the
 * stream. */
size_t type_cursor_pack(struct type_cursor *c, void *out, size_t max_bytes);

/* Writes the next n_bytes of the stream into the buffer. Returns how many were taken; less than
 * n_bytes means that the stream ended (the message was longer than the buffer). */
size_t type_cursor_unpack(struct type_cursor *c, const void *in, size_t n_bytes);

/* stream_offset: 0 .. total. */
void type_cursor_seek(struct type_cursor *c, MPI_Count stream_offset);

/* Describes the next at most max_bytes of the stream as pieces of memory, adjacent ones joined, and
 * moves behind them. Returns the number of pieces (0 only at the end of the stream or when a limit
 * is 0), the bytes in ret_bytes. */
int type_cursor_iov(struct type_cursor *c, struct iovec *iov, int max_iov, size_t max_bytes,
                    size_t *ret_bytes);

static inline MPI_Count type_cursor_left(const struct type_cursor *c)
{
    return c->total - c->position;
}

#endif
