/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

void output_init(struct output *o, int fd)
{
    struct stat st;

    *o = (struct output){.fd = fd};
    if (fstat(fd, &st) == 0)
        o->is_file = S_ISREG(st.st_mode) ||
                     (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)); /* /dev/null */
}

int output_flush(struct output *o)
{
    if (o->queue.failed && !o->gone) {
        o->gone = true;
        bytes_free(&o->queue);
        return -ENOMEM;
    }
    while (o->queue.n > 0 && !o->gone) {
        struct pollfd p = {.fd = o->fd, .events = POLLOUT};
        size_t n = o->queue.n;
        if (!o->is_file) {
            if (poll(&p, 1, 0) <= 0)
                return 0;
            n = n < PIPE_BUF ? n : PIPE_BUF;
        }
        ssize_t put = write(o->fd, bytes_data(&o->queue), n);
        if (put < 0 && (errno == EINTR || errno == EAGAIN))
            return 0;
        if (put < 0) {
            o->gone = true;
            bytes_free(&o->queue);
            return -errno;
        }
        bytes_drop(&o->queue, (size_t)put);
    }
    if (o->gone)
        bytes_free(&o->queue);
    return 0;
}
