/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/object/topo.h"

#include <stdlib.h>

struct topo *topo_new(int kind, long long n)
{
    struct topo *topo = calloc(1, sizeof *topo + (size_t)n * sizeof(int));
    if (topo) {
        topo->refs = 1;
        topo->kind = kind;
    }
    return topo;
}

void topo_unref(struct topo *topo)
{
    if (topo && --topo->refs == 0)
        free(topo);
}
