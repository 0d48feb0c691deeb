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
struct fabric;
struct job;
struct node;

/* Opens hub and channels; the threads do not run yet. 0 or negative errno, logged. */
int fabric_new(struct node *node, struct fabric **ret_fabric);
int fabric_start(struct fabric *f);
/* Stops and frees everything. NULL is fine. */
void fabric_free(struct fabric *f);

uint32_t fabric_n_channels(const struct fabric *f);
struct channel *fabric_channel(const struct fabric *f, uint32_t idx);
/* Network driver and provider in use, for the topology and for status. */
const char *fabric_driver(const struct fabric *f, uint32_t idx);
const char *fabric_provider(const struct fabric *f, uint32_t idx);
/* Endpoint address. Bytes used, or negative errno. */
int fabric_address(const struct fabric *f, uint32_t idx, uint8_t *buf, uint32_t size);
/* True while the channel's endpoint lives. */
bool fabric_alive(const struct fabric *f, uint32_t idx);
/* True if every channel thread moved since the last call. */
bool fabric_moved(struct fabric *f);

void fabric_add_link(struct fabric *f, uint32_t idx, uint16_t slot, const uint8_t *address,
                     uint32_t len);
void fabric_remove_link(struct fabric *f, uint32_t idx, uint16_t slot);
/* Makes every channel serve the job: fills job->channel_jobs and channels_left. 0 or negative errno
 * with nothing attached. */
int fabric_attach_job(struct fabric *f, struct job *job);
/* Each channel answers with jobs_on_rank_detached. */
void fabric_detach_rank(struct fabric *f, struct job *job, uint32_t local, bool dead);
/* Each channel answers with jobs_on_job_detached. */
void fabric_detach_job(struct fabric *f, struct job *job);
void fabric_job_free(struct channel_job *job);
void fabric_set_wait(struct fabric *f, uint32_t idx, uint32_t wait_mode);
/* Asks all channels to empty their flows; true once all have answered. */
void fabric_drain(struct fabric *f, uint64_t timeout_ns);
bool fabric_drained(const struct fabric *f);
/* Sends again what found a full ring. */
void fabric_tick(struct fabric *f);
