/* SPDX-License-Identifier: BSD-3-Clause */
/* base/fd and proto/frame: deadlines hold, descriptors arrive, addresses and memory files are what
 * they claim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proto/frame.h"

#define SOON (clock_now_ns() + 5 * CLOCK_NS_PER_S)

static void pair(int sv[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
}

static void close_all(int *fds, int n)
{
    for (int i = 0; i < n; i++)
        fd_closep(&fds[i]);
}

static void auto_closes_unless_stolen(void **state)
{
    int kept, lost;
    (void)state;

    {
        FD_AUTO fd = dup(0);
        assert_true(fd >= 0);
        lost = fd;
    }
    assert_int_equal(fcntl(lost, F_GETFD), -1);
    {
        FD_AUTO fd = dup(0);
        kept = fd_steal(&fd);
        assert_int_equal(fd, -1);
    }
    assert_true(fcntl(kept, F_GETFD) >= 0);
    fd_closep(&kept);
    assert_int_equal(kept, -1);
    fd_closep(&kept);
}

static void nonblock_is_set_and_cleared(void **state)
{
    int sv[2];
    (void)state;

    pair(sv);
    assert_int_equal(fd_set_nonblock(sv[0], true), 0);
    assert_true(fcntl(sv[0], F_GETFL) & O_NONBLOCK);
    assert_int_equal(fd_set_nonblock(sv[0], false), 0);
    assert_false(fcntl(sv[0], F_GETFL) & O_NONBLOCK);
    assert_int_equal(fd_set_nonblock(-1, true), -EBADF);
    close_all(sv, 2);
}

struct writer {
    int fd;
    const uint8_t *bytes;
    size_t n;
    int rc;
};

static void *write_all(void *arg)
{
    struct writer *w = arg;
    w->rc = fd_write_full(w->fd, w->bytes, w->n, SOON);
    return NULL;
}

static void large_data_passes(int out, int in)
{
    size_t n = 3u << 20;
    uint8_t *sent = malloc(n), *got = malloc(n);
    pthread_t thread;

    assert_non_null(sent);
    assert_non_null(got);
    for (size_t i = 0; i < n; i++)
        sent[i] = (uint8_t)(i * 7 + (i >> 9));
    struct writer w = {out, sent, n, 1};
    assert_int_equal(pthread_create(&thread, NULL, write_all, &w), 0);
    assert_int_equal(fd_read_full(in, got, n, SOON), 0);
    pthread_join(thread, NULL);
    assert_int_equal(w.rc, 0);
    assert_memory_equal(sent, got, n);
    free(sent);
    free(got);
}

static void large_data_passes_everywhere(void **state)
{
    int fds[2];
    (void)state;

    pair(fds);
    large_data_passes(fds[0], fds[1]);
    fd_set_nonblock(fds[0], true);
    fd_set_nonblock(fds[1], true);
    large_data_passes(fds[0], fds[1]);
    close_all(fds, 2);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    large_data_passes(fds[1], fds[0]);
    close_all(fds, 2);
}

/* A full descriptor, blocking or not, must not hold the caller beyond its deadline. */
static void deadline_holds(int out)
{
    size_t n = 8u << 20;
    uint8_t *bytes = calloc(1, n);

    assert_non_null(bytes);
    uint64_t begin_ns = clock_now_ns();
    assert_int_equal(fd_write_full(out, bytes, n, begin_ns + 50 * CLOCK_NS_PER_MS), -ETIMEDOUT);
    uint64_t taken_ns = clock_now_ns() - begin_ns;
    assert_true(taken_ns >= 50 * CLOCK_NS_PER_MS);
    assert_true(taken_ns < 5 * CLOCK_NS_PER_S);
    free(bytes);
}

static void writes_keep_their_deadline(void **state)
{
    int fds[2];
    (void)state;

    pair(fds);
    deadline_holds(fds[0]);
    close_all(fds, 2);
    pair(fds);
    fd_set_nonblock(fds[0], true);
    deadline_holds(fds[0]);
    close_all(fds, 2);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    deadline_holds(fds[1]);
    close_all(fds, 2);
}

static void reads_keep_their_deadline_and_notice_the_end(void **state)
{
    int sv[2];
    char buf[8];
    (void)state;

    pair(sv);
    assert_int_equal(write(sv[0], "abc", 3), 3);
    assert_int_equal(fd_read_full(sv[1], buf, 8, clock_now_ns() + 30 * CLOCK_NS_PER_MS),
                     -ETIMEDOUT);
    assert_int_equal(fd_read_full(sv[1], buf, 8, 0), -ETIMEDOUT);
    assert_int_equal(write(sv[0], "x", 1), 1);
    fd_closep(&sv[0]);
    assert_int_equal(fd_read_full(sv[1], buf, 8, SOON), -ECONNRESET);
    assert_int_equal(fd_read_full(sv[1], buf, 0, SOON), 0);
    fd_closep(&sv[1]);
    pair(sv);
    fd_closep(&sv[1]);
    assert_int_equal(fd_write_full(sv[0], "abc", 3, SOON), -EPIPE); /* and no SIGPIPE */
    fd_closep(&sv[0]);
}

static int n_open(void)
{
    int n = 0;
    for (int fd = 0; fd < 200; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void descriptors_arrive(void **state)
{
    int sv[2], fds[FD_MAX_PASS], got[FD_MAX_PASS], n_got = -1;
    char buf[16];
    (void)state;

    int before = n_open();
    pair(sv);
    for (int i = 0; i < FD_MAX_PASS; i++)
        fds[i] = dup(0);
    assert_int_equal(fd_send_fds(sv[0], "0123456789abcdef", 16, fds, FD_MAX_PASS), 0);
    assert_int_equal(fd_recv_fds(sv[1], buf, 16, got, FD_MAX_PASS, &n_got, SOON), 0);
    assert_int_equal(n_got, FD_MAX_PASS);
    assert_memory_equal(buf, "0123456789abcdef", 16);
    for (int i = 0; i < n_got; i++)
        assert_true(fcntl(got[i], F_GETFD) & FD_CLOEXEC);
    close_all(got, n_got);

    /* Surplus ones are closed, none is fine, too many are refused. */
    assert_int_equal(fd_send_fds(sv[0], "ab", 2, fds, 5), 0);
    assert_int_equal(fd_recv_fds(sv[1], buf, 2, got, 2, &n_got, SOON), 0);
    assert_int_equal(n_got, 2);
    close_all(got, n_got);
    assert_int_equal(fd_send_fds(sv[0], "ab", 2, NULL, 0), 0);
    assert_int_equal(fd_recv_fds(sv[1], buf, 2, got, 2, &n_got, SOON), 0);
    assert_int_equal(n_got, 0);
    assert_int_equal(fd_send_fds(sv[0], "ab", 2, fds, FD_MAX_PASS + 1), -E2BIG);

    /* What came with a message that never got complete is closed again. */
    assert_int_equal(fd_send_fds(sv[0], "ab", 2, fds, 3), 0);
    assert_int_equal(
        fd_recv_fds(sv[1], buf, 8, got, 8, &n_got, clock_now_ns() + 20 * CLOCK_NS_PER_MS),
        -ETIMEDOUT);
    close_all(fds, FD_MAX_PASS);
    close_all(sv, 2);
    assert_int_equal(n_open(), before);
}

static void unix_addresses(void **state)
{
    struct sockaddr_un addr;
    socklen_t len;
    char longest[200];
    (void)state;

    assert_int_equal(fd_unix_address("", &addr, &len), -ENAMETOOLONG);
    memset(longest, 'a', sizeof longest);
    longest[sizeof addr.sun_path] = '\0';
    assert_int_equal(fd_unix_address(longest, &addr, &len), -ENAMETOOLONG);
    longest[sizeof addr.sun_path - 1] = '\0';
    assert_int_equal(fd_unix_address(longest, &addr, &len), 0);
    assert_int_equal(fd_unix_address("@abc", &addr, &len), 0);
    assert_int_equal(addr.sun_path[0], 0);
    assert_int_equal(len, offsetof(struct sockaddr_un, sun_path) + 4);
}

static void listen_and_connect(void **state)
{
    char dir[] = "/tmp/motet-unit-XXXXXX", path[64], name[64];
    struct stat st;
    (void)state;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    assert_int_equal(fd_unix_connect(path), -ENOENT);
    int l = fd_unix_listen(path, 0600);
    assert_true(l >= 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    int c = fd_unix_connect(path);
    assert_true(c >= 0);
    /* A living listener keeps its place; a dead one's file is taken over. */
    assert_int_equal(fd_unix_listen(path, 0600), -EADDRINUSE);
    fd_closep(&c);
    fd_closep(&l);
    assert_int_equal(fd_unix_connect(path), -ECONNREFUSED);
    l = fd_unix_listen(path, 0600);
    assert_true(l >= 0);
    fd_closep(&l);
    unlink(path);
    rmdir(dir);

    snprintf(name, sizeof name, "@motet-unit-%d", (int)getpid());
    l = fd_unix_listen(name, 0);
    assert_true(l >= 0);
    c = fd_unix_connect(name);
    assert_true(c >= 0);
    assert_int_equal(fd_unix_listen(name, 0), -EADDRINUSE);
    fd_closep(&c);
    fd_closep(&l);
    assert_int_equal(fd_unix_connect(name), -ECONNREFUSED);
}

static void memory_files_are_sealed(void **state)
{
    void *map;
    (void)state;

    int fd = fd_memory("motet-unit", 8192, false, &map);
    assert_true(fd >= 0);
    assert_int_equal(((char *)map)[8191], 0);
    assert_int_equal(ftruncate(fd, 4096), -1);
    assert_int_equal(ftruncate(fd, 1 << 20), -1);
    void *other = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(other != MAP_FAILED);
    ((char *)map)[5] = 'x';
    assert_int_equal(((char *)other)[5], 'x');
    munmap(other, 8192);
    munmap(map, 8192);
    fd_closep(&fd);

    fd = fd_memory("motet-unit", 8192, true, &map);
    assert_true(fd >= 0);
    assert_ptr_equal(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    const char *view = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(view != MAP_FAILED);
    assert_int_equal(mprotect((void *)view, 8192, PROT_READ | PROT_WRITE), -1);
    ((char *)map)[9] = 'y';
    assert_int_equal(view[9], 'y');
    assert_int_equal(pwrite(fd, "z", 1, 9), -1);
    munmap((void *)view, 8192);
    munmap(map, 8192);
    fd_closep(&fd);
}

static void frames_pass_and_strangers_do_not(void **state)
{
    int sv[2];
    struct frame_header h;
    char body[5];
    (void)state;

    pair(sv);
    assert_int_equal(frame_send(sv[0], 42, "hello", 5, SOON), 0);
    assert_int_equal(frame_recv_header(sv[1], &h, SOON), 0);
    assert_int_equal(h.type, 42);
    assert_int_equal(h.len, 5);
    assert_int_equal(fd_read_full(sv[1], body, 5, SOON), 0);
    assert_memory_equal(body, "hello", 5);
    assert_int_equal(frame_send(sv[0], 43, NULL, 0, SOON), 0);
    assert_int_equal(frame_recv_header(sv[1], &h, SOON), 0);
    assert_int_equal(h.len, 0);

    assert_int_equal(write(sv[0], "GET / HTTP/1.1\r\n", 16), 16);
    assert_int_equal(frame_recv_header(sv[1], &h, SOON), -EPROTO);
    h = (struct frame_header){.len = FRAME_MAX_BYTES, .type = 1, .magic = FRAME_MAGIC};
    assert_int_equal(frame_check(&h), 0);
    h.len++;
    assert_int_equal(frame_check(&h), -EPROTO);
    h.len = 0;
    h.magic ^= 1;
    assert_int_equal(frame_check(&h), -EPROTO);
    close_all(sv, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_closes_unless_stolen),
        cmocka_unit_test(nonblock_is_set_and_cleared),
        cmocka_unit_test(large_data_passes_everywhere),
        cmocka_unit_test(writes_keep_their_deadline),
        cmocka_unit_test(reads_keep_their_deadline_and_notice_the_end),
        cmocka_unit_test(descriptors_arrive),
        cmocka_unit_test(unix_addresses),
        cmocka_unit_test(listen_and_connect),
        cmocka_unit_test(memory_files_are_sealed),
        cmocka_unit_test(frames_pass_and_strangers_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
