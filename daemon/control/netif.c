/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/control/netif.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MBYTES_PER_S 1000

static void complain(const struct config_channel *ch, config_report_fn *report, void *ctx,
                     const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static void complain(const struct config_channel *ch, config_report_fn *report, void *ctx,
                     const char *fmt, ...)
{
    char line[1024];
    int n = snprintf(line, sizeof line, "%s:%d: channel %s: ", ch->origin.file, ch->origin.line,
                     ch->name);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
    va_end(ap);
    report(ctx, line);
}

/* An address as 16 bytes; IPv4 in its mapped form. Bits of its family, or 0. */
static int address_bytes(const struct sockaddr *sa, uint8_t out[16])
{
    memset(out, 0, 16);
    if (sa && sa->sa_family == AF_INET) {
        memcpy(out, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
        return 32;
    }
    if (sa && sa->sa_family == AF_INET6) {
        memcpy(out, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
        return 128;
    }
    return 0;
}

static int cidr_parse(const char *text, uint8_t out[16], int *ret_bits, int *ret_prefix)
{
    char host[CONFIG_NAME_BYTES];
    const char *slash = strchr(text, '/');
    char *end;

    if (!slash || (size_t)(slash - text) >= sizeof host)
        return -EINVAL;
    memcpy(host, text, (size_t)(slash - text));
    host[slash - text] = '\0';
    memset(out, 0, 16);
    if (inet_pton(AF_INET, host, out) == 1)
        *ret_bits = 32;
    else if (inet_pton(AF_INET6, host, out) == 1)
        *ret_bits = 128;
    else
        return -EINVAL;
    long prefix = strtol(slash + 1, &end, 10);
    if (end == slash + 1 || *end != '\0' || prefix < 0 || prefix > *ret_bits)
        return -EINVAL;
    *ret_prefix = (int)prefix;
    return 0;
}

static bool in_range(const uint8_t *a, const uint8_t *net, int prefix)
{
    int whole = prefix / 8, rest = prefix % 8;

    if (memcmp(a, net, (size_t)whole) != 0)
        return false;
    return rest == 0 || ((a[whole] ^ net[whole]) >> (8 - rest)) == 0;
}

static void list_interfaces(const struct ifaddrs *all, bool with_addresses, char *out, size_t size)
{
    size_t at = 0;

    out[0] = '\0';
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        char host[NI_MAXHOST] = "";
        if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET &&
                             !(i->ifa_addr->sa_family == AF_INET6 && with_addresses)))
            continue;
        socklen_t len = i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                          : sizeof(struct sockaddr_in6);
        if (with_addresses)
            getnameinfo(i->ifa_addr, len, host, sizeof host, NULL, 0, NI_NUMERICHOST);
        int n = snprintf(out + at, size - at, "%s%s%s%s", at ? ", " : "", i->ifa_name,
                         with_addresses ? " " : "", host);
        if (n < 0 || (size_t)n >= size - at)
            return;
        at += (size_t)n;
    }
}

static uint64_t interface_mbytes(const char *name)
{
    char path[128];
    long mbits = 0;

    snprintf(path, sizeof path, "/sys/class/net/%.40s/speed", name);
    FILE *f = fopen(path, "re");
    if (f) {
        if (fscanf(f, "%ld", &mbits) != 1)
            mbits = 0;
        fclose(f);
    }
    return mbits > 0 ? (uint64_t)mbits / 8 : DEFAULT_MBYTES_PER_S;
}

/* The first address of the interface, IPv4 before IPv6; or the one in the range. */
static const struct ifaddrs *choose(const struct config_channel *ch, const struct ifaddrs *all,
                                    int prefix, int bits, const uint8_t *net)
{
    const struct ifaddrs *found = NULL;

    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        uint8_t address[16];
        int family = address_bytes(i->ifa_addr, address);
        if (family == 0)
            continue;
        if (ch->interface[0] ? strcmp(i->ifa_name, ch->interface) != 0
                             : family != bits || !in_range(address, net, prefix))
            continue;
        if (family == 128 && address[0] == 0xfe && (address[1] & 0xc0) == 0x80)
            continue; /* link-local: needs a scope that other nodes cannot know */
        if (family == 32)
            return i;
        if (!found)
            found = i;
    }
    return found;
}

static int resolve_one(struct config_channel *ch, const struct ifaddrs *all,
                       config_report_fn *report, void *ctx)
{
    uint8_t net[16];
    int bits = 0, prefix = 0;
    char known[512];

    if (ch->cidr[0] && cidr_parse(ch->cidr, net, &bits, &prefix) < 0) {
        complain(ch, report, ctx, "cidr = %s: expected ADDRESS/BITS, for instance 10.1.0.0/24",
                 ch->cidr);
        return -ENODEV;
    }
    const struct ifaddrs *i = choose(ch, all, prefix, bits, net);
    if (!i && ch->cidr[0]) {
        list_interfaces(all, true, known, sizeof known);
        complain(ch, report, ctx, "no interface has an address in %s; there are: %s", ch->cidr,
                 known);
        return -ENODEV;
    }
    if (!i) {
        list_interfaces(all, false, known, sizeof known);
        complain(ch, report, ctx, "interface %s %s; there are: %s", ch->interface,
                 if_nametoindex(ch->interface) ? "has no address" : "does not exist", known);
        return -ENODEV;
    }
    socklen_t len = i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                      : sizeof(struct sockaddr_in6);
    if (getnameinfo(i->ifa_addr, len, ch->address, sizeof ch->address, NULL, 0, NI_NUMERICHOST) !=
        0) {
        complain(ch, report, ctx, "the address of interface %s cannot be written down",
                 i->ifa_name);
        return -ENODEV;
    }
    snprintf(ch->resolved_interface, sizeof ch->resolved_interface, "%s", i->ifa_name);
    if (ch->mbytes_per_s == 0)
        ch->mbytes_per_s = interface_mbytes(i->ifa_name);
    return 0;
}

int netif_resolve(struct config *config, config_report_fn *report, void *ctx)
{
    struct ifaddrs *all;
    int rc = 0;

    if (config->n_channels == 0)
        return 0;
    if (getifaddrs(&all) < 0)
        return -errno;
    for (int i = 0; i < config->n_channels; i++) {
        struct config_channel *ch = &config->channels[i];
        int one = resolve_one(ch, all, report, ctx);
        rc = rc < 0 ? rc : one;
        for (int other = 0; one == 0 && other < i; other++) {
            if (strcmp(config->channels[other].address, ch->address) == 0) {
                complain(ch, report, ctx, "has the same address %s as channel %s", ch->address,
                         config->channels[other].name);
                rc = -ENODEV;
            }
        }
    }
    freeifaddrs(all);
    return rc;
}
