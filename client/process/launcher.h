/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has started this process, when it was not Motet. Called once, before it attaches. */
#ifndef MOTET_CLIENT_PROCESS_LAUNCHER_H
#define MOTET_CLIENT_PROCESS_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether another launcher started this process as one of several and Motet did not start it: each
 * of them would be rank 0 of a job of one. Says so in `why`. MOTET_SINGLETON=yes: that is wanted.
 */
bool launcher_is_foreign(char *why, size_t room);

#endif
