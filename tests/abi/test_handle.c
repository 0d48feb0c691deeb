/* SPDX-License-Identifier: BSD-3-Clause */
/* The handle table: look-up, reuse, wrong kinds, rubbish, integers, growth without moving. */
#include "client/object/handle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct object *new_object(enum object_kind kind)
{
    struct object *object = calloc(1, sizeof(*object));

    assert_non_null(object);
    object->kind = (uint8_t)kind;
    return object;
}

static void test_new_get_free(void **state)
{
    struct object *comm = new_object(OBJECT_COMM);
    uintptr_t handle = handle_new(comm);

    (void)state;
    assert_true(handle >= HANDLE_PREDEFINED_MAX);
    assert_int_equal(comm->handle, handle);
    assert_ptr_equal(handle_object(handle), comm);
    assert_ptr_equal(handle_get(OBJECT_COMM, handle), comm);
    assert_null(handle_get(OBJECT_GROUP, handle));
    assert_int_equal(handle_count(), 1);
    handle_free(comm);
    assert_null(handle_object(handle));
    assert_int_equal(comm->handle, 0);
    assert_int_equal(handle_count(), 0);
    handle_free(comm); /* without a handle: nothing happens */
    free(comm);
}

static void test_freed_handle_stays_dead(void **state)
{
    struct object *first = new_object(OBJECT_REQUEST);
    struct object *second = new_object(OBJECT_REQUEST);
    uintptr_t old = handle_new(first);
    uintptr_t new;

    (void)state;
    handle_free(first);
    new = handle_new(second);
    assert_int_equal((uint32_t) new, (uint32_t)old); /* the slot is used again */
    assert_int_not_equal(new, old);
    assert_null(handle_object(old));
    assert_ptr_equal(handle_object(new), second);
    handle_free(second);
    free(first);
    free(second);
}

static void test_generation_wraps(void **state)
{
    struct object *object = new_object(OBJECT_INFO);
    uintptr_t first = handle_new(object);
    uintptr_t last = 0;

    (void)state;
    /* 24 bits of generation: the kind's bits must not be touched when they run over. */
    for (uint32_t i = 0; i < 1u << 24; i++) {
        handle_free(object);
        last = handle_new(object);
        if (last >> 56 != OBJECT_INFO)
            fail_msg("kind lost at reuse %u: 0x%zx", i, (size_t)last);
    }
    assert_int_equal(last, first);
    handle_free(object);
    free(object);
}

static void test_rubbish(void **state)
{
    static const uintptr_t rubbish[] = {
        0,          1,           0x100,           0x0fff,     0x1000,     0x7fffffff,
        0xffffffff, UINTPTR_MAX, UINTPTR_MAX / 2, 0x03fff000, 0x04000000, 0x0100000000001000,
        0x12345678};

    (void)state;
    for (size_t i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++)
        assert_null(handle_object(rubbish[i]));
    srandom(1);
    for (int i = 0; i < 100000; i++) {
        uintptr_t handle =
            (uintptr_t)random() << 33 ^ (uintptr_t)random() << 11 ^ (uintptr_t)random();

        assert_null(handle_object(handle));
    }
}

static void test_predefined(void **state)
{
    struct object *world = new_object(OBJECT_COMM);

    (void)state;
    handle_set_predefined(0x101, world);
    assert_true(world->predefined);
    assert_int_equal(world->handle, 0x101);
    assert_ptr_equal(handle_get(OBJECT_COMM, 0x101), world);
    assert_null(handle_get(OBJECT_DATATYPE, 0x101));
    handle_free(world); /* predefined handles are not given back */
    assert_ptr_equal(handle_object(0x101), world);
    handle_set_predefined(0x102, world);
    assert_int_equal(world->handle, 0x101);
    assert_ptr_equal(handle_object(0x102), world);
    handle_set_predefined(0x101, NULL);
    handle_set_predefined(0x102, NULL);
    assert_null(handle_object(0x101));
    free(world);
}

static void test_integers(void **state)
{
    const uintptr_t null_handle = 0x100;
    struct object *comm = new_object(OBJECT_COMM);
    uintptr_t handle = handle_new(comm);
    int number = handle_toint(handle);

    (void)state;
    assert_true(number >= (int)HANDLE_PREDEFINED_MAX);
    assert_int_equal(handle_fromint(OBJECT_COMM, number, null_handle), handle);
    assert_int_equal(handle_fromint(OBJECT_GROUP, number, 0x108), 0x108); /* another kind */
    assert_int_equal(handle_toint(null_handle), (int)null_handle);
    assert_int_equal(handle_fromint(OBJECT_COMM, (int)null_handle, null_handle), null_handle);
    assert_int_equal(handle_fromint(OBJECT_COMM, 0x101, null_handle),
                     0x101); /* predefined: its own value */
    assert_int_equal(handle_fromint(OBJECT_COMM, -1, null_handle), null_handle);
    assert_int_equal(handle_fromint(OBJECT_COMM, INT32_MAX, null_handle), null_handle);
    handle_free(comm);
    assert_int_equal(handle_fromint(OBJECT_COMM, number, null_handle), null_handle);
    free(comm);
}

static void count_one(struct object *object, void *arg)
{
    assert_int_equal(object->kind, OBJECT_REQUEST);
    ++*(size_t *)arg;
}

/* Slots that were freed are used again before new ones, the last one first. */
static void test_reuse(void **state)
{
    struct object *objects[3];
    int numbers[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        objects[i] = new_object(OBJECT_GROUP);
        numbers[i] = handle_toint(handle_new(objects[i]));
    }
    for (int i = 0; i < 3; i++)
        handle_free(objects[i]);
    for (int i = 2; i >= 0; i--)
        assert_int_equal(handle_toint(handle_new(objects[i])), numbers[i]);
    for (int i = 0; i < 3; i++) {
        handle_free(objects[i]);
        free(objects[i]);
    }
}

static void test_growth(void **state)
{
    enum { N = 5 * HANDLE_CHUNK_SLOTS + 17 };
    static struct object objects[N];
    static uintptr_t handles[N];
    struct handle_slot *first_chunk;
    size_t n = 0;

    (void)state;
    objects[0].kind = OBJECT_REQUEST;
    handles[0] = handle_new(&objects[0]);
    first_chunk = handle_here->chunks[1];
    for (int i = 1; i < N; i++) {
        objects[i].kind = OBJECT_REQUEST;
        handles[i] = handle_new(&objects[i]);
        assert_int_not_equal(handles[i], 0);
    }
    assert_ptr_equal(handle_here->chunks[1], first_chunk);
    handle_each(count_one, &n);
    assert_int_equal(n, N);
    for (int i = 0; i < N; i += 2)
        handle_free(&objects[i]);
    for (int i = 0; i < N; i++)
        assert_ptr_equal(handle_object(handles[i]), i % 2 ? &objects[i] : NULL);
    for (int i = 1; i < N; i += 2)
        handle_free(&objects[i]);
    assert_int_equal(handle_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_new_get_free),
        cmocka_unit_test(test_freed_handle_stays_dead),
        cmocka_unit_test(test_generation_wraps),
        cmocka_unit_test(test_predefined),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_growth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
