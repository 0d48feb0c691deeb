/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of the predefined operations, for op.c and the op_*.c files, which each fill in one
 * group of families.
 *
 * Loops are written once per family as a macro over the element type, since a C function cannot be
 * generic over types, and are plain enough for the compiler to vectorise. Signed integers wrap
 * around: sums and products are computed unsigned.
 */
#ifndef MOTET_CLIENT_COLL_OP_OP_FAMILY_H
#define MOTET_CLIENT_COLL_OP_OP_FAMILY_H

#include <stdint.h>

#include "client/coll/op/op.h"

struct op_family {
    uint32_t classes;           /* bit per enum basic_class that the operation accepts */
    op_loop loops[BASIC_KINDS]; /* by machine form; pairs: by the value's, with an int as index */
    op_loop same_index_loops[BASIC_KINDS]; /* pairs whose index has the form of the value */
};

#define OP_ACCEPTS(class) (UINT32_C(1) << (class))

extern const struct op_family op_family_max, op_family_min;
extern const struct op_family op_family_sum, op_family_prod;
extern const struct op_family op_family_land, op_family_lor, op_family_lxor;
extern const struct op_family op_family_band, op_family_bor, op_family_bxor;
extern const struct op_family op_family_maxloc, op_family_minloc;

/* Also compiled for AVX2, whose vectors are twice as wide, and chosen when the library is loaded.
 * Without fused multiply-add, so that results do not depend on the processor. The race detector and
 * other compilers do without. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) &&                        \
    !defined(__SANITIZE_THREAD__)
#define OP_VECTORS __attribute__((target_clones("default", "avx2")))
#else
#define OP_VECTORS
#endif

/* static void fn(in, inout, n): b = expression of a (in) and b (inout), both of type T. */
#define OP_LOOP(fn, T, expression)                                                                 \
    OP_VECTORS static void fn(const void *restrict in, void *restrict inout, size_t n)             \
    {                                                                                              \
        const T *restrict left = in;                                                               \
        T *restrict right = inout;                                                                 \
        for (size_t i = 0; i < n; i++) {                                                           \
            const T a = left[i];                                                                   \
            const T b = right[i];                                                                  \
            right[i] = (T)(expression);                                                            \
        }                                                                                          \
    }

/* _Float16 and __float128 exist for all compilers and processors that we know of but clang 14 on
 * x86 (_Float16): there the half precision types cannot be reduced, which op_check says. */
#ifdef __FLT16_MAX__
#define OP_HAS_FLOAT16 1
#else
#define OP_HAS_FLOAT16 0
#endif

#endif
