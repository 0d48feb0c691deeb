/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control's side of the channels: makes them from the configuration, sends their commands (waiting
 * where a ring is full), hands their events to jobs and mesh. Control thread; beside status the
 * only file of control that includes daemon/channel.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct channel;
struct channel_job;
struct channels;
struct job;
struct node;

/* Opens hub and channels; the threads do not run yet. 0 or negative errno, logged. */
int channels_new(struct node *node, struct channels **ret_channels);
int channels_start(struct channels *f);
/* Stops and frees everything. NULL is fine. */
void channels_free(struct channels *f);

uint32_t channels_n_channels(const struct channels *f);
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
                       uint32_t len);
void channels_remove_link(struct channels *f, uint32_t idx, uint16_t slot);
/* Makes every channel serve the job: fills job->channel_jobs and channels_left. 0 or negative errno
 * with nothing attached. */
int channels_attach_job(struct channels *f, struct job *job);
/* Each channel answers with jobs_on_rank_detached. */
void channels_detach_rank(struct channels *f, struct job *job, uint32_t local, bool dead);
/* Each channel answers with jobs_on_job_detached. */
void channels_detach_job(struct channels *f, struct job *job);
void channels_job_free(struct channel_job *job);
void channels_set_wait(struct channels *f, uint32_t idx, uint32_t wait_mode);
/* Asks all channels to empty their flows; true once all have answered. */
void channels_drain(struct channels *f, uint64_t timeout_ns);
bool channels_drained(const struct channels *f);
/* Sends again what found a full ring. */
void channels_tick(struct channels *f);
