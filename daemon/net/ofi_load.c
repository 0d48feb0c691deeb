/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/ofi_load.h"

#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"

static struct ofi functions;

static void *ofi_symbol(void *library, const char *name)
{
    void *address = dlsym(library, name);

    if (!address)
        log_error("libfabric.so.1 has no %s", name);
    return address;
}

/* A library that libfabric brings along for old InfiniPath cards catches fatal signals and writes a
 * report into the current directory. A crash of the daemon is the daemon's, with a core file, and
 * SIGTERM is its own. */
static void *ofi_open_library(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE, SIGINT, SIGTERM};
    struct sigaction before[sizeof signals / sizeof *signals];

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], NULL, &before[i]);
    void *library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &before[i], NULL);
    return library;
}

const struct ofi *ofi_load(void)
{
    static void *library;

    if (library)
        return &functions;
    library = ofi_open_library();
    if (!library) {
        log_error("cannot load libfabric: %s", dlerror());
        return NULL;
    }
    /* POSIX permits the conversion that ISO C forbids. */
    *(void **)&functions.getinfo = ofi_symbol(library, "fi_getinfo");
    *(void **)&functions.freeinfo = ofi_symbol(library, "fi_freeinfo");
    *(void **)&functions.dupinfo = ofi_symbol(library, "fi_dupinfo");
    *(void **)&functions.fabric = ofi_symbol(library, "fi_fabric");
    *(void **)&functions.strerror = ofi_symbol(library, "fi_strerror");
    if (!functions.getinfo || !functions.freeinfo || !functions.dupinfo || !functions.fabric ||
        !functions.strerror) {
        dlclose(library);
        library = NULL;
        return NULL;
    }
    return &functions;
}

void ofi_list(void (*each)(void *ctx, const char *provider), void *ctx)
{
    const struct ofi *ofi = ofi_load();
    struct fi_info *all = NULL;

    if (!ofi || ofi->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &all) < 0)
        return;
    for (const struct fi_info *i = all; i; i = i->next) {
        const char *name = i->fabric_attr->prov_name;
        const struct fi_info *before = all;
        while (before != i && strcmp(before->fabric_attr->prov_name, name) != 0)
            before = before->next;
        if (before == i)
            each(ctx, strcmp(name, "tcp") == 0   ? "ofi-tcp"
                      : strcmp(name, "udp") == 0 ? "ofi-udp"
                                                 : name);
    }
    ofi->freeinfo(all);
}
