/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of interfaces, as the network drivers bind to them. Used while an endpoint opens. */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

/* First address of an interface as numeric text: IPv4 if it has one. 0, -EADDRNOTAVAIL, or another
 * negative errno. */
int address_of_interface(const char *interface, char *ret_text, size_t n);

/* The socket address behind numeric text, port 0. 0 or -EINVAL. */
int address_parse(const char *text, struct sockaddr_storage *ret_address, socklen_t *ret_len);
