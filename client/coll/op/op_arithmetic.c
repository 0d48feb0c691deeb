/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_SUM and MPI_PROD: integers, floating point, complex. See op_family.h.
 *
 * Signed and unsigned integers of one width share a loop, since wrap-around sums and products have
 * the same bits. Complex numbers are multiplied by the plain formula, without C's recovery of
 * infinities, which no reduction in Fortran does either and which costs most of the speed.
 */
#include "client/coll/op/op_family.h"

typedef unsigned __int128 uint128;

/* 8 and 16 bits are computed in 32, because C would promote them to a signed int. */
#define INTEGER_LOOPS(T, wide)                                                                     \
    OP_LOOP(sum_##T, T, (wide)a + (wide)b)                                                         \
    OP_LOOP(prod_##T, T, (wide)a *(wide)b)
#define FLOAT_LOOPS(name, T)                                                                       \
    OP_LOOP(sum_##name, T, a + b)                                                                  \
    OP_LOOP(prod_##name, T, a *b)
#define COMPLEX_LOOPS(name, T)                                                                     \
    struct name {                                                                                  \
        T re, im;                                                                                  \
    };                                                                                             \
    OP_VECTORS static void sum_##name(const void *restrict in, void *restrict inout, size_t n)     \
    {                                                                                              \
        const T *restrict left = in;                                                               \
        T *restrict right = inout;                                                                 \
        for (size_t i = 0; i < 2 * n; i++)                                                         \
            right[i] = (T)(left[i] + right[i]);                                                    \
    }                                                                                              \
    OP_VECTORS static void prod_##name(const void *restrict in, void *restrict inout, size_t n)    \
    {                                                                                              \
        const struct name *restrict left = in;                                                     \
        struct name *restrict right = inout;                                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            const struct name a = left[i];                                                         \
            const struct name b = right[i];                                                        \
            right[i].re = (T)(a.re * b.re - a.im * b.im);                                          \
            right[i].im = (T)(a.re * b.im + a.im * b.re);                                          \
        }                                                                                          \
    }

INTEGER_LOOPS(uint8_t, uint32_t)
INTEGER_LOOPS(uint16_t, uint32_t)
INTEGER_LOOPS(uint32_t, uint32_t)
INTEGER_LOOPS(uint64_t, uint64_t)
INTEGER_LOOPS(uint128, uint128)
FLOAT_LOOPS(float, float)
FLOAT_LOOPS(double, double)
FLOAT_LOOPS(long_double, long double)
FLOAT_LOOPS(float128, __float128)
COMPLEX_LOOPS(complex32, float)
COMPLEX_LOOPS(complex64, double)
COMPLEX_LOOPS(complex_long_double, long double)
COMPLEX_LOOPS(complex128, __float128)
#if OP_HAS_FLOAT16
FLOAT_LOOPS(float16, _Float16)
COMPLEX_LOOPS(complex16, _Float16)
#define FLOAT16_ENTRIES(op) [BASIC_FLOAT16] = op##_float16, [BASIC_COMPLEX16] = op##_complex16,
#else
#define FLOAT16_ENTRIES(op)
#endif

#define ARITHMETIC_FAMILY(op)                                                                      \
    const struct op_family op_family_##op = {                                                      \
        .classes = OP_ACCEPTS(CLASS_C_INTEGER) | OP_ACCEPTS(CLASS_FORTRAN_INTEGER) |               \
                   OP_ACCEPTS(CLASS_FLOATING) | OP_ACCEPTS(CLASS_COMPLEX) |                        \
                   OP_ACCEPTS(CLASS_MULTI_LANGUAGE),                                               \
        .loops = {[BASIC_INT8] = op##_uint8_t,                                                     \
                  [BASIC_INT16] = op##_uint16_t,                                                   \
                  [BASIC_INT32] = op##_uint32_t,                                                   \
                  [BASIC_INT64] = op##_uint64_t,                                                   \
                  [BASIC_INT128] = op##_uint128,                                                   \
                  [BASIC_UINT8] = op##_uint8_t,                                                    \
                  [BASIC_UINT16] = op##_uint16_t,                                                  \
                  [BASIC_UINT32] = op##_uint32_t,                                                  \
                  [BASIC_UINT64] = op##_uint64_t,                                                  \
                  FLOAT16_ENTRIES(op)[BASIC_FLOAT32] = op##_float,                                 \
                  [BASIC_FLOAT64] = op##_double,                                                   \
                  [BASIC_LONG_DOUBLE] = op##_long_double,                                          \
                  [BASIC_FLOAT128] = op##_float128,                                                \
                  [BASIC_COMPLEX32] = op##_complex32,                                              \
                  [BASIC_COMPLEX64] = op##_complex64,                                              \
                  [BASIC_COMPLEX_LONG_DOUBLE] = op##_complex_long_double,                          \
                  [BASIC_COMPLEX128] = op##_complex128},                                           \
    }

ARITHMETIC_FAMILY(sum);
ARITHMETIC_FAMILY(prod);
