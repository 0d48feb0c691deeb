/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The predefined datatypes of the standard ABI, as a table.
 *
 * datatype_init enters each under its constant handle value; after that they are only read (but for
 * attributes and names that the user sets). Fortran types have the sizes of every current
 * compiler's defaults: INTEGER, LOGICAL and REAL 4 bytes, DOUBLE PRECISION 8. Sizes in the
 * external32 representation: MPI-5.0 section 14.5.2.
 */
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "client/client.h"
#include "client/datatype/construct.h"
#include "client/datatype/datatype.h"
#include "client/datatype/layout.h"
#include "client/object/err.h"
#include "client/object/handle.h"

struct basic_info {
    MPI_Datatype handle;
    const char *name;
    uint8_t size, align, kind, class, external_size;
};

/* A C type, and a type that is only a number of bytes with the alignment of one. */
#define OF_C(handle, name, ctype, kind, class, external)                                           \
    {                                                                                              \
        handle, name, sizeof(ctype), alignof(ctype), kind, class, external                         \
    }
#define OF_BYTES(handle, name, size, align, kind, class)                                           \
    {                                                                                              \
        handle, name, size, align, kind, class, size                                               \
    }

static const struct basic_info basic_table[] = {
    OF_C(MPI_AINT, "MPI_AINT", MPI_Aint, BASIC_INT64, CLASS_MULTI_LANGUAGE, 8),
    OF_C(MPI_COUNT, "MPI_COUNT", MPI_Count, BASIC_INT64, CLASS_MULTI_LANGUAGE, 8),
    OF_C(MPI_OFFSET, "MPI_OFFSET", MPI_Offset, BASIC_INT64, CLASS_MULTI_LANGUAGE, 8),
    OF_C(MPI_PACKED, "MPI_PACKED", char, BASIC_BYTE, CLASS_PACKED, 1),
    OF_C(MPI_SHORT, "MPI_SHORT", short, BASIC_INT16, CLASS_C_INTEGER, 2),
    OF_C(MPI_INT, "MPI_INT", int, BASIC_INT32, CLASS_C_INTEGER, 4),
    OF_C(MPI_LONG, "MPI_LONG", long, BASIC_INT64, CLASS_C_INTEGER, 4),
    OF_C(MPI_LONG_LONG, "MPI_LONG_LONG_INT", long long, BASIC_INT64, CLASS_C_INTEGER, 8),
    OF_C(MPI_UNSIGNED_SHORT, "MPI_UNSIGNED_SHORT", unsigned short, BASIC_UINT16, CLASS_C_INTEGER,
         2),
    OF_C(MPI_UNSIGNED, "MPI_UNSIGNED", unsigned, BASIC_UINT32, CLASS_C_INTEGER, 4),
    OF_C(MPI_UNSIGNED_LONG, "MPI_UNSIGNED_LONG", unsigned long, BASIC_UINT64, CLASS_C_INTEGER, 4),
    OF_C(MPI_UNSIGNED_LONG_LONG, "MPI_UNSIGNED_LONG_LONG", unsigned long long, BASIC_UINT64,
         CLASS_C_INTEGER, 8),
    OF_C(MPI_FLOAT, "MPI_FLOAT", float, BASIC_FLOAT32, CLASS_FLOATING, 4),
    OF_C(MPI_DOUBLE, "MPI_DOUBLE", double, BASIC_FLOAT64, CLASS_FLOATING, 8),
    OF_C(MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE", long double, BASIC_LONG_DOUBLE, CLASS_FLOATING, 16),
    OF_C(MPI_C_FLOAT_COMPLEX, "MPI_C_COMPLEX", float _Complex, BASIC_COMPLEX32, CLASS_COMPLEX, 8),
    OF_C(MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX", double _Complex, BASIC_COMPLEX64,
         CLASS_COMPLEX, 16),
    OF_C(MPI_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX", long double _Complex,
         BASIC_COMPLEX_LONG_DOUBLE, CLASS_COMPLEX, 32),
    OF_C(MPI_CXX_FLOAT_COMPLEX, "MPI_CXX_FLOAT_COMPLEX", float _Complex, BASIC_COMPLEX32,
         CLASS_COMPLEX, 8),
    OF_C(MPI_CXX_DOUBLE_COMPLEX, "MPI_CXX_DOUBLE_COMPLEX", double _Complex, BASIC_COMPLEX64,
         CLASS_COMPLEX, 16),
    OF_C(MPI_CXX_LONG_DOUBLE_COMPLEX, "MPI_CXX_LONG_DOUBLE_COMPLEX", long double _Complex,
         BASIC_COMPLEX_LONG_DOUBLE, CLASS_COMPLEX, 32),
    OF_C(MPI_C_BOOL, "MPI_C_BOOL", _Bool, BASIC_UINT8, CLASS_LOGICAL, 1),
    OF_C(MPI_CXX_BOOL, "MPI_CXX_BOOL", _Bool, BASIC_UINT8, CLASS_LOGICAL, 1),
    OF_C(MPI_WCHAR, "MPI_WCHAR", wchar_t, BASIC_INT32, CLASS_CHARACTER, 2),
    OF_C(MPI_INT8_T, "MPI_INT8_T", int8_t, BASIC_INT8, CLASS_C_INTEGER, 1),
    OF_C(MPI_UINT8_T, "MPI_UINT8_T", uint8_t, BASIC_UINT8, CLASS_C_INTEGER, 1),
    OF_C(MPI_INT16_T, "MPI_INT16_T", int16_t, BASIC_INT16, CLASS_C_INTEGER, 2),
    OF_C(MPI_UINT16_T, "MPI_UINT16_T", uint16_t, BASIC_UINT16, CLASS_C_INTEGER, 2),
    OF_C(MPI_INT32_T, "MPI_INT32_T", int32_t, BASIC_INT32, CLASS_C_INTEGER, 4),
    OF_C(MPI_UINT32_T, "MPI_UINT32_T", uint32_t, BASIC_UINT32, CLASS_C_INTEGER, 4),
    OF_C(MPI_INT64_T, "MPI_INT64_T", int64_t, BASIC_INT64, CLASS_C_INTEGER, 8),
    OF_C(MPI_UINT64_T, "MPI_UINT64_T", uint64_t, BASIC_UINT64, CLASS_C_INTEGER, 8),
    /* The standard allows no reduction of MPI_CHAR; every implementation takes it as a small
     * integer, and programs rely on that. */
    OF_C(MPI_CHAR, "MPI_CHAR", char, BASIC_INT8, CLASS_C_INTEGER, 1),
    OF_C(MPI_SIGNED_CHAR, "MPI_SIGNED_CHAR", signed char, BASIC_INT8, CLASS_C_INTEGER, 1),
    OF_C(MPI_UNSIGNED_CHAR, "MPI_UNSIGNED_CHAR", unsigned char, BASIC_UINT8, CLASS_C_INTEGER, 1),
    OF_C(MPI_BYTE, "MPI_BYTE", unsigned char, BASIC_BYTE, CLASS_BYTE, 1),

    OF_BYTES(MPI_LOGICAL, "MPI_LOGICAL", 4, 4, BASIC_INT32, CLASS_LOGICAL),
    OF_BYTES(MPI_INTEGER, "MPI_INTEGER", 4, 4, BASIC_INT32, CLASS_FORTRAN_INTEGER),
    OF_BYTES(MPI_REAL, "MPI_REAL", 4, 4, BASIC_FLOAT32, CLASS_FLOATING),
    OF_BYTES(MPI_COMPLEX, "MPI_COMPLEX", 8, 4, BASIC_COMPLEX32, CLASS_COMPLEX),
    OF_BYTES(MPI_DOUBLE_PRECISION, "MPI_DOUBLE_PRECISION", 8, alignof(double), BASIC_FLOAT64,
             CLASS_FLOATING),
    OF_BYTES(MPI_DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX", 16, alignof(double), BASIC_COMPLEX64,
             CLASS_COMPLEX),
    OF_BYTES(MPI_CHARACTER, "MPI_CHARACTER", 1, 1, BASIC_INT8, CLASS_CHARACTER),
    OF_BYTES(MPI_LOGICAL1, "MPI_LOGICAL1", 1, 1, BASIC_INT8, CLASS_LOGICAL),
    OF_BYTES(MPI_LOGICAL2, "MPI_LOGICAL2", 2, 2, BASIC_INT16, CLASS_LOGICAL),
    OF_BYTES(MPI_LOGICAL4, "MPI_LOGICAL4", 4, 4, BASIC_INT32, CLASS_LOGICAL),
    OF_BYTES(MPI_LOGICAL8, "MPI_LOGICAL8", 8, alignof(int64_t), BASIC_INT64, CLASS_LOGICAL),
    OF_BYTES(MPI_LOGICAL16, "MPI_LOGICAL16", 16, alignof(__int128), BASIC_INT128, CLASS_LOGICAL),
    OF_BYTES(MPI_INTEGER1, "MPI_INTEGER1", 1, 1, BASIC_INT8, CLASS_FORTRAN_INTEGER),
    OF_BYTES(MPI_INTEGER2, "MPI_INTEGER2", 2, 2, BASIC_INT16, CLASS_FORTRAN_INTEGER),
    OF_BYTES(MPI_INTEGER4, "MPI_INTEGER4", 4, 4, BASIC_INT32, CLASS_FORTRAN_INTEGER),
    OF_BYTES(MPI_INTEGER8, "MPI_INTEGER8", 8, alignof(int64_t), BASIC_INT64, CLASS_FORTRAN_INTEGER),
    OF_BYTES(MPI_INTEGER16, "MPI_INTEGER16", 16, alignof(__int128), BASIC_INT128,
             CLASS_FORTRAN_INTEGER),
    OF_BYTES(MPI_REAL2, "MPI_REAL2", 2, 2, BASIC_FLOAT16, CLASS_FLOATING),
    OF_BYTES(MPI_REAL4, "MPI_REAL4", 4, 4, BASIC_FLOAT32, CLASS_FLOATING),
    OF_BYTES(MPI_REAL8, "MPI_REAL8", 8, alignof(double), BASIC_FLOAT64, CLASS_FLOATING),
    OF_BYTES(MPI_REAL16, "MPI_REAL16", 16, alignof(__float128), BASIC_FLOAT128, CLASS_FLOATING),
    OF_BYTES(MPI_COMPLEX4, "MPI_COMPLEX4", 4, 2, BASIC_COMPLEX16, CLASS_COMPLEX),
    OF_BYTES(MPI_COMPLEX8, "MPI_COMPLEX8", 8, 4, BASIC_COMPLEX32, CLASS_COMPLEX),
    OF_BYTES(MPI_COMPLEX16, "MPI_COMPLEX16", 16, alignof(double), BASIC_COMPLEX64, CLASS_COMPLEX),
    OF_BYTES(MPI_COMPLEX32, "MPI_COMPLEX32", 32, alignof(__float128), BASIC_COMPLEX128,
             CLASS_COMPLEX),
};

struct pair_info {
    MPI_Datatype handle;
    const char *name;
    MPI_Datatype value, index;
};

/* For MPI_MAXLOC and MPI_MINLOC: laid out like struct { value; index; } of C. */
static const struct pair_info pair_table[] = {
    {MPI_FLOAT_INT, "MPI_FLOAT_INT", MPI_FLOAT, MPI_INT},
    {MPI_DOUBLE_INT, "MPI_DOUBLE_INT", MPI_DOUBLE, MPI_INT},
    {MPI_LONG_INT, "MPI_LONG_INT", MPI_LONG, MPI_INT},
    {MPI_2INT, "MPI_2INT", MPI_INT, MPI_INT},
    {MPI_SHORT_INT, "MPI_SHORT_INT", MPI_SHORT, MPI_INT},
    {MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE, MPI_INT},
    {MPI_2REAL, "MPI_2REAL", MPI_REAL, MPI_REAL},
    {MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION},
    {MPI_2INTEGER, "MPI_2INTEGER", MPI_INTEGER, MPI_INTEGER},
};

#define N_BASIC (sizeof basic_table / sizeof basic_table[0])
#define N_PAIRS (sizeof pair_table / sizeof pair_table[0])

struct predefined_state {
    struct datatype basic_types[N_BASIC];
    struct datatype *pairs[N_PAIRS]; /* of pair_table */
};
static struct predefined_state predefined_first;
static struct predefined_state *predefined_here = &predefined_first;

static void predefined_part_deinit(void)
{
    for (size_t i = 0; i < N_PAIRS; i++) {
        struct datatype *pair = predefined_here->pairs[i];
        if (pair == NULL)
            continue;
        layout_part_unref(pair->layout);
        type_map_unref(pair->map);
        free(pair->name);
        free(pair);
    }
    for (size_t i = 0; i < N_BASIC; i++)
        free(predefined_here->basic_types[i].name);
}
CLIENT_PART(predefined_here, predefined_first, .deinit = predefined_part_deinit);

static int predefined_enter(struct datatype *type, MPI_Datatype handle, const char *name)
{
    type->name = strdup(name);
    if (type->name == NULL)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the predefined datatypes");
    type->committed = true;
    handle_set_predefined((uintptr_t)handle, &type->obj);
    return MPI_SUCCESS;
}

static int enter_basic(struct datatype *type, const struct basic_info *info)
{
    *type = (struct datatype){
        .obj = {.refs = 1, .kind = OBJECT_DATATYPE},
        .size = info->size,
        .extent = info->size,
        .true_extent = info->size,
        .contiguous = true,
        .dense = true,
        .laid_out = true,
        .basic = info->kind,
        .class = info->class,
        .external_size = info->external_size,
        .align = info->align,
        /* The handle's value tells types apart; the product with a large odd number spreads it. */
        .signature = {.hash = (uintptr_t)info->handle * UINT64_C(0xff51afd7ed558ccd),
                      .n_elements = 1},
        .element = type,
        .layout = {.size = info->size},
    };
    return predefined_enter(type, info->handle, info->name);
}

static int enter_pair(const struct pair_info *info, struct datatype **ret_pair)
{
    struct datatype *value = datatype_predefined(info->value);
    struct datatype *index = datatype_predefined(info->index);
    struct type_map *map = type_map_new_irregular(NULL, 2);
    if (map != NULL) {
        map->children[0] = value;
        map->children[1] = index;
        map->blocks[0] = (struct type_block){.displacement = 0, .len = 1};
        map->blocks[1] = (struct type_block){.displacement = value->size, .len = 1};
        if (map->blocks[1].displacement < index->align)
            map->blocks[1].displacement = index->align;
    }
    struct datatype *type;
    int rc = type_new(map, contents_new(MPI_COMBINER_NAMED, false, 0), true, &type);
    if (rc == MPI_SUCCESS)
        rc = type_layout(type);
    if (rc != MPI_SUCCESS)
        return rc;
    contents_unref(type->contents);
    type->contents = NULL;
    type->basic = value->basic;
    type->class = CLASS_PAIR;
    type->pair_index = index->basic;
    type->element = type;
    *ret_pair = type;
    return predefined_enter(type, info->handle, info->name);
}

int datatype_init(void)
{
    if (predefined_here->basic_types[0].obj.handle != 0)
        return MPI_SUCCESS;
    for (size_t i = 0; i < N_BASIC; i++) {
        int rc = enter_basic(&predefined_here->basic_types[i], &basic_table[i]);
        if (rc != MPI_SUCCESS)
            return rc;
    }
    for (size_t i = 0; i < N_PAIRS; i++) {
        int rc = enter_pair(&pair_table[i], &predefined_here->pairs[i]);
        if (rc != MPI_SUCCESS)
            return rc;
    }
    return MPI_SUCCESS;
}
