/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_LAND, MPI_LOR, MPI_LXOR (results 0 or 1) and MPI_BAND, MPI_BOR, MPI_BXOR. See op_family.h.
 *
 * Only the width matters here, so signed and unsigned types share their loops. The logical
 * operations also take MPI_AINT, MPI_COUNT and MPI_OFFSET, as other implementations do.
 */
#include "client/coll/op/op_family.h"

typedef unsigned __int128 uint128_t;

#define BIT_LOOPS(bits)                                                                            \
    OP_LOOP(land_##bits, uint##bits##_t, (a != 0) & (b != 0))                                      \
    OP_LOOP(lor_##bits, uint##bits##_t, (a != 0) | (b != 0))                                       \
    OP_LOOP(lxor_##bits, uint##bits##_t, (a != 0) ^ (b != 0))                                      \
    OP_LOOP(band_##bits, uint##bits##_t, a &b)                                                     \
    OP_LOOP(bor_##bits, uint##bits##_t, a | b)                                                     \
    OP_LOOP(bxor_##bits, uint##bits##_t, a ^ b)

BIT_LOOPS(8)
BIT_LOOPS(16)
BIT_LOOPS(32)
BIT_LOOPS(64)
BIT_LOOPS(128)

#define LOGICAL_CLASSES                                                                            \
    (OP_ACCEPTS(CLASS_C_INTEGER) | OP_ACCEPTS(CLASS_LOGICAL) | OP_ACCEPTS(CLASS_MULTI_LANGUAGE))
#define BITWISE_CLASSES                                                                            \
    (OP_ACCEPTS(CLASS_C_INTEGER) | OP_ACCEPTS(CLASS_FORTRAN_INTEGER) | OP_ACCEPTS(CLASS_BYTE) |    \
     OP_ACCEPTS(CLASS_MULTI_LANGUAGE))

#define BIT_FAMILY(op, accepted)                                                                   \
    const struct op_family op_family_##op = {                                                      \
        .classes = accepted,                                                                       \
        .loops = {[BASIC_INT8] = op##_8,                                                           \
                  [BASIC_INT16] = op##_16,                                                         \
                  [BASIC_INT32] = op##_32,                                                         \
                  [BASIC_INT64] = op##_64,                                                         \
                  [BASIC_INT128] = op##_128,                                                       \
                  [BASIC_UINT8] = op##_8,                                                          \
                  [BASIC_UINT16] = op##_16,                                                        \
                  [BASIC_UINT32] = op##_32,                                                        \
                  [BASIC_UINT64] = op##_64,                                                        \
                  [BASIC_BYTE] = op##_8},                                                          \
    }

BIT_FAMILY(land, LOGICAL_CLASSES);
BIT_FAMILY(lor, LOGICAL_CLASSES);
BIT_FAMILY(lxor, LOGICAL_CLASSES);
BIT_FAMILY(band, BITWISE_CLASSES);
BIT_FAMILY(bor, BITWISE_CLASSES);
BIT_FAMILY(bxor, BITWISE_CLASSES);
