/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/cli/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/cli/bytes.h"

#define FILE_MAX_BYTES (16u << 20)

int file_read_text(const char *path, char **ret_text)
{
    FD_AUTO fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    struct bytes text = {0};
    char part[4096];
    ssize_t got;

    if (fd < 0)
        return -errno;
    while ((got = read(fd, part, sizeof part)) != 0 && text.n <= FILE_MAX_BYTES && !text.failed) {
        if (got > 0)
            bytes_append(&text, part, (size_t)got);
        else if (errno != EINTR)
            break;
    }
    int rc = got < 0 ? -errno : text.n > FILE_MAX_BYTES ? -EFBIG : 0;
    if (rc == 0 && text.n > 0 && memchr(bytes_data(&text), 0, text.n))
        rc = -EILSEQ;
    if (rc < 0) {
        bytes_free(&text);
        return rc;
    }
    bytes_append(&text, "", 1);
    if (text.failed) {
        bytes_free(&text);
        return -ENOMEM;
    }
    *ret_text = text.at; /* Nothing was dropped, so the queue begins at its start. */
    return 0;
}
