/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric, loaded when the first channel is opened. A daemon without channels (under an mpiexec
 * of one node) does without it: Debian's build pulls in libinfinipath, whose constructor sleeps 0.2
 * s and installs signal handlers, which would be most of a small job's start.
 *
 * libfabric exports few functions; everything else goes through tables in its objects and needs no
 * loading.
 */
#pragma once

#include <rdma/fabric.h>

struct ofi {
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
                   const struct fi_info *hints, struct fi_info **info);
    void (*freeinfo)(struct fi_info *info);
    struct fi_info *(*dupinfo)(const struct fi_info *info);
    int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
    const char *(*strerror)(int errnum);
};

/* NULL when the library or one of the functions is not there; the reason is logged. Control thread
 * only. */
const struct ofi *ofi_load(void);

/* Calls `each` with the name of every provider that libfabric offers here, once each; `ofi-tcp` for
 * the one that a configuration calls so. */
void ofi_list(void (*each)(void *ctx, const char *provider), void *ctx);
