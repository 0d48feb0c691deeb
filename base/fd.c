/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

void fd_closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int fd_set_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

/* Waits until fd is ready for `events` or the deadline has passed. */
static int wait_ready(int fd, short events, uint64_t deadline_ns)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int timeout_ms = -1;
        if (deadline_ns != UINT64_MAX) {
            uint64_t now_ns = clock_now_ns();
            if (now_ns >= deadline_ns)
                return -ETIMEDOUT;
            uint64_t left_ms = (deadline_ns - now_ns) / CLOCK_NS_PER_MS + 1;
            timeout_ms = left_ms > 1000000 ? 1000000 : (int)left_ms;
        }
        int rc = poll(&p, 1, timeout_ms);
        if (rc > 0)
            return 0;
        if (rc < 0 && errno != EINTR)
            return -errno;
    }
}

int fd_read_full(int fd, void *buf, size_t n, uint64_t deadline_ns)
{
    char *p = buf;

    while (n > 0) {
        int rc = wait_ready(fd, POLLIN, deadline_ns);
        if (rc < 0)
            return rc;
        ssize_t got = read(fd, p, n);
        if (got == 0)
            return -ECONNRESET;
        if (got < 0) {
            if (errno == EINTR || errno == EAGAIN)
                continue;
            return -errno;
        }
        p += got;
        n -= (size_t)got;
    }
    return 0;
}

int fd_write_full(int fd, const void *buf, size_t n, uint64_t deadline_ns)
{
    const char *p = buf;

    while (n > 0) {
        int rc = wait_ready(fd, POLLOUT, deadline_ns);
        if (rc < 0)
            return rc;
        /* A blocking descriptor would wait for room for all of it, however late. A pipe that polls
         * writable takes PIPE_BUF bytes at once (pipe(7)). */
        ssize_t put = send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && errno == ENOTSOCK)
            put = write(fd, p, n < PIPE_BUF ? n : PIPE_BUF);
        if (put < 0) {
            if (errno == EINTR || errno == EAGAIN)
                continue;
            return -errno;
        }
        p += put;
        n -= (size_t)put;
    }
    return 0;
}

int fd_send_fds(int sock, const void *buf, size_t n, const int *fds, int n_fds)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * FD_MAX_PASS)];
        struct cmsghdr align;
    } control;
    struct iovec iov = {.iov_base = (void *)buf, .iov_len = n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

    if (n_fds > FD_MAX_PASS)
        return -E2BIG;
    if (n_fds > 0) {
        memset(&control, 0, sizeof control);
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n_fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n_fds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)n_fds);
    }
    for (;;) {
        ssize_t put = sendmsg(sock, &msg, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN) {
            int rc = wait_ready(sock, POLLOUT, clock_now_ns() + CLOCK_NS_PER_S);
            if (rc < 0)
                return rc;
            continue;
        }
        if (put < 0)
            return -errno;
        if ((size_t)put == n)
            return 0;
        /* The descriptors left with the first bytes; the rest is plain. */
        return fd_write_full(sock, (const char *)buf + put, n - (size_t)put,
                             clock_now_ns() + CLOCK_NS_PER_S);
    }
}

int fd_recv_fds(int sock, void *buf, size_t n, int *fds, int max_fds, int *ret_n_fds,
                uint64_t deadline_ns)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * FD_MAX_PASS)];
        struct cmsghdr align;
    } control;
    struct iovec iov = {.iov_base = buf, .iov_len = n};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    int n_fds = 0;

    for (;;) {
        int rc = wait_ready(sock, POLLIN, deadline_ns);
        if (rc < 0)
            return rc;
        ssize_t got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return -ECONNRESET;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
            if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                continue;
            int n_got = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            for (int i = 0; i < n_got; i++) {
                int fd;
                memcpy(&fd, CMSG_DATA(c) + sizeof(int) * (size_t)i, sizeof fd);
                if (n_fds < max_fds)
                    fds[n_fds++] = fd;
                else
                    close(fd);
            }
        }
        rc = fd_read_full(sock, (char *)buf + got, n - (size_t)got, deadline_ns);
        if (rc < 0) {
            while (n_fds > 0)
                close(fds[--n_fds]);
            return rc;
        }
        *ret_n_fds = n_fds;
        return 0;
    }
}

int fd_unix_address(const char *path, struct sockaddr_un *ret_addr, socklen_t *ret_len)
{
    size_t len = strlen(path);

    memset(ret_addr, 0, sizeof *ret_addr);
    ret_addr->sun_family = AF_UNIX;
    if (len == 0 || len >= sizeof ret_addr->sun_path)
        return -ENAMETOOLONG;
    memcpy(ret_addr->sun_path, path, len);
    if (path[0] == '@') {
        ret_addr->sun_path[0] = '\0';
        *ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    } else {
        *ret_len = (socklen_t)sizeof *ret_addr;
    }
    return 0;
}

int fd_unix_connect(const char *path)
{
    struct sockaddr_un addr;
    socklen_t len;
    int rc = fd_unix_address(path, &addr, &len);

    if (rc < 0)
        return rc;
    FD_AUTO fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&addr, len) < 0)
        return -errno;
    return fd_steal(&fd);
}

int fd_unix_listen(const char *path, unsigned mode)
{
    struct sockaddr_un addr;
    socklen_t len;
    int rc = fd_unix_address(path, &addr, &len);

    if (rc < 0)
        return rc;
    FD_AUTO fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&addr, len) < 0) {
        if (errno != EADDRINUSE || path[0] == '@')
            return -errno;
        /* A file without a listener is what a killed daemon left; a live one keeps its place. */
        FD_AUTO probe = fd_unix_connect(path);
        if (probe != -ECONNREFUSED)
            return -EADDRINUSE;
        if (unlink(path) < 0 || bind(fd, (struct sockaddr *)&addr, len) < 0)
            return -errno;
    }
    if (path[0] != '@' && chmod(path, (mode_t)mode) < 0)
        return -errno;
    /* The kernel cuts it to net.core.somaxconn. Whoever connects waits when it is full, behind
     * those who connect in a storm. */
    if (listen(fd, 4096) < 0)
        return -errno;
    return fd_steal(&fd);
}

int fd_memory(const char *name, size_t n, bool read_only_for_others, void **ret_map)
{
    FD_AUTO fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)n) < 0)
        return -errno;
    void *map = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | (read_only_for_others ? F_SEAL_FUTURE_WRITE : 0) |
                F_SEAL_SEAL;
    if (fcntl(fd, F_ADD_SEALS, seals) < 0) {
        int err = errno;
        munmap(map, n);
        return -err;
    }
    *ret_map = map;
    return fd_steal(&fd);
}
