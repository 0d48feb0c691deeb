/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A UDP socket used in batches: many datagrams in one system call, and many in one pass through the
 * kernel where it segments and joins them (UDP_SEGMENT since Linux 4.18, UDP_GRO since 5.0; asked
 * at open, and given up when a device refuses). Datagrams are never fragmented by IP.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/net/udp/udp_end.h"

#define UDP_SOCKET_OUTS 256u /* datagrams of one batch */

struct udp_socket;

/* Binds to this address. 0 or negative errno, with what failed. */
int udp_socket_open(const struct sockaddr *address, socklen_t len, struct udp_socket **ret_socket,
                    const char **ret_what);
void udp_socket_close(struct udp_socket *s);
int udp_socket_fd(const struct udp_socket *s);
/* Bytes of small datagrams that it surely holds until they are read. */
uint32_t udp_socket_room(const struct udp_socket *s);
bool udp_socket_has_gso(const struct udp_socket *s);
bool udp_socket_has_gro(const struct udp_socket *s);
/* Payload of the largest datagram that leaves the interface with this address whole. */
uint32_t udp_socket_mtu(const struct sockaddr *address);

/* Sends those in order. Returns how many the kernel took, or lost by an error of its own. */
uint32_t udp_socket_send(struct udp_socket *s, const struct udp_end *end, const struct arena *arena,
                         const struct udp_out *outs, uint32_t n);
/* Reads what is there into the socket's own memory. Number of datagrams' bundles, 0: nothing. */
uint32_t udp_socket_receive(struct udp_socket *s);
/* The next datagram of what was read; NULL: none is left. */
uint8_t *udp_socket_next(struct udp_socket *s, uint32_t *ret_len,
                         const struct sockaddr_storage **ret_from, socklen_t *ret_from_len);
/* Is there something read and not yet taken? */
bool udp_socket_has_next(const struct udp_socket *s);
