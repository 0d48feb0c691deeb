/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/control/preflight.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/near.h"
#include "daemon/cluster/auth.h"
#include "daemon/config_seed.h"
#include "daemon/net/net_drivers.h"

struct preflight {
    const struct config *config;
    config_report_fn *report;
    void *ctx;
    int n;
};

static void preflight_complain(struct preflight *p, const struct config_channel *channel,
                               const char *key, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void preflight_complain(struct preflight *p, const struct config_channel *channel,
                               const char *key, const char *fmt, ...)
{
    const struct config_origin *origin = config_origin(p->config, channel, key);
    char line[1024];
    int n = 0;
    va_list ap;

    if (origin->line > 0)
        n = snprintf(line, sizeof line, "%s:%d: ", origin->file, origin->line);
    if (channel)
        n += snprintf(line + n, sizeof line - (size_t)n, "channel %s: ", channel->name);
    va_start(ap, fmt);
    vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
    va_end(ap);
    p->report(p->ctx, line);
    p->n++;
}

static void preflight_key(struct preflight *p)
{
    struct auth_key key;
    char why[256];

    if (p->config->n_channels > 0 && p->config->key_file[0] != '\0' &&
        auth_load_key(p->config->key_file, &key, why, sizeof why) < 0)
        preflight_complain(p, NULL, "key_file", "%s", why);
    explicit_bzero(&key, sizeof key);
}

static void preflight_spawner(struct preflight *p)
{
    const char *path = p->config->spawner;
    struct stat st;

    if (stat(path, &st) < 0 || access(path, X_OK) < 0)
        preflight_complain(p, NULL, "spawner", "spawner = %s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        preflight_complain(p, NULL, "spawner", "spawner = %s: expected a program", path);
}

static void preflight_seeds(struct preflight *p, const struct config_channel *ch)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const char *at = ch->seeds, *why;
    struct config_seed seed;
    int rc;

    while ((rc = config_seed_next(&at, (uint32_t)ch->port, &seed, &why)) != 0) {
        struct addrinfo *found = NULL;
        if (rc < 0)
            continue;
        int error = getaddrinfo(seed.host, NULL, &hints, &found);
        if (error != 0)
            preflight_complain(p, ch, "seeds", "seeds: %s cannot be looked up: %s", seed.host,
                               error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
        else
            freeaddrinfo(found);
    }
}

/* A provider that is looked for among those that there are. */
struct preflight_provider {
    const char *name;
    bool found;
    unsigned distance;
    char near[64], all[512];
};

static bool preflight_ports_ours(const char *provider)
{
    return provider[0] == '\0' || strcmp(provider, "auto") == 0 || strcmp(provider, "tcp") == 0 ||
           strcmp(provider, "udp") == 0;
}

static void preflight_on_provider(void *ctx, const char *name)
{
    struct preflight_provider *look = ctx;
    unsigned distance = near_distance(look->name, name);
    size_t n = strlen(look->all);

    look->found |= strcmp(look->name, name) == 0;
    if (distance < look->distance) {
        look->distance = distance;
        snprintf(look->near, sizeof look->near, " (did you mean %s?)", name);
    }
    snprintf(look->all + n, sizeof look->all - n, "%s%s", n ? ", " : "", name);
}

static void preflight_provider(struct preflight *p, const struct config_channel *ch)
{
    if (ch->data_port != 0 && !preflight_ports_ours(ch->provider))
        preflight_complain(p, ch, "data_port", "data_port: provider %s chooses its ports itself",
                           ch->provider);
    struct preflight_provider look = {.name = ch->provider, .distance = NEAR_NONE};

    if (ch->provider[0] == '\0' || strcmp(ch->provider, "auto") == 0)
        return;
    net_drivers_list_providers(preflight_on_provider, &look);
    if (!look.found)
        preflight_complain(p, ch, "provider",
                           "provider = %s: unknown on this host%s; there are: %s", ch->provider,
                           look.near, look.all);
}

int preflight(const struct config *config, config_report_fn *report, void *ctx)
{
    struct preflight p = {.config = config, .report = report, .ctx = ctx};

    preflight_key(&p);
    preflight_spawner(&p);
    for (int i = 0; i < config->n_channels; i++) {
        preflight_provider(&p, &config->channels[i]);
        preflight_seeds(&p, &config->channels[i]);
    }
    return p.n > 0 ? -EINVAL : 0;
}
