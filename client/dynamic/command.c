/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/dynamic/command.h"

#include "client/object/err.h"
#include "client/object/info.h"
#include "mpi.h"
#include "proto/attach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

static int put(struct command *c, const void *bytes, size_t n)
{
    if (c->n + n > ATTACH_SPAWN_BYTES)
        return err_set(MPI_ERR_SPAWN, "the command lines are longer than %u bytes",
                       ATTACH_SPAWN_BYTES);
    if (c->n + n > c->room) {
        size_t room = 2 * (c->n + n);
        char *grown = realloc(c->bytes, room);
        if (!grown)
            return err_set(MPI_ERR_NO_MEM, "no memory for a command line");
        c->bytes = grown;
        c->room = room;
    }
    memcpy(c->bytes + c->n, bytes, n);
    c->n += n;
    return MPI_SUCCESS;
}

static int put_text(struct command *c, const char *text)
{
    return put(c, text ? text : "", text ? strlen(text) + 1 : 1);
}

int command_begin(struct command *c)
{
    const struct attach_spawn head = {0};

    *c = (struct command){0};
    return put(c, &head, sizeof head);
}

void command_free(struct command *c)
{
    free(c->parts);
    free(c->bytes);
}

/* ---- info keys ---- */

/* The most processes that `soft` allows: numbers, or first:last, or first:last:step, with commas.
 */
static int soft_count(const char *soft, int maxprocs, int *ret_n)
{
    int best = -1;

    for (const char *p = soft; *p;) {
        long first, last, step = 1;
        int n = 0;
        if (sscanf(p, " %ld %n", &first, &n) != 1 || n == 0)
            return err_set(MPI_ERR_INFO_VALUE, "soft is '%s': expected numbers or first:last:step",
                           soft);
        last = first;
        p += n;
        if (*p == ':' && (n = 0, sscanf(p + 1, " %ld %n", &last, &n) == 1) && n > 0)
            p += 1 + n;
        if (*p == ':' && (n = 0, sscanf(p + 1, " %ld %n", &step, &n) == 1) && n > 0)
            p += 1 + n;
        if ((*p && *p != ',') || step == 0)
            return err_set(MPI_ERR_INFO_VALUE, "soft is '%s': expected numbers or first:last:step",
                           soft);
        p += *p == ',';
        if ((step > 0) != (last >= first) && first != last)
            continue;
        /* The largest of the row that is not above maxprocs. */
        long low = step > 0 ? first : last + (first - last) % -step,
             width = step > 0 ? step : -step, high = step > 0 ? last : first;
        if (low > maxprocs)
            continue;
        long top = high < maxprocs ? high : maxprocs;
        long value = low + (top - low) / width * width;
        if (value > best)
            best = (int)value;
    }
    if (best < 1)
        return err_set(MPI_ERR_SPAWN, "soft is '%s', which allows no number from 1 to %d", soft,
                       maxprocs);
    *ret_n = best;
    return MPI_SUCCESS;
}

static int check_arch(const char *arch)
{
    struct utsname machine;

    if (!arch || uname(&machine) != 0 || strcmp(arch, machine.machine) == 0)
        return MPI_SUCCESS;
    return err_set(MPI_ERR_SPAWN, "arch is '%s', the nodes here are %s", arch, machine.machine);
}

/* ---- parts ---- */

static int put_part(struct command *c, const char *program, char *const *argv,
                    const struct info *info, int appnum, struct attach_spawn_app *app)
{
    const char *errhandler = info_get(info, "initial_errhandler"), *hosts = info_get(info, "hosts");
    char number[40], handler[120];
    int err = put_text(c, info_get(info, "wdir"));

    if (!err)
        err = put_text(c, info_get(info, "path"));
    if (!err)
        err = put_text(c, hosts ? hosts : info_get(info, "host"));
    snprintf(number, sizeof number, "MOTET_APPNUM=%d", appnum);
    snprintf(handler, sizeof handler, "MOTET_INITIAL_ERRHANDLER=%.80s",
             errhandler ? errhandler : "");
    app->n_env = 2;
    if (!err)
        err = put_text(c, number);
    if (!err)
        err = put_text(c, handler);
    if (!err)
        err = put_text(c, program);
    app->n_argv = 1;
    for (; !err && argv && argv[app->n_argv - 1]; app->n_argv++)
        err = put_text(c, argv[app->n_argv - 1]);
    return err;
}

int command_add(struct command *c, const char *program, char *const *argv, int maxprocs,
                const struct info *info)
{
    struct attach_spawn head;
    struct attach_spawn_app app = {0};
    size_t at = c->n;
    const char *soft = info_get(info, "soft");
    int n = maxprocs, *parts = realloc(c->parts, 2 * sizeof(int) * ((size_t)c->n_parts + 1));

    if (!parts)
        return err_set(MPI_ERR_NO_MEM, "no memory for a command line");
    c->parts = parts;
    if (maxprocs > 0 && __builtin_add_overflow(c->n_asked, maxprocs, &c->n_asked))
        return err_set(MPI_ERR_SPAWN, "more processes than can be counted");
    if (!program || !*program)
        return err_set(MPI_ERR_SPAWN, "the name of the program is empty");
    if (maxprocs < 1)
        return err_set(MPI_ERR_SPAWN, "'%s' is to run in %d processes", program, maxprocs);
    int err = check_arch(info_get(info, "arch"));
    if (!err && soft)
        err = soft_count(soft, maxprocs, &n);
    memcpy(&head, c->bytes, sizeof head);
    if (!err && head.n_apps == ATTACH_SPAWN_APPS)
        err = err_set(MPI_ERR_SPAWN, "a job has at most %u parts", ATTACH_SPAWN_APPS);
    if (!err)
        err = put(c, &app, sizeof app);
    if (!err)
        err = put_part(c, program, argv, info, (int)head.n_apps, &app);
    if (err)
        return err;
    app.n_ranks = (uint32_t)n;
    app.n_bytes = (uint32_t)(c->n - at - sizeof app);
    memcpy(c->bytes + at, &app, sizeof app);
    head.n_apps++;
    memcpy(c->bytes, &head, sizeof head);
    c->parts[2 * c->n_parts] = maxprocs;
    c->parts[2 * c->n_parts++ + 1] = n;
    c->n_processes += n;
    return MPI_SUCCESS;
}
