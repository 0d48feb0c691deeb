/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What UDP alone can do between two nodes, as the limit that our driver of datagrams is held
 * against: no acknowledgement, no order, nothing sent again.
 *
 *     udp serve ADDRESS PORT [--cpu N]
 *     udp latency ADDRESS PORT [--cpu N] SIZE...      half round trip, polled without pause
 *     udp stream ADDRESS PORT [--cpu N] SIZE...       datagrams of SIZE, 64 a call, for a quarter
 * of a second: what arrives, and the share lost
 *
 * The server ends when nobody comes within 30 s, or 3 s after the last datagram.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH     64
#define MOST      65507
#define BATCHES   11
#define BATCH_US  3000.0
#define STREAM_US 250e3
#define ANSWER_US 50e3
#define COME_US   30e6
#define BUFFER    (8 << 20)

enum { ECHO = 1, COUNT = 2, REPORT = 3 };

/* In front of each datagram; REPORT is answered by what came of this run. */
struct head {
    uint32_t what, run;
    uint64_t n, ns;
};

static char buffers[BATCH][MOST];

static double now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec * 1e-3;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "udp: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The next datagram within so long, into the first buffer; its bytes, or -1. */
static ssize_t await(int fd, double limit_us)
{
    double end_us = now_us() + limit_us;
    ssize_t n;

    while ((n = recv(fd, buffers[0], MOST, MSG_DONTWAIT)) < 0)
        if (now_us() > end_us)
            return -1;
    return n;
}

/* The server may not be there yet. */
static void meet(int fd)
{
    struct head h = {.what = ECHO};

    for (double end_us = now_us() + COME_US; now_us() < end_us;) {
        if (send(fd, &h, sizeof h, 0) < 0 && errno != ECONNREFUSED)
            fail("send");
        if (await(fd, ANSWER_US) >= 0)
            return;
    }
    fail("nobody answers");
}

/* Datagrams of less than a head have one all the same. */
static void latency(int fd, size_t asked)
{
    double values[BATCHES];
    struct head h = {.what = ECHO};
    size_t size = asked < sizeof h ? sizeof h : asked;

    for (int b = 0; b < BATCHES; b++) {
        double begin_us = now_us();
        uint64_t n = 0;
        for (; n < 10 || now_us() - begin_us < BATCH_US; n++) {
            memcpy(buffers[0], &h, sizeof h);
            if (send(fd, buffers[0], size, 0) < 0 && errno != ECONNREFUSED)
                fail("send");
            if (await(fd, 1e6) < 0)
                fail("silence");
        }
        values[b] = (now_us() - begin_us) / (double)n / 2;
    }
    qsort(values, BATCHES, sizeof *values, by_value);
    printf("RESULT udp_latency %zu %.6g us\n", asked, values[BATCHES / 2]);
}

static void stream(int fd, size_t size, uint32_t run)
{
    struct mmsghdr m[BATCH];
    struct iovec iov[BATCH];
    struct head h = {.what = COUNT, .run = run}, answer = {0};
    uint64_t n = 0;

    memset(m, 0, sizeof m);
    size = size < sizeof h ? sizeof h : size;
    for (int i = 0; i < BATCH; i++) {
        iov[i] = (struct iovec){buffers[i], size};
        m[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
        memcpy(buffers[i], &h, sizeof h);
    }
    for (double end_us = now_us() + STREAM_US; now_us() < end_us;) {
        int sent = sendmmsg(fd, m, BATCH, 0);
        if (sent < 0 && errno != ECONNREFUSED && errno != ENOBUFS)
            fail("sendmmsg");
        n += sent > 0 ? (uint64_t)sent : 0;
    }
    for (h.what = REPORT; answer.what != REPORT || answer.run != run;) {
        if (send(fd, &h, sizeof h, 0) < 0 && errno != ECONNREFUSED)
            fail("send");
        if (await(fd, ANSWER_US) >= (ssize_t)sizeof answer)
            memcpy(&answer, buffers[0], sizeof answer);
    }
    printf("RESULT udp_stream %zu %.6g GB/s\nRESULT udp_lost %zu %.4g %%\n", size,
           (double)size * (double)answer.n / (double)(answer.ns ? answer.ns : 1), size,
           n ? 100.0 * (1 - (double)answer.n / (double)n) : 0);
}

static void serve(int fd)
{
    struct mmsghdr m[BATCH];
    struct iovec iov[BATCH];
    struct sockaddr_in from[BATCH];
    double limit_us = COME_US, heard_us = now_us(), first_us = 0, last_us = 0;
    uint32_t run = 0;
    uint64_t n = 0;

    memset(m, 0, sizeof m);
    for (;;) {
        for (int i = 0; i < BATCH; i++) {
            iov[i] = (struct iovec){buffers[i], MOST};
            m[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i],
                                           .msg_iovlen = 1,
                                           .msg_name = &from[i],
                                           .msg_namelen = sizeof *from};
        }
        int got = recvmmsg(fd, m, BATCH, MSG_DONTWAIT, NULL);
        if (got <= 0) {
            if (now_us() - heard_us > limit_us)
                return;
            continue;
        }
        heard_us = now_us();
        limit_us = 3e6;
        for (int i = 0; i < got; i++) {
            struct head h;
            memcpy(&h, buffers[i], sizeof h);
            if (h.what != ECHO && h.run != run) {
                run = h.run;
                n = 0;
                first_us = heard_us;
            }
            n += h.what == COUNT;
            last_us = h.what == COUNT ? heard_us : last_us;
            if (h.what == COUNT)
                continue;
            h.n = n;
            h.ns = (uint64_t)((last_us - first_us) * 1e3);
            memcpy(buffers[i], &h, sizeof h);
            sendto(fd, buffers[i], m[i].msg_len, 0, (struct sockaddr *)&from[i], sizeof *from);
        }
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int i = 4, room = BUFFER, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (argc < 4 || inet_pton(AF_INET, argv[2], &at.sin_addr) != 1) {
        fprintf(stderr, "usage: udp serve|latency|stream ADDRESS PORT [--cpu N] [SIZE...]\n");
        return 2;
    }
    at.sin_port = htons((uint16_t)atoi(argv[3]));
    if (i + 1 < argc && strcmp(argv[i], "--cpu") == 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((unsigned)atoi(argv[i + 1]), &set);
        sched_setaffinity(0, sizeof set, &set);
        i += 2;
    }
    if (fd < 0)
        fail("socket");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (strcmp(argv[1], "serve") == 0) {
        if (bind(fd, (const struct sockaddr *)&at, sizeof at) < 0)
            fail("bind");
        serve(fd);
        return 0;
    }
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) < 0)
        fail("connect");
    meet(fd);
    for (uint32_t run = 1; i < argc; i++, run++) {
        size_t size = strtoull(argv[i], NULL, 0);
        if (size > MOST)
            return 2;
        if (strcmp(argv[1], "stream") == 0)
            stream(fd, size, run);
        else
            latency(fd, size);
    }
    return 0;
}
