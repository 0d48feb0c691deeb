/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One request of the status socket, checked, and the reason where it is refused. Used by all of
 * this folder. Control thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How ranks and channels wait, by enum wait_mode. */
extern const char *const status_wait_names[];

/* Most rows of one reply. */
#define STATUS_MAX_ROWS 200000u

/* A request in its checked form. */
struct status_request {
    const char *get; /* a view, "all", or NULL */
    const char *set; /* "wait_mode", "log_level" or "kill", or NULL */
    const char *value, *channel, *node;
    uint64_t job;
    bool has_job;
    int64_t rank;   /* -1: all */
    uint32_t limit; /* most rows per node */
    uid_t uid;
};

/* Why a request is refused. */
struct status_refusal {
    const char *code; /* NULL: it is not */
    char text[200];
};

/* Fills it. Returns -EINVAL. */
int status_refuse(struct status_refusal *why, const char *code, const char *text);

/* Checks a request of this user. The strings of *ret_request belong to json. 0, or -EINVAL with the
 * reason. */
int status_request_parse(json_t *json, uid_t uid, struct status_request *ret_request,
                         struct status_refusal *why);

/* May this user see and change everything here? */
bool status_privileged(uid_t uid);
