/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Life of datatypes: names, envelopes and contents of every constructor in both forms, types that
 * outlive their handles, matching of predefined types, statuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "client/datatype/datatype.h"
#include "client/object/handle.h"
#include "client/progress/status.h"

#define MAX_NUMBERS 32

/* What the tests expect of MPI_Type_get_contents: the numbers in order. */
struct expected {
    int combiner;
    int n_integers, n_addresses, n_counts, n_types;
    MPI_Count integers[MAX_NUMBERS], addresses[MAX_NUMBERS], counts[MAX_NUMBERS];
};

static void check_contents(struct datatype **type, const struct expected *e)
{
    MPI_Count ni, na, nc, nd;
    int combiner;
    int integers[MAX_NUMBERS];
    MPI_Aint addresses[MAX_NUMBERS];
    MPI_Count counts[MAX_NUMBERS];
    MPI_Datatype types[4];
    assert_int_equal(mpi_type_get_envelope(*type, &ni, &na, &nc, &nd, &combiner), MPI_SUCCESS);
    assert_int_equal(combiner, e->combiner);
    assert_int_equal(ni, e->n_integers);
    assert_int_equal(na, e->n_addresses);
    assert_int_equal(nc, e->n_counts);
    assert_int_equal(nd, e->n_types);
    assert_int_equal(mpi_type_get_envelope(*type, &ni, &na, NULL, &nd, &combiner),
                     e->n_counts > 0 ? MPI_ERR_TYPE : MPI_SUCCESS);
    assert_int_equal(
        mpi_type_get_contents(*type, ni, na, nc, nd - 1, integers, addresses, counts, types),
        MPI_ERR_ARG);
    assert_int_equal(
        mpi_type_get_contents(*type, ni, na, nc, nd, integers, addresses, counts, types),
        MPI_SUCCESS);
    for (MPI_Count i = 0; i < ni; i++)
        assert_int_equal(integers[i], e->integers[i]);
    for (MPI_Count i = 0; i < na; i++)
        assert_int_equal(addresses[i], e->addresses[i]);
    for (MPI_Count i = 0; i < nc; i++)
        assert_int_equal(counts[i], e->counts[i]);
    for (MPI_Count i = 0; i < nd; i++)
        assert_ptr_equal(types[i], MPI_INT);
    assert_int_equal(mpi_type_free(type), MPI_SUCCESS);
}

static void contents_of_each_constructor(void **state)
{
    (void)state;
    struct datatype *integer = datatype_predefined(MPI_INT), *t;
    int lens[2] = {1, 2}, places[2] = {3, 6};
    MPI_Aint addresses[2] = {12, 24};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    struct intvec l = intvec_of_int(lens), p = intvec_of_int(places), a = intvec_of_aint(addresses);

    assert_int_equal(mpi_type_contiguous(4, integer, &t, false), 0);
    check_contents(&t, &(struct expected){MPI_COMBINER_CONTIGUOUS, 1, 0, 0, 1, {4}, {0}, {0}});
    assert_int_equal(mpi_type_contiguous(4, integer, &t, true), 0);
    check_contents(&t, &(struct expected){MPI_COMBINER_CONTIGUOUS, 0, 0, 1, 1, {0}, {0}, {4}});
    assert_int_equal(mpi_type_vector(4, 2, 3, integer, &t, false), 0);
    check_contents(&t, &(struct expected){MPI_COMBINER_VECTOR, 3, 0, 0, 1, {4, 2, 3}, {0}, {0}});
    assert_int_equal(mpi_type_vector(4, 2, 3, integer, &t, true), 0);
    check_contents(&t, &(struct expected){MPI_COMBINER_VECTOR, 0, 0, 3, 1, {0}, {0}, {4, 2, 3}});
    assert_int_equal(mpi_type_create_hvector(4, 2, 16, integer, &t, false), 0);
    check_contents(&t, &(struct expected){MPI_COMBINER_HVECTOR, 2, 1, 0, 1, {4, 2}, {16}, {0}});
    assert_int_equal(mpi_type_create_hvector(4, 2, 16, integer, &t, true), 0);
    check_contents(&t, &(struct expected){MPI_COMBINER_HVECTOR, 0, 0, 3, 1, {0}, {0}, {4, 2, 16}});
    assert_int_equal(mpi_type_indexed(2, l, p, integer, &t, false), 0);
    check_contents(&t,
                   &(struct expected){MPI_COMBINER_INDEXED, 5, 0, 0, 1, {2, 1, 2, 3, 6}, {0}, {0}});
    assert_int_equal(mpi_type_create_hindexed(2, l, a, integer, &t, false), 0);
    check_contents(&t,
                   &(struct expected){MPI_COMBINER_HINDEXED, 3, 2, 0, 1, {2, 1, 2}, {12, 24}, {0}});
    assert_int_equal(mpi_type_create_hindexed(2, l, a, integer, &t, true), 0);
    check_contents(
        &t, &(struct expected){MPI_COMBINER_HINDEXED, 0, 0, 5, 1, {0}, {0}, {2, 1, 2, 12, 24}});
    assert_int_equal(mpi_type_create_indexed_block(2, 3, p, integer, &t, false), 0);
    check_contents(
        &t, &(struct expected){MPI_COMBINER_INDEXED_BLOCK, 4, 0, 0, 1, {2, 3, 3, 6}, {0}, {0}});
    assert_int_equal(mpi_type_create_hindexed_block(2, 3, a, integer, &t, false), 0);
    check_contents(
        &t, &(struct expected){MPI_COMBINER_HINDEXED_BLOCK, 2, 2, 0, 1, {2, 3}, {12, 24}, {0}});
    assert_int_equal(mpi_type_create_struct(2, l, a, types, &t, false), 0);
    check_contents(&t,
                   &(struct expected){MPI_COMBINER_STRUCT, 3, 2, 0, 2, {2, 1, 2}, {12, 24}, {0}});
    assert_int_equal(mpi_type_create_struct(2, l, a, types, &t, true), 0);
    check_contents(
        &t, &(struct expected){MPI_COMBINER_STRUCT, 0, 0, 5, 2, {0}, {0}, {2, 1, 2, 12, 24}});
    assert_int_equal(mpi_type_create_resized(integer, -3, 9, &t, false), 0);
    check_contents(&t, &(struct expected){MPI_COMBINER_RESIZED, 0, 2, 0, 1, {0}, {-3, 9}, {0}});
    assert_int_equal(mpi_type_create_resized(integer, -3, 9, &t, true), 0);
    check_contents(&t, &(struct expected){MPI_COMBINER_RESIZED, 0, 0, 2, 1, {0}, {0}, {-3, 9}});
    assert_int_equal(mpi_type_dup(integer, &t), 0);
    check_contents(&t, &(struct expected){MPI_COMBINER_DUP, 0, 0, 0, 1, {0}, {0}, {0}});
}

static void contents_of_arrays(void **state)
{
    (void)state;
    struct datatype *integer = datatype_predefined(MPI_INT), *t;
    int sizes[2] = {4, 5}, subsizes[2] = {2, 3}, starts[2] = {1, 2};
    int distribs[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
    int dargs[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, psizes[2] = {2, 1};
    struct intvec s = intvec_of_int(sizes);
    for (int large = 0; large < 2; large++) {
        assert_int_equal(mpi_type_create_subarray(2, s, intvec_of_int(subsizes),
                                                  intvec_of_int(starts), MPI_ORDER_C, integer, &t,
                                                  large),
                         0);
        struct expected subarray = {
            MPI_COMBINER_SUBARRAY, 8, 0, 0, 1, {2, 4, 5, 2, 3, 1, 2, MPI_ORDER_C}, {0}, {0}};
        struct expected subarray_c = {MPI_COMBINER_SUBARRAY, 2, 0, 6, 1, {2, MPI_ORDER_C}, {0},
                                      {4, 5, 2, 3, 1, 2}};
        check_contents(&t, large ? &subarray_c : &subarray);
        assert_int_equal(mpi_type_create_darray(2, 1, 2, s, distribs, dargs, psizes, MPI_ORDER_C,
                                                integer, &t, large),
                         0);
        struct expected darray = {
            MPI_COMBINER_DARRAY,
            12,
            0,
            0,
            1,
            {2, 1, 2, 4, 5, distribs[0], distribs[1], dargs[0], dargs[1], 2, 1, MPI_ORDER_C},
            {0},
            {0}};
        struct expected darray_c = {
            MPI_COMBINER_DARRAY,
            10,
            0,
            2,
            1,
            {2, 1, 2, distribs[0], distribs[1], dargs[0], dargs[1], 2, 1, MPI_ORDER_C},
            {0},
            {4, 5}};
        check_contents(&t, large ? &darray_c : &darray);
    }
    sizes[0] = 1;
    assert_int_equal(mpi_type_create_subarray(2, s, intvec_of_int(subsizes), intvec_of_int(starts),
                                              MPI_ORDER_C, integer, &t, false),
                     MPI_ERR_ARG);
    assert_int_equal(mpi_type_create_darray(3, 1, 2, s, distribs, dargs, psizes, MPI_ORDER_C,
                                            integer, &t, false),
                     MPI_ERR_ARG);
    assert_int_equal(
        mpi_type_create_darray(2, 1, 2, s, distribs, dargs, psizes, 0, integer, &t, false),
        MPI_ERR_ARG);
}

static void types_outlive_their_handles(void **state)
{
    (void)state;
    struct datatype *inner, *outer;
    size_t n_before = handle_count();
    assert_int_equal(mpi_type_vector(2, 1, 2, datatype_predefined(MPI_INT), &inner, false), 0);
    MPI_Datatype inner_handle = (MPI_Datatype)inner->obj.handle;
    assert_int_equal(mpi_type_contiguous(3, inner, &outer, false), 0);
    assert_int_equal(mpi_type_free(&inner), 0);
    assert_null(inner);
    assert_null(datatype_from_handle(inner_handle));

    /* The contents give a new type, like the freed one. */
    int integers[1];
    MPI_Datatype types[1];
    assert_int_equal(mpi_type_get_contents(outer, 1, 0, 0, 1, integers, NULL, NULL, types), 0);
    struct datatype *again = datatype_from_handle(types[0]);
    assert_non_null(again);
    MPI_Count ni, na, nc, nd;
    int combiner;
    assert_int_equal(mpi_type_get_envelope(again, &ni, &na, &nc, &nd, &combiner), 0);
    assert_int_equal(combiner, MPI_COMBINER_VECTOR);
    assert_int_equal(again->extent, 12);
    assert_int_equal(mpi_type_free(&again), 0);

    /* A pending operation holds a reference. */
    type_ref(outer);
    struct datatype *pending = outer;
    assert_int_equal(mpi_type_commit(&outer), 0);
    assert_int_equal(mpi_type_free(&outer), 0);
    assert_int_equal(pending->size, 24);
    type_unref(pending);
    assert_int_equal(handle_count(), n_before);

    struct datatype *predefined = datatype_predefined(MPI_INT);
    assert_int_equal(mpi_type_free(&predefined), MPI_ERR_TYPE);
}

static void names(void **state)
{
    (void)state;
    char name[MPI_MAX_OBJECT_NAME];
    int len;
    assert_int_equal(mpi_type_get_name(datatype_predefined(MPI_INT), name, &len), 0);
    assert_string_equal(name, "MPI_INT");
    assert_int_equal(len, 7);
    assert_int_equal(mpi_type_get_name(datatype_predefined(MPI_LONG_DOUBLE_INT), name, &len), 0);
    assert_string_equal(name, "MPI_LONG_DOUBLE_INT");
    struct datatype *type;
    assert_int_equal(mpi_type_contiguous(2, datatype_predefined(MPI_INT), &type, false), 0);
    assert_int_equal(mpi_type_get_name(type, name, &len), 0);
    assert_int_equal(len, 0);
    char longer[2 * MPI_MAX_OBJECT_NAME];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(mpi_type_set_name(type, longer), 0);
    assert_int_equal(mpi_type_get_name(type, name, &len), 0);
    assert_int_equal(len, MPI_MAX_OBJECT_NAME - 1);
    assert_int_equal(mpi_type_free(&type), 0);
}

static void matching(void **state)
{
    (void)state;
    struct datatype *type, *other;
    assert_int_equal(mpi_type_match_size(MPI_TYPECLASS_REAL, 8, &type), 0);
    assert_ptr_equal(type, datatype_predefined(MPI_REAL8));
    assert_int_equal(mpi_type_match_size(MPI_TYPECLASS_INTEGER, 3, &type), MPI_ERR_ARG);
    assert_int_equal(mpi_type_match_size(7, 4, &type), MPI_ERR_ARG);
    assert_int_equal(mpi_type_get_value_index(datatype_predefined(MPI_DOUBLE),
                                              datatype_predefined(MPI_INT), &type),
                     0);
    assert_ptr_equal(type, datatype_predefined(MPI_DOUBLE_INT));
    assert_int_equal(mpi_type_get_value_index(datatype_predefined(MPI_INT),
                                              datatype_predefined(MPI_FLOAT), &type),
                     0);
    assert_null(type);

    assert_int_equal(mpi_type_create_f90_real(15, MPI_UNDEFINED, &type), 0);
    assert_int_equal(mpi_type_create_f90_real(15, MPI_UNDEFINED, &other), 0);
    assert_ptr_equal(type, other);
    assert_int_equal(type->size, 8);
    assert_true(type->committed);
    MPI_Count ni, na, nc, nd;
    int combiner, integers[2];
    assert_int_equal(mpi_type_get_envelope(type, &ni, &na, &nc, &nd, &combiner), 0);
    assert_int_equal(combiner, MPI_COMBINER_F90_REAL);
    assert_int_equal(ni, 2);
    assert_int_equal(mpi_type_get_contents(type, 2, 0, 0, 0, integers, NULL, NULL, NULL), 0);
    assert_int_equal(integers[0], 15);
    assert_int_equal(integers[1], MPI_UNDEFINED);
    assert_int_equal(mpi_type_free(&type), MPI_ERR_TYPE);
    assert_int_equal(mpi_type_create_f90_integer(10, &type), 0);
    assert_int_equal(type->size, 8);
    assert_int_equal(mpi_type_create_f90_complex(MPI_UNDEFINED, 30, &type), 0);
    assert_int_equal(type->size, 8);
    assert_int_equal(mpi_type_create_f90_real(40, 10, &type), MPI_ERR_ARG);
}

static void signatures_know_the_order(void **state)
{
    (void)state;
    struct datatype *two[2], *joined;
    MPI_Datatype members[2][2] = {{MPI_INT, MPI_DOUBLE}, {MPI_DOUBLE, MPI_INT}};
    int lens[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    for (int i = 0; i < 2; i++)
        assert_int_equal(mpi_type_create_struct(2, intvec_of_int(lens), intvec_of_aint(places),
                                                members[i], &two[i], false),
                         0);
    assert_true(two[0]->signature.hash != two[1]->signature.hash);
    assert_int_equal(two[0]->signature.n_elements, 2);
    /* However it came about, the same sequence has the same one. */
    assert_int_equal(mpi_type_contiguous(2, two[0], &joined, false), 0);
    struct type_signature pair = datatype_signature(two[0], 2);
    assert_true(joined->signature.hash == pair.hash);
    assert_int_equal(joined->signature.n_elements, pair.n_elements);
    assert_int_equal(mpi_type_free(&joined), 0);
    assert_int_equal(mpi_type_free(&two[0]), 0);
    assert_int_equal(mpi_type_free(&two[1]), 0);
}

static void counts_of_a_status(void **state)
{
    (void)state;
    MPI_Status status;
    MPI_Count count;
    int flag, value;
    struct datatype *pair = datatype_predefined(MPI_SHORT_INT), *empty;
    status_set_empty(&status);
    assert_int_equal(status.MPI_SOURCE, MPI_ANY_SOURCE);
    assert_int_equal(status.MPI_TAG, MPI_ANY_TAG);
    status_set_received(&status, 3, 5, 8);
    assert_int_equal(mpi_get_count(&status, datatype_predefined(MPI_INT), &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(mpi_get_count(&status, datatype_predefined(MPI_LONG_DOUBLE), &count), 0);
    assert_int_equal(count, MPI_UNDEFINED);
    assert_int_equal(mpi_get_elements(&status, pair, &count), 0); /* a whole pair and a short */
    assert_int_equal(count, 3);
    assert_int_equal(mpi_get_count(&status, pair, &count), 0);
    assert_int_equal(count, MPI_UNDEFINED);
    assert_int_equal(mpi_status_set_elements(&status, pair, 4), 0);
    assert_int_equal(status_get_count_bytes(&status), 12);
    assert_int_equal(mpi_type_contiguous(0, pair, &empty, false), 0);
    status_set_count_bytes(&status, 0);
    assert_int_equal(mpi_get_count(&status, empty, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(mpi_type_free(&empty), 0);
    assert_int_equal(mpi_test_cancelled(&status, &flag), 0);
    assert_false(flag);
    assert_int_equal(mpi_status_set_cancelled(&status, 1), 0);
    assert_int_equal(mpi_test_cancelled(&status, &flag), 0);
    assert_true(flag);
    assert_int_equal(mpi_status_set_error(&status, 77), 0);
    assert_int_equal(mpi_status_get_error(&status, &value), 0);
    assert_int_equal(value, 77);
    assert_int_equal(mpi_status_get_source(&status, &value), 0);
    assert_int_equal(value, 3);
}

int main(void)
{
    if (datatype_init() != MPI_SUCCESS)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_of_each_constructor),
        cmocka_unit_test(contents_of_arrays),
        cmocka_unit_test(types_outlive_their_handles),
        cmocka_unit_test(names),
        cmocka_unit_test(matching),
        cmocka_unit_test(signatures_know_the_order),
        cmocka_unit_test(counts_of_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
