/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/dynamic/spawn_request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/job.h"
#include "proto/attach.h"

#define MAX_RANKS (1u << 20)
#define MAX_HOSTS 4096u

/* What has not been read yet. */
struct spawn_reader {
    char *at, *end;
};

static int spawn_refuse(char *error, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int spawn_refuse(char *error, size_t size, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(error, size, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

/* The next string, or NULL when there is none. */
static char *spawn_string(struct spawn_reader *r)
{
    char *text = r->at;
    size_t left = (size_t)(r->end - r->at);
    size_t n = strnlen(text, left);

    if (n == left)
        return NULL;
    r->at += n + 1;
    return text;
}

static int spawn_add_host(struct spawn_request *q, const char *name, size_t len, uint32_t n,
                          const char *here)
{
    char **grown;

    if (q->n_hosts == MAX_HOSTS)
        return -E2BIG;
    grown = realloc(q->hosts, (q->n_hosts + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    q->hosts = grown;
    if (len == 9 && memcmp(name, "localhost", 9) == 0) {
        name = here;
        len = strlen(here);
    }
    if (asprintf(&q->hosts[q->n_hosts], "%.*s:%u", (int)len, name, n) < 0)
        return -ENOMEM;
    q->n_hosts++;
    return 0;
}

/* Ranks of a part on its hosts: those with a number get so many, in turn until all are placed;
 * without any number all get the same. */
static int spawn_place(struct spawn_request *q, const char *hosts, uint32_t n_ranks,
                       const char *here, char *error, size_t size)
{
    uint32_t n_names = 1, left = n_ranks;

    if (!*hosts)
        return spawn_add_host(q, here, strlen(here), n_ranks, here);
    for (const char *p = hosts; *p; p++)
        n_names += *p == ',';
    uint32_t each = (n_ranks + n_names - 1) / n_names;
    while (left > 0) {
        uint32_t before = left;
        for (const char *p = hosts; left > 0 && *p;) {
            size_t len = strcspn(p, ",");
            const char *colon = memchr(p, ':', len);
            size_t name_len = colon ? (size_t)(colon - p) : len;
            char *end = NULL;
            unsigned long n = colon ? strtoul(colon + 1, &end, 10) : each;
            if (name_len == 0 || name_len >= SEGMENT_NODE_NAME ||
                (colon && (end == colon + 1 || end != p + len)))
                return spawn_refuse(error, size, "host '%.*s': expected name or name:count",
                                    (int)(len < 80 ? len : 80), p);
            n = n < left ? n : left;
            if (n > 0 && spawn_add_host(q, p, name_len, (uint32_t)n, here) < 0)
                return spawn_refuse(error, size, "too many hosts, or out of memory");
            left -= (uint32_t)n;
            p += len + (p[len] == ',');
        }
        if (left == before)
            return spawn_refuse(error, size, "no host is given room for a process");
    }
    return 0;
}

static int spawn_part(struct spawn_request *q, struct spawn_reader *r, Motet__App *app,
                      size_t *n_strings, const char *here, char *error, size_t size)
{
    struct attach_spawn_app head;

    if ((size_t)(r->end - r->at) < sizeof head)
        return spawn_refuse(error, size, "the request is cut off");
    memcpy(&head, r->at, sizeof head);
    r->at += sizeof head;
    if (head.n_bytes > (size_t)(r->end - r->at) || head.n_ranks == 0 || head.n_ranks > MAX_RANKS ||
        head.n_argv == 0 || head.n_argv > head.n_bytes || head.n_env > head.n_bytes)
        return spawn_refuse(error, size, "the request is not valid");
    struct spawn_reader own = {r->at, r->at + head.n_bytes};
    r->at = own.end;
    motet__app__init(app);
    app->n_ranks = head.n_ranks;
    char *wdir = spawn_string(&own), *path = wdir ? spawn_string(&own) : NULL,
         *hosts = path ? spawn_string(&own) : NULL;
    if (!hosts)
        return spawn_refuse(error, size, "the request is not valid");
    app->wdir = *wdir ? wdir : NULL;
    app->path = *path ? path : NULL;
    app->n_env = head.n_env;
    app->env = q->strings + *n_strings;
    app->n_argv = head.n_argv;
    app->argv = app->env + head.n_env;
    for (size_t i = 0; i < (size_t)head.n_env + head.n_argv; i++) {
        q->strings[*n_strings] = spawn_string(&own);
        if (!q->strings[(*n_strings)++])
            return spawn_refuse(error, size, "the request is not valid");
    }
    if (!*app->argv[0])
        return spawn_refuse(error, size, "the name of the program is empty");
    return spawn_place(q, hosts, head.n_ranks, here, error, size);
}

static int spawn_parts(struct spawn_request *q, struct spawn_reader *r, uint32_t n_apps,
                       const char *here, char *error, size_t size)
{
    size_t n_strings = 0;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < n_apps; i++) {
        q->submit.apps[i] = &q->apps[i];
        rc = spawn_part(q, r, &q->apps[i], &n_strings, here, error, size);
    }
    return rc == 0 && r->at != r->end ? spawn_refuse(error, size, "the request is not valid") : rc;
}

int spawn_request_parse(const uint8_t *body, uint32_t len, const struct job *job, uint32_t local,
                        struct spawn_request *q, char *error, size_t size)
{
    const Motet__Launch *l = job->launch;
    struct attach_spawn head = {0};

    *q = (struct spawn_request){0};
    motet__submit__init(&q->submit);
    if (len < sizeof head)
        return spawn_refuse(error, size, "the request is cut off");
    memcpy(&head, body, sizeof head);
    q->number = head.request;
    if (head.request == 0 || head.n_apps == 0 || head.n_apps > ATTACH_SPAWN_APPS)
        return spawn_refuse(error, size, "the request is not valid");
    /* Every string takes a byte. */
    q->body = malloc(len);
    q->strings = calloc(len, sizeof *q->strings);
    q->apps = calloc(head.n_apps, sizeof *q->apps);
    q->submit.apps = calloc(head.n_apps, sizeof *q->submit.apps);
    int rc = -ENOMEM;
    if (q->body && q->strings && q->apps && q->submit.apps) {
        memcpy(q->body, body, len);
        struct spawn_reader r = {q->body + sizeof head, q->body + len};
        rc = spawn_parts(q, &r, head.n_apps, job->node_name, error, size);
    } else {
        spawn_refuse(error, size, "out of memory on node %s", job->node_name);
    }
    if (rc < 0) {
        spawn_request_free(q);
        return rc;
    }
    const Motet__App *own = l->apps[job->ranks[local].app];
    q->submit.n_apps = head.n_apps;
    q->submit.n_hosts = q->n_hosts;
    q->submit.hosts = q->hosts;
    q->submit.wdir = own->wdir ? own->wdir : l->wdir;
    q->submit.n_env = l->n_env;
    q->submit.env = l->env;
    q->submit.wait_mode = l->wait_mode;
    q->submit.has_umask = l->has_umask;
    q->submit.umask = l->umask;
    return 0;
}

void spawn_request_free(struct spawn_request *q)
{
    for (size_t i = 0; i < q->n_hosts; i++)
        free(q->hosts[i]);
    free(q->hosts);
    free(q->submit.apps);
    free(q->apps);
    free(q->strings);
    free(q->body);
    q->hosts = NULL;
    q->n_hosts = 0;
}
