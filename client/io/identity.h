/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is what two ranks have opened under one name the same file?
 *
 * On one machine device and inode say so. On two machines a file system that belongs to one machine
 * (ext4, XFS, tmpfs, ...) cannot be the same; on others the inode, and the time of the file's birth
 * where it is known, must agree.
 */
#ifndef MOTET_CLIENT_IO_IDENTITY_H
#define MOTET_CLIENT_IO_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

struct identity {
    char machine[40];  /* the running system's boot id */
    uint64_t dev, ino; /* as this machine numbers them */
    int64_t born_ns;   /* 0: not known */
    uint64_t kind;     /* of the file system: statfs(2) */
};

/* 0 or an errno; EISDIR for a directory. */
int identity_of(int fd, struct identity *ret_identity);
bool identity_same(const struct identity *a, const struct identity *b);

#endif
