/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of interfaces, as the network drivers bind to them, and of peers. Used while endpoints
 * and connections are opened. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* First address of an interface as numeric text: IPv4 if it has one. 0, -EADDRNOTAVAIL, or another
 * negative errno. */
int address_of_interface(const char *interface, char *ret_text, size_t n);

/* The socket address behind numeric text, port 0. 0 or -EINVAL. */
int address_parse(const char *text, struct sockaddr_storage *ret_address, socklen_t *ret_len);

/* The address that a channel binds to, with this port (0: any): as configured, else the first one
 * of its interface, else loopback. 0, or negative errno and what failed. */
int address_to_bind(const char *address, const char *interface, uint16_t port,
                    struct sockaddr_storage *ret_address, socklen_t *ret_len,
                    const char **ret_what);

/* Is a socket address of len bytes, as a peer named it, on the host that this one is on? */
bool address_same_host(const struct sockaddr_storage *a, const void *b, size_t len);

/* Host and port of an address for people. */
void address_text(const void *address, char *ret_text, size_t n);
