/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/progress/vci_choose.h"

#include <stddef.h>

#include "client/object/comm.h"
#include "client/object/handle.h"
#include "client/progress/request.h"

/* vci 0, a thread that is in the library already (a callback), and whoever has no threads: the
 * library lock. */
static struct vci *vci_choose_one(struct vci *vci)
{
    if (vci && vci->index != 0 && lock_here->mode == LOCK_THREADED && !lock_is_mine()) {
        vci_step_in(vci, 1);
        return vci;
    }
    lock_enter();
    return NULL;
}

struct vci *vci_choose_comm(uintptr_t comm)
{
    const struct comm *c = (const struct comm *)handle_get(OBJECT_COMM, comm);

    return vci_choose_one(c ? c->vci : NULL);
}

struct vci *vci_choose_request(uintptr_t request)
{
    const struct request *r = (const struct request *)handle_get(OBJECT_REQUEST, request);

    return vci_choose_one(r ? r->vci : NULL);
}

struct vci *vci_choose_requests(const uintptr_t *requests, long long n)
{
    struct vci *vci = NULL;

    for (long long i = 0; requests && i < n; i++) {
        const struct request *r = (const struct request *)handle_get(OBJECT_REQUEST, requests[i]);
        if (requests[i] == (uintptr_t)MPI_REQUEST_NULL)
            continue;
        if (!r || !r->vci || (vci && vci != r->vci))
            return vci_choose_one(NULL);
        vci = r->vci;
    }
    return vci_choose_one(vci);
}
