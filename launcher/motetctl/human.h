/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantities as people read them, three digits or so. The text is complete in `room` of 32
 * bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HUMAN_ROOM 32

/* "0 B", "999 B", "1.50 KiB", "12.0 MiB". */
void human_bytes(uint64_t bytes, char text[HUMAN_ROOM]);
/* "850 ns", "1.25 ms", "12.3 s", "3 min 20 s", "2 h 5 min", "4 d 6 h". Negative ones as such
 * (clocks of two nodes). */
void human_duration(int64_t ns, char text[HUMAN_ROOM]);
