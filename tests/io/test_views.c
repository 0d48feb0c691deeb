/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random filetypes against typemaps written out (tests/datatype/reference.h): which are refused,
 * where each byte of the stream lies, how much of it lies below a place, and what an access reads
 * and writes, from memory with and without gaps, with and without data sieving. Arguments: [seed
 * [number of types]].
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "client/io/access/access.h"
#include "client/io/access/datarep.h"
#include "client/io/access/marks.h"
#include "client/io/access/view.h"
#include "tests/datatype/reference.h"

#define TILES 4

static uint64_t seed;
static int n_types = 3000;

/* ---- the plain model ---- */

static bool ref_ascends(const struct ref_map *map, bool twice)
{
    MPI_Offset end = 0, extent = ref_extent(map);
    for (size_t i = 0; i < map->n * (twice ? 2 : 1); i++) {
        const struct ref_entry *e = &map->entries[i % map->n];
        MPI_Offset at = e->displacement + (i >= map->n ? extent : 0);
        if (e->size == 0)
            continue;
        if (at < end)
            return false;
        end = at + e->size;
    }
    return true;
}

/* The place in the file of every byte of the stream, TILES copies of the filetype. */
static MPI_Offset *places_of(const struct ref_map *map, MPI_Offset disp)
{
    size_t size = (size_t)ref_size(map), n = 0;
    MPI_Offset *places = malloc(TILES * size * sizeof *places + 1);
    for (int tile = 0; tile < TILES; tile++)
        for (size_t i = 0; i < map->n; i++)
            for (MPI_Count k = 0; k < map->entries[i].size; k++)
                places[n++] = disp + tile * ref_extent(map) + map->entries[i].displacement + k;
    return places;
}

/* Memory for `count` elements: `base` is what the elements count from. */
struct arena {
    unsigned char *bytes, *base;
    size_t n;
};

static struct arena arena_new(const struct ref_map *map, MPI_Count count, struct ref_random *r)
{
    MPI_Count low, high;
    ref_span(map, count, &low, &high);
    struct arena a = {.n = (size_t)(high - low)};
    a.bytes = malloc(a.n + 1);
    a.base = (unsigned char *)((uintptr_t)a.bytes - (uintptr_t)low);
    for (size_t i = 0; i < a.n; i++)
        a.bytes[i] = (unsigned char)ref_random_next(r);
    return a;
}

/* ---- checks ---- */

static void check_places(const struct view *view, const MPI_Offset *places, MPI_Count n,
                         struct ref_random *r)
{
    for (int i = 0; i < 20; i++) {
        MPI_Count at = ref_random_below(r, n);
        assert_int_equal(view_offset(view, at), places[at]);
    }
    for (int i = 0; view->disjoint && i < 20; i++) {
        MPI_Offset offset = ref_random_below(r, places[n - 1] + 2);
        MPI_Count below = 0;
        while (below < n && places[below] < offset)
            below++;
        assert_int_equal(view_below(view, offset), below);
    }
}

static const struct access_sieve sieves[] = {{0, 0}, {100, 20}, {1 << 20, 64}, {4096, INT64_MAX}};

/* An access of n bytes from `from` on: the same as the model's, byte by byte. */
static void check_access(const struct view *view, const MPI_Offset *places, MPI_Count from,
                         const struct ref_type *memory, MPI_Count count, bool write,
                         struct ref_random *r)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    MPI_Count n = count * memory->type->size;
    size_t length = (size_t)places[from + n - 1] + 100;
    for (MPI_Count i = 0; i < n; i++)
        length = (size_t)places[from + i] + 1 > length ? (size_t)places[from + i] + 1 : length;
    unsigned char *model = malloc(length), *file = calloc(length, 1), *stream = malloc((size_t)n);
    for (size_t i = 0; i < length; i++)
        model[i] = (unsigned char)ref_random_next(r);
    int fd = memfd_create("views", 0);
    /* The end of the file may lie anywhere in what is read. */
    size_t end =
        write || ref_random_below(r, 2) ? length : (size_t)ref_random_below(r, (MPI_Count)length);
    assert_int_equal(pwrite(fd, model, end, 0), (ssize_t)end);
    struct arena own = arena_new(&memory->map, count, r);
    unsigned char *wanted = malloc(own.n + 1);
    memcpy(wanted, own.bytes, own.n);
    unsigned char *wanted_base = wanted + (own.base - own.bytes);

    struct access a = {.fd = fd, .write = write, .sieve = sieves[ref_random_below(r, 4)]};
    a.lock = (struct access_lock){.mutex = &mutex, .whole = ref_random_below(r, 2)};
    a.lock.each = !a.lock.whole && write;
    view_cursor(view, from, n, &a.file);
    type_cursor_init(&a.memory, memory->type, count, own.base);
    access_run(&a);
    assert_int_equal(a.errnum, 0);

    MPI_Count moved = n;
    ref_pack(&memory->map, count, own.base, stream);
    if (write) {
        for (MPI_Count i = 0; i < n; i++)
            model[places[from + i]] = stream[i];
    } else {
        for (moved = 0; moved < n && (size_t)places[from + moved] < end; moved++)
            ;
        /* Bytes behind the end stay as they were. */
        ref_pack(&memory->map, count, wanted_base, stream);
        for (MPI_Count i = 0; i < moved; i++)
            stream[i] = model[places[from + i]];
        ref_unpack(&memory->map, count, wanted_base, stream);
        if (moved == n || ref_ascends(&memory->map, true))
            assert_memory_equal(own.bytes, wanted, own.n);
    }
    assert_int_equal(a.done, moved);
    assert_int_equal(pread(fd, file, length, 0), (ssize_t)(write ? length : end));
    assert_memory_equal(file, model, write ? length : end);
    close(fd);
    free(own.bytes);
    free(wanted);
    free(model);
    free(file);
    free(stream);
}

static void check_view(const struct view *view, const struct ref_type *t, struct ref_random *r)
{
    MPI_Count n = TILES * ref_size(&t->map);
    MPI_Offset *places = places_of(&t->map, view->disp);
    if (n > 0)
        check_places(view, places, n, r);
    for (int i = 0; i < 4 && n > 0 && view->sorted && view->disjoint; i++) {
        struct ref_type memory = ref_type_random(r, (int)ref_random_below(r, 3), 60);
        MPI_Count size = memory.type->size, most = size > 0 ? n / size : 0;
        if (most > 0) {
            MPI_Count count = 1 + ref_random_below(r, most);
            MPI_Count from = ref_random_below(r, n - count * size + 1);
            check_access(view, places, from, &memory, count, i & 1, r);
        }
        ref_type_free(&memory);
    }
    free(places);
}

static void random_views_match_reference(void **state)
{
    (void)state;
    struct ref_random r = {.state = seed};
    int n_good = 0;
    for (int i = 0; i < n_types; i++) {
        struct ref_type t = ref_type_random(&r, 1 + (int)ref_random_below(&r, 3), 200);
        MPI_Offset disp = ref_random_below(&r, 1000);
        MPI_Count low, high;
        struct view *view = NULL;
        ref_span(&t.map, 1, &low, &high);
        int err =
            view_new(disp, datatype_predefined(MPI_BYTE), t.type, datarep_native(), true, &view);
        bool good =
            t.type->size == 0 || (low >= 0 && ref_ascends(&t.map, false) && ref_extent(&t.map) > 0);
        assert_int_equal(err == MPI_SUCCESS, good);
        if (good && t.type->size > 0) {
            n_good++;
            assert_int_equal(view->disjoint, ref_ascends(&t.map, true));
            check_view(view, &t, &r);
        }
        view_unref(view);
        ref_type_free(&t);
    }
    assert_true(n_good > n_types / 50);
}

/* A filetype of external32 grows with its elements, counted strides with them. */
static void reshaped_types_have_external_sizes(void **state)
{
    (void)state;
    struct datatype *vector, *layout, *long_double = datatype_predefined(MPI_LONG_DOUBLE);
    assert_int_equal(mpi_type_vector(5, 2, 3, datatype_predefined(MPI_INT64_T), &vector, false), 0);
    assert_int_equal(datarep_layout(datarep_find("external32"), vector, &layout), 0);
    assert_int_equal(layout->size, 10 * 8);
    assert_int_equal(layout->extent, (4 * 3 + 2) * 8);
    type_unref(layout);
    mpi_type_free(&vector);
    assert_int_equal(mpi_type_vector(3, 1, 2, long_double, &vector, true), 0);
    assert_int_equal(datarep_layout(datarep_find("external32"), vector, &layout), 0);
    assert_int_equal(layout->size, 3 * 16);
    type_unref(layout);
    mpi_type_free(&vector);
    assert_null(datarep_find("external"));
}

static void marks_find_runs(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct ref_random r = {.state = seed};
    struct marks m;
    assert_int_equal(marks_init(&m, N), 0);
    for (int round = 0; round < 300; round++) {
        bool model[N] = {false};
        marks_clear(&m, N);
        for (int i = 0; i < 10; i++) {
            size_t from = (size_t)ref_random_below(&r, N), n = (size_t)ref_random_below(&r, 150);
            n = n < N - from ? n : N - from;
            marks_set(&m, from, n);
            for (size_t k = from; k < from + n; k++)
                model[k] = true;
        }
        size_t at = 0, begin, n;
        while ((n = marks_next(&m, at, &begin)) > 0) {
            for (; at < begin; at++)
                assert_false(model[at]);
            for (; at < begin + n; at++)
                assert_true(model[at]);
            assert_true(at == N || !model[at]);
        }
        for (; at < N; at++)
            assert_false(model[at]);
    }
    marks_deinit(&m);
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
        cmocka_unit_test(random_views_match_reference),
        cmocka_unit_test(reshaped_types_have_external_sizes),
        cmocka_unit_test(marks_find_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
