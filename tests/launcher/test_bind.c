/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processors a rank gets, on a machine of hwloc's imagination: two sockets of four cores of
 * two threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/spawner/bind.h"

#define N_CPUS 16

/* The processors as bits. */
static uint32_t bound(uint32_t over, uint32_t to, uint32_t index, uint32_t width)
{
    const struct bind_request request = {.over = over, .to = to, .index = index, .width = width};
    uint32_t bits = 0;
    cpu_set_t cpus;

    assert_int_equal(bind_cpus(&request, &cpus), 0);
    for (int cpu = 0; cpu < N_CPUS; cpu++)
        bits |= CPU_ISSET(cpu, &cpus) ? UINT32_C(1) << cpu : 0;
    assert_int_equal(__builtin_popcount(bits), CPU_COUNT(&cpus));
    return bits;
}

static void test_one_core_each(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(bound(BINDING_CORE, BINDING_CORE, i, 1), 3u << 2 * i);
    assert_int_equal(bound(BINDING_CORE, BINDING_CORE, 8, 1), 3u); /* from the beginning */
    assert_int_equal(bound(BINDING_HWTHREAD, BINDING_HWTHREAD, 5, 1), 1u << 5);
}

/* Ranks in turn over the sockets, several cores each: none shared while there are enough. */
static void test_several_cores(void **state)
{
    (void)state;
    assert_int_equal(bound(BINDING_SOCKET, BINDING_CORE, 0, 2), 0x000f);
    assert_int_equal(bound(BINDING_SOCKET, BINDING_CORE, 1, 2), 0x0f00);
    assert_int_equal(bound(BINDING_SOCKET, BINDING_CORE, 2, 2), 0x00f0);
    assert_int_equal(bound(BINDING_SOCKET, BINDING_CORE, 3, 2), 0xf000);
    assert_int_equal(bound(BINDING_SOCKET, BINDING_CORE, 4, 2), 0x000f);
    assert_int_equal(bound(BINDING_MACHINE, BINDING_CORE, 0, 3), 0x003f);
    assert_int_equal(bound(BINDING_MACHINE, BINDING_CORE, 1, 3), 0x0fc0);
}

/* Wider than where they are counted over: all around it; more than there are: refused. */
static void test_wider(void **state)
{
    const struct bind_request request = {
        .over = BINDING_SOCKET, .to = BINDING_CORE, .index = 0, .width = 5};
    cpu_set_t cpus;

    (void)state;
    assert_int_equal(bound(BINDING_CORE, BINDING_SOCKET, 1, 1), 0x00ff);
    assert_int_equal(bound(BINDING_CORE, BINDING_SOCKET, 4, 1), 0xff00);
    assert_int_equal(bind_cpus(&request, &cpus), BIND_E_WIDTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_core_each),
                                       cmocka_unit_test(test_several_cores),
                                       cmocka_unit_test(test_wider)};

    setenv("HWLOC_SYNTHETIC", "package:2 core:4 pu:2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
