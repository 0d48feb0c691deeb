/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/object/attr.h"

#include "client/client.h"
#include "client/object/err.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Above every predefined keyval of the ABI and below every handle value, so that a mistaken one is
 * recognized. */
#define FIRST_KEYVAL 2048

struct keyval {
    enum attr_kind kind;
    attr_copy_fn *copy;
    attr_delete_fn *remove;
    void *extra;
    int refs;   /* one while the user has not freed it, one per attribute; 0: the entry is unused */
    bool freed; /* by the user */
};

struct attr_state {
    struct keyval *keyvals;
    int n_keyvals, max_keyvals;
};
static struct attr_state attr_first;
static struct attr_state *attr_here = &attr_first;

static void attr_part_deinit(void)
{
    free(attr_here->keyvals);
}
CLIENT_PART(attr_here, attr_first, .deinit = attr_part_deinit);

struct attr {
    int keyval;
    void *value;
};

struct attr_table {
    int n, max;
    struct attr *items; /* in the order in which they were set */
};

/* The ABI's constants for "no callback" and "copy the pointer". */
#define FN_NONE ((uintptr_t)0)
#define FN_DUP  ((uintptr_t)1)

static const char *const kind_names[] = {
    [ATTR_COMM] = "communicators", [ATTR_TYPE] = "datatypes", [ATTR_WIN] = "windows"};

/* ---- keyvals ---- */

static struct keyval *keyval_at(int keyval)
{
    long i = (long)keyval - FIRST_KEYVAL;
    return i >= 0 && i < attr_here->n_keyvals && attr_here->keyvals[i].refs > 0
               ? &attr_here->keyvals[i]
               : NULL;
}

/* The keyval for an operation by the user, or an error. One that was freed is good, for who kept
 * its number, while attributes are left under it: they are to be found and deleted (MPI-5.0 section
 * 7.7.2, MPI_COMM_FREE_KEYVAL). */
static int keyval_check(int keyval, enum attr_kind kind, struct keyval **ret_keyval)
{
    struct keyval *k = keyval_at(keyval);
    if (!k)
        return err_set(MPI_ERR_KEYVAL, "%d is no keyval", keyval);
    if (k->kind != kind)
        return err_set(MPI_ERR_KEYVAL, "keyval %d was made for %s, not for %s", keyval,
                       kind_names[k->kind], kind_names[kind]);
    *ret_keyval = k;
    return MPI_SUCCESS;
}

int attr_keyval_new(enum attr_kind kind, attr_copy_fn *copy, attr_delete_fn *remove, void *extra,
                    int *ret_keyval)
{
    int i = 0;
    while (i < attr_here->n_keyvals && attr_here->keyvals[i].refs > 0)
        i++;
    if (i == attr_here->max_keyvals) {
        int max = attr_here->max_keyvals ? 2 * attr_here->max_keyvals : 16;
        struct keyval *grown = realloc(attr_here->keyvals, (size_t)max * sizeof *grown);
        if (!grown)
            return err_set(MPI_ERR_NO_MEM, "no memory for a keyval");
        attr_here->keyvals = grown;
        attr_here->max_keyvals = max;
    }
    if (i == attr_here->n_keyvals)
        attr_here->n_keyvals++;
    attr_here->keyvals[i] =
        (struct keyval){.kind = kind, .copy = copy, .remove = remove, .extra = extra, .refs = 1};
    *ret_keyval = FIRST_KEYVAL + i;
    return MPI_SUCCESS;
}

int attr_keyval_free(enum attr_kind kind, int *keyval)
{
    struct keyval *k;
    int err = keyval_check(*keyval, kind, &k);
    if (err)
        return err;
    if (!k->freed)
        k->refs--;
    k->freed = true;
    *keyval = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

/* ---- tables ---- */

static int attr_find(const struct attr_table *table, int keyval)
{
    for (int i = 0; table && i < table->n; i++)
        if (table->items[i].keyval == keyval)
            return i;
    return -1;
}

static int attr_append(struct attr_table **table, int keyval, void *value)
{
    struct attr_table *t = *table;
    if (!t)
        t = *table = calloc(1, sizeof *t);
    if (t && t->n == t->max) {
        int max = t->max ? 2 * t->max : 4;
        struct attr *items = realloc(t->items, (size_t)max * sizeof *items);
        if (items) {
            t->items = items;
            t->max = max;
        }
    }
    if (!t || t->n == t->max)
        return err_set(MPI_ERR_NO_MEM, "no memory for an attribute");
    t->items[t->n++] = (struct attr){.keyval = keyval, .value = value};
    keyval_at(keyval)->refs++;
    return MPI_SUCCESS;
}

/* Runs the delete callback of one attribute and takes it out. The callback may change the table and
 * the keyvals, so both are looked up again. */
static int remove_item(struct attr_table **table, uintptr_t handle, int i)
{
    int keyval = (*table)->items[i].keyval;
    struct keyval *k = keyval_at(keyval);
    if ((uintptr_t)k->remove > FN_DUP) {
        int err = k->remove(handle, keyval, (*table)->items[i].value, k->extra);
        if (err)
            return err;
    }
    i = attr_find(*table, keyval);
    if (i < 0)
        return MPI_SUCCESS;
    struct attr_table *t = *table;
    memmove(&t->items[i], &t->items[i + 1], (size_t)(t->n - i - 1) * sizeof t->items[0]);
    t->n--;
    keyval_at(keyval)->refs--;
    return MPI_SUCCESS;
}

int attr_put(struct attr_table **table, enum attr_kind kind, uintptr_t handle, int keyval,
             void *value)
{
    struct keyval *k;
    int err = keyval_check(keyval, kind, &k);
    if (err)
        return err;
    int i = attr_find(*table, keyval);
    if (i >= 0) {
        err = remove_item(table, handle, i);
        if (err)
            return err;
    }
    return attr_append(table, keyval, value);
}

int attr_get(const struct attr_table *table, enum attr_kind kind, int keyval, void **ret_value,
             int *ret_flag)
{
    struct keyval *k;
    int err = keyval_check(keyval, kind, &k);
    if (err)
        return err;
    int i = attr_find(table, keyval);
    *ret_flag = i >= 0;
    if (i >= 0)
        *ret_value = table->items[i].value;
    return MPI_SUCCESS;
}

int attr_delete(struct attr_table **table, enum attr_kind kind, uintptr_t handle, int keyval)
{
    struct keyval *k;
    int err = keyval_check(keyval, kind, &k);
    if (err)
        return err;
    int i = attr_find(*table, keyval);
    if (i < 0)
        return err_set(MPI_ERR_KEYVAL, "no attribute is set under keyval %d", keyval);
    return remove_item(table, handle, i);
}

int attr_copy_all(const struct attr_table *from, enum attr_kind kind, uintptr_t from_handle,
                  struct attr_table **ret_to)
{
    (void)kind;
    *ret_to = NULL;
    for (int i = 0; from && i < from->n; i++) {
        struct attr item = from->items[i];
        struct keyval *k = keyval_at(item.keyval);
        void *value = item.value;
        int flag = (uintptr_t)k->copy == FN_DUP, err = MPI_SUCCESS;
        if ((uintptr_t)k->copy > FN_DUP)
            err = k->copy(from_handle, item.keyval, k->extra, item.value, &value, &flag);
        if (!err && flag)
            err = attr_append(ret_to, item.keyval, value);
        if (err)
            return err;
    }
    return MPI_SUCCESS;
}

int attr_delete_all(struct attr_table **table, enum attr_kind kind, uintptr_t handle)
{
    (void)kind;
    while (*table && (*table)->n > 0) {
        int err = remove_item(table, handle, (*table)->n - 1);
        if (err)
            return err;
    }
    if (*table)
        free((*table)->items);
    free(*table);
    *table = NULL;
    return MPI_SUCCESS;
}
