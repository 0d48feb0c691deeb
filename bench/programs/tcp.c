/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What TCP alone can do between two nodes, as the limit that the MPI libraries are held against:
 * one process a side, sockets in nonblocking mode and polled without pause (--spin) or blocking.
 *
 *     tcp serve ADDRESS PORT [--cpu N]
 *     tcp latency ADDRESS PORT [--block] [--cpu N] SIZE...      half round trip
 *     tcp stream ADDRESS PORT [--cpu N] SIZE...                 messages of SIZE one after the
 *                                                               other, the last one answered
 *
 * The server serves one client and ends with it; it ends by itself when nobody comes within 30 s.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCHES    11
#define BATCH_US   3000.0
#define COME_MS    30000
#define SILENCE_US 20e6

enum { PING_PONG = 1, STREAM = 2, PING_PONG_BLOCKING = 3 };

/* What the client announces before each measurement. */
struct order {
    uint64_t what, size, n;
};

static double now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec * 1e-3;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "tcp: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Receives all of it; spinning, or blocking in poll. */
static void get(int fd, char *buf, size_t n, int spin)
{
    double limit_us = now_us() + SILENCE_US;
    unsigned misses = 0;

    while (n > 0) {
        ssize_t got = recv(fd, buf, n, spin ? MSG_DONTWAIT : 0);
        if (got == 0)
            exit(0);
        if (got < 0) {
            if (errno != EAGAIN && errno != EINTR)
                fail("recv");
            if (++misses % 65536 == 0 && now_us() > limit_us)
                fail("silence");
            continue;
        }
        buf += got;
        n -= (size_t)got;
    }
}

static void put(int fd, const char *buf, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, buf, n, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            fail("send");
        if (sent > 0) {
            buf += sent;
            n -= (size_t)sent;
        }
    }
}

static char *buffer(size_t n)
{
    char *p = malloc(n ? n : 1);

    if (!p)
        fail("malloc");
    memset(p, 1, n ? n : 1);
    return p;
}

static double round_trips(int fd, char *buf, size_t size, uint64_t n, int spin)
{
    struct order order = {spin ? PING_PONG : PING_PONG_BLOCKING, size, n};

    put(fd, (const char *)&order, sizeof order);
    get(fd, buf, 1, spin); /* ready */
    double begin_us = now_us();
    for (uint64_t i = 0; i < n; i++) {
        put(fd, buf, size);
        get(fd, buf, size, spin);
    }
    return (now_us() - begin_us) / (double)n / 2;
}

static double streamed(int fd, char *buf, size_t size, uint64_t n)
{
    struct order order = {STREAM, size, n};

    put(fd, (const char *)&order, sizeof order);
    get(fd, buf, 1, 1);
    double begin_us = now_us();
    for (uint64_t i = 0; i < n; i++)
        put(fd, buf, size);
    get(fd, buf, 1, 1);
    return (now_us() - begin_us) / (double)n;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(int fd, int what, size_t size, int spin)
{
    double values[BATCHES];
    size_t wire = size ? size : 1;
    char *buf = buffer(wire);

    double once_us =
        what == STREAM ? streamed(fd, buf, wire, 4) : 2 * round_trips(fd, buf, wire, 20, spin);
    double want = (what == STREAM ? 20 : 1) * BATCH_US / once_us;
    uint64_t n = want < 4 ? 4 : want > 1e6 ? 1000000 : (uint64_t)want;
    for (int b = 0; b < BATCHES; b++)
        values[b] =
            what == STREAM ? streamed(fd, buf, wire, n) : round_trips(fd, buf, wire, n, spin);
    qsort(values, BATCHES, sizeof *values, by_value);
    if (what == STREAM)
        printf("RESULT tcp_stream %zu %.6g GB/s\n", size,
               (double)size / values[BATCHES / 2] * 1e-3);
    else
        printf("RESULT %s %zu %.6g us\n", spin ? "tcp_latency" : "tcp_latency_blocking", size,
               values[BATCHES / 2]);
    fflush(stdout);
    free(buf);
}

static void serve(int fd)
{
    struct order order;

    for (;;) {
        get(fd, (char *)&order, sizeof order, 0);
        if (order.size == 0 || order.size > 1u << 30)
            return;
        char *buf = buffer(order.size);
        int spin = order.what != PING_PONG_BLOCKING;
        put(fd, buf, 1);
        for (uint64_t i = 0; i < order.n; i++) {
            get(fd, buf, order.size, spin);
            if (order.what != STREAM)
                put(fd, buf, order.size);
        }
        if (order.what == STREAM)
            put(fd, buf, 1);
        free(buf);
    }
}

static int accept_one(const struct sockaddr_in *at)
{
    int on = 1, l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (l < 0 || setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(l, (const struct sockaddr *)at, sizeof *at) < 0 || listen(l, 1) < 0)
        fail("listen");
    struct pollfd p = {.fd = l, .events = POLLIN};
    if (poll(&p, 1, COME_MS) <= 0)
        exit(1);
    int fd = accept(l, NULL, NULL);
    close(l);
    return fd;
}

static int connect_to(const struct sockaddr_in *to)
{
    double limit_us = now_us() + COME_MS * 1e3;

    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof *to) == 0)
            return fd;
        if (fd < 0 || now_us() > limit_us)
            fail("connect");
        close(fd);
        usleep(20000);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int spin = 1, on = 1, i = 4;

    if (argc < 4 || inet_pton(AF_INET, argv[2], &at.sin_addr) != 1) {
        fprintf(stderr,
                "usage: tcp serve|latency|stream ADDRESS PORT [--block] [--cpu N] [SIZE...]\n");
        return 2;
    }
    at.sin_port = htons((uint16_t)atoi(argv[3]));
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--block") == 0) {
            spin = 0;
        } else if (strcmp(argv[i], "--cpu") == 0 && i + 1 < argc) {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET((unsigned)atoi(argv[++i]), &set);
            sched_setaffinity(0, sizeof set, &set);
        }
    }
    int server = strcmp(argv[1], "serve") == 0;
    int fd = server ? accept_one(&at) : connect_to(&at);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        fail("socket");
    if (server)
        serve(fd);
    for (; i < argc; i++)
        measure(fd, strcmp(argv[1], "stream") == 0 ? STREAM : PING_PONG, strtoull(argv[i], NULL, 0),
                spin);
    return 0;
}
