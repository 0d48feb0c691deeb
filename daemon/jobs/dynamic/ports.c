/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/dynamic/ports.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/list.h"
#include "proto/attach.h"

/* Of one job: ports, names, and requests that wait; a bound for what it can make a daemon keep. */
#define PORTS_MAX 1024u

struct port_wait {
    struct list link;
    struct port_end end;
    uint64_t deadline_ns;
};

struct port {
    struct list link;
    uint64_t job;
    uid_t uid;
    char name[ATTACH_PORT_BYTES];
    struct list accepts, connects; /* of struct port_wait; one of them is empty */
};

struct published {
    struct list link;
    uint64_t job;
    uid_t uid;
    char port[ATTACH_PORT_BYTES], name[ATTACH_NAME_BYTES];
};

struct ports {
    const struct ports_ops *ops;
    void *ctx;
    char prefix[80];
    struct list all, names;
};

struct ports *ports_new(const char *node_name, const struct ports_ops *ops, void *ctx)
{
    struct ports *all = calloc(1, sizeof *all);

    if (!all)
        return NULL;
    all->ops = ops;
    all->ctx = ctx;
    snprintf(all->prefix, sizeof all->prefix, "motet:%s:", node_name);
    list_init(&all->all);
    list_init(&all->names);
    return all;
}

/* ---- answers ---- */

static void ports_answer(struct ports *all, const struct port_end *to, const char *port)
{
    Motet__Answered msg = MOTET__ANSWERED__INIT;

    msg.port = (char *)port;
    all->ops->answer(all->ctx, to, &msg);
}

static void ports_refuse(struct ports *all, const struct port_end *to, enum attach_refusal error,
                         const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static void ports_refuse(struct ports *all, const struct port_end *to, enum attach_refusal error,
                         const char *fmt, ...)
{
    Motet__Answered msg = MOTET__ANSWERED__INIT;
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    msg.error = (int32_t)error;
    msg.text = text;
    all->ops->answer(all->ctx, to, &msg);
}

/* ---- ports ---- */

static void port_wait_free(struct port_wait *w)
{
    list_remove(&w->link);
    free(w);
}

/* All who wait in vain; `text` NULL: nobody is told. */
static void port_drop_waiting(struct ports *all, struct list *waiting, const char *text)
{
    list_foreach_safe(it, waiting) {
        struct port_wait *w = list_entry(it, struct port_wait, link);
        if (text)
            ports_refuse(all, &w->end, ATTACH_E_PORT, "%s", text);
        port_wait_free(w);
    }
}

static void port_free(struct ports *all, struct port *p, const char *text)
{
    list_remove(&p->link);
    port_drop_waiting(all, &p->accepts, text);
    port_drop_waiting(all, &p->connects, text);
    free(p);
}

void ports_free(struct ports *all)
{
    if (!all)
        return;
    list_foreach_safe(it, &all->all)
        port_free(all, list_entry(it, struct port, link), NULL);
    list_foreach_safe(it, &all->names)
        free(list_entry(it, struct published, link));
    free(all);
}

static struct port *ports_find(const struct ports *all, const char *name, uid_t uid)
{
    list_foreach(it, &all->all) {
        struct port *p = list_entry(it, struct port, link);
        if (p->uid == uid && strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}

/* What the job has here of ports and names, and waits for. */
static unsigned ports_of_job(const struct ports *all, uint64_t job)
{
    unsigned n = 0;

    list_foreach(it, &all->all) {
        const struct port *p = list_entry(it, struct port, link);
        n += p->job == job;
        list_foreach(w, &p->connects)
            n += list_entry(w, struct port_wait, link)->end.job == job;
        list_foreach(w, &p->accepts)
            n += list_entry(w, struct port_wait, link)->end.job == job;
    }
    list_foreach(it, &all->names)
        n += list_entry(it, struct published, link)->job == job;
    return n;
}

static void ports_open(struct ports *all, const struct port_end *from, uid_t uid)
{
    struct port *p = calloc(1, sizeof *p);
    uint64_t secret[2];

    if (!p || getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret) {
        free(p);
        ports_refuse(all, from, ATTACH_E_OTHER, "no memory or no random numbers for a port");
        return;
    }
    p->job = from->job;
    p->uid = uid;
    snprintf(p->name, sizeof p->name, "%s%016llx%016llx", all->prefix,
             (unsigned long long)secret[0], (unsigned long long)secret[1]);
    list_init(&p->link);
    list_init(&p->accepts);
    list_init(&p->connects);
    list_append(&all->all, &p->link);
    ports_answer(all, from, p->name);
}

/* Who the other end waits for comes first; else this one waits. */
static void port_meet(struct ports *all, struct list *others, struct list *own, bool accepts,
                      const struct port_end *from, uint64_t deadline_ns)
{
    if (!list_empty(others)) {
        struct port_wait *w = list_entry(others->next, struct port_wait, link);
        struct port_end other = w->end;
        port_wait_free(w);
        all->ops->meet(all->ctx, accepts ? from : &other, accepts ? &other : from);
        return;
    }
    struct port_wait *w = calloc(1, sizeof *w);
    if (!w) {
        ports_refuse(all, from, ATTACH_E_OTHER, "no memory to wait at a port");
        return;
    }
    w->end = *from;
    w->deadline_ns = deadline_ns;
    list_init(&w->link);
    list_append(own, &w->link);
}

static void ports_refuse_port(struct ports *all, const struct port_end *from, const char *name)
{
    if (strncmp(name, "motet:", 6) != 0)
        ports_refuse(all, from, ATTACH_E_PORT, "'%.60s' is not a name that MPI_Open_port gave",
                     name);
    else if (strncmp(name, all->prefix, strlen(all->prefix)) != 0)
        ports_refuse(all, from, ATTACH_E_PORT,
                     "the port is of a job whose mpiexec runs on node %.*s, and this job's runs on "
                     "node %.*s: jobs connect only where both run on one node",
                     (int)strcspn(name + 6, ":"), name + 6, (int)strcspn(all->prefix + 6, ":"),
                     all->prefix + 6);
    else
        ports_refuse(all, from, ATTACH_E_PORT,
                     "there is no such port, or it is closed (jobs of private daemons cannot "
                     "connect with others)");
}

/* ---- names ---- */

static struct published *names_find(const struct ports *all, const char *name, uid_t uid)
{
    list_foreach(it, &all->names) {
        struct published *n = list_entry(it, struct published, link);
        if (n->uid == uid && strcmp(n->name, name) == 0)
            return n;
    }
    return NULL;
}

static void names_publish(struct ports *all, const struct port_end *from, uid_t uid,
                          const Motet__Ask *msg)
{
    if (names_find(all, msg->name, uid)) {
        ports_refuse(all, from, ATTACH_E_SERVICE, "'%s' is published already", msg->name);
        return;
    }
    struct published *n = calloc(1, sizeof *n);
    if (!n) {
        ports_refuse(all, from, ATTACH_E_OTHER, "no memory for a name");
        return;
    }
    n->job = from->job;
    n->uid = uid;
    snprintf(n->port, sizeof n->port, "%s", msg->port);
    snprintf(n->name, sizeof n->name, "%s", msg->name);
    list_init(&n->link);
    list_append(&all->names, &n->link);
    ports_answer(all, from, NULL);
}

static void names_on_ask(struct ports *all, const struct port_end *from, uid_t uid,
                         const Motet__Ask *msg)
{
    struct published *n = names_find(all, msg->name, uid);

    if (msg->wish == ATTACH_LOOKUP && n) {
        ports_answer(all, from, n->port);
    } else if (msg->wish == ATTACH_LOOKUP) {
        ports_refuse(all, from, ATTACH_E_NAME, "'%s' is not published on node %.*s", msg->name,
                     (int)strcspn(all->prefix + 6, ":"), all->prefix + 6);
    } else if (!n || strcmp(n->port, msg->port) != 0) {
        ports_refuse(all, from, ATTACH_E_SERVICE, "'%s' is not published with this port",
                     msg->name);
    } else {
        list_remove(&n->link);
        free(n);
        ports_answer(all, from, NULL);
    }
}

/* ---- events ---- */

static void port_on_ask(struct ports *all, struct port *p, const struct port_end *from,
                        const Motet__Ask *msg, uint64_t now_ns)
{
    uint64_t limit_ns = (msg->has_timeout_ms ? msg->timeout_ms : 0) * CLOCK_NS_PER_MS;

    if (msg->wish != ATTACH_CONNECT && p->job != from->job) {
        ports_refuse(all, from, ATTACH_E_PORT, "the port was opened by another job");
    } else if (msg->wish == ATTACH_ACCEPT) {
        port_meet(all, &p->connects, &p->accepts, true, from, UINT64_MAX);
    } else if (msg->wish == ATTACH_CONNECT) {
        port_meet(all, &p->accepts, &p->connects, false, from,
                  limit_ns ? now_ns + limit_ns : UINT64_MAX);
    } else {
        port_free(all, p, "the port was closed");
        ports_answer(all, from, NULL);
    }
}

void ports_on_ask(struct ports *all, const struct port_end *from, uid_t uid, const Motet__Ask *msg,
                  uint64_t now_ns)
{
    bool keeps = msg->wish != ATTACH_CLOSE_PORT && msg->wish != ATTACH_UNPUBLISH &&
                 msg->wish != ATTACH_LOOKUP;
    bool named = msg->wish >= ATTACH_PUBLISH;
    struct port *p;

    if ((named && !msg->name) || (msg->wish != ATTACH_OPEN_PORT && !msg->port) ||
        msg->wish >= ATTACH_N_WISHES)
        ports_refuse(all, from, ATTACH_E_OTHER, "the request is not valid");
    else if (keeps && ports_of_job(all, from->job) >= PORTS_MAX)
        ports_refuse(all, from, ATTACH_E_OTHER,
                     "the job has %u ports, names and connections that wait: more are not kept",
                     PORTS_MAX);
    else if (msg->wish == ATTACH_OPEN_PORT)
        ports_open(all, from, uid);
    else if (msg->wish == ATTACH_PUBLISH)
        names_publish(all, from, uid, msg);
    else if (named)
        names_on_ask(all, from, uid, msg);
    else if ((p = ports_find(all, msg->port, uid)) != NULL)
        port_on_ask(all, p, from, msg, now_ns);
    else
        ports_refuse_port(all, from, msg->port);
}

static void port_forget_waiting(struct list *waiting, uint64_t job)
{
    list_foreach_safe(it, waiting) {
        struct port_wait *w = list_entry(it, struct port_wait, link);
        if (w->end.job == job)
            port_wait_free(w);
    }
}

void ports_on_over(struct ports *all, uint64_t job)
{
    list_foreach_safe(it, &all->all) {
        struct port *p = list_entry(it, struct port, link);
        port_forget_waiting(&p->accepts, job);
        port_forget_waiting(&p->connects, job);
        if (p->job == job)
            port_free(all, p, "the job that opened the port is over");
    }
    list_foreach_safe(it, &all->names) {
        struct published *n = list_entry(it, struct published, link);
        if (n->job == job) {
            list_remove(&n->link);
            free(n);
        }
    }
}

uint64_t ports_deadline(const struct ports *all)
{
    uint64_t when_ns = UINT64_MAX;

    list_foreach(it, &all->all)
        list_foreach(w, &list_entry(it, struct port, link)->connects) {
            uint64_t deadline_ns = list_entry(w, struct port_wait, link)->deadline_ns;
            when_ns = deadline_ns < when_ns ? deadline_ns : when_ns;
        }
    return when_ns;
}

void ports_run(struct ports *all, uint64_t now_ns)
{
    list_foreach(it, &all->all)
        list_foreach_safe(w, &list_entry(it, struct port, link)->connects) {
            struct port_wait *wait = list_entry(w, struct port_wait, link);
            if (wait->deadline_ns > now_ns)
                continue;
            ports_refuse(all, &wait->end, ATTACH_E_PORT, "nobody accepted within the timeout");
            port_wait_free(wait);
        }
}
