/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers of ranks that will do (MPI-5.0 section 11.8.4, "soft"): a list of triplets a:b:c, a to b
 * in steps of c (which may be negative), a:b for a:b:1, a for a:a:1, separated by commas.
 */
#pragma once

#include <stdint.h>

/* 0 or -EINVAL. */
int soft_check(const char *text);
/* The largest number of a checked list from 1 to high; 0: there is none. */
uint32_t soft_best(const char *text, uint32_t high);
