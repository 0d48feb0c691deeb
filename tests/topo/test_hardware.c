/* SPDX-License-Identifier: BSD-3-Clause */
/* The instance of each type of hardware that a set of cores lies in, on machines of hwloc's
 * imagination. */
#include "client/process/hardware.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static hwloc_topology_t machine_of(const char *description)
{
    hwloc_topology_t topology;
    assert_int_equal(hwloc_topology_init(&topology), 0);
    assert_int_equal(hwloc_topology_set_synthetic(topology, description), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    return topology;
}

static void expect(hwloc_topology_t topology, unsigned first, unsigned last, const char *type,
                   int place)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    hwloc_bitmap_set_range(cpus, first, (int)last);
    int found = hardware_place_in(topology, cpus, hardware_find(type));
    hwloc_bitmap_free(cpus);
    if (found != place)
        fail_msg("cores %u to %u, %s: %d instead of %d", first, last, type, found, place);
}

static void test_names(void **state)
{
    (void)state;
    assert_int_equal(hardware_find("mpi_shared_memory"), 0);
    assert_int_equal(hardware_find("hwloc://NUMANode"), hardware_find("numanode"));
    assert_int_equal(hardware_find("hwloc://"), -1);
    assert_int_equal(hardware_find(""), -1);
    assert_int_equal(hardware_find("hwloc://L9Cache"), -1);
    for (int type = 0; type < HARDWARE_TYPES; type++)
        assert_int_equal(hardware_find(hardware_uri(type)), type);
}

/* Two packages of two NUMA nodes of two caches of two cores of two threads: 32 threads. */
static void test_large(void **state)
{
    hwloc_topology_t t = machine_of("package:2 numa:2 l3:2 core:2 pu:2");
    (void)state;
    expect(t, 0, 31, "mpi_shared_memory", 0);
    expect(t, 0, 31, "hwloc://Package", HARDWARE_NONE);
    expect(t, 0, 15, "hwloc://Package", 0);
    expect(t, 16, 31, "hwloc://Package", 1);
    expect(t, 15, 16, "hwloc://Package", HARDWARE_NONE);
    expect(t, 8, 15, "hwloc://NUMANode", 1);
    expect(t, 24, 27, "hwloc://L3Cache", 6);
    expect(t, 24, 28, "hwloc://L3Cache", HARDWARE_NONE);
    expect(t, 30, 31, "hwloc://Core", 15);
    expect(t, 29, 30, "hwloc://Core", HARDWARE_NONE);
    expect(t, 31, 31, "hwloc://PU", 31);
    expect(t, 31, 31, "hwloc://Die", HARDWARE_NONE); /* has none */
    hwloc_topology_destroy(t);
}

/* One core of everything: restricted to all there is. */
static void test_small(void **state)
{
    hwloc_topology_t t = machine_of("core:1 pu:1");
    (void)state;
    expect(t, 0, 0, "hwloc://Core", 0);
    expect(t, 0, 0, "hwloc://PU", 0);
    expect(t, 0, 0, "hwloc://NUMANode", 0);
    hwloc_topology_destroy(t);
}

/* Cores that the machine does not have restrict to nothing. */
static void test_strange(void **state)
{
    hwloc_topology_t t = machine_of("package:2 core:2 pu:1");
    (void)state;
    expect(t, 7, 9, "hwloc://Package", HARDWARE_NONE);
    hwloc_bitmap_t none = hwloc_bitmap_alloc();
    assert_int_equal(hardware_place_in(t, none, hardware_find("Package")), HARDWARE_NONE);
    hwloc_bitmap_free(none);
    hwloc_topology_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_small),
                                       cmocka_unit_test(test_strange)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
