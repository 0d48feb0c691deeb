/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings: what the variables MOTET_* of the environment say, unless a tool has said otherwise
 * since (MPI_T_cvar_write; client/tools/cvar.h). Every room reads its variables here, whenever it
 * needs them; a variable that is read once, when MPI starts, can be changed until then. With the
 * library lock, or before main().
 */
#ifndef MOTET_CLIENT_PROCESS_SETTING_H
#define MOTET_CLIENT_PROCESS_SETTING_H

/* NULL: not set. Valid until the next setting_put of this variable. */
const char *setting_of(const char *variable);

/* Puts a value in place of the environment's; an empty one: it is not set, whatever stands there.
 * `variable` stays valid. MPI_ERR_NO_MEM. */
int setting_put(const char *variable, const char *value);

#endif
