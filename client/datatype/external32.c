/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The external32 representation (MPI-5.0 section 14.5.2) and the functions that pack into it.
 *
 * Every basic type has a fixed size there, most significant byte first, floating point as IEEE 754.
 * Element by element through the type's map: speed is that of conversion, not of copying.
 * Processors are assumed little endian, as in the rest of the project (proto/).
 */
#include <float.h>
#include <string.h>

#include "client/abi/semantics.h"
#include "client/datatype/type_map.h"
#include "client/object/err.h"

/* Bytes of a long double that mean something; the padding of the x87 form is written as 0. */
#if LDBL_MANT_DIG == 64
#define LONG_DOUBLE_BYTES 10
#else
#define LONG_DOUBLE_BYTES sizeof(long double)
#endif

struct external_walk {
    unsigned char *stream; /* next byte of the packed buffer */
    bool packing;
};

static void external32_reverse(void *dst, const void *src, size_t n)
{
    unsigned char *to = dst;
    const unsigned char *from = src;
    for (size_t i = 0; i < n; i++)
        to[i] = from[n - 1 - i];
}

/* An integer of `native` bytes as one of `external` bytes: high bytes are dropped, or filled by the
 * sign. */
static void convert_integer(struct external_walk *w, unsigned char *memory, size_t native,
                            size_t external, bool is_signed)
{
    size_t n = native < external ? native : external;
    if (w->packing) {
        int fill = is_signed && (memory[native - 1] & 0x80) ? 0xff : 0;
        memset(w->stream, fill, external - n);
        external32_reverse(w->stream + (external - n), memory, n);
    } else {
        int fill = is_signed && (w->stream[0] & 0x80) ? 0xff : 0;
        external32_reverse(memory, w->stream + (external - n), n);
        memset(memory + n, fill, native - n);
    }
    w->stream += external;
}

/* The processor's long double against IEEE binary128. */
static void convert_long_double(struct external_walk *w, unsigned char *memory)
{
    long double value;
    __float128 quad;
    if (w->packing) {
        memcpy(&value, memory, sizeof value);
        quad = value;
        external32_reverse(w->stream, &quad, sizeof quad);
    } else {
        external32_reverse(&quad, w->stream, sizeof quad);
        value = (long double)quad;
        memset(memory, 0, sizeof value);
        memcpy(memory, &value, LONG_DOUBLE_BYTES);
    }
    w->stream += sizeof quad;
}

/* A floating point number whose native form is the external one but for the order of its bytes. */
static void convert_swapped(struct external_walk *w, unsigned char *memory, size_t n)
{
    if (w->packing)
        external32_reverse(w->stream, memory, n);
    else
        external32_reverse(memory, w->stream, n);
    w->stream += n;
}

static void convert_element(struct external_walk *w, const struct datatype *type,
                            unsigned char *memory)
{
    size_t size = (size_t)type->size;
    size_t external = (size_t)type->external_size;
    switch ((enum basic_kind)type->basic) {
    case BASIC_INT8:
    case BASIC_INT16:
    case BASIC_INT32:
    case BASIC_INT64:
    case BASIC_INT128:
        convert_integer(w, memory, size, external, type->class != CLASS_CHARACTER);
        break;
    case BASIC_UINT8:
    case BASIC_UINT16:
    case BASIC_UINT32:
    case BASIC_UINT64:
    case BASIC_BYTE:
        convert_integer(w, memory, size, external, false);
        break;
    case BASIC_FLOAT16:
    case BASIC_FLOAT32:
    case BASIC_FLOAT64:
    case BASIC_FLOAT128:
        convert_swapped(w, memory, size);
        break;
    case BASIC_LONG_DOUBLE:
        convert_long_double(w, memory);
        break;
    case BASIC_COMPLEX16:
    case BASIC_COMPLEX32:
    case BASIC_COMPLEX64:
    case BASIC_COMPLEX128:
        convert_swapped(w, memory, size / 2);
        convert_swapped(w, memory + size / 2, size / 2);
        break;
    case BASIC_COMPLEX_LONG_DOUBLE:
        convert_long_double(w, memory);
        convert_long_double(w, memory + sizeof(long double));
        break;
    case BASIC_NONE:
    case BASIC_KINDS:
        break;
    }
}

/* `count` elements from the address `base` on. */
static void walk_type(struct external_walk *w, const struct datatype *type, MPI_Count count,
                      uintptr_t base)
{
    const struct type_map *map = type->map;
    if (type->size == 0)
        return;
    for (MPI_Count i = 0; i < count; i++, base += (uintptr_t)type->extent) {
        if (map == NULL) {
            convert_element(w, type, (unsigned char *)base);
            continue;
        }
        for (MPI_Count j = 0; j < map->count; j++) {
            struct type_block block = type_map_block(map, j);
            if (block.len > 0)
                walk_type(w, type_map_child(map, j), block.len,
                          base + (uintptr_t)block.displacement);
        }
    }
}

static int check_datarep(const char *datarep)
{
    if (strcmp(datarep, "external32") == 0)
        return MPI_SUCCESS;
    return err_set(MPI_ERR_ARG, "data representation \"%.64s\": only \"external32\" can be packed",
                   datarep);
}

static int check_call(const char *datarep, MPI_Count count, const struct datatype *type,
                      const void *buffer, MPI_Count buffer_bytes, MPI_Count position)
{
    int rc = check_datarep(datarep);
    if (rc != MPI_SUCCESS)
        return rc;
    MPI_Count needed;
    if (__builtin_mul_overflow(count, type->external_size, &needed) || position < 0 ||
        position > buffer_bytes || buffer_bytes - position < needed)
        return err_set(
            MPI_ERR_TRUNCATE, "%lld elements of %s do not fit from position %lld of %lld bytes on",
            (long long)count, datatype_name(type), (long long)position, (long long)buffer_bytes);
    if (needed > 0 && !buffer)
        return err_set(MPI_ERR_BUFFER, "the packed buffer is a null pointer");
    return MPI_SUCCESS;
}

int mpi_pack_external(const char *datarep, const void *inbuf, MPI_Count incount,
                      struct datatype *datatype, void *outbuf, MPI_Count outsize,
                      MPI_Count *position)
{
    int rc = check_call(datarep, incount, datatype, outbuf, outsize, *position);
    if (rc != MPI_SUCCESS)
        return rc;
    struct external_walk w = {.stream = (unsigned char *)outbuf + *position, .packing = true};
    walk_type(&w, datatype, incount, (uintptr_t)inbuf);
    *position += incount * datatype->external_size;
    return MPI_SUCCESS;
}

int mpi_unpack_external(const char *datarep, const void *inbuf, MPI_Count insize,
                        MPI_Count *position, void *outbuf, MPI_Count outcount,
                        struct datatype *datatype)
{
    int rc = check_call(datarep, outcount, datatype, inbuf, insize, *position);
    if (rc != MPI_SUCCESS)
        return rc;
    struct external_walk w = {.stream = (unsigned char *)(uintptr_t)inbuf + *position,
                              .packing = false};
    walk_type(&w, datatype, outcount, (uintptr_t)outbuf);
    *position += outcount * datatype->external_size;
    return MPI_SUCCESS;
}

int mpi_pack_external_size(const char *datarep, MPI_Count incount, struct datatype *datatype,
                           MPI_Count *ret_size)
{
    int rc = check_datarep(datarep);
    if (rc != MPI_SUCCESS)
        return rc;
    if (__builtin_mul_overflow(incount, datatype->external_size, ret_size))
        return err_set(MPI_ERR_VALUE_TOO_LARGE,
                       "%lld elements of %s do not fit into 63 bits of bytes", (long long)incount,
                       datatype_name(datatype));
    return MPI_SUCCESS;
}
