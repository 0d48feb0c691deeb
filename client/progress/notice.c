/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/progress/notice.h"

#include "client/client.h"

static struct notice_state notice_first;
struct notice_state *notice_here = &notice_first;
CLIENT_PART(notice_here, notice_first);
