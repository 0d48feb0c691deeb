/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a spawn asks of the daemon, as proto/attach.h has it: commands, arguments and info keys of
 * the root (MPI-5.0 section 11.8.4: wdir, path, host, hosts, arch, soft; initial_errhandler of
 * section 11.8.5; keys that are not known, and file, which is ours to define, say nothing). Used by
 * spawn.c alone.
 */
#ifndef MOTET_CLIENT_DYNAMIC_COMMAND_H
#define MOTET_CLIENT_DYNAMIC_COMMAND_H

#include <stddef.h>
#include <stdint.h>

struct info;

struct command {
    char *bytes; /* begins with struct attach_spawn */
    size_t n, room;
    int n_asked, n_processes; /* of all parts: maxprocs, and those that `soft` leaves of it */
    int n_parts;
    int *parts; /* [2 * n_parts]: both numbers for each */
};

/* 0 or MPI_ERR_NO_MEM; command_free in any case. */
int command_begin(struct command *c);
/* One more part; argv ends with NULL and may be NULL. MPI_ERR_SPAWN, MPI_ERR_INFO_VALUE or
 * MPI_ERR_NO_MEM. */
int command_add(struct command *c, const char *program, char *const *argv, int maxprocs,
                const struct info *info);
void command_free(struct command *c);

#endif
