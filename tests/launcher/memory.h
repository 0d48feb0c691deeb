/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that runs out: the tests that link this (with --wrap, see meson.build) say how many
 * allocations of the code under test still succeed. */
#ifndef TESTS_LAUNCHER_MEMORY_H
#define TESTS_LAUNCHER_MEMORY_H

/* Calls of calloc, realloc and strndup that still succeed; -1: all. */
extern long memory_until_none;

#endif
