/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

int address_of_interface(const char *interface, char *ret_text, size_t n)
{
    struct ifaddrs *all;
    int rc = -EADDRNOTAVAIL;

    if (getifaddrs(&all) < 0)
        return -errno;
    for (int pass = 0; pass < 2 && rc < 0; pass++) {
        for (struct ifaddrs *a = all; a && rc < 0; a = a->ifa_next) {
            int family = pass == 0 ? AF_INET : AF_INET6;
            if (!a->ifa_addr || a->ifa_addr->sa_family != family ||
                strcmp(a->ifa_name, interface) != 0)
                continue;
            const void *ip = family == AF_INET
                                 ? (void *)&((struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr
                                 : (void *)&((struct sockaddr_in6 *)(void *)a->ifa_addr)->sin6_addr;
            if (inet_ntop(family, ip, ret_text, (socklen_t)n))
                rc = 0;
        }
    }
    freeifaddrs(all);
    return rc;
}

int address_parse(const char *text, struct sockaddr_storage *ret_address, socklen_t *ret_len)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_PASSIVE, .ai_socktype = SOCK_STREAM},
                    *list = NULL;

    if (getaddrinfo(text, "0", &hints, &list) != 0 || !list ||
        list->ai_addrlen > sizeof *ret_address) {
        if (list)
            freeaddrinfo(list);
        return -EINVAL;
    }
    memset(ret_address, 0, sizeof *ret_address);
    memcpy(ret_address, list->ai_addr, list->ai_addrlen);
    *ret_len = list->ai_addrlen;
    freeaddrinfo(list);
    return 0;
}

int address_to_bind(const char *address, const char *interface, uint16_t port,
                    struct sockaddr_storage *ret_address, socklen_t *ret_len, const char **ret_what)
{
    char text[INET6_ADDRSTRLEN];

    *ret_what = "address of the interface";
    if (!address && interface) {
        int rc = address_of_interface(interface, text, sizeof text);
        if (rc < 0)
            return rc;
        address = text;
    }
    *ret_what = "address";
    int rc = address_parse(address ? address : "127.0.0.1", ret_address, ret_len);
    if (rc == 0 && ret_address->ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)ret_address)->sin_port = htons(port);
    else if (rc == 0)
        ((struct sockaddr_in6 *)(void *)ret_address)->sin6_port = htons(port);
    return rc;
}

bool address_same_host(const struct sockaddr_storage *a, const void *b, size_t len)
{
    struct sockaddr_storage other = {0};

    if (len > sizeof other)
        return false;
    memcpy(&other, b, len);
    if (a->ss_family != other.ss_family)
        return false;
    if (a->ss_family == AF_INET && len >= sizeof(struct sockaddr_in))
        return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
               ((struct sockaddr_in *)(void *)&other)->sin_addr.s_addr;
    if (a->ss_family == AF_INET6 && len >= sizeof(struct sockaddr_in6))
        return memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                      &((struct sockaddr_in6 *)(void *)&other)->sin6_addr,
                      sizeof(struct in6_addr)) == 0;
    return false;
}

void address_text(const void *address, char *ret_text, size_t n)
{
    struct sockaddr_storage a;
    char host[64] = "?";

    /* What a driver or the kernel keeps is as long as that. */
    memcpy(&a, address, sizeof a);
    const void *ip = a.ss_family == AF_INET
                         ? (const void *)&((struct sockaddr_in *)(void *)&a)->sin_addr
                         : (const void *)&((struct sockaddr_in6 *)(void *)&a)->sin6_addr;
    unsigned port = a.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)(void *)&a)->sin_port)
                                           : ntohs(((struct sockaddr_in6 *)(void *)&a)->sin6_port);
    if (a.ss_family == AF_INET || a.ss_family == AF_INET6)
        inet_ntop(a.ss_family, ip, host, sizeof host);
    snprintf(ret_text, n, a.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host, port);
}
