/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a name that is not known was meant for one that is. */
#pragma once

#define NEAR_NONE 100u

/*
 * Letters left out, put in, exchanged or swapped with their neighbour to come from one to the other
 * (F. Damerau, "A technique for computer detection and correction of spelling errors", 1964);
 * NEAR_NONE when it takes more than a third of the shorter name, or either is longer than 31.
 */
unsigned near_distance(const char *a, const char *b);
