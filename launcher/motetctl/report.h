/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of motetctl that put several questions to the daemon and make one answer of the
 * answers. */
#pragma once

#include <stdbool.h>

struct report {
    const char *job;  /* waits: NULL: all */
    const char *node; /* doctor, metrics: NULL: doctor of all, metrics of the daemon's own */
    const char *file; /* metrics: written in one step; NULL: standard output */
    bool json;
};

/* fd: the status socket. Each returns the exit code of motetctl; what is missing in the answers is
 * said on standard error. */
int report_waits(int fd, const struct report *what);
int report_doctor(int fd, const struct report *what);
int report_metrics(int fd, const struct report *what);
