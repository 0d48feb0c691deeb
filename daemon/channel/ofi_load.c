/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/channel/ofi_load.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "base/log.h"

static struct ofi functions;

/* POSIX permits the conversion that ISO C forbids. */
static void *symbol(void *library, const char *name, const char *version)
{
    void *address = dlvsym(library, name, version);

    if (!address)
        log_error("libfabric.so.1 has no %s@%s", name, version);
    return address;
}

const struct ofi *ofi_load(void)
{
    static void *library;

    if (library)
        return &functions;
    /* libinfinipath shall leave the signal handlers alone. */
    setenv("IPATH_NO_BACKTRACE", "1", 1);
    library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        log_error("cannot load libfabric: %s", dlerror());
        return NULL;
    }
    /* The versions of the interface that rdma/fabric.h of this build describes. */
    *(void **)&functions.getinfo = symbol(library, "fi_getinfo", OFI_INFO_VERSION);
    *(void **)&functions.freeinfo = symbol(library, "fi_freeinfo", OFI_INFO_VERSION);
    *(void **)&functions.dupinfo = symbol(library, "fi_dupinfo", OFI_INFO_VERSION);
    *(void **)&functions.fabric = symbol(library, "fi_fabric", "FABRIC_1.1");
    *(void **)&functions.strerror = symbol(library, "fi_strerror", "FABRIC_1.0");
    if (!functions.getinfo || !functions.freeinfo || !functions.dupinfo || !functions.fabric || !functions.strerror) {
        dlclose(library);
        library = NULL;
        return NULL;
    }
    return &functions;
}
