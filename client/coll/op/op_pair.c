/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_MAXLOC and MPI_MINLOC on pairs of a value and an index: the index of the extreme value, of
 * equal values the smaller one (MPI-5.0 section 6.9.4). The pairs are C structs, as predefined.c
 * lays them out.
 */
#include "client/coll/op/op_family.h"

#define PAIR_LOOP(fn, pair, better)                                                                \
    static void fn(const void *restrict in, void *restrict inout, size_t n)                        \
    {                                                                                              \
        const struct pair *restrict left = in;                                                     \
        struct pair *restrict right = inout;                                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            if (left[i].value better right[i].value ||                                             \
                (left[i].value == right[i].value && left[i].index < right[i].index)) {             \
                right[i].value = left[i].value;                                                    \
                right[i].index = left[i].index;                                                    \
            }                                                                                      \
        }                                                                                          \
    }
#define PAIR_LOOPS(name, V, I)                                                                     \
    struct pair_##name {                                                                           \
        V value;                                                                                   \
        I index;                                                                                   \
    };                                                                                             \
    PAIR_LOOP(maxloc_##name, pair_##name, >)                                                       \
    PAIR_LOOP(minloc_##name, pair_##name, <)

PAIR_LOOPS(short_int, int16_t, int32_t)
PAIR_LOOPS(int_int, int32_t, int32_t)
PAIR_LOOPS(long_int, int64_t, int32_t)
PAIR_LOOPS(float_int, float, int32_t)
PAIR_LOOPS(double_int, double, int32_t)
PAIR_LOOPS(long_double_int, long double, int32_t)
PAIR_LOOPS(float_float, float, float)
PAIR_LOOPS(double_double, double, double)

#define PAIR_FAMILY(op)                                                                            \
    const struct op_family op_family_##op = {                                                      \
        .classes = OP_ACCEPTS(CLASS_PAIR),                                                         \
        .loops = {[BASIC_INT16] = op##_short_int,                                                  \
                  [BASIC_INT32] = op##_int_int,                                                    \
                  [BASIC_INT64] = op##_long_int,                                                   \
                  [BASIC_FLOAT32] = op##_float_int,                                                \
                  [BASIC_FLOAT64] = op##_double_int,                                               \
                  [BASIC_LONG_DOUBLE] = op##_long_double_int},                                     \
        .same_index_loops = {[BASIC_INT32] = op##_int_int,                                         \
                             [BASIC_FLOAT32] = op##_float_float,                                   \
                             [BASIC_FLOAT64] = op##_double_double},                                \
    }

PAIR_FAMILY(maxloc);
PAIR_FAMILY(minloc);
