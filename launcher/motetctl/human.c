/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/human.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"

/* Three significant digits. */
static void human_scaled(double value, const char *unit, char text[HUMAN_ROOM])
{
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(text, HUMAN_ROOM, "%.*f %s", decimals, value, unit);
}

void human_bytes(uint64_t bytes, char text[HUMAN_ROOM])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;

    for (; value >= 999.5 && unit + 1 < sizeof units / sizeof *units && (unit > 0 || bytes >= 1024);
         unit++)
        value /= 1024;
    if (unit == 0)
        snprintf(text, HUMAN_ROOM, "%" PRIu64 " B", bytes);
    else
        human_scaled(value, units[unit], text);
}

void human_duration(int64_t ns, char text[HUMAN_ROOM])
{
    static const struct {
        int64_t seconds;
        const char *big, *small;
        int64_t small_seconds;
    } pairs[] = {{86400, "d", "h", 3600}, {3600, "h", "min", 60}, {60, "min", "s", 1}};
    const int64_t s = ns / (int64_t)CLOCK_NS_PER_S;

    if (ns < 0) {
        snprintf(text, HUMAN_ROOM, "%.3g s", (double)ns / 1e9);
        return;
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (s >= pairs[i].seconds) {
            snprintf(text, HUMAN_ROOM, "%" PRId64 " %s %" PRId64 " %s", s / pairs[i].seconds,
                     pairs[i].big, s % pairs[i].seconds / pairs[i].small_seconds, pairs[i].small);
            return;
        }
    }
    if (ns < (int64_t)CLOCK_NS_PER_US)
        snprintf(text, HUMAN_ROOM, "%" PRId64 " ns", ns);
    else if (ns < (int64_t)CLOCK_NS_PER_MS)
        human_scaled((double)ns / 1e3, "us", text);
    else if (ns < (int64_t)CLOCK_NS_PER_S)
        human_scaled((double)ns / 1e6, "ms", text);
    else
        human_scaled((double)ns / 1e9, "s", text);
}
