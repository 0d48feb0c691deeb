/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this node has to say about each subject, as JSON rows. Called by status.c for its own
 * clients and for other daemons. Control thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct node;

/* A request in its checked form. */
struct status_request {
    const char *get; /* subject, or NULL */
    const char *set; /* "wait_mode", "log_level" or "kill", or NULL */
    const char *value, *channel, *node;
    uint64_t job;
    bool has_job;
    int64_t rank;   /* -1: all */
    uint32_t limit; /* most rows per node */
    uid_t uid;
};

/* True if users without privilege may ask for it; their rows of jobs are their own only. */
bool status_rows_public(const char *subject);
/* True if the answer needs the other nodes. */
bool status_rows_clusterwide(const char *subject);
/* True if there is such a subject. */
bool status_rows_known(const char *subject);
/* The rows of one subject; ret_truncated: there are more than the request's limit. NULL: no
 * memory. */
json_t *status_rows(struct node *node, const char *subject, const struct status_request *request,
                    bool *ret_truncated);
/* May this user see everything here? */
bool status_rows_privileged(const struct node *node, uid_t uid);

/* status_doctor.c: what is wrong with this node, appended to rows. */
void status_doctor(struct node *node, const struct status_request *request, json_t *rows);
/* status_queue.c: rows of the ranks and of their queue boards, appended to rows. */
void status_queue_ranks(struct node *node, const struct status_request *request, json_t *rows);
void status_queue_communicators(struct node *node, const struct status_request *request,
                                json_t *rows);
void status_queue_boards(struct node *node, const struct status_request *request, json_t *rows);
