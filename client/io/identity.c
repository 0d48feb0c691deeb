/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Not in every kernel's header. */
#define MAGIC_XFS 0x58465342u

static const uint64_t of_one_machine[] = {
    EXT4_SUPER_MAGIC, MAGIC_XFS,        BTRFS_SUPER_MAGIC, TMPFS_MAGIC,
    RAMFS_MAGIC,      F2FS_SUPER_MAGIC, HUGETLBFS_MAGIC,   OVERLAYFS_SUPER_MAGIC};

static void read_machine(char *machine, size_t n)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, machine, n - 1) : 0;
    machine[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

int identity_of(int fd, struct identity *ret_identity)
{
    struct statx x;
    struct statfs fs;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_TYPE | STATX_BTIME, &x) != 0 ||
        fstatfs(fd, &fs) != 0)
        return errno;
    if (S_ISDIR(x.stx_mode))
        return EISDIR;
    memset(ret_identity, 0, sizeof *ret_identity);
    read_machine(ret_identity->machine, sizeof ret_identity->machine);
    ret_identity->dev = makedev(x.stx_dev_major, x.stx_dev_minor);
    ret_identity->ino = x.stx_ino;
    ret_identity->kind = (uint64_t)fs.f_type;
    if (x.stx_mask & STATX_BTIME)
        ret_identity->born_ns = x.stx_btime.tv_sec * 1000000000 + x.stx_btime.tv_nsec;
    return 0;
}

static bool belongs_to_one_machine(uint64_t kind)
{
    for (size_t i = 0; i < sizeof of_one_machine / sizeof of_one_machine[0]; i++)
        if (of_one_machine[i] == kind)
            return true;
    return false;
}

bool identity_same(const struct identity *a, const struct identity *b)
{
    if (a->ino != b->ino)
        return false;
    if (a->machine[0] && strcmp(a->machine, b->machine) == 0)
        return a->dev == b->dev;
    if (a->kind != b->kind || belongs_to_one_machine(a->kind))
        return false;
    return !a->born_ns || !b->born_ns || a->born_ns == b->born_ns;
}
