/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_MAX and MPI_MIN: integers and floating point. See op_family.h. With a NaN on either side the
 * result is what the second operand of the comparison is, as the processor's own min and max do.
 */
#include "client/coll/op/op_family.h"

typedef __int128 int128;

#define MINMAX_LOOPS(name, T)                                                                      \
    OP_LOOP(max_##name, T, a > b ? a : b)                                                          \
    OP_LOOP(min_##name, T, a < b ? a : b)

MINMAX_LOOPS(int8, int8_t)
MINMAX_LOOPS(int16, int16_t)
MINMAX_LOOPS(int32, int32_t)
MINMAX_LOOPS(int64, int64_t)
MINMAX_LOOPS(int128, int128)
MINMAX_LOOPS(uint8, uint8_t)
MINMAX_LOOPS(uint16, uint16_t)
MINMAX_LOOPS(uint32, uint32_t)
MINMAX_LOOPS(uint64, uint64_t)
MINMAX_LOOPS(float, float)
MINMAX_LOOPS(double, double)
MINMAX_LOOPS(long_double, long double)
MINMAX_LOOPS(float128, __float128)
#if OP_HAS_FLOAT16
MINMAX_LOOPS(float16, _Float16)
#define FLOAT16_ENTRIES(op) [BASIC_FLOAT16] = op##_float16,
#else
#define FLOAT16_ENTRIES(op)
#endif

#define MINMAX_FAMILY(op)                                                                          \
    const struct op_family op_family_##op = {                                                      \
        .classes = OP_ACCEPTS(CLASS_C_INTEGER) | OP_ACCEPTS(CLASS_FORTRAN_INTEGER) |               \
                   OP_ACCEPTS(CLASS_FLOATING) | OP_ACCEPTS(CLASS_MULTI_LANGUAGE),                  \
        .loops = {[BASIC_INT8] = op##_int8,                                                        \
                  [BASIC_INT16] = op##_int16,                                                      \
                  [BASIC_INT32] = op##_int32,                                                      \
                  [BASIC_INT64] = op##_int64,                                                      \
                  [BASIC_INT128] = op##_int128,                                                    \
                  [BASIC_UINT8] = op##_uint8,                                                      \
                  [BASIC_UINT16] = op##_uint16,                                                    \
                  [BASIC_UINT32] = op##_uint32,                                                    \
                  [BASIC_UINT64] = op##_uint64,                                                    \
                  FLOAT16_ENTRIES(op)[BASIC_FLOAT32] = op##_float,                                 \
                  [BASIC_FLOAT64] = op##_double,                                                   \
                  [BASIC_LONG_DOUBLE] = op##_long_double,                                          \
                  [BASIC_FLOAT128] = op##_float128},                                               \
    }

MINMAX_FAMILY(max);
MINMAX_FAMILY(min);
