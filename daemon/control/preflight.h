/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a right configuration needs of the host to work: the key, names of seeds, providers, the
 * spawner. Asked by --check-config; a daemon that runs finds these out by itself, some of them much
 * later. Called by main before there are threads; may take as long as looking up names does.
 */
#pragma once

#include "daemon/config.h"

/* Complains with file and line of each. 0, or -EINVAL. The configuration is complete
 * (config_finish). */
int preflight(const struct config *config, config_report_fn *report, void *ctx);
