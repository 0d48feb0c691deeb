/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding a predefined type by its properties: by class and size, by Fortran's precision and range,
 * by the two types of a pair (MPI-5.0 sections 19.1.9 and 5.1.14).
 */
#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/datatype/construct.h"
#include "client/object/err.h"
#include "client/object/handle.h"

struct sized_type {
    int typeclass;
    int size;
    MPI_Datatype handle;
};

static const struct sized_type sized_types[] = {
    {MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},   {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
    {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4},   {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
    {MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16}, {MPI_TYPECLASS_REAL, 2, MPI_REAL2},
    {MPI_TYPECLASS_REAL, 4, MPI_REAL4},         {MPI_TYPECLASS_REAL, 8, MPI_REAL8},
    {MPI_TYPECLASS_REAL, 16, MPI_REAL16},       {MPI_TYPECLASS_COMPLEX, 4, MPI_COMPLEX4},
    {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},   {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16},
    {MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32},
};

int mpi_type_match_size(int typeclass, int size, struct datatype **ret_datatype)
{
    bool known_class = false;
    for (size_t i = 0; i < sizeof sized_types / sizeof sized_types[0]; i++) {
        if (sized_types[i].typeclass != typeclass)
            continue;
        known_class = true;
        if (sized_types[i].size == size) {
            *ret_datatype = datatype_predefined(sized_types[i].handle);
            return MPI_SUCCESS;
        }
    }
    if (known_class)
        return err_set(MPI_ERR_ARG, "no datatype of this class has %d bytes", size);
    return err_set(MPI_ERR_ARG, "typeclass %d is none of MPI_TYPECLASS_INTEGER, _REAL and _COMPLEX",
                   typeclass);
}

/* Decimal precision and exponent range of Fortran's kinds, smallest first: what selected_real_kind
 * and selected_int_kind of current compilers go by. */
struct fortran_kind {
    int precision, range;
    MPI_Datatype handle;
};

static const struct fortran_kind real_kinds[] = {
    {6, 37, MPI_REAL4}, {15, 307, MPI_REAL8}, {33, 4931, MPI_REAL16}};
static const struct fortran_kind complex_kinds[] = {
    {6, 37, MPI_COMPLEX8}, {15, 307, MPI_COMPLEX16}, {33, 4931, MPI_COMPLEX32}};
static const struct fortran_kind integer_kinds[] = {{0, 2, MPI_INTEGER1},
                                                    {0, 4, MPI_INTEGER2},
                                                    {0, 9, MPI_INTEGER4},
                                                    {0, 18, MPI_INTEGER8},
                                                    {0, 38, MPI_INTEGER16}};

/* The types handed out so far: equal arguments must give equal handles, and the types are never
 * freed. */
struct f90_type {
    struct f90_type *next;
    int combiner, precision, range;
    struct datatype *type;
};
struct match_state {
    struct f90_type *f90_types;
};
static struct match_state match_first;
static struct match_state *match_here = &match_first;
CLIENT_PART(match_here, match_first);

static struct datatype *find_f90_type(int combiner, int precision, int range)
{
    for (const struct f90_type *entry = match_here->f90_types; entry != NULL; entry = entry->next) {
        if (entry->combiner == combiner && entry->precision == precision && entry->range == range)
            return entry->type;
    }
    return NULL;
}

/* A predefined type without a name that is like `base` but for its envelope. */
static int add_f90_type(int combiner, int precision, int range, const struct datatype *base,
                        struct datatype **ret_type)
{
    struct f90_type *entry = malloc(sizeof *entry);
    struct datatype *type = type_clone(base);
    struct type_contents *contents = contents_new(combiner, false, 0);
    if (contents != NULL && combiner != MPI_COMBINER_F90_INTEGER)
        contents_add_int(contents, precision);
    if (contents != NULL)
        contents_add_int(contents, range);
    if (type != NULL)
        type->contents = contents;
    if (entry == NULL || type == NULL || contents == NULL || contents->failed ||
        handle_new(&type->obj) == 0) {
        if (type != NULL)
            type_unref(type);
        else
            contents_unref(contents);
        free(entry);
        return err_set(MPI_ERR_NO_MEM, "out of memory for a datatype");
    }
    type->obj.predefined = true;
    *entry = (struct f90_type){.next = match_here->f90_types,
                               .combiner = combiner,
                               .precision = precision,
                               .range = range,
                               .type = type};
    match_here->f90_types = entry;
    *ret_type = type;
    return MPI_SUCCESS;
}

static int create_f90(int combiner, int precision, int range, const struct fortran_kind *kinds,
                      size_t n_kinds, struct datatype **ret_type)
{
    *ret_type = find_f90_type(combiner, precision, range);
    if (*ret_type != NULL)
        return MPI_SUCCESS;
    if (precision == MPI_UNDEFINED && range == MPI_UNDEFINED)
        return err_set(MPI_ERR_ARG, "precision and range are both MPI_UNDEFINED");
    for (size_t i = 0; i < n_kinds; i++) {
        if ((precision == MPI_UNDEFINED || precision <= kinds[i].precision) &&
            (range == MPI_UNDEFINED || range <= kinds[i].range))
            return add_f90_type(combiner, precision, range, datatype_predefined(kinds[i].handle),
                                ret_type);
    }
    return err_set(MPI_ERR_ARG, "no Fortran type has precision %d and range %d", precision, range);
}

int mpi_type_create_f90_real(int p, int r, struct datatype **ret_newtype)
{
    return create_f90(MPI_COMBINER_F90_REAL, p, r, real_kinds, 3, ret_newtype);
}

int mpi_type_create_f90_complex(int p, int r, struct datatype **ret_newtype)
{
    return create_f90(MPI_COMBINER_F90_COMPLEX, p, r, complex_kinds, 3, ret_newtype);
}

int mpi_type_create_f90_integer(int r, struct datatype **ret_newtype)
{
    return create_f90(MPI_COMBINER_F90_INTEGER, 0, r, integer_kinds, 5, ret_newtype);
}

/* Pairs other than the named ones are not provided: the result is then MPI_DATATYPE_NULL, as the
 * standard allows. */
int mpi_type_get_value_index(struct datatype *value_type, struct datatype *index_type,
                             struct datatype **ret_pair_type)
{
    static const MPI_Datatype pairs[][3] = {
        {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},
        {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
        {MPI_LONG, MPI_INT, MPI_LONG_INT},
        {MPI_INT, MPI_INT, MPI_2INT},
        {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
        {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
        {MPI_REAL, MPI_REAL, MPI_2REAL},
        {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
        {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
    };
    *ret_pair_type = NULL;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (value_type == datatype_predefined(pairs[i][0]) &&
            index_type == datatype_predefined(pairs[i][1]))
            *ret_pair_type = datatype_predefined(pairs[i][2]);
    }
    return MPI_SUCCESS;
}
