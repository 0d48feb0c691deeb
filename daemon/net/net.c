/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/net.h"

#include "daemon/net/ofi_load.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Does the system know a device of this class? */
static bool has_device(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *entry;
    bool found = false;

    while (d && !found && (entry = readdir(d)) != NULL)
        found = entry->d_name[0] != '.';
    if (d)
        closedir(d);
    return found;
}

/* A device of this interface that a fabric provider can use: they register it as a child of the
 * same hardware. */
static bool has_fabric(const char *interface)
{
    static const char *const classes[] = {"infiniband", "infiniband_verbs", "cxi_user",
                                          "hfi1_user"};
    char path[256];

    for (size_t i = 0; interface && i < sizeof classes / sizeof *classes; i++) {
        snprintf(path, sizeof path, "/sys/class/net/%s/device/%s", interface, classes[i]);
        if (has_device(path))
            return true;
    }
    return false;
}

const struct net_driver *net_pick(const struct net_config *config)
{
    const char *provider = config->provider && config->provider[0] ? config->provider : "auto";

    if (strcmp(provider, "tcp") == 0)
        return &net_tcp;
    if (strcmp(provider, "auto") == 0)
        return has_fabric(config->interface) ? &net_ofi : &net_tcp;
    return &net_ofi;
}

void net_list_providers(void (*each)(void *ctx, const char *provider), void *ctx)
{
    each(ctx, "tcp");
    ofi_list(each, ctx);
}
