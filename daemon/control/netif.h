/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network interfaces of this host: which one a configured channel means, its address, its
 * speed. Called at start. Control thread.
 */
#pragma once

#include "daemon/config.h"

/* Fills resolved_interface, address and (if 0) mbytes_per_s of every channel. 0, or -ENODEV with
 * complaints that name file and line of the setting and what there is instead. */
int netif_resolve(struct config *config, config_report_fn *report, void *ctx);
