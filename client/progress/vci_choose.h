/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bindings of the short path: take the lock of the vci that the object of a call has, or the
 * library lock (NULL). vci_leave gives either back.
 */
#ifndef MOTET_CLIENT_PROGRESS_VCI_CHOOSE_H
#define MOTET_CLIENT_PROGRESS_VCI_CHOOSE_H

#include <stdint.h>

#include "client/progress/vci.h"

struct vci *vci_choose_comm(uintptr_t comm);
struct vci *vci_choose_request(uintptr_t request);
/* Requests of several vcis: the library lock. */
struct vci *vci_choose_requests(const uintptr_t *requests, long long n);

#endif
