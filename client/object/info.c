/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/object/info.h"

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/object/err.h"
#include "client/object/handle.h"

#include <stdlib.h>
#include <string.h>

static struct info_state info_first;
struct info_state *info_here = &info_first;

/* Before main(): info objects may be used before MPI_Init. */
static void info_part_init(void)
{
    info_here->env.obj = (struct object){.refs = 1, .kind = OBJECT_INFO};
    handle_set_predefined((uintptr_t)MPI_INFO_ENV, &info_here->env.obj);
}
static void info_clear(struct info *info)
{
    for (int i = 0; i < info->n_pairs; i++) {
        free(info->pairs[i].key);
        free(info->pairs[i].value);
    }
    free(info->pairs);
    info->pairs = NULL;
    info->n_pairs = info->max_pairs = 0;
}

static void info_part_deinit(void)
{
    info_clear(&info_here->env);
}
CLIENT_PART(info_here, info_first, .init = info_part_init, .deinit = info_part_deinit);

/* ---- the store ---- */

static int no_memory(void)
{
    return err_set(MPI_ERR_NO_MEM, "no memory for an info object");
}

int info_new(struct info **ret_info)
{
    struct info *info = calloc(1, sizeof *info);
    if (!info)
        return no_memory();
    info->obj.kind = OBJECT_INFO;
    info->obj.refs = 1;
    *ret_info = info;
    return MPI_SUCCESS;
}

void info_free(struct info *info)
{
    if (!info || info->obj.predefined)
        return;
    handle_free(&info->obj);
    info_clear(info);
    free(info);
}

static int info_find(const struct info *info, const char *key)
{
    for (int i = 0; i < info->n_pairs; i++)
        if (strcmp(info->pairs[i].key, key) == 0)
            return i;
    return -1;
}

const char *info_get(const struct info *info, const char *key)
{
    int i = info ? info_find(info, key) : -1;
    return i < 0 ? NULL : info->pairs[i].value;
}

int info_put(struct info *info, const char *key, const char *value)
{
    char *copy = strdup(value);
    if (!copy)
        return no_memory();
    int i = info_find(info, key);
    if (i >= 0) {
        free(info->pairs[i].value);
        info->pairs[i].value = copy;
        return MPI_SUCCESS;
    }
    if (info->n_pairs == info->max_pairs) {
        int max = info->max_pairs ? 2 * info->max_pairs : 4;
        struct info_pair *pairs = realloc(info->pairs, (size_t)max * sizeof *pairs);
        if (!pairs) {
            free(copy);
            return no_memory();
        }
        info->pairs = pairs;
        info->max_pairs = max;
    }
    char *key_copy = strdup(key);
    if (!key_copy) {
        free(copy);
        return no_memory();
    }
    info->pairs[info->n_pairs++] = (struct info_pair){.key = key_copy, .value = copy};
    return MPI_SUCCESS;
}

int info_copy(const struct info *from, struct info **ret_info)
{
    struct info *info;
    int err = info_new(&info);
    for (int i = 0; !err && from && i < from->n_pairs; i++) {
        err = info_put(info, from->pairs[i].key, from->pairs[i].value);
        if (err)
            info_free(info);
    }
    if (!err)
        *ret_info = info;
    return err;
}

int info_publish(int err, struct info *info, struct info **ret_info)
{
    if (!err && !handle_new(&info->obj))
        err = err_set(MPI_ERR_NO_MEM, "no handle is left for an info object");
    if (err)
        info_free(info);
    else
        *ret_info = info;
    return err;
}

/* ---- MPI functions ---- */

/* Leading and trailing space of keys does not count (MPI-5.0 section 10). Copies the stripped key
 * to `into`. */
static int strip_key(const char *key, char into[MPI_MAX_INFO_KEY])
{
    while (*key == ' ' || *key == '\t')
        key++;
    size_t n = strlen(key);
    while (n > 0 && (key[n - 1] == ' ' || key[n - 1] == '\t'))
        n--;
    if (n == 0)
        return err_set(MPI_ERR_INFO_KEY, "the key is empty");
    if (n >= MPI_MAX_INFO_KEY)
        return err_set(MPI_ERR_INFO_KEY, "the key has %zu characters, at most %d are allowed", n,
                       MPI_MAX_INFO_KEY - 1);
    memcpy(into, key, n);
    into[n] = '\0';
    return MPI_SUCCESS;
}

int mpi_info_create(struct info **ret_info)
{
    struct info *info;
    int err = info_new(&info);
    return err ? err : info_publish(MPI_SUCCESS, info, ret_info);
}

int mpi_info_dup(struct info *info, struct info **ret_newinfo)
{
    struct info *copy;
    int err = info_copy(info, &copy);
    return err ? err : info_publish(MPI_SUCCESS, copy, ret_newinfo);
}

int mpi_info_free(struct info **info)
{
    if ((*info)->obj.predefined)
        return err_set(MPI_ERR_INFO, "MPI_INFO_ENV cannot be freed");
    info_free(*info);
    *info = NULL;
    return MPI_SUCCESS;
}

static int check_writable(const struct info *info)
{
    return info->obj.predefined ? err_set(MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed")
                                : MPI_SUCCESS;
}

int mpi_info_set(struct info *info, const char *key, const char *value)
{
    char stripped[MPI_MAX_INFO_KEY];
    int err = check_writable(info);
    if (!err)
        err = strip_key(key, stripped);
    if (err)
        return err;
    size_t n = strlen(value);
    if (n >= MPI_MAX_INFO_VAL)
        return err_set(MPI_ERR_INFO_VALUE,
                       "the value of %s has %zu characters, at most %d are allowed", stripped, n,
                       MPI_MAX_INFO_VAL - 1);
    return info_put(info, stripped, value);
}

int mpi_info_delete(struct info *info, const char *key)
{
    char stripped[MPI_MAX_INFO_KEY];
    int err = check_writable(info);
    if (!err)
        err = strip_key(key, stripped);
    if (err)
        return err;
    int i = info_find(info, stripped);
    if (i < 0)
        return err_set(MPI_ERR_INFO_NOKEY, "there is no key %s", stripped);
    free(info->pairs[i].key);
    free(info->pairs[i].value);
    memmove(&info->pairs[i], &info->pairs[i + 1],
            (size_t)(info->n_pairs - i - 1) * sizeof info->pairs[0]);
    info->n_pairs--;
    return MPI_SUCCESS;
}

int mpi_info_get_nkeys(struct info *info, int *nkeys)
{
    *nkeys = info->n_pairs;
    return MPI_SUCCESS;
}

int mpi_info_get_nthkey(struct info *info, int n, char *key)
{
    if (n < 0 || n >= info->n_pairs)
        return err_set(MPI_ERR_ARG, "n is %d, the info object has %d keys", n, info->n_pairs);
    strcpy(key, info->pairs[n].key);
    return MPI_SUCCESS;
}

/* The value of a key, or NULL in *ret_value. */
static int look_up(const struct info *info, const char *key, const char **ret_value)
{
    char stripped[MPI_MAX_INFO_KEY];
    int err = strip_key(key, stripped);
    if (!err)
        *ret_value = info_get(info, stripped);
    return err;
}

int mpi_info_get(struct info *info, const char *key, int valuelen, char *value, int *flag)
{
    const char *found = NULL;
    int err = look_up(info, key, &found);
    if (err)
        return err;
    if (found && valuelen < 0)
        return err_set(MPI_ERR_ARG, "valuelen is %d", valuelen);
    if (found && !value)
        return err_set(MPI_ERR_ARG, "value is a null pointer");
    *flag = found != NULL;
    if (found) { /* valuelen does not count the terminator */
        size_t n = strlen(found);
        if (n > (size_t)valuelen)
            n = (size_t)valuelen;
        memcpy(value, found, n);
        value[n] = '\0';
    }
    return MPI_SUCCESS;
}

int mpi_info_get_valuelen(struct info *info, const char *key, int *valuelen, int *flag)
{
    const char *found = NULL;
    int err = look_up(info, key, &found);
    if (err)
        return err;
    *flag = found != NULL;
    if (found)
        *valuelen = (int)strlen(found);
    return MPI_SUCCESS;
}

int mpi_info_get_string(struct info *info, const char *key, int *buflen, char *value, int *flag)
{
    const char *found = NULL;
    int err = look_up(info, key, &found);
    if (err)
        return err;
    int room = *buflen;
    if (found && room > 0 && !value)
        return err_set(MPI_ERR_ARG, "value is a null pointer, but buflen is %d", room);
    *flag = found != NULL;
    if (!found)
        return MPI_SUCCESS;
    int needed = (int)strlen(found) + 1; /* room and needed count the terminator */
    if (room > 0) {
        size_t n = (size_t)(needed < room ? needed : room) - 1;
        memcpy(value, found, n);
        value[n] = '\0';
    }
    *buflen = needed;
    return MPI_SUCCESS;
}
