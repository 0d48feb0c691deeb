/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library tells about its own ABI: MPI_Abi_* (MPI-5.0 chapter 20).
 *
 * Called by the bindings, also before initialization, on any thread. The sizes of the Fortran types
 * are fixed at build time, so they count as set, and setting them is refused with MPI_ERR_ABI as
 * the standard wants. The values of .TRUE. and .FALSE. are what the compiler's libmpifort_abi says.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/abi/semantics.h"
#include "client/datatype/datatype.h"
#include "client/object/err.h"
#include "client/object/handle.h"
#include "client/object/info.h"

int mpi_abi_get_version(int *abi_major, int *abi_minor)
{
    *abi_major = MPI_ABI_VERSION;
    *abi_minor = MPI_ABI_SUBVERSION;
    return MPI_SUCCESS;
}

struct fact {
    const char *key;
    const char *value;
};

static int put_facts(struct info *info, const struct fact *facts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int err = info_put(info, facts[i].key, facts[i].value);

        if (err)
            return err;
    }
    return MPI_SUCCESS;
}

int mpi_abi_get_info(struct info **ret_info)
{
    static const struct fact facts[] = {
        {"mpi_aint_size", "8"},
        {"mpi_count_size", "8"},
        {"mpi_offset_size", "8"},
    };
    struct info *info;
    int err;

    static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8 && sizeof(MPI_Offset) == 8,
                  "as said above");
    err = info_new(&info);
    if (err)
        return err;
    err = put_facts(info, facts, sizeof(facts) / sizeof(facts[0]));
    return info_publish(err, info, ret_info);
}

int mpi_abi_get_fortran_info(struct info **ret_info)
{
    static const struct fact sizes[] = {
        {"mpi_logical_size", "4"},
        {"mpi_integer_size", "4"},
        {"mpi_real_size", "4"},
        {"mpi_double_precision_size", "8"},
    };
    static const struct {
        const char *name;
        MPI_Datatype type;
    } optional[] = {
        {"logical1", MPI_LOGICAL1},
        {"logical2", MPI_LOGICAL2},
        {"logical4", MPI_LOGICAL4},
        {"logical8", MPI_LOGICAL8},
        {"logical16", MPI_LOGICAL16},
        {"integer1", MPI_INTEGER1},
        {"integer2", MPI_INTEGER2},
        {"integer4", MPI_INTEGER4},
        {"integer8", MPI_INTEGER8},
        {"integer16", MPI_INTEGER16},
        {"real2", MPI_REAL2},
        {"real4", MPI_REAL4},
        {"real8", MPI_REAL8},
        {"real16", MPI_REAL16},
        {"complex4", MPI_COMPLEX4},
        {"complex8", MPI_COMPLEX8},
        {"complex16", MPI_COMPLEX16},
        {"complex32", MPI_COMPLEX32},
        {"double_complex", MPI_DOUBLE_COMPLEX},
    };
    struct info *info;
    int err = datatype_init();

    if (err)
        return err;
    err = info_new(&info);
    if (err)
        return err;
    err = put_facts(info, sizes, sizeof(sizes) / sizeof(sizes[0]));
    for (size_t i = 0; !err && i < sizeof(optional) / sizeof(optional[0]); i++) {
        char key[64];

        snprintf(key, sizeof(key), "mpi_%s_supported", optional[i].name);
        err = info_put(info, key, datatype_from_handle(optional[i].type) ? "true" : "false");
    }
    return info_publish(err, info, ret_info);
}

int mpi_abi_set_fortran_info(struct info *info)
{
    (void)info;
    return err_set(MPI_ERR_ABI, "the sizes of the Fortran types are fixed in this library");
}

static int check_logical_size(int logical_size)
{
    switch (logical_size) {
    case 1:
    case 2:
    case 4:
    case 8:
    case 16:
        return MPI_SUCCESS;
    default:
        return err_set(MPI_ERR_ARG, "logical_size is %d, but must be 1, 2, 4, 8 or 16",
                       logical_size);
    }
}

/* What .TRUE. and .FALSE. are is a compiler's own and unknown until its Fortran library says so.
 * The first call counts; the values of other sizes are the same numbers. */
static struct {
    _Atomic(int) state; /* SET: the values below are constant */
    int64_t logical_true, logical_false;
} booleans;
enum { NOT_SET, BEING_SET, SET };

/* Little endian; a LOGICAL of 16 bytes is its number with its sign. */
static void store_number(void *place, int size, int64_t number)
{
    memset(place, number < 0 ? 0xff : 0, (size_t)size);
    memcpy(place, &number, (size_t)size < sizeof number ? (size_t)size : sizeof number);
}

static int64_t load_number(const void *place, int size)
{
    int n_bytes = size < (int)sizeof(int64_t) ? size : (int)sizeof(int64_t);
    uint64_t number = 0;

    memcpy(&number, place, (size_t)n_bytes);
    int shift = 64 - 8 * n_bytes;
    return (int64_t)(number << shift) >> shift;
}

static int check_values(const void *logical_true, const void *logical_false)
{
    if (!logical_true || !logical_false)
        return err_set(MPI_ERR_ARG, "%s is a null pointer",
                       logical_true ? "logical_false" : "logical_true");
    return MPI_SUCCESS;
}

int mpi_abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false,
                                 int *is_set)
{
    int err = check_logical_size(logical_size);

    if (!err)
        err = check_values(logical_true, logical_false);
    if (err)
        return err;
    /* acquire: pairs with the release in mpi_abi_set_fortran_booleans */
    *is_set = atomic_load_explicit(&booleans.state, memory_order_acquire) == SET;
    if (*is_set) {
        store_number(logical_true, logical_size, booleans.logical_true);
        store_number(logical_false, logical_size, booleans.logical_false);
    }
    return MPI_SUCCESS;
}

int mpi_abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false)
{
    int err = check_logical_size(logical_size), expected = NOT_SET;

    if (!err)
        err = check_values(logical_true, logical_false);
    if (err)
        return err;
    if (memcmp(logical_true, logical_false, (size_t)logical_size) == 0)
        return err_set(MPI_ERR_ARG, "logical_true and logical_false are the same");
    if (!atomic_compare_exchange_strong_explicit(&booleans.state, &expected, BEING_SET,
                                                 memory_order_relaxed, memory_order_relaxed))
        return err_set(MPI_ERR_ABI, "the values of .TRUE. and .FALSE. have been set before");
    booleans.logical_true = load_number(logical_true, logical_size);
    booleans.logical_false = load_number(logical_false, logical_size);
    /* release: pairs with the acquire in mpi_abi_get_fortran_booleans */
    atomic_store_explicit(&booleans.state, SET, memory_order_release);
    return MPI_SUCCESS;
}
