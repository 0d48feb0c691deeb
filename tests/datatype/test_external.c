/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * external32: sizes and bytes of the standard's table, and random types there and back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "reference.h"

static uint64_t seed;

/* The bytes of one element, and the element back from them. */
#define CHECK_BYTES(handle, T, element, ...)                                                       \
    do {                                                                                           \
        static const unsigned char expected[] = {__VA_ARGS__};                                     \
        unsigned char packed[64];                                                                  \
        MPI_Count position = 0, size = -1;                                                         \
        T value = element, back;                                                                   \
        memset(&back, 0, sizeof back);                                                             \
        struct datatype *type = datatype_predefined(handle);                                       \
        assert_int_equal(mpi_pack_external_size("external32", 1, type, &size), MPI_SUCCESS);       \
        assert_int_equal(size, sizeof expected);                                                   \
        assert_int_equal(                                                                          \
            mpi_pack_external("external32", &value, 1, type, packed, size, &position),             \
            MPI_SUCCESS);                                                                          \
        assert_int_equal(position, size);                                                          \
        assert_memory_equal(packed, expected, sizeof expected);                                    \
        position = 0;                                                                              \
        assert_int_equal(                                                                          \
            mpi_unpack_external("external32", packed, size, &position, &back, 1, type),            \
            MPI_SUCCESS);                                                                          \
        assert_true(back == value);                                                                \
    } while (0)

static void bytes_of_basic_types(void **state)
{
    (void)state;
    CHECK_BYTES(MPI_INT, int, 0x01020304, 1, 2, 3, 4);
    CHECK_BYTES(MPI_SHORT, short, -2, 0xff, 0xfe);
    CHECK_BYTES(MPI_LONG, long, -2, 0xff, 0xff, 0xff, 0xfe);
    CHECK_BYTES(MPI_UNSIGNED_LONG, unsigned long, 0xfffffffe, 0xff, 0xff, 0xff, 0xfe);
    CHECK_BYTES(MPI_LONG_LONG, long long, -2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe);
    CHECK_BYTES(MPI_AINT, MPI_Aint, 0x0102, 0, 0, 0, 0, 0, 0, 1, 2);
    CHECK_BYTES(MPI_WCHAR, wchar_t, 0x9abc, 0x9a, 0xbc);
    CHECK_BYTES(MPI_C_BOOL, _Bool, true, 1);
    CHECK_BYTES(MPI_FLOAT, float, 1.5f, 0x3f, 0xc0, 0, 0);
    CHECK_BYTES(MPI_DOUBLE, double, -2.0, 0xc0, 0, 0, 0, 0, 0, 0, 0);
    CHECK_BYTES(MPI_LONG_DOUBLE, long double, 1.5L, 0x3f, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                0, 0, 0);
    CHECK_BYTES(MPI_C_FLOAT_COMPLEX, float _Complex, 1.5f + 2.0fi, 0x3f, 0xc0, 0, 0, 0x40, 0, 0, 0);
    CHECK_BYTES(MPI_BYTE, char, 7, 7);
}

static void pairs_lose_their_holes(void **state)
{
    (void)state;
    struct {
        short value;
        int index;
    } pair = {0x0102, 0x03040506}, back = {0, 0};
    static const unsigned char expected[] = {1, 2, 3, 4, 5, 6};
    unsigned char packed[6];
    MPI_Count position = 0;
    struct datatype *type = datatype_predefined(MPI_SHORT_INT);
    assert_int_equal(mpi_pack_external("external32", &pair, 1, type, packed, 6, &position),
                     MPI_SUCCESS);
    assert_memory_equal(packed, expected, 6);
    position = 0;
    assert_int_equal(mpi_unpack_external("external32", packed, 6, &position, &back, 1, type),
                     MPI_SUCCESS);
    assert_true(back.value == pair.value && back.index == pair.index);
}

static void errors(void **state)
{
    (void)state;
    int value = 1;
    char packed[8];
    MPI_Count position = 6, size;
    struct datatype *type = datatype_predefined(MPI_INT);
    assert_int_equal(mpi_pack_external("native", &value, 1, type, packed, 8, &position),
                     MPI_ERR_ARG);
    assert_int_equal(mpi_pack_external_size("", 1, type, &size), MPI_ERR_ARG);
    assert_int_equal(mpi_pack_external("external32", &value, 1, type, packed, 8, &position),
                     MPI_ERR_TRUNCATE);
    assert_int_equal(mpi_pack(&value, 1, type, packed, 8, &position, NULL), MPI_ERR_TRUNCATE);
    position = 9;
    assert_int_equal(mpi_unpack(packed, 8, &position, &value, 1, type, NULL), MPI_ERR_ARG);
    assert_int_equal(position, 9);
}

/* Element by element through the reference's typemap, where each basic type is converted alone. */
static void convert_by_element(const struct ref_map *map, MPI_Count count, uintptr_t buf,
                               unsigned char *packed, MPI_Count size, bool packing)
{
    MPI_Count position = 0;
    for (MPI_Count e = 0; e < count; e++) {
        for (size_t i = 0; i < map->n; i++) {
            struct datatype *basic = datatype_predefined(map->entries[i].basic);
            void *at =
                (void *)(buf + (uintptr_t)(e * ref_extent(map) + map->entries[i].displacement));
            int rc = packing
                         ? mpi_pack_external("external32", at, 1, basic, packed, size, &position)
                         : mpi_unpack_external("external32", packed, size, &position, at, 1, basic);
            assert_int_equal(rc, MPI_SUCCESS);
        }
    }
    assert_int_equal(position, size);
}

static void random_types_convert_like_their_elements(void **state)
{
    (void)state;
    struct ref_random r = {.state = seed};
    for (int i = 0; i < 300; i++) {
        struct ref_type t = ref_type_random(&r, 3, 200);
        MPI_Count low, high;
        ref_span(&t.map, 2, &low, &high);
        size_t span = (size_t)(high - low);
        unsigned char *one = malloc(span + 1), *other = malloc(span + 1);
        for (size_t k = 0; k < span; k++)
            one[k] = other[k] = (unsigned char)ref_random_next(&r);
        uintptr_t one_buf = (uintptr_t)one - (uintptr_t)low;
        uintptr_t other_buf = (uintptr_t)other - (uintptr_t)low;
        MPI_Count size, position = 0;
        assert_int_equal(mpi_pack_external_size("external32", 2, t.type, &size), MPI_SUCCESS);
        unsigned char *packed = malloc((size_t)size + 1), *expected = malloc((size_t)size + 1);
        assert_int_equal(
            mpi_pack_external("external32", (void *)one_buf, 2, t.type, packed, size, &position),
            MPI_SUCCESS);
        assert_int_equal(position, size);
        convert_by_element(&t.map, 2, one_buf, expected, size, true);
        assert_memory_equal(packed, expected, (size_t)size);

        position = 0;
        assert_int_equal(
            mpi_unpack_external("external32", packed, size, &position, (void *)one_buf, 2, t.type),
            MPI_SUCCESS);
        convert_by_element(&t.map, 2, other_buf, packed, size, false);
        assert_memory_equal(one, other, span);
        free(expected);
        free(packed);
        free(one);
        free(other);
        ref_type_free(&t);
    }
}

int main(int argc, char **argv)
{
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL) * 2 + 1;
    printf("seed %llu\n", (unsigned long long)seed);
    if (datatype_init() != MPI_SUCCESS)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_basic_types),
        cmocka_unit_test(pairs_lose_their_holes),
        cmocka_unit_test(errors),
        cmocka_unit_test(random_types_convert_like_their_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
