/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/net_drivers.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "daemon/net/net_fault.h"
#include "daemon/net/net_frag.h"
#include "daemon/net/net_ofi.h"
#include "daemon/net/net_tcp.h"
#include "daemon/net/net_udp.h"
#include "daemon/net/ofi_load.h"

/* Does the system know a device of this class? */
static bool net_drivers_has_device(const char *dir)
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
static bool net_drivers_has_fabric(const char *interface)
{
    static const char *const classes[] = {"infiniband", "infiniband_verbs", "cxi_user",
                                          "hfi1_user"};
    char path[256];

    for (size_t i = 0; interface && i < sizeof classes / sizeof *classes; i++) {
        snprintf(path, sizeof path, "/sys/class/net/%s/device/%s", interface, classes[i]);
        if (net_drivers_has_device(path))
            return true;
    }
    return false;
}

static bool net_drivers_tcp_serves(const struct net_config *config, const char *provider)
{
    return strcmp(provider, "tcp") == 0 ||
           (strcmp(provider, "auto") == 0 && !net_drivers_has_fabric(config->interface));
}

static bool net_drivers_udp_serves(const struct net_config *config, const char *provider)
{
    (void)config;
    return strcmp(provider, "udp") == 0;
}

static bool net_drivers_ofi_serves(const struct net_config *config, const char *provider)
{
    (void)config;
    (void)provider;
    return true;
}

static void net_drivers_tcp_list(void (*each)(void *ctx, const char *provider), void *ctx)
{
    each(ctx, "tcp");
}

static void net_drivers_udp_list(void (*each)(void *ctx, const char *provider), void *ctx)
{
    each(ctx, "udp");
}

/* In the order in which they are asked. */
static const struct {
    const struct net_driver *driver;
    bool (*serves)(const struct net_config *config, const char *provider);
    void (*list)(void (*each)(void *ctx, const char *provider), void *ctx);
} net_drivers[] = {
    {&net_tcp, net_drivers_tcp_serves, net_drivers_tcp_list},
    {&net_udp, net_drivers_udp_serves, net_drivers_udp_list},
    {&net_ofi, net_drivers_ofi_serves, ofi_list},
};
#define N_DRIVERS (sizeof net_drivers / sizeof *net_drivers)

const struct net_driver *net_drivers_find(const char *name)
{
    for (size_t i = 0; i < N_DRIVERS; i++)
        if (strcmp(net_drivers[i].driver->name, name) == 0)
            return net_drivers[i].driver;
    return NULL;
}

const struct net_driver *net_drivers_pick(const struct net_config *config)
{
    const char *provider = config->provider && config->provider[0] ? config->provider : "auto";
    size_t i = 0;

    while (i < N_DRIVERS - 1 && !net_drivers[i].serves(config, provider))
        i++;
    return net_drivers[i].driver;
}

int net_drivers_open(const struct net_driver *driver, const struct net_config *config,
                     const char *fault, const struct arena *arena,
                     struct net_endpoint *ret_endpoint)
{
    struct net_endpoint e = {.driver = driver ? driver : net_drivers_pick(config)};
    struct net_config own = *config;

    /* What is to be lost below the driver's packets only the driver can lose. */
    if (e.driver == &net_udp && fault && fault[0])
        own.options = fault;
    int rc = e.driver->open(&own, arena, &e.net);
    if (rc < 0)
        return rc;
    e.driver->info(e.net, &e.info);
    /* Fragments, or packets of which the driver does not look after who sends them. */
    if (e.info.max_datagram < config->max_bytes ||
        (config->protect != SEAL_NONE && !(e.info.caps & NET_CAP_SEALS))) {
        const struct net_driver *inner = e.driver;
        inner->close(e.net);
        e.driver = &net_frag;
        rc = net_frag_open(inner, config, arena, &e.net);
        if (rc < 0)
            return rc;
    }
    if (fault && fault[0]) {
        rc = net_fault_wrap(&e.driver, &e.net, fault, arena);
        if (rc < 0) {
            e.driver->close(e.net);
            return rc;
        }
    }
    e.driver->info(e.net, &e.info);
    *ret_endpoint = e;
    return 0;
}

void net_drivers_list_providers(void (*each)(void *ctx, const char *provider), void *ctx)
{
    for (size_t i = 0; i < N_DRIVERS; i++)
        net_drivers[i].list(each, ctx);
}
