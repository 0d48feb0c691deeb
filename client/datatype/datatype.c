/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of datatypes: made from map and contents, committed, duplicated, named, freed. See
 * datatype.h.
 *
 * References are plain integers under the library lock. A freed type loses its handle at once and
 * lives on while pending operations or other types refer to it.
 */
#include "client/datatype/datatype.h"

#include <stdlib.h>
#include <string.h>

#include "client/abi/semantics.h"
#include "client/datatype/construct.h"
#include "client/datatype/layout.h"
#include "client/object/attr.h"
#include "client/object/err.h"
#include "client/object/handle.h"
#include "client/progress/vci.h"

static void datatype_destroy(struct object *object)
{
    struct datatype *type = (struct datatype *)object;

    handle_free(&type->obj);
    layout_part_unref(type->layout);
    contents_unref(type->contents);
    type_map_unref(type->map);
    free(type->name);
    free(type);
}

void type_last_unref(struct datatype *type)
{
    if (vci_alone())
        vci_bury(&type->obj, datatype_destroy);
    else
        datatype_destroy(&type->obj);
}

const char *datatype_name(const struct datatype *type)
{
    return type->name != NULL ? type->name : "derived datatype";
}

void datatype_span(const struct datatype *type, MPI_Count count, MPI_Count *ret_low,
                   MPI_Count *ret_high)
{
    if (count == 0 || type->size == 0) {
        *ret_low = *ret_high = 0;
        return;
    }
    MPI_Count reach = (count - 1) * type->extent;
    *ret_low = type->true_lb + (reach < 0 ? reach : 0);
    *ret_high = type->true_lb + type->true_extent + (reach > 0 ? reach : 0);
}

struct type_signature datatype_signature(const struct datatype *type, MPI_Count count)
{
    return signature_repeat(type->signature, count);
}

int type_new(struct type_map *map, struct type_contents *contents, bool is_struct,
             struct datatype **ret_type)
{
    struct datatype *type = calloc(1, sizeof *type);
    if (type == NULL || map == NULL || contents == NULL || contents->failed) {
        type_map_unref(map);
        contents_unref(contents);
        free(type);
        return err_set(MPI_ERR_NO_MEM, "out of memory for a datatype");
    }
    type->obj = (struct object){.refs = 1, .kind = OBJECT_DATATYPE};
    int rc = type_map_apply(map, is_struct, type);
    if (rc != MPI_SUCCESS) {
        contents_unref(contents);
        free(type);
        return rc;
    }
    type->contents = contents;
    *ret_type = type;
    return MPI_SUCCESS;
}

int type_publish(struct datatype *type, struct datatype **ret_type)
{
    if (handle_new(&type->obj) == 0) {
        type_unref(type);
        return err_set(MPI_ERR_NO_MEM, "no handle left for a datatype");
    }
    *ret_type = type;
    return MPI_SUCCESS;
}

int type_new_inner(struct type_map *map, struct datatype **ret_type)
{
    return type_new(map, contents_new(MPI_COMBINER_NAMED, false, 0), false, ret_type);
}

struct datatype *type_clone(const struct datatype *type)
{
    struct datatype *clone = malloc(sizeof *clone);
    if (clone == NULL)
        return NULL;
    *clone = *type;
    clone->obj = (struct object){.refs = 1, .kind = OBJECT_DATATYPE};
    clone->contents = NULL;
    clone->attrs = NULL;
    clone->name = NULL;
    layout_part_ref(clone->layout);
    if (clone->map != NULL)
        clone->map->refs++;
    return clone;
}

int type_hand_out(struct datatype *type, struct datatype **ret_type)
{
    if (type->obj.predefined) {
        *ret_type = type;
        return MPI_SUCCESS;
    }
    struct datatype *clone = type_clone(type);
    if (clone == NULL)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a datatype");
    clone->contents = type->contents;
    clone->contents->refs++;
    return type_publish(clone, ret_type);
}

void type_release_handed_out(struct datatype *type)
{
    if (!type->obj.predefined)
        type_unref(type);
}

void type_set_markers(struct datatype *type, MPI_Count lb, MPI_Count extent)
{
    type->lb = lb;
    type->extent = extent;
    type->has_lb_marker = type->has_ub_marker = true;
    type->contiguous = type->size == 0 || (type->dense && type->extent == type->size);
}

int mpi_type_commit(struct datatype **datatype)
{
    struct datatype *type = *datatype;
    int rc = type_layout(type);
    if (rc != MPI_SUCCESS)
        return err_set(rc, "out of memory while committing a datatype");
    type->committed = true;
    return MPI_SUCCESS;
}

int mpi_type_free(struct datatype **datatype)
{
    struct datatype *type = *datatype;
    if (type->obj.predefined)
        return err_set(MPI_ERR_TYPE, "%s is predefined: it cannot be freed", datatype_name(type));
    int rc = attr_delete_all(&type->attrs, ATTR_TYPE, type->obj.handle);
    if (rc != MPI_SUCCESS)
        return rc;
    handle_free(&type->obj);
    type_unref(type);
    *datatype = NULL;
    return MPI_SUCCESS;
}

int mpi_type_dup(struct datatype *oldtype, struct datatype **ret_newtype)
{
    struct datatype *type = type_clone(oldtype);
    struct type_contents *contents = contents_new(MPI_COMBINER_DUP, false, 1);
    if (type == NULL || contents == NULL) {
        if (type != NULL)
            type_unref(type);
        contents_unref(contents);
        return err_set(MPI_ERR_NO_MEM, "out of memory for a datatype");
    }
    contents_set_type(contents, 0, oldtype);
    type->contents = contents;
    /* A duplicate is a derived type, which predefined operations do not take. */
    type->class = CLASS_NONE;
    type->basic = type->pair_index = BASIC_NONE;
    if (type->map == NULL && (type->map = type_map_new_regular(oldtype, 1, 1, 0)) == NULL) {
        type_unref(type);
        return err_set(MPI_ERR_NO_MEM, "out of memory for a datatype");
    }
    if (handle_new(&type->obj) == 0) {
        type_unref(type);
        return err_set(MPI_ERR_NO_MEM, "no handle left for a datatype");
    }
    int rc = attr_copy_all(oldtype->attrs, ATTR_TYPE, oldtype->obj.handle, &type->attrs);
    if (rc != MPI_SUCCESS) {
        attr_delete_all(&type->attrs, ATTR_TYPE, type->obj.handle);
        type_unref(type);
        return rc;
    }
    *ret_newtype = type;
    return MPI_SUCCESS;
}

int mpi_type_set_name(struct datatype *datatype, const char *type_name)
{
    char *name = strndup(type_name, MPI_MAX_OBJECT_NAME - 1);
    if (name == NULL)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the name of a datatype");
    free(datatype->name);
    datatype->name = name;
    return MPI_SUCCESS;
}

int mpi_type_get_name(struct datatype *datatype, char *type_name, int *resultlen)
{
    /* The null datatype has a name, too (MPI-5.0 section 7.8). */
    const char *name = datatype == NULL         ? "MPI_DATATYPE_NULL"
                       : datatype->name != NULL ? datatype->name
                                                : "";
    size_t len = strlen(name);
    memcpy(type_name, name, len + 1);
    *resultlen = (int)len;
    return MPI_SUCCESS;
}
