/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/routing/node_name.h"

#include <string.h>

#include "base/hash.h"

uint32_t node_name_id(const char *name)
{
    return hash_fnv1a(name, strlen(name));
}
