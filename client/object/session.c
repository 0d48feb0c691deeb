/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/object/session.h"

#include "client/object/errhandler.h"
#include "client/object/handle.h"

#include <stdlib.h>

void session_unref(struct session *session)
{
    if (!session || !object_unref(&session->obj))
        return;
    handle_free(&session->obj);
    errhandler_unref(session->errhandler);
    free(session);
}
