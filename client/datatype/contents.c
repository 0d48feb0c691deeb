/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Envelope and contents of datatypes. See contents.h.
 */
#include "client/datatype/contents.h"

#include <stdlib.h>

#include "client/abi/semantics.h"
#include "client/datatype/construct.h"
#include "client/object/err.h"

struct type_contents *contents_new(int combiner, bool large, size_t n_types)
{
    struct type_contents *contents = calloc(1, sizeof *contents);
    if (contents == NULL)
        return NULL;
    contents->refs = 1;
    contents->combiner = combiner;
    contents->large = large;
    contents->n_types = n_types;
    contents->types = calloc(n_types + 1, sizeof *contents->types);
    if (contents->types == NULL) {
        free(contents);
        return NULL;
    }
    return contents;
}

void contents_unref(struct type_contents *contents)
{
    if (contents == NULL || --contents->refs > 0)
        return;
    for (size_t i = 0; i < contents->n_types; i++) {
        if (contents->types[i] != NULL)
            type_unref(contents->types[i]);
    }
    free(contents->types);
    free(contents->integers.values);
    free(contents->addresses.values);
    free(contents->large_counts.values);
    free(contents);
}

void contents_set_type(struct type_contents *contents, size_t idx, struct datatype *type)
{
    type_ref(type);
    contents->types[idx] = type;
}

static void number_list_add(struct type_contents *contents, struct number_list *list,
                            MPI_Count value)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity == 0 ? 8 : list->capacity * 2;
        MPI_Count *values = reallocarray(list->values, capacity, sizeof *values);
        if (values == NULL) {
            contents->failed = true;
            return;
        }
        list->values = values;
        list->capacity = capacity;
    }
    list->values[list->n++] = value;
}

void contents_add_int(struct type_contents *contents, MPI_Count value)
{
    number_list_add(contents, &contents->integers, value);
}

void contents_add_count(struct type_contents *contents, MPI_Count value)
{
    number_list_add(contents, contents->large ? &contents->large_counts : &contents->integers,
                    value);
}

void contents_add_address(struct type_contents *contents, MPI_Count value)
{
    number_list_add(contents, contents->large ? &contents->large_counts : &contents->addresses,
                    value);
}

void contents_add_ints(struct type_contents *contents, const int *values, MPI_Count n)
{
    for (MPI_Count i = 0; i < n; i++)
        contents_add_int(contents, values[i]);
}

void contents_add_counts(struct type_contents *contents, struct intvec values, MPI_Count n)
{
    for (MPI_Count i = 0; i < n; i++)
        contents_add_count(contents, intvec_at(values, i));
}

void contents_add_addresses(struct type_contents *contents, struct intvec values, MPI_Count n)
{
    for (MPI_Count i = 0; i < n; i++)
        contents_add_address(contents, intvec_at(values, i));
}

/* MPI-5.0 section 5.1.13. */
int mpi_type_get_envelope(struct datatype *datatype, MPI_Count *ret_num_integers,
                          MPI_Count *ret_num_addresses, MPI_Count *ret_num_large_counts,
                          MPI_Count *ret_num_datatypes, int *combiner)
{
    const struct type_contents *contents = datatype->contents;
    *combiner = contents == NULL ? MPI_COMBINER_NAMED : contents->combiner;
    *ret_num_integers = contents == NULL ? 0 : (MPI_Count)contents->integers.n;
    *ret_num_addresses = contents == NULL ? 0 : (MPI_Count)contents->addresses.n;
    if (ret_num_large_counts != NULL)
        *ret_num_large_counts = contents == NULL ? 0 : (MPI_Count)contents->large_counts.n;
    else if (contents != NULL && contents->large_counts.n > 0)
        return err_set(MPI_ERR_TYPE,
                       "%s was made by a large-count constructor: only MPI_Type_get_envelope_c "
                       "describes it",
                       datatype_name(datatype));
    *ret_num_datatypes = contents == NULL ? 0 : (MPI_Count)contents->n_types;
    return MPI_SUCCESS;
}

static int check_room(const char *what, MPI_Count room, size_t needed)
{
    if (room >= (MPI_Count)needed)
        return MPI_SUCCESS;
    return err_set(MPI_ERR_ARG, "room for %lld %s, but the datatype has %zu", (long long)room, what,
                   needed);
}

static int check_contents_room(const struct type_contents *contents, MPI_Count max_integers,
                               MPI_Count max_addresses, MPI_Count max_large_counts,
                               MPI_Count max_datatypes)
{
    int rc = check_room("integers", max_integers, contents->integers.n);
    if (rc == MPI_SUCCESS)
        rc = check_room("addresses", max_addresses, contents->addresses.n);
    if (rc == MPI_SUCCESS)
        rc = check_room("large counts", max_large_counts, contents->large_counts.n);
    if (rc == MPI_SUCCESS)
        rc = check_room("datatypes", max_datatypes, contents->n_types);
    return rc;
}

int mpi_type_get_contents(struct datatype *datatype, MPI_Count max_integers,
                          MPI_Count max_addresses, MPI_Count max_large_counts,
                          MPI_Count max_datatypes, int array_of_integers[],
                          MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
                          MPI_Datatype array_of_datatypes[])
{
    const struct type_contents *contents = datatype->contents;
    if (contents == NULL)
        return err_set(MPI_ERR_TYPE, "%s is a predefined datatype: it has no contents",
                       datatype_name(datatype));
    int rc =
        check_contents_room(contents, max_integers, max_addresses, max_large_counts, max_datatypes);
    if (rc != MPI_SUCCESS)
        return rc;
    for (size_t i = 0; i < contents->n_types; i++) {
        struct datatype *type;
        rc = type_hand_out(contents->types[i], &type);
        if (rc != MPI_SUCCESS) {
            while (i-- > 0)
                type_release_handed_out(datatype_from_handle(array_of_datatypes[i]));
            return rc;
        }
        array_of_datatypes[i] = (MPI_Datatype)type->obj.handle;
    }
    for (size_t i = 0; i < contents->integers.n; i++)
        array_of_integers[i] = (int)contents->integers.values[i];
    for (size_t i = 0; i < contents->addresses.n; i++)
        array_of_addresses[i] = (MPI_Aint)contents->addresses.values[i];
    for (size_t i = 0; i < contents->large_counts.n; i++)
        array_of_large_counts[i] = contents->large_counts.values[i];
    return MPI_SUCCESS;
}
