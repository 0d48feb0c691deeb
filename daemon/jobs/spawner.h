/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's end of its spawner (daemon/spawner/main.c), the single-threaded process that forks
 * the ranks. Control thread.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/control.pb-c.h"

struct spawner;

struct spawner_ops {
    /* pid > 0: the program runs; else it could not be started, and error says why. */
    void (*spawned)(void *ctx, uint64_t job, uint32_t rank, int32_t pid, const char *error);
    void (*exited)(void *ctx, uint64_t job, uint32_t rank, int32_t status);
    /* The spawner died, and with it what it knew of every rank. A new one runs already, or will
     * after some pause. */
    void (*lost)(void *ctx);
};

/* Starts the program. To be called before the daemon has threads or large mappings. `again`: after
 * one that died; it first kills what that one's ranks left behind as children of this process. 0 or
 * negative errno, logged. */
int spawner_start(const char *path, bool again, pid_t *ret_pid, int *ret_fd);

/* Takes the descriptor. NULL: no memory. */
struct spawner *spawner_new(struct event_base *base, const char *path, pid_t pid, int fd,
                            const struct spawner_ops *ops, void *ctx);
/* Closes the connection: the spawner kills every rank and ends. Waits for that, 5 seconds at
 * most. */
void spawner_free(struct spawner *s);

/* Takes the three descriptors over. 0 or negative errno. */
int spawner_spawn(struct spawner *s, const Motet__Spawn *spawn, const int fds[3]);
/* rank < 0: all of the job. */
int spawner_kill(struct spawner *s, uint64_t job, int64_t rank, int signal);
