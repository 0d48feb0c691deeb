/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/near.h"

#include <stddef.h>
#include <string.h>

#define NEAR_MAX 31u

static unsigned near_least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned near_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned d[NEAR_MAX + 1][NEAR_MAX + 1];

    if (n > NEAR_MAX || m > NEAR_MAX)
        return NEAR_NONE;
    for (unsigned i = 0; i <= n; i++)
        d[i][0] = i;
    for (unsigned j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            unsigned other = a[i - 1] != b[j - 1];
            d[i][j] = near_least(near_least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + other);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = near_least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[n][m] * 3 <= near_least((unsigned)n, (unsigned)m) ? d[n][m] : NEAR_NONE;
}
