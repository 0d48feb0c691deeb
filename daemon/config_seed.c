/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/config_seed.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS ", \t"

/* Splits "host:port" and the like in place. *ret_port is NULL where there is none. */
static int config_seed_split(char *text, char **ret_host, char **ret_port)
{
    char *colon = strrchr(text, ':'), *close = strchr(text, ']');

    *ret_host = text;
    *ret_port = NULL;
    if (text[0] == '[') {
        if (!close || (close[1] != '\0' && close[1] != ':'))
            return -EINVAL;
        *ret_host = text + 1;
        *ret_port = close[1] == ':' ? close + 2 : NULL;
        *close = '\0';
    } else if (colon && strchr(text, ':') == colon) {
        *colon = '\0';
        *ret_port = colon + 1;
    }
    return 0;
}

int config_seed_next(const char **at, uint32_t port, struct config_seed *ret_seed,
                     const char **ret_why)
{
    char text[sizeof ret_seed->host + 16], *host, *port_text;
    const char *begin = *at + strspn(*at, SEPARATORS);
    size_t n = strcspn(begin, SEPARATORS);

    *at = begin + n;
    if (n == 0)
        return 0;
    *ret_why = "expected host, host:port or [address]:port";
    if (n >= sizeof text)
        return -EINVAL;
    memcpy(text, begin, n);
    text[n] = '\0';
    if (config_seed_split(text, &host, &port_text) < 0 || host[0] == '\0' ||
        strlen(host) >= sizeof ret_seed->host)
        return -EINVAL;
    for (const char *c = host; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(".-_:%", *c))
            return -EINVAL;
    if (port_text) {
        char *end;
        unsigned long value = strtoul(port_text, &end, 10);
        *ret_why = "expected a port from 1 to 65535 behind the colon";
        if (!isdigit((unsigned char)port_text[0]) || *end != '\0' || value < 1 || value > 65535)
            return -EINVAL;
        port = (uint32_t)value;
    }
    snprintf(ret_seed->host, sizeof ret_seed->host, "%s", host);
    ret_seed->port = port;
    return 1;
}
