/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest mpiexec, for tests of the daemon: submits one program, prints its output, exits with
 * the job's code.
 *
 *     submit SOCKET N [-ppn P] [-host NAME:COUNT]... [-stdin] [-kill-after MS SIGNAL] -- PROGRAM
 *     ARGS...
 *
 * With -exits it also prints a line for each rank's exit.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proto/control.pb-c.h"
#include "proto/frame.h"

extern char **environ;

static int send_msg(int fd, uint16_t type, const ProtobufCMessage *msg)
{
    size_t n = protobuf_c_message_get_packed_size(msg);
    uint8_t *body = malloc(n + 1);
    protobuf_c_message_pack(msg, body);
    int rc = frame_send(fd, type, body, (uint32_t)n, clock_now_ns() + 10 * CLOCK_NS_PER_S);
    free(body);
    return rc;
}

static int on_job_end(const uint8_t *body, uint32_t len)
{
    Motet__JobEnd *msg = motet__job_end__unpack(NULL, len, body);
    int code = msg ? msg->code : 99;
    if (msg && msg->message)
        fprintf(stderr, "job ended: %s\n", msg->message);
    if (msg)
        motet__job_end__free_unpacked(msg, NULL);
    return code;
}

int main(int argc, char **argv)
{
    Motet__Submit submit = MOTET__SUBMIT__INIT;
    Motet__App app = MOTET__APP__INIT;
    Motet__App *apps[] = {&app};
    char *hosts[64], wdir[4096];
    bool exits = false, with_stdin = false;
    int kill_ms = -1, kill_signal = 0, at = 3;

    if (argc < 5)
        return 2;
    app.n_ranks = (uint32_t)atoi(argv[2]);
    submit.hosts = hosts;
    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        if (strcmp(argv[at], "-ppn") == 0) {
            submit.has_ranks_per_node = true;
            submit.ranks_per_node = (uint32_t)atoi(argv[++at]);
        } else if (strcmp(argv[at], "-host") == 0) {
            hosts[submit.n_hosts++] = argv[++at];
        } else if (strcmp(argv[at], "-stdin") == 0) {
            with_stdin = true;
        } else if (strcmp(argv[at], "-exits") == 0) {
            exits = true;
        } else if (strcmp(argv[at], "-kill-after") == 0) {
            kill_ms = atoi(argv[++at]);
            kill_signal = atoi(argv[++at]);
        }
    }
    app.argv = &argv[at + 1];
    app.n_argv = (size_t)(argc - at - 1);
    submit.n_apps = 1;
    submit.apps = apps;
    submit.wdir = getcwd(wdir, sizeof wdir);
    submit.env = environ;
    while (environ[submit.n_env])
        submit.n_env++;
    submit.stdin_to_rank0 = with_stdin;

    FD_AUTO fd = fd_unix_connect(argv[1]);
    if (fd < 0) {
        fprintf(stderr, "submit: %s: %s\n", argv[1], strerror(-fd));
        return 2;
    }
    send_msg(fd, MOTET__FRAME_TYPE__SUBMIT, &submit.base);
    uint64_t job = 0, start_ns = clock_now_ns(), sent = 0, consumed = 0;
    for (;;) {
        bool can_send = with_stdin && job && sent - consumed < (128u << 10);
        struct pollfd p[2] = {{.fd = fd, .events = POLLIN},
                              {.fd = can_send ? 0 : -1, .events = POLLIN}};
        poll(p, 2, kill_ms >= 0 ? 20 : 60000);
        if (kill_ms >= 0 && job &&
            clock_now_ns() - start_ns > (uint64_t)kill_ms * CLOCK_NS_PER_MS) {
            Motet__Kill msg = MOTET__KILL__INIT;
            msg.job = job;
            msg.signal = kill_signal;
            send_msg(fd, MOTET__FRAME_TYPE__KILL, &msg.base);
            kill_ms = -1;
        }
        if (p[1].revents) {
            static uint8_t data[65536];
            ssize_t n = read(0, data, sizeof data);
            Motet__Stdio msg = MOTET__STDIO__INIT;
            msg.job = job;
            msg.data.data = data;
            msg.data.len = n > 0 ? (size_t)n : 0;
            sent += msg.data.len;
            send_msg(fd, MOTET__FRAME_TYPE__STDIO, &msg.base);
            with_stdin = n > 0;
        }
        if (!p[0].revents)
            continue;
        struct frame_header h;
        if (frame_recv_header(fd, &h, clock_now_ns() + 10 * CLOCK_NS_PER_S) < 0) {
            fprintf(stderr, "submit: connection lost\n");
            return 98;
        }
        uint8_t *body = malloc(h.len + 1);
        if (fd_read_full(fd, body, h.len, clock_now_ns() + 10 * CLOCK_NS_PER_S) < 0)
            return 98;
        if (h.type == MOTET__FRAME_TYPE__SUBMITTED) {
            Motet__Submitted *msg = motet__submitted__unpack(NULL, h.len, body);
            if (!msg->ok) {
                fprintf(stderr, "refused: %s\n", msg->error);
                motet__submitted__free_unpacked(msg, NULL);
                free(body);
                return 97;
            }
            job = msg->job;
            motet__submitted__free_unpacked(msg, NULL);
        } else if (h.type == MOTET__FRAME_TYPE__STDIO) {
            Motet__Stdio *msg = motet__stdio__unpack(NULL, h.len, body);
            if (msg->data.len > 0)
                fwrite(msg->data.data, 1, msg->data.len, msg->stream == 2 ? stderr : stdout);
            fflush(stdout);
            motet__stdio__free_unpacked(msg, NULL);
        } else if (h.type == MOTET__FRAME_TYPE__STDIO_WINDOW) {
            Motet__StdioWindow *msg = motet__stdio_window__unpack(NULL, h.len, body);
            consumed = msg->consumed;
            motet__stdio_window__free_unpacked(msg, NULL);
        } else if (h.type == MOTET__FRAME_TYPE__RANK_EXIT) {
            Motet__RankExit *msg = motet__rank_exit__unpack(NULL, h.len, body);
            if (exits)
                fprintf(stderr, "rank %u on %s: status %x finalized %d %s\n", msg->rank, msg->node,
                        msg->status, msg->finalized, msg->reason ? msg->reason : "");
            motet__rank_exit__free_unpacked(msg, NULL);
        } else if (h.type == MOTET__FRAME_TYPE__JOB_END) {
            int code = on_job_end(body, h.len);
            free(body);
            return code;
        }
        free(body);
    }
}
