/* SPDX-License-Identifier: BSD-3-Clause */
/* See section.h. */
#include "client/fortran/section.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/fortran/support.h"

/* The elements of an array with gaps, one after the other. */
struct section_copy {
    struct section_copy *next; /* of those that belong to requests */
    MPI_Fint request;
    bool write;
    char *base; /* of the array */
    size_t elem_bytes, n;
    int rank;
    CFI_dim_t dim[CFI_MAX_RANK];
    char memory[];
};

int sections_n_kept;
static struct section_copy *sections_kept;
static pthread_mutex_t sections_mutex = PTHREAD_MUTEX_INITIALIZER;

/* An assumed-size array (its last extent is -1) is contiguous; so is one without elements. */
static bool section_is_contiguous(const CFI_cdesc_t *array)
{
    size_t stride = array->elem_len;
    for (int i = 0; i < array->rank; i++) {
        if (array->dim[i].extent < 0)
            return true;
        if (array->dim[i].extent == 0)
            return true;
        if (array->dim[i].extent != 1 && array->dim[i].sm != (CFI_index_t)stride)
            return false;
        stride *= (size_t)array->dim[i].extent;
    }
    return true;
}

static size_t section_n_elements(const CFI_cdesc_t *array)
{
    size_t n = 1;
    for (int i = 0; i < array->rank; i++)
        n *= (size_t)array->dim[i].extent;
    return n;
}

/* ---- by datatype ---- */

/* The type of one element of the array in terms of the caller's type, or MPI_DATATYPE_NULL; and how
 * many of them `count` of the caller's are. */
static int section_element(const CFI_cdesc_t *array, MPI_Count count, MPI_Datatype type,
                           MPI_Datatype *ret_element, MPI_Count *ret_n)
{
    MPI_Count bytes, lb, extent;
    *ret_element = MPI_DATATYPE_NULL;
    int err = MPI_Type_size_c(type, &bytes);
    if (err == MPI_SUCCESS)
        err = MPI_Type_get_extent_c(type, &lb, &extent);
    if (err != MPI_SUCCESS)
        return err;
    int n_ints, n_addresses, n_types, combiner;
    err = MPI_Type_get_envelope(type, &n_ints, &n_addresses, &n_types, &combiner);
    MPI_Count elem = (MPI_Count)array->elem_len;
    bool named = combiner == MPI_COMBINER_NAMED;
    /* Only of a predefined type is it known that its bytes lie in their order. */
    if (err != MPI_SUCCESS || !named || lb != 0 || extent != bytes || bytes == 0 || elem == 0)
        return err;
    if (elem % bytes == 0 && count * bytes % elem == 0) {
        *ret_n = count * bytes / elem;
        return MPI_Type_contiguous_c(elem / bytes, type, ret_element);
    }
    if (bytes % elem == 0) {
        *ret_n = count * (bytes / elem);
        return MPI_Type_contiguous_c(elem, MPI_BYTE, ret_element);
    }
    return MPI_SUCCESS;
}

/* The first n elements of the first `rank` dimensions, in their order: whole slabs by one vector,
 * what is left of the last one behind them. Takes the element type. */
static int section_type(const CFI_cdesc_t *array, int rank, MPI_Count n, MPI_Datatype element,
                        MPI_Datatype *ret_type)
{
    if (rank == 0)
        return MPI_Type_dup(element, ret_type);
    const CFI_dim_t *dim = &array->dim[rank - 1];
    MPI_Count slab = 1;
    for (int i = 0; i < rank - 1; i++)
        slab *= array->dim[i].extent;
    MPI_Count whole = n / slab, rest = n % slab;
    MPI_Datatype parts[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    int err = MPI_SUCCESS, n_parts = 0;
    MPI_Count lengths[2] = {1, 1}, places[2] = {0, 0};
    if (whole > 0) {
        MPI_Datatype inner;
        err = section_type(array, rank - 1, slab, element, &inner);
        if (err != MPI_SUCCESS)
            return err;
        err = MPI_Type_create_hvector_c(whole, 1, dim->sm, inner, &parts[n_parts++]);
        MPI_Type_free(&inner);
    }
    if (err == MPI_SUCCESS && rest > 0) {
        places[n_parts] = whole * dim->sm;
        err = section_type(array, rank - 1, rest, element, &parts[n_parts++]);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Type_create_struct_c(n_parts, lengths, places, parts, ret_type);
    for (int i = 0; i < n_parts; i++)
        if (parts[i] != MPI_DATATYPE_NULL)
            MPI_Type_free(&parts[i]);
    return err;
}

int section_describe_any(struct section *s, const CFI_cdesc_t *array, enum section_use use,
                         MPI_Count count, MPI_Datatype type)
{
    if (section_is_contiguous(array) || count <= 0)
        return MPI_SUCCESS;
    MPI_Datatype element;
    MPI_Count n = 0;
    int err = section_element(array, count, type, &element, &n);
    if (err != MPI_SUCCESS)
        return err;
    if (element == MPI_DATATYPE_NULL)
        return section_copy_any(s, array, use);
    if ((size_t)n > section_n_elements(array)) {
        MPI_Type_free(&element);
        return MPI_ERR_COUNT;
    }
    err = section_type(array, array->rank, n, element, &s->type);
    MPI_Type_free(&element);
    if (err != MPI_SUCCESS)
        return err;
    s->made = true;
    s->count = 1;
    return MPI_Type_commit(&s->type);
}

/* ---- by copy ---- */

/* Both ways: element i of the copy and the one of the array that it stands for. */
static void section_move(struct section_copy *c, bool back)
{
    CFI_index_t at[CFI_MAX_RANK] = {0};
    for (size_t i = 0; i < c->n; i++) {
        char *there = c->base;
        for (int d = 0; d < c->rank; d++)
            there += at[d] * c->dim[d].sm;
        char *here = c->memory + i * c->elem_bytes;
        memcpy(back ? there : here, back ? here : there, c->elem_bytes);
        for (int d = 0; d < c->rank && ++at[d] == c->dim[d].extent; d++)
            at[d] = 0;
    }
}

int section_copy_any(struct section *s, const CFI_cdesc_t *array, enum section_use use)
{
    if (section_is_contiguous(array))
        return MPI_SUCCESS;
    size_t n = section_n_elements(array);
    struct section_copy *c = malloc(sizeof *c + n * array->elem_len);
    if (!c)
        return MPI_ERR_NO_MEM;
    c->write = use == SECTION_WRITE;
    c->base = array->base_addr;
    c->elem_bytes = array->elem_len;
    c->n = n;
    c->rank = array->rank;
    memcpy(c->dim, array->dim, (size_t)array->rank * sizeof c->dim[0]);
    section_move(c, false);
    s->copy = c;
    s->base = c->memory;
    return MPI_SUCCESS;
}

int section_address_any(struct section *s, const CFI_cdesc_t *array)
{
    return section_is_contiguous(array) ? MPI_SUCCESS : MPI_ERR_BUFFER;
}

static void section_copy_end(struct section_copy *c)
{
    if (c->write)
        section_move(c, true);
    free(c);
}

void section_close_made(struct section *s)
{
    if (s->made)
        MPI_Type_free(&s->type);
    if (s->copy)
        section_copy_end(s->copy);
}

/* ---- copies that belong to requests ---- */

void section_keep(struct section *s, int err, MPI_Request request)
{
    if (s->made) /* the operation under way holds it */
        MPI_Type_free(&s->type);
    if (!s->copy)
        return;
    if (err != MPI_SUCCESS || request == MPI_REQUEST_NULL) {
        section_copy_end(s->copy);
        return;
    }
    s->copy->request = request_out(request);
    pthread_mutex_lock(&sections_mutex);
    s->copy->next = sections_kept;
    sections_kept = s->copy;
    __atomic_fetch_add(&sections_n_kept, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&sections_mutex);
}

void sections_settle_now(MPI_Fint was, MPI_Request now)
{
    if (now != MPI_REQUEST_NULL || was == request_out(MPI_REQUEST_NULL))
        return;
    struct section_copy *over = NULL;
    pthread_mutex_lock(&sections_mutex);
    for (struct section_copy **at = &sections_kept; *at;) {
        struct section_copy *c = *at;
        if (c->request == was) {
            *at = c->next;
            c->next = over;
            over = c;
            __atomic_fetch_sub(&sections_n_kept, 1, __ATOMIC_RELAXED);
        } else {
            at = &c->next;
        }
    }
    pthread_mutex_unlock(&sections_mutex);
    while (over) {
        struct section_copy *next = over->next;
        section_copy_end(over);
        over = next;
    }
}
