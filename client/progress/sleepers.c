/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/progress/sleepers.h"

#include "client/client.h"
#include "client/transport/transport.h"

static struct sleepers sleepers_first;
struct sleepers *sleepers_here = &sleepers_first;
CLIENT_PART(sleepers_here, sleepers_first);

void sleepers_wake_now(void)
{
    inbox_wake_all();
}
