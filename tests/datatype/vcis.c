/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread and no job: nobody holds a vci alone. */
#include "client/progress/vci.h"

#include <stdlib.h>

struct vci *vci_alone(void)
{
    return NULL;
}

void vci_bury(struct object *object, void (*fn)(struct object *object))
{
    (void)object;
    (void)fn;
    abort();
}
