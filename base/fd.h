/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * File descriptors: scope-bound closing, sockets that carry descriptors, exact reads and writes
 * with a deadline.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

void fd_closep(int *fd);
/* Closes at the end of the scope unless fd_steal took it over. */
#define FD_AUTO __attribute__((cleanup(fd_closep))) int

static inline int fd_steal(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

/* 0 or -errno. */
int fd_set_nonblock(int fd, bool on);
/* Reads exactly n bytes before deadline_ns (CLOCK_MONOTONIC; UINT64_MAX: no limit).
 * Returns 0, -ETIMEDOUT, -ECONNRESET on end of file, or another negative errno. */
int fd_read_full(int fd, void *buf, size_t n, uint64_t deadline_ns);
int fd_write_full(int fd, const void *buf, size_t n, uint64_t deadline_ns);

/* Sends n bytes together with n_fds descriptors (at most FD_MAX_PASS). Returns 0 or -errno. */
#define FD_MAX_PASS 32
int fd_send_fds(int sock, const void *buf, size_t n, const int *fds, int n_fds);
/* Receives exactly n bytes and up to max_fds descriptors (close-on-exec); surplus ones are closed.
 * Returns 0 and the number of descriptors in *ret_n_fds, or negative errno with none left open. */
int fd_recv_fds(int sock, void *buf, size_t n, int *fds, int max_fds, int *ret_n_fds,
                uint64_t deadline_ns);

/* Fills a Unix address; a leading '@' means the abstract name space, which leaves no file behind.
 * -ENAMETOOLONG or 0. */
int fd_unix_address(const char *path, struct sockaddr_un *ret_addr, socklen_t *ret_len);
/* Connects to a Unix stream socket. Returns the descriptor or -errno. */
int fd_unix_connect(const char *path);
/* Listens on a Unix stream socket (removes a stale file that nobody listens on). Returns the
 * descriptor or -errno. */
int fd_unix_listen(const char *path, unsigned mode);

/* An anonymous sealed memory file of n bytes, all zero: it can neither shrink nor grow, so no
 * mapping of it ever faults. `read_only_for_others`: mappings made after this process's own first
 * writable one cannot write (F_SEAL_FUTURE_WRITE); *ret_map is that first mapping. Returns the
 * descriptor or -errno. */
int fd_memory(const char *name, size_t n, bool read_only_for_others, void **ret_map);
