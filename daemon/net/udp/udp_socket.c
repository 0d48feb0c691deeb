/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/net/udp/udp_socket.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/net/block.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define BUNDLES      8u
#define BUNDLE_BYTES 65536u
#define MESSAGES     64u
/* Kernels before 6.9 segment no more at once. */
#define SEGMENTS_MAX 64u
#define SEND_BYTES   65000u
#define SOCKET_BYTES (8 << 20)
#define PAYLOAD_MAX  65507u

union control {
    struct cmsghdr header;
    uint8_t bytes[CMSG_SPACE(sizeof(int))];
};

struct udp_socket {
    int fd;
    bool gso, gro;
    uint32_t room;
    /* Read and not taken. */
    uint32_t n_in, at, off, step;
    struct mmsghdr in[BUNDLES];
    struct iovec in_iov[BUNDLES];
    struct sockaddr_storage from[BUNDLES];
    union control in_control[BUNDLES];
    /* One batch on its way out. */
    struct mmsghdr out[MESSAGES];
    uint32_t out_first[MESSAGES + 1]; /* datagrams before each message */
    struct iovec out_iov[2 * UDP_SOCKET_OUTS];
    union control out_control[MESSAGES];
    uint8_t buffers[BUNDLES][BUNDLE_BYTES];
};

static void udp_socket_size(struct udp_socket *s)
{
    const int want = SOCKET_BYTES;
    int have = 0;
    socklen_t len = sizeof have;

    if (setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof want) < 0)
        setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof want);
    getsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &have, &len);
    /* The kernel counts its own records, which are more than half of what it says. */
    s->room = have > 0 ? (uint32_t)have / 3 : 65536;
}

int udp_socket_open(const struct sockaddr *address, socklen_t len, struct udp_socket **ret_socket,
                    const char **ret_what)
{
    struct udp_socket *s = calloc(1, sizeof *s);
    const int probe = IP_PMTUDISC_PROBE, one = 1, most = 1200;
    bool v6 = address->sa_family == AF_INET6;

    *ret_what = "memory";
    if (!s)
        return -ENOMEM;
    *ret_what = "socket";
    s->fd = socket(address->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0)
        goto fail;
    *ret_what = "bind";
    if (bind(s->fd, address, len) < 0)
        goto fail;
    *ret_what = "path MTU";
    if (setsockopt(s->fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
                   &probe, sizeof probe) < 0)
        goto fail;
    udp_socket_size(s);
    /* Asked by setting it; 0 sets it back. */
    int off = 0;
    s->gso = setsockopt(s->fd, IPPROTO_UDP, UDP_SEGMENT, &most, sizeof most) == 0 &&
             setsockopt(s->fd, IPPROTO_UDP, UDP_SEGMENT, &off, sizeof off) == 0;
    s->gro = setsockopt(s->fd, IPPROTO_UDP, UDP_GRO, &one, sizeof one) == 0;
    *ret_socket = s;
    return 0;

fail:;
    int rc = -errno;
    udp_socket_close(s);
    return rc;
}

void udp_socket_close(struct udp_socket *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

int udp_socket_fd(const struct udp_socket *s)
{
    return s->fd;
}

uint32_t udp_socket_room(const struct udp_socket *s)
{
    return s->room;
}

bool udp_socket_has_gso(const struct udp_socket *s)
{
    return s->gso;
}

bool udp_socket_has_gro(const struct udp_socket *s)
{
    return s->gro;
}

uint32_t udp_socket_mtu(const struct sockaddr *address)
{
    bool v6 = address->sa_family == AF_INET6;
    uint32_t mtu = 1500, heads = v6 ? 48 : 28;
    struct ifaddrs *list, *it;

    if (getifaddrs(&list) < 0)
        return mtu - heads;
    for (it = list; it; it = it->ifa_next) {
        if (!it->ifa_addr || it->ifa_addr->sa_family != address->sa_family)
            continue;
        bool same = v6 ? memcmp(&((const struct sockaddr_in6 *)(void *)it->ifa_addr)->sin6_addr,
                                &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                                sizeof(struct in6_addr)) == 0
                       : ((const struct sockaddr_in *)(void *)it->ifa_addr)->sin_addr.s_addr ==
                             ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr;
        struct ifreq req = {.ifr_mtu = 0};
        int fd = same ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
        if (fd < 0)
            continue;
        strncpy(req.ifr_name, it->ifa_name, sizeof req.ifr_name - 1);
        if (ioctl(fd, SIOCGIFMTU, &req) == 0 && req.ifr_mtu > 576)
            mtu = (uint32_t)req.ifr_mtu;
        close(fd);
    }
    freeifaddrs(list);
    return mtu - heads < PAYLOAD_MAX ? mtu - heads : PAYLOAD_MAX;
}

static uint32_t udp_socket_bytes(const struct udp_out *out)
{
    return out->n_mark + out->n_head + out->n_data;
}

/* Datagrams from the first of outs on that go as one message: to one peer, of one size but the
 * last, which may be shorter. */
static uint32_t udp_socket_run(const struct udp_socket *s, const struct udp_out *outs, uint32_t n)
{
    uint32_t size = udp_socket_bytes(outs), total = size, k = 1;

    while (s->gso && k < n && k < SEGMENTS_MAX && outs[k].peer == outs->peer) {
        uint32_t bytes = udp_socket_bytes(&outs[k]);
        if (bytes > size || total + bytes > SEND_BYTES)
            break;
        total += bytes;
        k++;
        if (bytes < size)
            break;
    }
    return k;
}

/* Messages for n datagrams, each with its addresses and pieces. Returns their number. */
static uint32_t udp_socket_build(struct udp_socket *s, const struct udp_end *end,
                                 const struct arena *arena, const struct udp_out *outs, uint32_t n)
{
    uint32_t n_out = 0, n_iov = 0, i = 0;

    while (i < n && n_out < MESSAGES) {
        uint32_t k = udp_socket_run(s, outs + i, n - i), len;
        struct msghdr *m = &s->out[n_out].msg_hdr;
        *m = (struct msghdr){.msg_iov = &s->out_iov[n_iov]};
        m->msg_name = (void *)(uintptr_t)udp_end_peer_address(end, outs[i].peer, &len);
        m->msg_namelen = len;
        if (k > 1) {
            union control *c = &s->out_control[n_out];
            uint16_t size = (uint16_t)udp_socket_bytes(&outs[i]);
            m->msg_control = c;
            m->msg_controllen = CMSG_SPACE(sizeof size);
            c->header.cmsg_level = IPPROTO_UDP;
            c->header.cmsg_type = UDP_SEGMENT;
            c->header.cmsg_len = CMSG_LEN(sizeof size);
            memcpy(CMSG_DATA(&c->header), &size, sizeof size);
        }
        s->out_first[n_out++] = i;
        for (uint32_t end_i = i + k; i < end_i; i++) {
            const struct udp_out *o = &outs[i];
            s->out_iov[n_iov++] =
                (struct iovec){(uint8_t *)(uintptr_t)o->head - o->n_mark, o->n_mark + o->n_head};
            if (o->n_data > 0)
                s->out_iov[n_iov++] = (struct iovec){
                    (uint8_t *)(uintptr_t)(o->copy ? o->copy : arena_at(arena, o->block)) +
                        o->offset,
                    o->n_data};
        }
        m->msg_iovlen = (size_t)(&s->out_iov[n_iov] - m->msg_iov);
    }
    s->out_first[n_out] = i;
    return n_out;
}

uint32_t udp_socket_send(struct udp_socket *s, const struct udp_end *end, const struct arena *arena,
                         const struct udp_out *outs, uint32_t n)
{
    uint32_t done = 0;

    while (done < n) {
        uint32_t n_out = udp_socket_build(s, end, arena, outs + done, n - done);
        int sent = sendmmsg(s->fd, s->out, n_out, MSG_DONTWAIT);
        if (sent > 0) {
            done += s->out_first[sent];
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
            break;
        bool bundled = s->out_first[1] > 1;
        if (bundled && (errno == EIO || errno == EINVAL || errno == EOPNOTSUPP)) {
            log_info("udp: the kernel does not segment for this device: %s, sending one by one",
                     strerror(errno));
            s->gso = false;
            continue;
        }
        /* Lost, as on any network: too large for the interface, no route, refused by a filter. */
        done += s->out_first[1];
    }
    return done;
}

uint32_t udp_socket_receive(struct udp_socket *s)
{
    for (uint32_t i = 0; i < BUNDLES; i++) {
        s->in_iov[i] = (struct iovec){s->buffers[i], BUNDLE_BYTES};
        s->in[i].msg_hdr = (struct msghdr){.msg_name = &s->from[i],
                                           .msg_namelen = sizeof s->from[i],
                                           .msg_iov = &s->in_iov[i],
                                           .msg_iovlen = 1,
                                           .msg_control = s->gro ? &s->in_control[i] : NULL,
                                           .msg_controllen = s->gro ? sizeof s->in_control[i] : 0};
    }
    int n = recvmmsg(s->fd, s->in, BUNDLES, MSG_DONTWAIT, NULL);
    s->n_in = n > 0 ? (uint32_t)n : 0;
    s->at = s->off = s->step = 0;
    return s->n_in;
}

/* Bytes of each datagram in a bundle. */
static uint32_t udp_socket_step(struct msghdr *m, uint32_t len)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        int size;
        if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO)
            continue;
        memcpy(&size, CMSG_DATA(c), sizeof size);
        if (size > 0 && (uint32_t)size < len)
            return (uint32_t)size;
    }
    return len;
}

bool udp_socket_has_next(const struct udp_socket *s)
{
    return s->at < s->n_in;
}

uint8_t *udp_socket_next(struct udp_socket *s, uint32_t *ret_len,
                         const struct sockaddr_storage **ret_from, socklen_t *ret_from_len)
{
    while (s->at < s->n_in) {
        struct mmsghdr *m = &s->in[s->at];
        uint32_t len = m->msg_len;
        if (s->off == 0)
            s->step = m->msg_hdr.msg_flags & MSG_TRUNC ? 0 : udp_socket_step(&m->msg_hdr, len);
        if (s->step == 0 || s->off >= len) {
            s->at++;
            s->off = 0;
            continue;
        }
        uint8_t *data = s->buffers[s->at] + s->off;
        *ret_len = len - s->off < s->step ? len - s->off : s->step;
        *ret_from = &s->from[s->at];
        *ret_from_len = m->msg_hdr.msg_namelen;
        s->off += *ret_len;
        if (s->off >= len) {
            s->at++;
            s->off = 0;
        }
        return data;
    }
    return NULL;
}
