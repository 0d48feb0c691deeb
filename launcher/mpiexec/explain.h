/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job waits for, when its time is over: motetctl is asked. Called by the run of a job. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "launcher/cli/bytes.h"

/*
 * Appends what `motetctl waits JOB` prints, at most 64 KiB of it. It has 5 s. `status_socket`: of
 * the daemon; "" where motetctl finds it by itself. 0, or negative errno with nothing appended.
 */
int explain_waits(uint64_t job, const char *status_socket, struct bytes *ret_text);
