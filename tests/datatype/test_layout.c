/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random nested types against the reference: bounds, density, counts, signatures, and the stream of
 * the cursor in random pieces, at random places, as memory pieces, into and out of the buffer.
 * Arguments: [seed [number of types]].
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
#include "client/datatype/type_map.h"
#include "reference.h"

static uint64_t seed;
static int n_types = 1500;

static void check_bounds(const struct ref_type *t)
{
    const struct datatype *type = t->type;
    MPI_Count low, high;
    ref_span(&t->map, 1, &low, &high);
    assert_int_equal(type->size, ref_size(&t->map));
    assert_int_equal(type->extent, ref_extent(&t->map));
    assert_int_equal(type->lb, t->map.lb_marker ? t->map.marked_lb : t->map.lb);
    assert_int_equal(type->true_lb, low);
    assert_int_equal(type->true_extent, high - low);
}

/* Is the stream one run of increasing addresses? */
static bool is_run(const struct ref_map *map, MPI_Count count)
{
    MPI_Count end = 0;
    for (MPI_Count e = 0; e < count; e++) {
        for (size_t i = 0; i < map->n; i++) {
            MPI_Count start = e * ref_extent(map) + map->entries[i].displacement;
            if ((e > 0 || i > 0) && start != end)
                return false;
            end = start + map->entries[i].size;
        }
    }
    return true;
}

static void check_counts(const struct ref_type *t, struct ref_random *r)
{
    struct type_signature signature = {0};
    for (size_t i = 0; i < t->map.n; i++)
        signature =
            signature_join(signature, datatype_predefined(t->map.entries[i].basic)->signature);
    assert_int_equal(t->type->signature.n_elements, t->map.n);
    assert_true(t->type->signature.hash == signature.hash);
    if (t->map.n == 0) {
        assert_null(t->type->element);
        return;
    }
    MPI_Datatype basic = t->map.entries[0].basic;
    for (size_t i = 0; i < t->map.n; i++)
        basic = t->map.entries[i].basic == basic ? basic : MPI_DATATYPE_NULL;
    assert_ptr_equal(t->type->element,
                     basic == MPI_DATATYPE_NULL ? NULL : datatype_predefined(basic));
    /* A prefix of elements, and of bytes inside the next one, possibly of the second element of the
     * type. */
    MPI_Count n = ref_random_below(r, (MPI_Count)t->map.n);
    MPI_Count whole = ref_random_below(r, 2);
    MPI_Count n_bytes = whole * t->type->size;
    for (MPI_Count i = 0; i < n; i++)
        n_bytes += t->map.entries[i].size;
    MPI_Count n_elements = whole * (MPI_Count)t->map.n + n;
    MPI_Count extra = ref_random_below(r, t->map.entries[n].size);
    MPI_Count rest;
    assert_int_equal(datatype_bytes_of_elements(t->type, n_elements), n_bytes);
    assert_int_equal(datatype_elements_of_bytes(t->type, n_bytes + extra, &rest), n_elements);
    assert_int_equal(rest, extra);
}

/* A buffer for `count` elements with random content, and the address at which the type has to be
 * placed. */
struct arena {
    unsigned char *memory;
    size_t size;
    unsigned char *buf; /* may lie outside of memory */
};

static struct arena arena_new(const struct ref_map *map, MPI_Count count, struct ref_random *r)
{
    MPI_Count low, high;
    ref_span(map, count, &low, &high);
    struct arena a = {.size = (size_t)(high - low)};
    a.memory = malloc(a.size + 1);
    a.buf = (unsigned char *)((uintptr_t)a.memory - (uintptr_t)low);
    for (size_t i = 0; i < a.size; i++)
        a.memory[i] = (unsigned char)ref_random_next(r);
    return a;
}

static size_t random_chunk(struct ref_random *r)
{
    return (size_t)ref_random_below(r, ref_random_below(r, 2) ? 40 : 2000);
}

static void check_pack(const struct ref_type *t, MPI_Count count, struct ref_random *r)
{
    struct arena a = arena_new(&t->map, count, r);
    size_t total = (size_t)(ref_size(&t->map) * count);
    unsigned char *expected = malloc(total + 1);
    unsigned char *packed = malloc(total + 1);
    ref_pack(&t->map, count, a.buf, expected);

    struct type_cursor c;
    type_cursor_init(&c, t->type, count, a.buf);
    assert_int_equal(c.total, total);
    for (size_t done = 0; done < total;) {
        size_t chunk = 1 + random_chunk(r);
        size_t n = type_cursor_pack(&c, packed + done, chunk);
        assert_int_equal(n, chunk < total - done ? chunk : total - done);
        done += n;
    }
    assert_memory_equal(packed, expected, total);
    assert_int_equal(type_cursor_pack(&c, packed, 10), 0);

    for (int i = 0; i < 8; i++) {
        size_t place = (size_t)ref_random_below(r, (MPI_Count)total + 1);
        size_t chunk = random_chunk(r);
        type_cursor_seek(&c, (MPI_Count)place);
        size_t n = type_cursor_pack(&c, packed, chunk);
        assert_int_equal(n, chunk < total - place ? chunk : total - place);
        assert_memory_equal(packed, expected + place, n);
    }
    free(packed);
    free(expected);
    free(a.memory);
}

static void check_unpack(const struct ref_type *t, MPI_Count count, struct ref_random *r)
{
    struct arena a = arena_new(&t->map, count, r);
    struct arena b = arena_new(&t->map, count, r);
    memcpy(b.memory, a.memory, a.size);
    size_t total = (size_t)(ref_size(&t->map) * count);
    unsigned char *stream = malloc(total + 8);
    for (size_t i = 0; i < total + 8; i++)
        stream[i] = (unsigned char)ref_random_next(r);
    ref_unpack(&t->map, count, a.buf, stream);

    struct type_cursor c;
    type_cursor_init(&c, t->type, count, b.buf);
    for (size_t done = 0; done < total;) {
        size_t chunk = 1 + random_chunk(r);
        if (chunk > total + 8 - done)
            chunk = total + 8 - done;
        done += type_cursor_unpack(&c, stream + done, chunk);
    }
    assert_int_equal(type_cursor_unpack(&c, stream, 8), 0);
    assert_memory_equal(a.memory, b.memory, a.size);
    free(stream);
    free(a.memory);
    free(b.memory);
}

static void check_iov(const struct ref_type *t, MPI_Count count, struct ref_random *r)
{
    struct arena a = arena_new(&t->map, count, r);
    size_t total = (size_t)(ref_size(&t->map) * count);
    unsigned char *expected = malloc(total + 1);
    ref_pack(&t->map, count, a.buf, expected);
    struct type_cursor c;
    type_cursor_init(&c, t->type, count, a.buf);
    for (size_t done = 0; done < total;) {
        struct iovec iov[5];
        int max_iov = (int)ref_random_below(r, 5) + 1;
        size_t limit = 1 + random_chunk(r);
        size_t n_bytes, sum = 0;
        int n = type_cursor_iov(&c, iov, max_iov, limit, &n_bytes);
        assert_in_range(n, 1, max_iov);
        for (int i = 0; i < n; i++) {
            assert_memory_equal(iov[i].iov_base, expected + done + sum, iov[i].iov_len);
            sum += iov[i].iov_len;
        }
        assert_int_equal(sum, n_bytes);
        assert_true(n_bytes <= limit);
        done += n_bytes;
        assert_int_equal(c.position, done);
    }
    free(expected);
    free(a.memory);
}

static void check_copy(const struct ref_type *t, MPI_Count count, struct ref_random *r)
{
    struct arena a = arena_new(&t->map, count, r);
    size_t total = (size_t)(ref_size(&t->map) * count);
    unsigned char *expected = malloc(total + 1);
    unsigned char *copied = malloc(3 * total + 3);
    ref_pack(&t->map, count, a.buf, expected);
    assert_int_equal(datatype_copy(a.buf, count, t->type, copied, (MPI_Count)total,
                                   datatype_predefined(MPI_BYTE)),
                     total);
    assert_memory_equal(copied, expected, total);
    struct datatype *spread;
    assert_int_equal(mpi_type_create_resized(datatype_predefined(MPI_BYTE), 0, 3, &spread, false),
                     MPI_SUCCESS);
    assert_int_equal(mpi_type_commit(&spread), MPI_SUCCESS);
    assert_int_equal(datatype_copy(a.buf, count, t->type, copied, (MPI_Count)total, spread), total);
    for (size_t i = 0; i < total; i++)
        assert_int_equal(copied[3 * i], expected[i]);
    assert_int_equal(mpi_type_free(&spread), MPI_SUCCESS);
    free(copied);
    free(expected);
    free(a.memory);
}

static void random_types_match_reference(void **state)
{
    (void)state;
    struct ref_random r = {.state = seed};
    for (int i = 0; i < n_types; i++) {
        struct ref_type t = ref_type_random(&r, 1 + (int)ref_random_below(&r, 5), 400);
        MPI_Count count = ref_random_below(&r, 4);
        check_bounds(&t);
        check_counts(&t, &r);
        assert_int_equal(t.type->dense, is_run(&t.map, 1));
        if (t.type->contiguous)
            assert_true(is_run(&t.map, 3));
        else
            assert_false(is_run(&t.map, 2));
        check_pack(&t, count, &r);
        check_unpack(&t, count, &r);
        check_iov(&t, count, &r);
        check_copy(&t, count, &r);
        ref_type_free(&t);
    }
}

/* Absolute addresses, as with MPI_BOTTOM. */
static void bottom_works(void **state)
{
    (void)state;
    int a = 0x11223344, b = 0x55667788;
    int lens[2] = {1, 1};
    MPI_Aint addresses[2] = {(MPI_Aint)(uintptr_t)&a, (MPI_Aint)(uintptr_t)&b};
    struct datatype *type;
    int out[2];
    assert_int_equal(mpi_type_create_hindexed(2, intvec_of_int(lens), intvec_of_aint(addresses),
                                              datatype_predefined(MPI_INT), &type, false),
                     MPI_SUCCESS);
    assert_int_equal(mpi_type_commit(&type), MPI_SUCCESS);
    struct type_cursor c;
    type_cursor_init(&c, type, 1, MPI_BOTTOM);
    assert_int_equal(type_cursor_pack(&c, out, sizeof out), sizeof out);
    assert_int_equal(out[0], a);
    assert_int_equal(out[1], b);
    assert_int_equal(mpi_type_free(&type), MPI_SUCCESS);
}

/* A type that would have 10^18 blocks if it were written out takes no time and no memory. */
static void huge_nested_types_stay_small(void **state)
{
    (void)state;
    struct datatype *type = datatype_predefined(MPI_CHAR);
    for (int level = 0; level < 9; level++) {
        struct datatype *next;
        assert_int_equal(mpi_type_create_hvector(100, 1, type->extent + 1, type, &next, true),
                         MPI_SUCCESS);
        if (level > 0)
            assert_int_equal(mpi_type_free(&type), MPI_SUCCESS);
        type = next;
    }
    assert_int_equal(mpi_type_commit(&type), MPI_SUCCESS);
    assert_int_equal(type->size, INT64_C(1000000000000000000));
    struct type_cursor c;
    struct iovec iov[2];
    size_t n_bytes;
    type_cursor_init(&c, type, 1, NULL);
    type_cursor_seek(&c, type->size - 1);
    assert_int_equal(type_cursor_iov(&c, iov, 2, 100, &n_bytes), 1);
    assert_int_equal(n_bytes, 1);
    assert_int_equal((uintptr_t)iov[0].iov_base, type->true_lb + type->true_extent - 1);
    assert_int_equal(mpi_type_free(&type), MPI_SUCCESS);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    struct datatype *type, *other;
    assert_int_equal(mpi_type_contiguous(INT64_MAX, datatype_predefined(MPI_INT), &type, true),
                     MPI_ERR_VALUE_TOO_LARGE);
    assert_int_equal(
        mpi_type_vector(2, 1, INT64_MAX / 2, datatype_predefined(MPI_INT), &type, true),
        MPI_ERR_VALUE_TOO_LARGE);
    /* Children without bytes may be as many as they like. */
    assert_int_equal(mpi_type_contiguous(0, datatype_predefined(MPI_INT), &type, false),
                     MPI_SUCCESS);
    assert_int_equal(mpi_type_contiguous(INT64_MAX, type, &other, true), MPI_SUCCESS);
    assert_int_equal(other->size, 0);
    assert_int_equal(mpi_type_free(&type), MPI_SUCCESS);
    assert_int_equal(mpi_type_free(&other), MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL) * 2 + 1;
    if (argc > 2)
        n_types = atoi(argv[2]);
    printf("seed %llu\n", (unsigned long long)seed);
    if (datatype_init() != MPI_SUCCESS)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_types_match_reference),
        cmocka_unit_test(bottom_works),
        cmocka_unit_test(huge_nested_types_stay_small),
        cmocka_unit_test(sizes_that_overflow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
