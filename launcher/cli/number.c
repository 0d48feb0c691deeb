/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/cli/number.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

int number_parse(const char *text, size_t n, uint32_t low, uint32_t high, uint32_t *ret_value)
{
    uint64_t value = 0;

    if (n == 0 || n > 10)
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -EINVAL;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    if (value < low || value > high)
        return -EINVAL;
    *ret_value = (uint32_t)value;
    return 0;
}

int number_parse_seconds(const char *text, uint64_t *ret_ns)
{
    size_t whole = strcspn(text, ".");
    uint32_t seconds = 0;
    uint64_t ns = 0, unit = CLOCK_NS_PER_S / 10;

    if (number_parse(text, whole, 0, 315360000u, &seconds) < 0)
        return -EINVAL;
    if (text[whole] == '.') {
        for (const char *p = text + whole + 1; *p; p++, unit /= 10) {
            if (*p < '0' || *p > '9')
                return -EINVAL;
            ns += unit * (uint64_t)(*p - '0');
        }
    }
    ns += seconds * CLOCK_NS_PER_S;
    if (ns == 0)
        return -EINVAL;
    *ret_ns = ns;
    return 0;
}
