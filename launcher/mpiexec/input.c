/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/input.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"

#define PIECE_BYTES        (32u << 10)
#define BACKGROUND_LOOK_NS (CLOCK_NS_PER_S / 2)

void input_init(struct input *in, int fd)
{
    *in = (struct input){.fd = fd, .is_terminal = fd >= 0 && isatty(fd)};
}

void input_close(struct input *in)
{
    in->fd = -1;
}

void input_taken(struct input *in, uint64_t total)
{
    if (total > in->taken && total <= in->sent)
        in->taken = total;
}

static bool in_background(const struct input *in)
{
    return in->is_terminal && tcgetpgrp(in->fd) != getpgrp();
}

bool input_wanted(const struct input *in, uint64_t now_ns, uint64_t *until_ns)
{
    if (in->fd < 0 || in->sent - in->taken >= INPUT_WINDOW_BYTES)
        return false;
    if (!in_background(in))
        return true;
    if (*until_ns > now_ns + BACKGROUND_LOOK_NS)
        *until_ns = now_ns + BACKGROUND_LOOK_NS;
    return false;
}

ssize_t input_read(struct input *in, const char **ret_data)
{
    static char piece[PIECE_BYTES];
    uint64_t room = INPUT_WINDOW_BYTES - (in->sent - in->taken);

    if (in->fd < 0 || in_background(in))
        return -1;
    ssize_t n = read(in->fd, piece, room < sizeof piece ? room : sizeof piece);
    /* EIO: brought to the background between the look and the read. */
    if (n < 0 && (errno == EINTR || errno == EAGAIN || (errno == EIO && in->is_terminal)))
        return -1;
    if (n <= 0) {
        /* What cannot be read (a directory, a closed descriptor) is as good as the end. */
        in->fd = -1;
        n = 0;
    }
    in->sent += (uint64_t)n;
    *ret_data = piece;
    return n;
}
