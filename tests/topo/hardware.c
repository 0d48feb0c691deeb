/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Splitting by hardware: hardware CORE CORE. The ranks bind themselves to the one core or the other
 * by turns, the last of an odd number to none. hardware.py gives the topology in which the cores
 * are: one package of two L3 caches of a core each.
 */
#include "tests/topo/check.h"

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void bind_to(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0) {
        perror("sched_setaffinity");
        exit(1);
    }
}

static MPI_Comm split(MPI_Comm comm, int type, const char *resource)
{
    MPI_Comm part;
    MPI_Info info = MPI_INFO_NULL;
    if (resource) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_hw_resource_type", resource);
    }
    MPI_Comm_split_type(comm, type, 0, info, &part);
    if (resource)
        MPI_Info_free(&info);
    return part;
}

static void expect_size(MPI_Comm part, int wanted, const char *what)
{
    int n = 0;
    if (part != MPI_COMM_NULL)
        MPI_Comm_size(part, &n);
    CHECK(n == wanted, "%s: %d processes instead of %d", what, n, wanted);
    if (part != MPI_COMM_NULL)
        MPI_Comm_free(&part);
}

static void check_guided(int n_bound, int is_bound)
{
    /* Ranks with the same core as this one. */
    int mine = is_bound ? (n_bound + (rank % 2 == 0)) / 2 : 0;
    expect_size(split(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, NULL), size, "shared");
    expect_size(split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, "mpi_shared_memory"), size,
                "guided: memory");
    expect_size(split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, "hwloc://Package"), size,
                "guided: package");
    expect_size(split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, "hwloc://L3Cache"), mine,
                "guided: cache");
    expect_size(split(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, "hwloc://Core"), mine,
                "resource: core");
    expect_size(split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, "hwloc://Die"), 0,
                "guided: what is not there");
    expect_size(split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, "nonsense://x"), 0,
                "guided: what nobody knows");
    expect_size(split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, NULL), 0, "guided by nothing");
}

/* One level down, then none; the info object tells which level it was. */
static void check_unguided(int n_bound, int is_bound)
{
    int mine = is_bound ? (n_bound + (rank % 2 == 0)) / 2 : 0, n = 0, flag, length = 64;
    char level[64] = "";
    MPI_Info info;
    MPI_Comm part, below;
    MPI_Info_create(&info);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &part);
    if (size == 1) { /* nothing below is a strict subset */
        CHECK(part == MPI_COMM_NULL, "one process was split%s", "");
        MPI_Info_free(&info);
        return;
    }
    MPI_Info_get_string(info, "mpi_hw_resource_type", &length, level, &flag);
    MPI_Info_free(&info);
    if (part == MPI_COMM_NULL) {
        CHECK(!is_bound, "a bound process is left out%s", "");
        return;
    }
    MPI_Comm_size(part, &n);
    CHECK(n == mine, "%d processes instead of %d", n, mine);
    CHECK(flag && strcmp(level, "hwloc://L3Cache") == 0, "level \"%s\"", level);
    MPI_Comm_split_type(part, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &below);
    CHECK(below == MPI_COMM_NULL, "there is a level below the core%s", "");
    /* Some of a communicator's processes ask, others want none. */
    MPI_Comm_split_type(part, rank < 2 ? MPI_COMM_TYPE_HW_UNGUIDED : MPI_UNDEFINED, 0,
                        MPI_INFO_NULL, &below);
    CHECK(below == MPI_COMM_NULL, "there is a level below the core%s", "");
    MPI_Comm_free(&part);
}

/* Two groups: each hardware with what both have on it, the same level for both. */
static void check_inter(void)
{
    MPI_Comm half, inter, part;
    int local = 0, remote = 0;
    if (size < 4 || size % 2)
        return;
    /* Ranks 0 and 1 of every four against 2 and 3: each half has ranks on both cores. */
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2 % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank / 2 % 2 ? 0 : 2, 1, &inter);
    MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
    MPI_Comm_remote_size(part, &remote);
    MPI_Comm_size(part, &local);
    CHECK(local + remote == size, "%d and %d processes", local, remote);
    MPI_Comm_free(&part);
    MPI_Comm_split_type(inter, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &part);
    CHECK(part != MPI_COMM_NULL, "not split%s", "");
    MPI_Comm_remote_size(part, &remote);
    MPI_Comm_size(part, &local);
    CHECK(local + remote == size / 2, "%d and %d processes on one core", local, remote);
    MPI_Comm_free(&part);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static void check_info(int is_bound)
{
    MPI_Info info;
    char value[8] = "";
    int flag, length = sizeof value;
    MPI_Get_hw_resource_info(&info);
    MPI_Info_get_string(info, "hwloc://Core", &length, value, &flag);
    CHECK(flag && strcmp(value, is_bound ? "true" : "false") == 0, "a core: \"%s\"", value);
    length = sizeof value;
    MPI_Info_get_string(info, "hwloc://Package", &length, value, &flag);
    CHECK(flag && strcmp(value, "true") == 0, "a package: \"%s\"", value);
    MPI_Info_get_string(info, "hwloc://Die", &length, value, &flag);
    CHECK(!flag, "a die: \"%s\"", value);
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    const char *own = getenv("MOTET_RANK"), *all = getenv("MOTET_SIZE");
    if (argc != 3 || !own || !all)
        return 2;
    rank = atoi(own);
    size = atoi(all);
    int is_bound = size == 1 || rank < size / 2 * 2, n_bound = size == 1 ? 1 : size / 2 * 2;
    if (is_bound)
        bind_to(atoi(argv[1 + rank % 2])); /* before the library may have threads of its own */
    MPI_Init(&argc, &argv);
    check_guided(n_bound, is_bound);
    check_unguided(n_bound, is_bound);
    check_inter();
    check_info(is_bound);
    if (rank == 0)
        printf("hardware: %d ranks\n", size);
    MPI_Finalize();
    return 0;
}
