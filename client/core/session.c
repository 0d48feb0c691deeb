/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/core/session.h"

#include "client/core/errhandler.h"
#include "client/core/handle.h"

#include <stdlib.h>

void session_unref(struct session *session)
{
    if (!session || !object_unref(&session->obj))
        return;
    handle_free(&session->obj);
    errhandler_unref(session->errhandler);
    free(session);
}
