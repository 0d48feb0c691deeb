/* SPDX-License-Identifier: BSD-3-Clause */
/* What of this rank's memory a window opens: bounds, and the attached pieces of a dynamic one. */
#ifndef MOTET_CLIENT_RMA_REGION_H
#define MOTET_CLIENT_RMA_REGION_H

#include "client/rma/pieces.h"
#include "client/rma/win.h"

/* Whether all pieces lie in this rank's memory of the window. */
bool region_has(const struct win *win, const struct pieces *pieces);

#endif
