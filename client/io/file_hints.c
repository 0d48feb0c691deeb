/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/file_hints.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/abi/semantics.h"
#include "client/datatype/datatype.h"
#include "client/object/comm.h"
#include "client/object/err.h"
#include "client/object/info.h"

/* Stays in the cache of a core while it is filled and written; bench row `files`. */
#define CB_BUFFER_SIZE ((int64_t)4 << 20)
/* Room for what lies between the pieces that are wanted: a few requests of a disk. */
#define SIEVE_SIZE ((int64_t)1 << 20)
#define MAX_SIZE   ((int64_t)1 << 30)

void file_hints_init(struct file_hints *hints)
{
    memset(hints, 0, sizeof *hints);
    hints->ds_write = FILE_HINT_DISABLE;
    hints->cb_buffer_size = CB_BUFFER_SIZE;
    hints->ind_rd_buffer_size = SIEVE_SIZE;
    hints->ind_wr_buffer_size = SIEVE_SIZE;
    hints->file_perm = 0666;
}

static int refuse(const char *key, const char *value, const char *wanted)
{
    return err_set(MPI_ERR_INFO_VALUE, "info key %s is %s, not %s", key, value, wanted);
}

static const char *const switch_names[] = {"automatic", "enable", "disable"};

static int take_switch(const struct info *info, const char *key, uint8_t *ret_value)
{
    const char *value = info_get(info, key);
    if (!value)
        return MPI_SUCCESS;
    for (uint8_t i = 0; i < 3; i++)
        if (strcmp(value, switch_names[i]) == 0) {
            *ret_value = i;
            return MPI_SUCCESS;
        }
    return refuse(key, value, "enable, disable or automatic");
}

static int take_size(const struct info *info, const char *key, int64_t most, int64_t *ret_value)
{
    const char *value = info_get(info, key);
    if (!value)
        return MPI_SUCCESS;
    char *end;
    long long number = strtoll(value, &end, 10);
    if (end == value || *end || number <= 0)
        return refuse(key, value, "a number above 0");
    *ret_value = number < most ? number : most;
    return MPI_SUCCESS;
}

static int take_int(const struct info *info, const char *key, int32_t *ret_value)
{
    int64_t value = *ret_value;
    int err = take_size(info, key, INT32_MAX, &value);
    if (!err)
        *ret_value = (int32_t)value;
    return err;
}

/* The standard's switch for both directions. */
static int take_collective_buffering(const struct info *info, struct file_hints *h)
{
    const char *value = info_get(info, "collective_buffering");
    if (!value)
        return MPI_SUCCESS;
    bool yes = strcmp(value, "true") == 0;
    if (!yes && strcmp(value, "false") != 0)
        return refuse("collective_buffering", value, "true or false");
    h->cb_read = h->cb_write = yes ? FILE_HINT_ENABLE : FILE_HINT_DISABLE;
    return MPI_SUCCESS;
}

static int take_perm(const struct info *info, int32_t *ret_perm)
{
    const char *value = info_get(info, "file_perm");
    if (!value)
        return MPI_SUCCESS;
    char *end;
    long perm = strtol(value, &end, 8);
    if (end == value || *end || perm < 0 || perm > 07777)
        return refuse("file_perm", value, "an octal number up to 7777");
    *ret_perm = (int32_t)perm;
    return MPI_SUCCESS;
}

int file_hints_take(struct file_hints *hints, const struct info *info)
{
    struct file_hints h = *hints;
    int64_t nodes = h.cb_nodes;
    int err = take_collective_buffering(info, &h);
    err = err ? err : take_switch(info, "romio_cb_read", &h.cb_read);
    err = err ? err : take_switch(info, "romio_cb_write", &h.cb_write);
    err = err ? err : take_switch(info, "romio_ds_read", &h.ds_read);
    err = err ? err : take_switch(info, "romio_ds_write", &h.ds_write);
    err = err ? err : take_size(info, "cb_nodes", INT32_MAX, &nodes);
    err = err ? err : take_size(info, "cb_buffer_size", MAX_SIZE, &h.cb_buffer_size);
    err = err ? err : take_size(info, "ind_rd_buffer_size", MAX_SIZE, &h.ind_rd_buffer_size);
    err = err ? err : take_size(info, "ind_wr_buffer_size", MAX_SIZE, &h.ind_wr_buffer_size);
    err = err ? err : take_size(info, "striping_unit", MAX_SIZE, &h.striping_unit);
    err = err ? err : take_int(info, "striping_factor", &h.striping_factor);
    err = err ? err : take_perm(info, &h.file_perm);
    if (err)
        return err;
    h.cb_nodes = (int32_t)nodes;
    const char *style = info_get(info, "access_style");
    if (style)
        snprintf(h.access_style, sizeof h.access_style, "%s", style);
    *hints = h;
    return MPI_SUCCESS;
}

int file_hints_agree(struct file_hints *hints, struct comm *comm)
{
    return mpi_bcast(hints, sizeof *hints, datatype_predefined(MPI_BYTE), 0, comm);
}

static int show_number(struct info *info, const char *key, long long value)
{
    char text[24];
    if (value == 0)
        return MPI_SUCCESS;
    snprintf(text, sizeof text, "%lld", value);
    return info_put(info, key, text);
}

int file_hints_show(const struct file_hints *hints, int n_aggregators, struct info **ret_info)
{
    struct info *info;
    char perm[16];
    int err = info_new(&info);
    if (err)
        return err;
    snprintf(perm, sizeof perm, "%o", (unsigned)hints->file_perm);
    bool buffers = hints->cb_read != FILE_HINT_DISABLE || hints->cb_write != FILE_HINT_DISABLE;
    err = info_put(info, "collective_buffering", buffers ? "true" : "false");
    err = err ? err : info_put(info, "romio_cb_read", switch_names[hints->cb_read]);
    err = err ? err : info_put(info, "romio_cb_write", switch_names[hints->cb_write]);
    err = err ? err : info_put(info, "romio_ds_read", switch_names[hints->ds_read]);
    err = err ? err : info_put(info, "romio_ds_write", switch_names[hints->ds_write]);
    err = err ? err : show_number(info, "cb_nodes", n_aggregators);
    err = err ? err : show_number(info, "cb_buffer_size", hints->cb_buffer_size);
    err = err ? err : show_number(info, "ind_rd_buffer_size", hints->ind_rd_buffer_size);
    err = err ? err : show_number(info, "ind_wr_buffer_size", hints->ind_wr_buffer_size);
    err = err ? err : show_number(info, "striping_unit", hints->striping_unit);
    err = err ? err : show_number(info, "striping_factor", hints->striping_factor);
    err = err ? err : info_put(info, "file_perm", perm);
    if (!err && hints->access_style[0])
        err = info_put(info, "access_style", hints->access_style);
    return info_publish(err, info, ret_info);
}
