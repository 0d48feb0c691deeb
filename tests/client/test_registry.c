/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of the tool interface: freed, foreign and invented ones are found out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/tools/registry.h"
#include "mpi.h"

#define MANY 100

static void test_many(void **state)
{
    struct registry r = {0};
    int objects[MANY];
    uintptr_t handles[MANY];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        handles[i] = registry_add(&r, REGISTRY_PVAR, &objects[i]);
        assert_true(handles[i] > (uintptr_t)MPI_T_PVAR_ALL_HANDLES);
    }
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(registry_get(&r, REGISTRY_PVAR, handles[i]), &objects[i]);
    assert_null(registry_get(&r, REGISTRY_CVAR, handles[3]));
    registry_remove(&r, handles[3]);
    assert_null(registry_get(&r, REGISTRY_PVAR, handles[3]));
    uintptr_t again = registry_add(&r, REGISTRY_PVAR, &objects[3]);
    assert_true(again != handles[3]);
    assert_null(registry_get(&r, REGISTRY_PVAR, handles[3]));
    registry_remove(&r, handles[3]); /* freed twice: the new one stays */
    assert_ptr_equal(registry_get(&r, REGISTRY_PVAR, again), &objects[3]);
    registry_clear(&r);
}

static void test_invented(void **state)
{
    struct registry r = {0};
    int object;
    (void)state;
    uintptr_t handle = registry_add(&r, REGISTRY_SESSION, &object);
    const uintptr_t wrong[] = {0,
                               1,
                               2,
                               UINTPTR_MAX,
                               handle + 1,
                               handle + 15,
                               handle + 16,
                               handle + (UINT64_C(1) << 32),
                               handle + (UINT64_C(1) << 56)};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(registry_get(&r, REGISTRY_SESSION, wrong[i]));
        if ((uint32_t)wrong[i] != (uint32_t)handle)
            registry_remove(&r, wrong[i]);
    }
    assert_ptr_equal(registry_get(&r, REGISTRY_SESSION, handle), &object);
    registry_clear(&r);
    assert_null(registry_get(&r, REGISTRY_SESSION, handle));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_invented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
