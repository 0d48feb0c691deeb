/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the users of a node have taken of what the daemon can give: connections, requests, jobs,
 * ranks, memory. Who gives something out asks here first, and says when it is free again. Pure;
 * made by control, used by client, job and status. Control thread.
 *
 * Idea: as dbus-broker charges its users. Each thing has a total and a limit for one user, and
 * whatever the limits say, nobody takes more than half of what the others leave of the total: so
 * however many users take all they can get, there is something left for one more. Root and the
 * daemon's own user may take everything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

struct config;
struct quota;

enum quota_kind {
    QUOTA_CLIENTS,  /* connections to the client socket that are not a rank's */
    QUOTA_STATUS,   /* connections to the status socket */
    QUOTA_REQUESTS, /* requests there that wait for other nodes */
    QUOTA_JOBS,
    QUOTA_RANKS,
    QUOTA_SEGMENT, /* bytes that the segments of jobs fill */
    QUOTA_KINDS
};

/* Fits the text of an attach reply. */
#define QUOTA_WHY_BYTES 128u
/* Refusals are kept to be shown for so long. */
#define QUOTA_SHOWN_NS (600 * CLOCK_NS_PER_S)

enum { QUOTA_E_OVER = 1 };

/* What a user was refused of one kind. */
struct quota_refusal {
    uid_t uid;
    uint64_t n;                /* times, without a pause of QUOTA_SHOWN_NS */
    uint64_t last_ns;          /* 0: never */
    char why[QUOTA_WHY_BYTES]; /* the last time */
};

/* What bounds the totals beside the configuration. */
struct quota_host {
    uint64_t n_files;      /* that the daemon may open */
    uint64_t memory_bytes; /* of the node */
    uid_t own;             /* the daemon's user */
};

/* config stays the caller's, and is read at every question. NULL: no memory. */
struct quota *quota_new(const struct config *config, const struct quota_host *host);
void quota_free(struct quota *q);

/* Takes n for the user. 0, or QUOTA_E_OVER with the reason, which names the limit; or -ENOMEM. */
int quota_take(struct quota *q, enum quota_kind kind, uid_t uid, uint64_t n, uint64_t now_ns,
               char why[QUOTA_WHY_BYTES]);
void quota_give(struct quota *q, enum quota_kind kind, uid_t uid, uint64_t n);
/* The user holds n instead of `before`, whatever the limits say. QUOTA_E_OVER with the reason if
 * that is too much now; or -ENOMEM. */
int quota_change(struct quota *q, enum quota_kind kind, uid_t uid, uint64_t before, uint64_t n,
                 uint64_t now_ns, char why[QUOTA_WHY_BYTES]);
uint64_t quota_used(const struct quota *q, enum quota_kind kind, uid_t uid);

/* Calls f for what was refused not long ago. */
void quota_refusals(const struct quota *q, uint64_t now_ns,
                    void (*f)(void *ctx, const struct quota_refusal *refusal), void *ctx);
