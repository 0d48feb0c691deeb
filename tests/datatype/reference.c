/* SPDX-License-Identifier: BSD-3-Clause */
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/abi/semantics.h"

uint64_t ref_random_next(struct ref_random *r)
{
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return r->state * UINT64_C(0x2545f4914f6cdd1d);
}

MPI_Count ref_random_below(struct ref_random *r, MPI_Count n)
{
    return (MPI_Count)(ref_random_next(r) >> 16) % n;
}

static MPI_Count random_between(struct ref_random *r, MPI_Count low, MPI_Count high)
{
    return low + ref_random_below(r, high - low + 1);
}

/* ---- typemaps ---- */

static MPI_Count map_lb(const struct ref_map *m)
{
    return m->lb_marker ? m->marked_lb : m->lb;
}

static MPI_Count map_ub(const struct ref_map *m)
{
    return m->ub_marker ? m->marked_ub : m->ub;
}

MPI_Count ref_extent(const struct ref_map *map)
{
    return map_ub(map) - map_lb(map);
}

MPI_Count ref_size(const struct ref_map *map)
{
    MPI_Count size = 0;
    for (size_t i = 0; i < map->n; i++)
        size += map->entries[i].size;
    return size;
}

/* Appends one child at a displacement. */
static void map_add(struct ref_map *m, const struct ref_map *child, MPI_Count displacement)
{
    m->entries = realloc(m->entries, (m->n + child->n + 1) * sizeof *m->entries);
    for (size_t i = 0; i < child->n; i++) {
        m->entries[m->n] = child->entries[i];
        m->entries[m->n++].displacement += displacement;
    }
    MPI_Count low = displacement + map_lb(child);
    MPI_Count high = displacement + map_ub(child);
    if (!m->any || low < m->lb)
        m->lb = low;
    if (!m->any || high > m->ub)
        m->ub = high;
    m->any = true;
    if (child->lb_marker && (!m->lb_marker || low < m->marked_lb))
        m->marked_lb = low;
    if (child->ub_marker && (!m->ub_marker || high > m->marked_ub))
        m->marked_ub = high;
    m->lb_marker |= child->lb_marker;
    m->ub_marker |= child->ub_marker;
    if (child->align > m->align)
        m->align = child->align;
}

static void map_add_block(struct ref_map *m, const struct ref_map *child, MPI_Count displacement,
                          MPI_Count len)
{
    for (MPI_Count i = 0; i < len; i++)
        map_add(m, child, displacement + i * ref_extent(child));
}

static void map_pad(struct ref_map *m)
{
    MPI_Count extent = ref_extent(m);
    if (m->ub_marker || m->align == 0)
        return;
    while (extent % m->align != 0)
        extent++;
    m->ub = map_lb(m) + extent;
}

void ref_span(const struct ref_map *map, MPI_Count count, MPI_Count *ret_low, MPI_Count *ret_high)
{
    *ret_low = *ret_high = 0;
    bool any = false;
    for (MPI_Count e = 0; e < count; e++) {
        for (size_t i = 0; i < map->n; i++) {
            MPI_Count low = e * ref_extent(map) + map->entries[i].displacement;
            MPI_Count high = low + map->entries[i].size;
            if (!any || low < *ret_low)
                *ret_low = low;
            if (!any || high > *ret_high)
                *ret_high = high;
            any = true;
        }
    }
}

void ref_pack(const struct ref_map *map, MPI_Count count, const unsigned char *buf,
              unsigned char *out)
{
    for (MPI_Count e = 0; e < count; e++) {
        for (size_t i = 0; i < map->n; i++) {
            memcpy(out, buf + e * ref_extent(map) + map->entries[i].displacement,
                   (size_t)map->entries[i].size);
            out += map->entries[i].size;
        }
    }
}

void ref_unpack(const struct ref_map *map, MPI_Count count, unsigned char *buf,
                const unsigned char *in)
{
    for (MPI_Count e = 0; e < count; e++) {
        for (size_t i = 0; i < map->n; i++) {
            memcpy(buf + e * ref_extent(map) + map->entries[i].displacement, in,
                   (size_t)map->entries[i].size);
            in += map->entries[i].size;
        }
    }
}

/* ---- random types in both forms ---- */

struct ref_type ref_type_basic(MPI_Datatype handle)
{
    struct ref_type t = {.type = datatype_predefined(handle)};
    struct ref_map one = {.n = 1, .any = true, .ub = t.type->size, .align = t.type->align};
    struct ref_entry entry = {.size = t.type->size, .basic = handle};
    one.entries = &entry;
    map_add(&t.map, &one, 0);
    return t;
}

void ref_type_free(struct ref_type *t)
{
    free(t->map.entries);
    if (!t->type->obj.predefined)
        assert_int_equal(mpi_type_free(&t->type), MPI_SUCCESS);
}

#define MAX_BLOCKS 6

struct blocks {
    int n;
    int lens[MAX_BLOCKS];
    int places[MAX_BLOCKS];
    MPI_Aint addresses[MAX_BLOCKS];
    MPI_Count lens_large[MAX_BLOCKS];
    MPI_Count places_large[MAX_BLOCKS];
};

static struct blocks random_blocks(struct ref_random *r)
{
    struct blocks b = {.n = (int)ref_random_below(r, MAX_BLOCKS + 1)};
    bool dense = ref_random_below(r, 3) == 0;
    int place = (int)random_between(r, -2, 3);
    for (int i = 0; i < b.n; i++) {
        b.lens[i] = (int)ref_random_below(r, 4);
        b.places[i] = dense ? place : (int)random_between(r, -9, 30);
        b.addresses[i] = dense ? 4 * place : (MPI_Aint)random_between(r, -60, 200);
        place += b.lens[i];
        b.lens_large[i] = b.lens[i];
        b.places_large[i] = b.places[i];
    }
    return b;
}

static struct ref_type make_regular(struct ref_random *r, struct ref_type *child)
{
    struct ref_type t = {0};
    MPI_Count extent = ref_extent(&child->map);
    MPI_Count count = ref_random_below(r, 5);
    MPI_Count len = ref_random_below(r, 4);
    MPI_Count stride = random_between(r, -3, 8);
    bool large = ref_random_below(r, 2);
    switch (ref_random_below(r, 3)) {
    case 0:
        map_add_block(&t.map, &child->map, 0, count);
        assert_int_equal(mpi_type_contiguous(count, child->type, &t.type, large), MPI_SUCCESS);
        break;
    case 1:
        for (MPI_Count i = 0; i < count; i++)
            map_add_block(&t.map, &child->map, i * stride * extent, len);
        assert_int_equal(mpi_type_vector(count, len, stride, child->type, &t.type, large),
                         MPI_SUCCESS);
        break;
    default:
        stride = random_between(r, -40, 90);
        for (MPI_Count i = 0; i < count; i++)
            map_add_block(&t.map, &child->map, i * stride, len);
        assert_int_equal(mpi_type_create_hvector(count, len, stride, child->type, &t.type, large),
                         MPI_SUCCESS);
        break;
    }
    return t;
}

static struct ref_type make_indexed(struct ref_random *r, struct ref_type *child)
{
    struct ref_type t = {0};
    struct blocks b = random_blocks(r);
    MPI_Count extent = ref_extent(&child->map);
    bool large = ref_random_below(r, 2);
    int form = (int)ref_random_below(r, 4);
    int common = (int)ref_random_below(r, 4);
    struct intvec lens = large ? intvec_of_count(b.lens_large) : intvec_of_int(b.lens);
    struct intvec places = large ? intvec_of_count(b.places_large) : intvec_of_int(b.places);
    struct intvec addresses = intvec_of_aint(b.addresses);
    for (int i = 0; i < b.n; i++)
        map_add_block(&t.map, &child->map, form % 2 == 0 ? b.places[i] * extent : b.addresses[i],
                      form < 2 ? b.lens[i] : common);
    int rc = 0;
    switch (form) {
    case 0:
        rc = mpi_type_indexed(b.n, lens, places, child->type, &t.type, large);
        break;
    case 1:
        rc = mpi_type_create_hindexed(b.n, lens, addresses, child->type, &t.type, large);
        break;
    case 2:
        rc = mpi_type_create_indexed_block(b.n, common, places, child->type, &t.type, large);
        break;
    case 3:
        rc = mpi_type_create_hindexed_block(b.n, common, addresses, child->type, &t.type, large);
        break;
    }
    assert_int_equal(rc, MPI_SUCCESS);
    return t;
}

static struct ref_type make_struct(struct ref_random *r, int depth, size_t max_entries)
{
    struct ref_type t = {0};
    struct blocks b = random_blocks(r);
    struct ref_type children[MAX_BLOCKS];
    MPI_Datatype handles[MAX_BLOCKS];
    for (int i = 0; i < b.n; i++) {
        children[i] = ref_type_random(r, depth - 1, max_entries / (size_t)b.n / 4 + 1);
        handles[i] = (MPI_Datatype)children[i].type->obj.handle;
        map_add_block(&t.map, &children[i].map, b.addresses[i], b.lens[i]);
    }
    map_pad(&t.map);
    assert_int_equal(mpi_type_create_struct(b.n, intvec_of_int(b.lens), intvec_of_aint(b.addresses),
                                            handles, &t.type, false),
                     MPI_SUCCESS);
    for (int i = 0; i < b.n; i++)
        ref_type_free(&children[i]);
    return t;
}

static struct ref_type make_bounded(struct ref_random *r, struct ref_type *child)
{
    struct ref_type t = {0};
    map_add(&t.map, &child->map, 0);
    if (ref_random_below(r, 3) == 0) {
        assert_int_equal(mpi_type_dup(child->type, &t.type), MPI_SUCCESS);
        return t;
    }
    MPI_Count lb = random_between(r, -20, 20);
    MPI_Count extent = random_between(r, -30, 60);
    t.map.lb_marker = t.map.ub_marker = true;
    t.map.marked_lb = lb;
    t.map.marked_ub = lb + extent;
    assert_int_equal(mpi_type_create_resized(child->type, lb, extent, &t.type, false), MPI_SUCCESS);
    return t;
}

#define MAX_DIMS 3

/* Index of element `idx` of the array with all its coordinates. */
static bool in_subarray(MPI_Count idx, int ndims, const int *sizes, const int *subsizes,
                        const int *starts, int order)
{
    for (int step = 0; step < ndims; step++) {
        int dim = order == MPI_ORDER_C ? ndims - 1 - step : step;
        MPI_Count coord = idx % sizes[dim];
        idx /= sizes[dim];
        if (coord < starts[dim] || coord >= starts[dim] + subsizes[dim])
            return false;
    }
    return true;
}

static struct ref_type make_subarray(struct ref_random *r, struct ref_type *child)
{
    struct ref_type t = {0};
    int ndims = (int)random_between(r, 1, MAX_DIMS);
    int order = ref_random_below(r, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    int sizes[MAX_DIMS], subsizes[MAX_DIMS], starts[MAX_DIMS];
    MPI_Count total = 1;
    for (int i = 0; i < ndims; i++) {
        sizes[i] = (int)random_between(r, 1, 5);
        subsizes[i] = (int)random_between(r, 1, sizes[i]);
        starts[i] = (int)random_between(r, 0, sizes[i] - subsizes[i]);
        total *= sizes[i];
    }
    for (MPI_Count i = 0; i < total; i++) {
        if (in_subarray(i, ndims, sizes, subsizes, starts, order))
            map_add(&t.map, &child->map, i * ref_extent(&child->map));
    }
    t.map.lb_marker = t.map.ub_marker = true;
    t.map.marked_lb = 0;
    t.map.marked_ub = total * ref_extent(&child->map);
    assert_int_equal(mpi_type_create_subarray(ndims, intvec_of_int(sizes), intvec_of_int(subsizes),
                                              intvec_of_int(starts), order, child->type, &t.type,
                                              false),
                     MPI_SUCCESS);
    return t;
}

/* Does the process with coordinate `coord` of `n_procs` own index `idx`? */
static bool owns(MPI_Count idx, MPI_Count size, int distrib, int darg, int n_procs, int coord)
{
    if (distrib == MPI_DISTRIBUTE_NONE)
        return true;
    MPI_Count block = darg;
    if (darg == MPI_DISTRIBUTE_DFLT_DARG)
        block = distrib == MPI_DISTRIBUTE_BLOCK ? (size + n_procs - 1) / n_procs : 1;
    return idx / block % n_procs == coord;
}

static struct ref_type make_darray(struct ref_random *r, struct ref_type *child)
{
    struct ref_type t = {0};
    int ndims = (int)random_between(r, 1, MAX_DIMS);
    int order = ref_random_below(r, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    int gsizes[MAX_DIMS], distribs[MAX_DIMS], dargs[MAX_DIMS], psizes[MAX_DIMS], coords[MAX_DIMS];
    MPI_Count total = 1;
    int size = 1;
    for (int i = 0; i < ndims; i++) {
        gsizes[i] = (int)random_between(r, 1, 7);
        distribs[i] = MPI_DISTRIBUTE_NONE + (int)ref_random_below(r, 3);
        psizes[i] = distribs[i] == MPI_DISTRIBUTE_NONE ? 1 : (int)random_between(r, 1, 3);
        dargs[i] = MPI_DISTRIBUTE_DFLT_DARG;
        if (ref_random_below(r, 2)) {
            int least =
                distribs[i] == MPI_DISTRIBUTE_BLOCK ? (gsizes[i] + psizes[i] - 1) / psizes[i] : 1;
            dargs[i] = (int)random_between(r, least, least + 3);
        }
        total *= gsizes[i];
        size *= psizes[i];
    }
    int rank = (int)ref_random_below(r, size);
    for (int i = ndims - 1, rest = rank; i >= 0; rest /= psizes[i], i--)
        coords[i] = rest % psizes[i];
    for (MPI_Count i = 0; i < total; i++) {
        MPI_Count rest = i;
        bool mine = true;
        for (int step = 0; step < ndims; step++) {
            int dim = order == MPI_ORDER_C ? ndims - 1 - step : step;
            mine &= owns(rest % gsizes[dim], gsizes[dim], distribs[dim], dargs[dim], psizes[dim],
                         coords[dim]);
            rest /= gsizes[dim];
        }
        if (mine)
            map_add(&t.map, &child->map, i * ref_extent(&child->map));
    }
    t.map.lb_marker = t.map.ub_marker = true;
    t.map.marked_lb = 0;
    t.map.marked_ub = total * ref_extent(&child->map);
    assert_int_equal(mpi_type_create_darray(size, rank, ndims, intvec_of_int(gsizes), distribs,
                                            dargs, psizes, order, child->type, &t.type, false),
                     MPI_SUCCESS);
    return t;
}

static struct ref_type random_basic(struct ref_random *r)
{
    static const MPI_Datatype basics[] = {
        MPI_CHAR,        MPI_SHORT,           MPI_INT,    MPI_DOUBLE, MPI_BYTE,
        MPI_LONG_DOUBLE, MPI_C_FLOAT_COMPLEX, MPI_INT64_T};
    return ref_type_basic(basics[ref_random_below(r, sizeof basics / sizeof basics[0])]);
}

struct ref_type ref_type_random(struct ref_random *r, int depth, size_t max_entries)
{
    struct ref_type t;
    if (depth <= 0 || max_entries < 4 || ref_random_below(r, 8) == 0)
        return random_basic(r);
    for (;;) {
        int form = (int)ref_random_below(r, 9);
        if (form >= 7) {
            t = make_struct(r, depth, max_entries);
        } else {
            struct ref_type child = ref_type_random(r, depth - 1, max_entries / 2);
            if (form <= 1)
                t = make_regular(r, &child);
            else if (form <= 3)
                t = make_indexed(r, &child);
            else if (form == 4)
                t = make_bounded(r, &child);
            else if (form == 5)
                t = make_subarray(r, &child);
            else
                t = make_darray(r, &child);
            ref_type_free(&child);
        }
        if (t.map.n <= max_entries)
            break;
        ref_type_free(&t);
    }
    assert_int_equal(mpi_type_commit(&t.type), MPI_SUCCESS);
    return t;
}
