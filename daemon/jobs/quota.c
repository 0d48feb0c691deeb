/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/quota.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/log.h"
#include "daemon/config.h"

/* The same user is named in the log for the same thing once in this time. */
#define COMPLAIN_EVERY_NS (30 * CLOCK_NS_PER_S)
/* Users that hold nothing and are kept for what they were refused. */
#define MAX_SHOWN 64u
/* Connections may take these parts of the descriptors; ranks, jobs and channels need the rest. */
#define CLIENT_FILES_PART 2u
#define STATUS_FILES_PART 8u
/* As many as the daemons of a large cluster answer without being busy with nothing else. */
#define MAX_REQUESTS 64u

struct quota_user {
    UT_hash_handle hh;
    uid_t uid;
    uint64_t used[QUOTA_KINDS];
    struct quota_refusal refused[QUOTA_KINDS];
    uint64_t told_ns[QUOTA_KINDS];
    uint64_t n_untold[QUOTA_KINDS];
};

struct quota {
    const struct config *config;
    struct quota_host host;
    uint64_t used[QUOTA_KINDS];
    struct quota_user *users;
};

/* A limit, and the name under which the administrator finds it. */
struct quota_limit {
    uint64_t n;
    const char *name;
};

static const char *const quota_things[] = {[QUOTA_CLIENTS] = "connections to the client socket",
                                           [QUOTA_STATUS] = "connections to the status socket",
                                           [QUOTA_REQUESTS] = "open status requests",
                                           [QUOTA_JOBS] = "jobs",
                                           [QUOTA_RANKS] = "ranks",
                                           [QUOTA_SEGMENT] = "bytes in segments"};

static struct quota_limit quota_of_files(const struct quota *q, uint64_t part)
{
    uint64_t n = q->host.n_files / part;

    if (n < q->config->max_clients)
        return (struct quota_limit){n, "part of LimitNOFILE"};
    return (struct quota_limit){q->config->max_clients, "max_clients"};
}

static struct quota_limit quota_total(const struct quota *q, enum quota_kind kind)
{
    switch (kind) {
    case QUOTA_CLIENTS:
        return quota_of_files(q, CLIENT_FILES_PART);
    case QUOTA_STATUS:
        return quota_of_files(q, STATUS_FILES_PART);
    case QUOTA_REQUESTS:
        return (struct quota_limit){MAX_REQUESTS, "total"};
    case QUOTA_JOBS:
        return (struct quota_limit){q->config->max_jobs, "max_jobs"};
    case QUOTA_RANKS:
        return (struct quota_limit){q->config->max_ranks, "max_ranks"};
    default:
        return (struct quota_limit){q->host.memory_bytes, "memory"};
    }
}

static struct quota_limit quota_of_user(const struct quota *q, enum quota_kind kind)
{
    const struct config *c = q->config;

    switch (kind) {
    case QUOTA_CLIENTS:
    case QUOTA_STATUS:
        return (struct quota_limit){c->user_connections, "user_connections"};
    case QUOTA_REQUESTS:
        return (struct quota_limit){c->user_requests, "user_requests"};
    case QUOTA_JOBS:
        return (struct quota_limit){c->user_jobs, "user_jobs"};
    case QUOTA_RANKS:
        return (struct quota_limit){c->user_ranks, "user_ranks"};
    default:
        return (struct quota_limit){c->user_segment_bytes ? c->user_segment_bytes
                                                          : q->host.memory_bytes / 2,
                                    "user_segment_bytes"};
    }
}

struct quota *quota_new(const struct config *config, const struct quota_host *host)
{
    struct quota *q = calloc(1, sizeof *q);

    if (q)
        *q = (struct quota){.config = config, .host = *host};
    return q;
}

void quota_free(struct quota *q)
{
    struct quota_user *u, *next;

    if (!q)
        return;
    HASH_ITER(hh, q->users, u, next) {
        HASH_DEL(q->users, u);
        free(u);
    }
    free(q);
}

static struct quota_user *quota_find(const struct quota *q, uid_t uid)
{
    struct quota_user *u;
    HASH_FIND(hh, q->users, &uid, sizeof uid, u);
    return u;
}

static bool quota_user_holds(const struct quota_user *u)
{
    for (int kind = 0; kind < QUOTA_KINDS; kind++)
        if (u->used[kind] > 0)
            return true;
    return false;
}

static uint64_t quota_user_refused_ns(const struct quota_user *u)
{
    uint64_t last_ns = 0;

    for (int kind = 0; kind < QUOTA_KINDS; kind++)
        if (u->refused[kind].last_ns > last_ns)
            last_ns = u->refused[kind].last_ns;
    return last_ns;
}

/* Of the users that hold nothing those who were refused lately are kept, the last ones of them. */
static void quota_forget(struct quota *q)
{
    struct quota_user *u, *next, *oldest = NULL;
    unsigned n = 0;

    HASH_ITER(hh, q->users, u, next) {
        if (quota_user_holds(u))
            continue;
        if (quota_user_refused_ns(u) == 0) {
            HASH_DEL(q->users, u);
            free(u);
            continue;
        }
        n++;
        if (!oldest || quota_user_refused_ns(u) < quota_user_refused_ns(oldest))
            oldest = u;
    }
    if (n > MAX_SHOWN) {
        HASH_DEL(q->users, oldest);
        free(oldest);
    }
}

static struct quota_user *quota_get(struct quota *q, uid_t uid)
{
    struct quota_user *u = quota_find(q, uid);

    if (u)
        return u;
    u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->uid = uid;
    HASH_ADD(hh, q->users, uid, sizeof u->uid, u);
    return u;
}

/* What keeps the user, who holds `held` of what `others` leave, from having n more. 0, or
 * QUOTA_E_OVER with the reason. */
static int quota_check(const struct quota *q, enum quota_kind kind, const struct quota_user *u,
                       uint64_t held, uint64_t n, char why[QUOTA_WHY_BYTES])
{
    const struct quota_limit total = quota_total(q, kind), own = quota_of_user(q, kind);
    uint64_t others = q->used[kind] - u->used[kind];
    uint64_t left = total.n > others ? total.n - others : 0, half = left - left / 2;
    const char *thing = quota_things[kind];
    unsigned long long has = held, more = n;

    if (held + n > left) {
        snprintf(why, QUOTA_WHY_BYTES, "%llu %s more are too many, %llu are in use: %s = %llu",
                 more, thing, has + others, total.name, (unsigned long long)total.n);
        return QUOTA_E_OVER;
    }
    if (u->uid == 0 || u->uid == q->host.own)
        return 0;
    if (held + n > own.n) {
        snprintf(why, QUOTA_WHY_BYTES, "user %u has %llu %s, %llu more are too many: %s = %llu",
                 (unsigned)u->uid, has, thing, more, own.name, (unsigned long long)own.n);
        return QUOTA_E_OVER;
    }
    if (held + n > half) {
        snprintf(why, QUOTA_WHY_BYTES,
                 "user %u has %llu %s, and half of what others leave of %s = %llu",
                 (unsigned)u->uid, has, thing, total.name, (unsigned long long)total.n);
        return QUOTA_E_OVER;
    }
    return 0;
}

static void quota_note(struct quota_user *u, enum quota_kind kind, uint64_t now_ns, const char *why)
{
    struct quota_refusal *r = &u->refused[kind];

    if (r->last_ns == 0 || now_ns - r->last_ns > QUOTA_SHOWN_NS)
        r->n = 0;
    r->uid = u->uid;
    r->n++;
    r->last_ns = now_ns;
    memcpy(r->why, why, sizeof r->why);
    u->n_untold[kind]++;
    if (u->told_ns[kind] != 0 && now_ns - u->told_ns[kind] < COMPLAIN_EVERY_NS)
        return;
    log_warn("refused user %u, %llu times since this was last said: %s", (unsigned)u->uid,
             (unsigned long long)u->n_untold[kind], why);
    u->told_ns[kind] = now_ns;
    u->n_untold[kind] = 0;
}

int quota_take(struct quota *q, enum quota_kind kind, uid_t uid, uint64_t n, uint64_t now_ns,
               char why[QUOTA_WHY_BYTES])
{
    struct quota_user *u = quota_get(q, uid);

    if (!u) {
        snprintf(why, QUOTA_WHY_BYTES, "out of memory");
        return -ENOMEM;
    }
    int rc = quota_check(q, kind, u, u->used[kind], n, why);
    if (rc == 0) {
        u->used[kind] += n;
        q->used[kind] += n;
    } else {
        quota_note(u, kind, now_ns, why);
        quota_forget(q);
    }
    return rc;
}

void quota_give(struct quota *q, enum quota_kind kind, uid_t uid, uint64_t n)
{
    struct quota_user *u = quota_find(q, uid);

    if (n == 0)
        return;
    assert(u && u->used[kind] >= n && q->used[kind] >= n);
    u->used[kind] -= n;
    q->used[kind] -= n;
    if (!quota_user_holds(u))
        quota_forget(q);
}

int quota_change(struct quota *q, enum quota_kind kind, uid_t uid, uint64_t before, uint64_t n,
                 uint64_t now_ns, char why[QUOTA_WHY_BYTES])
{
    quota_give(q, kind, uid, before);
    if (n == 0)
        return 0;
    struct quota_user *u = quota_get(q, uid);
    if (!u)
        return -ENOMEM;
    int rc = quota_check(q, kind, u, u->used[kind], n, why);
    u->used[kind] += n;
    q->used[kind] += n;
    if (rc == QUOTA_E_OVER)
        quota_note(u, kind, now_ns, why);
    return rc;
}

uint64_t quota_used(const struct quota *q, enum quota_kind kind, uid_t uid)
{
    const struct quota_user *u = quota_find(q, uid);

    return u ? u->used[kind] : 0;
}

void quota_refusals(const struct quota *q, uint64_t now_ns,
                    void (*f)(void *ctx, const struct quota_refusal *refusal), void *ctx)
{
    for (const struct quota_user *u = q->users; u; u = u->hh.next)
        for (int kind = 0; kind < QUOTA_KINDS; kind++)
            if (u->refused[kind].last_ns != 0 && now_ns - u->refused[kind].last_ns < QUOTA_SHOWN_NS)
                f(ctx, &u->refused[kind]);
}
