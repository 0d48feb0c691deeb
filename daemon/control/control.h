/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread's loop: signals, timers, and who gets which mail. Connects the modules of the
 * daemon, which know one another only through their functions. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/config.h"

struct node;
struct spawner;

/* Makes mail, jobs, manager, timers and signal handlers of the node. 0 or negative errno. */
int control_init(struct node *node);
void control_deinit(struct node *node);
/* Makes the channels, which report to the node. 0 or negative errno, logged. */
int control_channels_new(struct node *node);
struct spawner *control_spawner_new(struct node *node, pid_t pid, int fd);
/* Reads the daemon's configuration file anew, as it would count for this node after a restart. 0 or
 * -EINVAL, complaints reported. */
int control_read_config(const struct node *node, struct config *ret_fresh, config_report_fn *report,
                        void *ctx);
/* Ends the daemon: takes no new jobs, waits for those that run (at most a while), leaves the loop.
 * A second call ends at once. */
void control_shutdown(struct node *node, const char *why);
