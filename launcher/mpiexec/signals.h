/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals of mpiexec as data in its poll loop. The handlers only write to a pipe; they do not
 * restart system calls, so that even a write that blocks is left on Ctrl-C. One process, one loop.
 */
#pragma once

/* Catches INT, TERM, USR1, USR2, TSTP and CONT (those that were not ignored when the program
 * started) and ignores PIPE and TTIN. 0 or -errno. */
int signals_catch(void);
/* Readable when signals_take has something. */
int signals_fd(void);
/* The next signal, 0 when there is none. */
int signals_take(void);
