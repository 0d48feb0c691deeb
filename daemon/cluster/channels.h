/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread's side of the channels: makes them from the configuration, sends their
 * commands (waiting where a ring is full), reports their events. Called by whoever wires the
 * daemon, by jobs and by status. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/seal/seal.h"

struct channel;
struct channel_foreign;
struct channel_job;
struct channel_place;
struct channels;
struct cmd_event;
struct cmd_job;
struct config;
struct event_base;
struct hop_table;
struct net_guard;

/* What the channels report. */
struct channels_ops {
    void (*link_error)(void *ctx, uint32_t channel, uint32_t slot, int error);
    /* Whether data passes the link to a neighbour has changed; `event` is an EVENT_LINK. */
    void (*link)(void *ctx, uint32_t channel, const struct cmd_event *event);
    void (*rtt)(void *ctx, uint32_t channel, uint32_t slot, uint64_t rtt_ns);
    /* The channel's endpoint is lost. */
    void (*failed)(void *ctx, uint32_t channel);
    void (*rank_detached)(void *ctx, uint64_t job, uint32_t local);
    void (*job_detached)(void *ctx, uint64_t job, uint32_t channel);
    /* The channel let go of the job's connection that has this number on its way in. */
    void (*foreign_removed)(void *ctx, uint64_t job, uint64_t in, uint32_t channel);
    /* A rank broke a rule that protects others. */
    void (*offence)(void *ctx, uint64_t job, uint32_t world_rank, const char *text);
};

struct channels_setup {
    struct event_base *base;
    const struct config *config; /* stays the caller's */
    uint32_t node_id, epoch;
    bool fenced;
    struct hop_table *table;
    uint32_t (*node_of_slot)(void *ctx, uint32_t slot); /* for the log */
    const struct channels_ops *ops;
    void *ctx;
};

/* Opens hub and channels; the threads do not run yet. 0 or negative errno, logged. */
int channels_new(const struct channels_setup *setup, struct channels **ret_channels);
int channels_start(struct channels *f);
/* Stops and frees everything. NULL is fine. */
void channels_free(struct channels *f);

/* Those of the configuration. */
uint32_t channels_count(const struct channels *f);
/* Those that serve jobs: on a node without networks one that joins the node's jobs. */
uint32_t channels_serving(const struct channels *f);
struct channel *channels_at(const struct channels *f, uint32_t idx);
/* Network driver and provider in use, for the topology and for status. */
const char *channels_driver(const struct channels *f, uint32_t idx);
const char *channels_provider(const struct channels *f, uint32_t idx);
/* Endpoint address. Bytes used, or negative errno. */
int channels_address(const struct channels *f, uint32_t idx, uint8_t *buf, uint32_t size);
/* True while the channel's endpoint lives. */
bool channels_alive(const struct channels *f, uint32_t idx);
/* True if every channel thread moved since the last call. */
bool channels_moved(struct channels *f);

void channels_add_link(struct channels *f, uint32_t idx, uint16_t slot, const uint8_t *address,
                       uint32_t len, const uint8_t secret[SEAL_SECRET_BYTES]);
void channels_remove_link(struct channels *f, uint32_t idx, uint16_t slot);
/* Makes every channel serve a job: fills ret_jobs, one for each channel. config.event_fd is taken
 * from event_fds, hold_bytes from the configuration. 0 or negative errno with nothing attached. */
int channels_attach_job(struct channels *f, const struct cmd_job *config, const int *event_fds,
                        struct channel_job **ret_jobs);
/* Each channel answers with rank_detached. jobs: as channels_attach_job filled it. */
void channels_detach_rank(struct channels *f, struct channel_job *const *jobs, uint32_t local,
                          bool dead);
/* Each channel answers with job_detached. */
void channels_detach_job(struct channels *f, struct channel_job *const *jobs);
void channels_job_free(struct channel_job *job);
/* Makes n processes of another job peers of this one's (channel_foreign_new). jobs: as
 * channels_attach_job filled it; fills ret_foreign, one for each channel. 0 or negative errno with
 * nothing done. */
int channels_add_foreign(struct channels *f, struct channel_job *const *jobs, uint64_t out,
                         uint64_t in, uint32_t first, uint32_t n,
                         const struct channel_place *places, struct channel_foreign **ret_foreign);
/* Each channel answers with foreign_removed. Not of a job that was told to detach. */
void channels_remove_foreign(struct channels *f, struct channel_foreign *const *foreign);
void channels_foreign_free(struct channel_foreign *foreign);
void channels_set_wait(struct channels *f, uint32_t idx, uint32_t wait_mode);
/* Asks all channels to empty their flows; true once all have answered. */
void channels_drain(struct channels *f, uint64_t timeout_ns);
bool channels_drained(const struct channels *f);
/* Sends again what found a full ring, and looks whether somebody tries what he may not. */
void channels_tick(struct channels *f, uint64_t now_ns);
/* What a channel's driver refused since the start, and how long ago the last of it, UINT64_MAX if
 * there was nothing. */
void channels_refused(const struct channels *f, uint32_t idx, struct net_guard *ret_guard,
                      uint64_t *ret_ago_ns);
