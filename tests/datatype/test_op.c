/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every predefined operation on every predefined type: accepted exactly where it should be, and
 * right there. Values are small integers, which all numeric types represent exactly, so that one
 * reference computes for all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "client/coll/op/op.h"
#include "client/object/err.h"

#define N 37 /* more than a vector register of the smallest type, and odd */

enum form { SIGNED, UNSIGNED, REAL, COMPLEX, LOGICAL, RAW, NOT_REDUCIBLE };

struct type_case {
    MPI_Datatype handle;
    enum form form;
    int size; /* of one number; half of a complex one */
    bool logical, bitwise, arithmetic, ordered;
};

#define C_INTEGER(t, form)                                                                         \
    {                                                                                              \
        t, form, 0, true, true, true, true                                                         \
    }
#define F_INTEGER(t)                                                                               \
    {                                                                                              \
        t, SIGNED, 0, false, true, true, true                                                      \
    }
#define FLOATING(t)                                                                                \
    {                                                                                              \
        t, REAL, 0, false, false, true, true                                                       \
    }
#define COMPLEX_TYPE(t)                                                                            \
    {                                                                                              \
        t, COMPLEX, 0, false, false, true, false                                                   \
    }
#define LOGICAL_TYPE(t)                                                                            \
    {                                                                                              \
        t, LOGICAL, 0, true, false, false, false                                                   \
    }
#define NEVER(t)                                                                                   \
    {                                                                                              \
        t, NOT_REDUCIBLE, 0, false, false, false, false                                            \
    }

static const struct type_case type_cases[] = {
    C_INTEGER(MPI_AINT, SIGNED),
    C_INTEGER(MPI_COUNT, SIGNED),
    C_INTEGER(MPI_OFFSET, SIGNED),
    C_INTEGER(MPI_SHORT, SIGNED),
    C_INTEGER(MPI_INT, SIGNED),
    C_INTEGER(MPI_LONG, SIGNED),
    C_INTEGER(MPI_LONG_LONG, SIGNED),
    C_INTEGER(MPI_SIGNED_CHAR, SIGNED),
    C_INTEGER(MPI_CHAR, SIGNED),
    C_INTEGER(MPI_UNSIGNED_SHORT, UNSIGNED),
    C_INTEGER(MPI_UNSIGNED, UNSIGNED),
    C_INTEGER(MPI_UNSIGNED_LONG, UNSIGNED),
    C_INTEGER(MPI_UNSIGNED_LONG_LONG, UNSIGNED),
    C_INTEGER(MPI_UNSIGNED_CHAR, UNSIGNED),
    C_INTEGER(MPI_INT8_T, SIGNED),
    C_INTEGER(MPI_INT16_T, SIGNED),
    C_INTEGER(MPI_INT32_T, SIGNED),
    C_INTEGER(MPI_INT64_T, SIGNED),
    C_INTEGER(MPI_UINT8_T, UNSIGNED),
    C_INTEGER(MPI_UINT16_T, UNSIGNED),
    C_INTEGER(MPI_UINT32_T, UNSIGNED),
    C_INTEGER(MPI_UINT64_T, UNSIGNED),
    F_INTEGER(MPI_INTEGER),
    F_INTEGER(MPI_INTEGER1),
    F_INTEGER(MPI_INTEGER2),
    F_INTEGER(MPI_INTEGER4),
    F_INTEGER(MPI_INTEGER8),
    F_INTEGER(MPI_INTEGER16),
    FLOATING(MPI_FLOAT),
    FLOATING(MPI_DOUBLE),
    FLOATING(MPI_LONG_DOUBLE),
    FLOATING(MPI_REAL),
    FLOATING(MPI_DOUBLE_PRECISION),
    FLOATING(MPI_REAL2),
    FLOATING(MPI_REAL4),
    FLOATING(MPI_REAL8),
    FLOATING(MPI_REAL16),
    COMPLEX_TYPE(MPI_C_FLOAT_COMPLEX),
    COMPLEX_TYPE(MPI_C_DOUBLE_COMPLEX),
    COMPLEX_TYPE(MPI_C_LONG_DOUBLE_COMPLEX),
    COMPLEX_TYPE(MPI_CXX_FLOAT_COMPLEX),
    COMPLEX_TYPE(MPI_CXX_DOUBLE_COMPLEX),
    COMPLEX_TYPE(MPI_CXX_LONG_DOUBLE_COMPLEX),
    COMPLEX_TYPE(MPI_COMPLEX),
    COMPLEX_TYPE(MPI_DOUBLE_COMPLEX),
    COMPLEX_TYPE(MPI_COMPLEX4),
    COMPLEX_TYPE(MPI_COMPLEX8),
    COMPLEX_TYPE(MPI_COMPLEX16),
    COMPLEX_TYPE(MPI_COMPLEX32),
    LOGICAL_TYPE(MPI_LOGICAL),
    LOGICAL_TYPE(MPI_LOGICAL1),
    LOGICAL_TYPE(MPI_LOGICAL2),
    LOGICAL_TYPE(MPI_LOGICAL4),
    LOGICAL_TYPE(MPI_LOGICAL8),
    LOGICAL_TYPE(MPI_LOGICAL16),
    LOGICAL_TYPE(MPI_C_BOOL),
    LOGICAL_TYPE(MPI_CXX_BOOL),
    {MPI_BYTE, RAW, 0, false, true, false, false},
    NEVER(MPI_PACKED),
    NEVER(MPI_WCHAR),
    NEVER(MPI_CHARACTER),
};
#define N_CASES (sizeof type_cases / sizeof type_cases[0])

enum operation { SUM, PROD, MAX, MIN, LAND, LOR, LXOR, BAND, BOR, BXOR, N_OPERATIONS };
static const MPI_Op handles[N_OPERATIONS] = {MPI_SUM, MPI_PROD, MPI_MAX,  MPI_MIN, MPI_LAND,
                                             MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};

static bool accepted(const struct type_case *c, enum operation o)
{
    if (o <= PROD)
        return c->arithmetic;
    if (o <= MIN)
        return c->ordered;
    return o <= LXOR ? c->logical : c->bitwise;
}

static int64_t compute(enum operation o, int64_t a, int64_t b)
{
    switch (o) {
    case SUM:
        return a + b;
    case PROD:
        return a * b;
    case MAX:
        return a > b ? a : b;
    case MIN:
        return a < b ? a : b;
    case LAND:
        return a && b;
    case LOR:
        return a || b;
    case LXOR:
        return !a != !b;
    case BAND:
        return a & b;
    case BOR:
        return a | b;
    default:
        return a ^ b;
    }
}

/* Writes a number in the form of a type. */
static void put(const struct datatype *type, enum form form, unsigned char *at, int64_t value)
{
    if (form != REAL && form != COMPLEX) {
        memset(at, value < 0 ? 0xff : 0, (size_t)type->size);
        memcpy(at, &value, type->size < 8 ? (size_t)type->size : 8);
        return;
    }
    size_t size = (size_t)(form == COMPLEX ? type->size / 2 : type->size);
    _Float16 half = (_Float16)value;
    float single = (float)value;
    double twice = (double)value;
    long double extended = (long double)value;
    __float128 quad = value;
    bool is_extended = type->basic == BASIC_LONG_DOUBLE || type->basic == BASIC_COMPLEX_LONG_DOUBLE;
    memset(at, 0, size);
    if (size == 2)
        memcpy(at, &half, 2);
    else if (size == 4)
        memcpy(at, &single, 4);
    else if (size == 8)
        memcpy(at, &twice, 8);
    else if (is_extended)
        memcpy(at, &extended, 10); /* the x87 form; the rest is padding */
    else
        memcpy(at, &quad, 16);
}

/* Compares without the padding of long double. */
static void assert_same(const struct datatype *type, enum form form, const unsigned char *a,
                        const unsigned char *b)
{
    size_t size = (size_t)(form == COMPLEX ? type->size / 2 : type->size);
    bool is_extended = type->basic == BASIC_LONG_DOUBLE || type->basic == BASIC_COMPLEX_LONG_DOUBLE;
    assert_memory_equal(a, b, is_extended ? 10 : size);
}

static void check_case(const struct type_case *c, enum operation o)
{
    struct datatype *type = datatype_predefined(c->handle);
    struct op *op = op_predefined(handles[o]);
    _Alignas(16) unsigned char in[N * 32], inout[N * 32];
    unsigned char expected[32];
    int low = c->form == SIGNED || c->form == REAL || c->form == COMPLEX ? -5 : 0;
    int span = c->form == LOGICAL ? 2 : 11;
    int64_t a[2 * N], b[2 * N];
    int parts = c->form == COMPLEX ? 2 : 1;
    size_t part_size = (size_t)(type->size / parts);
    for (int i = 0; i < parts * N; i++) {
        a[i] = low + i * 7 % span;
        b[i] = low + i * 5 / 3 % span;
        if (c->form == REAL || c->form == COMPLEX) { /* products have no negative zeros then */
            a[i] = a[i] == 0 ? 6 : a[i];
            b[i] = b[i] == 0 ? 6 : b[i];
        }
        put(type, c->form, in + (size_t)i * part_size, a[i]);
        put(type, c->form, inout + (size_t)i * part_size, b[i]);
    }
    assert_int_equal(mpi_reduce_local(in, inout, N, type, op), MPI_SUCCESS);
    for (int i = 0; i < parts * N; i++) {
        int64_t value = compute(o, a[i], b[i]);
        if (parts == 2 && o == PROD) {
            int re = i & ~1;
            value = i == re ? a[re] * b[re] - a[re + 1] * b[re + 1]
                            : a[re] * b[re + 1] + a[re + 1] * b[re];
        }
        put(type, c->form, expected, value);
        assert_same(type, c->form, inout + (size_t)i * part_size, expected);
    }
}

static void operations_on_types(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        for (enum operation o = 0; o < N_OPERATIONS; o++) {
            struct datatype *type = datatype_predefined(type_cases[i].handle);
            if (accepted(&type_cases[i], o)) {
                check_case(&type_cases[i], o);
                continue;
            }
            _Alignas(16) char a[32] = {0}, b[32] = {0};
            assert_int_equal(mpi_reduce_local(a, b, 1, type, op_predefined(handles[o])),
                             MPI_ERR_OP);
            assert_non_null(strstr(err_detail(MPI_ERR_OP), type->name));
            assert_non_null(strstr(err_detail(MPI_ERR_OP), op_predefined(handles[o])->name));
        }
        assert_int_equal(
            op_check(op_predefined(MPI_MAXLOC), datatype_predefined(type_cases[i].handle)),
            MPI_ERR_OP);
        assert_int_equal(
            op_check(op_predefined(MPI_REPLACE), datatype_predefined(type_cases[i].handle)),
            MPI_ERR_OP);
    }
}

#define CHECK_PAIR(handle, V, I)                                                                   \
    do {                                                                                           \
        struct pair {                                                                              \
            V value;                                                                               \
            I index;                                                                               \
        };                                                                                         \
        struct pair in[4] = {{3, 7}, {1, 2}, {5, 9}, {5, 1}};                                      \
        struct pair most[4] = {{2, 8}, {4, 6}, {5, 3}, {5, 4}};                                    \
        struct pair least[4];                                                                      \
        memcpy(least, most, sizeof most);                                                          \
        struct datatype *type = datatype_predefined(handle);                                       \
        assert_int_equal(type->extent, sizeof(struct pair));                                       \
        assert_int_equal(mpi_reduce_local(in, most, 4, type, op_predefined(MPI_MAXLOC)),           \
                         MPI_SUCCESS);                                                             \
        assert_int_equal(mpi_reduce_local(in, least, 4, type, op_predefined(MPI_MINLOC)),          \
                         MPI_SUCCESS);                                                             \
        static const int most_value[4] = {3, 4, 5, 5}, most_index[4] = {7, 6, 3, 1};               \
        static const int least_value[4] = {2, 1, 5, 5}, least_index[4] = {8, 2, 3, 1};             \
        for (int i = 0; i < 4; i++) {                                                              \
            assert_true(most[i].value == most_value[i] && most[i].index == most_index[i]);         \
            assert_true(least[i].value == least_value[i] && least[i].index == least_index[i]);     \
        }                                                                                          \
        assert_int_equal(op_check(op_predefined(MPI_SUM), type), MPI_ERR_OP);                      \
    } while (0)

static void locations_of_extremes(void **state)
{
    (void)state;
    CHECK_PAIR(MPI_FLOAT_INT, float, int);
    CHECK_PAIR(MPI_DOUBLE_INT, double, int);
    CHECK_PAIR(MPI_LONG_INT, long, int);
    CHECK_PAIR(MPI_2INT, int, int);
    CHECK_PAIR(MPI_SHORT_INT, short, int);
    CHECK_PAIR(MPI_LONG_DOUBLE_INT, long double, int);
    CHECK_PAIR(MPI_2REAL, float, float);
    CHECK_PAIR(MPI_2DOUBLE_PRECISION, double, double);
    CHECK_PAIR(MPI_2INTEGER, int, int);
}

/* in - inout, elementwise over a derived type of two ints: shows the order of the operands. */
static void subtract(void *in, void *inout, int *len, MPI_Datatype *datatype)
{
    assert_int_equal(datatype_from_handle(*datatype)->size, 2 * sizeof(int));
    for (int i = 0; i < 2 * *len; i++)
        ((int *)inout)[i] = ((int *)in)[i] - ((int *)inout)[i];
}

static void subtract_large(void *in, void *inout, MPI_Count *len, MPI_Datatype *datatype)
{
    int n = (int)*len;
    subtract(in, inout, &n, datatype);
}

static void operations_of_users(void **state)
{
    (void)state;
    struct datatype *type;
    assert_int_equal(mpi_type_contiguous(2, datatype_predefined(MPI_INT), &type, false),
                     MPI_SUCCESS);
    assert_int_equal(mpi_type_commit(&type), MPI_SUCCESS);
    assert_int_equal(op_check(op_predefined(MPI_SUM), type), MPI_ERR_OP);
    for (int large = 0; large < 2; large++) {
        struct op *op;
        int commute = -1;
        int in[6] = {10, 20, 30, 40, 50, 60};
        int inout[6] = {1, 2, 3, 4, 5, 6};
        assert_int_equal(
            mpi_op_create(large ? NULL : subtract, large ? subtract_large : NULL, 0, &op),
            MPI_SUCCESS);
        assert_int_equal(mpi_op_commutative(op, &commute), MPI_SUCCESS);
        assert_int_equal(commute, 0);
        MPI_Op handle = (MPI_Op)op->obj.handle;
        assert_ptr_equal(op_from_handle(handle), op);
        assert_int_equal(mpi_reduce_local(in, inout, 3, type, op), MPI_SUCCESS);
        for (int i = 0; i < 6; i++)
            assert_int_equal(inout[i], 9 * (i + 1));
        assert_int_equal(mpi_op_free(&op), MPI_SUCCESS);
        assert_null(op);
        assert_null(op_from_handle(handle));
    }
    struct op *sum = op_predefined(MPI_SUM);
    assert_int_equal(mpi_op_free(&sum), MPI_ERR_OP);
    assert_int_equal(mpi_type_free(&type), MPI_SUCCESS);
}

static void accumulation_only(void **state)
{
    (void)state;
    int in[3] = {1, 2, 3}, inout[3] = {7, 8, 9};
    struct datatype *type = datatype_predefined(MPI_INT);
    assert_int_equal(op_apply(op_predefined(MPI_NO_OP), in, inout, 3, type), MPI_SUCCESS);
    assert_int_equal(inout[0], 7);
    assert_int_equal(op_apply(op_predefined(MPI_REPLACE), in, inout, 3, type), MPI_SUCCESS);
    assert_memory_equal(in, inout, sizeof in);
}

int main(void)
{
    if (datatype_init() != MPI_SUCCESS || op_init() != MPI_SUCCESS)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_on_types),
        cmocka_unit_test(locations_of_extremes),
        cmocka_unit_test(operations_of_users),
        cmocka_unit_test(accumulation_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
