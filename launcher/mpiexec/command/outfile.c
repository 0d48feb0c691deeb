/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/command/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "base/fd.h"

/* Of the 1,024 descriptors that a process may have by default. */
#define OUTFILE_MAX_OPEN 256u

struct outfile {
    char *name;
    int fd; /* -1: not open now */
    bool made, failed;
    UT_hash_handle hh;
};

int outfile_check(const char *pattern)
{
    for (; *pattern; pattern++)
        if (*pattern == '%' && (!*++pattern || !strchr("rhpg%", *pattern)))
            return -EINVAL;
    return 0;
}

char *outfile_pattern_of_folder(const char *folder, int stream, uint32_t n_ranks)
{
    size_t room = strlen(folder) * 2 + 64, n = 0;
    char *pattern = malloc(room);

    if (!pattern)
        return NULL;
    for (; *folder; folder++) {
        if (*folder == '%')
            pattern[n++] = '%';
        pattern[n++] = *folder;
    }
    int width = snprintf(NULL, 0, "%u", n_ranks - 1);
    snprintf(pattern + n, room - n, "/1/rank.%%0%dr/%s", width, stream == 0 ? "stdout" : "stderr");
    return pattern;
}

int outfile_init(struct outfile_set *set, char *pattern[2], bool copy, uint32_t n_ranks)
{
    *set =
        (struct outfile_set){.pattern = {pattern[0], pattern[1]}, .copy = copy, .n_ranks = n_ranks};
    if (!pattern[0] && !pattern[1])
        return 0;
    set->of = calloc((size_t)n_ranks * 2, sizeof(struct outfile *));
    set->node = calloc(n_ranks, sizeof *set->node);
    set->node_number = calloc(n_ranks, sizeof *set->node_number);
    return set->of && set->node && set->node_number ? 0 : -ENOMEM;
}

int outfile_place(struct outfile_set *set, Motet__Placement *const *placements, size_t n)
{
    size_t room = 1;

    if (!set->of)
        return 0;
    for (size_t i = 0; i < n; i++)
        room += strlen(placements[i]->node) + 1;
    char *at = set->names = malloc(room);
    if (!at)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const Motet__Placement *p = placements[i];
        for (size_t k = 0; k < p->n_ranks; k++) {
            if (p->ranks[k] >= set->n_ranks)
                continue;
            set->node[p->ranks[k]] = at;
            set->node_number[p->ranks[k]] = (uint32_t)i;
        }
        at = stpcpy(at, p->node) + 1;
    }
    return 0;
}

/* The name of a rank's file, to be freed. NULL: no memory, or longer than a name may be. */
static char *outfile_name(const struct outfile_set *set, const char *pattern, uint32_t rank)
{
    const char *node = set->node[rank] ? set->node[rank] : "";
    char name[PATH_MAX];
    size_t n = 0;

    for (; *pattern && n < sizeof name; pattern++) {
        size_t room = sizeof name - n;
        int width = 0;
        if (*pattern != '%') {
            name[n++] = *pattern;
            continue;
        }
        /* "%04r", of folders' patterns only: the checked ones have a letter behind the sign. */
        while (*++pattern >= '0' && *pattern <= '9')
            width = width * 10 + (*pattern - '0');
        int put = *pattern == 'r'   ? snprintf(name + n, room, "%0*u", width, rank)
                  : *pattern == 'h' ? snprintf(name + n, room, "%s", node)
                  : *pattern == 'p' ? snprintf(name + n, room, "%u", set->node_number[rank])
                  : *pattern == 'g' ? snprintf(name + n, room, "0")
                                    : snprintf(name + n, room, "%%");
        n += (size_t)put;
    }
    if (n >= sizeof name)
        return NULL;
    return strndup(name, n);
}

/* The file of a rank's stream, by its name. NULL: no memory, or a name that is too long. */
static struct outfile *outfile_of(struct outfile_set *set, int stream, uint32_t rank)
{
    struct outfile **of = &set->of[(size_t)stream * set->n_ranks + rank], *file = NULL;

    if (*of)
        return *of;
    char *name = outfile_name(set, set->pattern[stream], rank);
    if (!name)
        return NULL;
    HASH_FIND_STR(set->files, name, file);
    if (file) {
        free(name);
    } else {
        file = calloc(1, sizeof *file);
        if (!file) {
            free(name);
            return NULL;
        }
        *file = (struct outfile){.name = name, .fd = -1};
        HASH_ADD_KEYPTR(hh, set->files, name, strlen(name), file);
    }
    return *of = file;
}

/* The folders of a name. What cannot be made shows when the file is opened. */
static void outfile_make_folders(char *name)
{
    for (char *slash = strchr(name + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(name, 0777);
        *slash = '/';
    }
}

/* Opens a file; closes the one that has been written longest ago when there are many. */
static int outfile_open(struct outfile_set *set, struct outfile *file)
{
    if (file->fd >= 0)
        return 0;
    if (set->n_open >= OUTFILE_MAX_OPEN) {
        struct outfile *oldest = set->files;
        while (oldest && oldest->fd < 0)
            oldest = oldest->hh.next;
        if (oldest) {
            fd_closep(&oldest->fd);
            set->n_open--;
        }
    }
    if (!file->made)
        outfile_make_folders(file->name);
    file->fd = open(file->name,
                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (file->made ? 0 : O_TRUNC), 0666);
    if (file->fd < 0)
        return -errno;
    file->made = true;
    set->n_open++;
    /* To the end of the list: the last one used. */
    HASH_DEL(set->files, file);
    HASH_ADD_KEYPTR(hh, set->files, file->name, strlen(file->name), file);
    return 0;
}

int outfile_write(struct outfile_set *set, int stream, uint32_t rank, const void *data, size_t n,
                  const char **ret_name)
{
    struct outfile *file = outfile_of(set, stream, rank);
    const char *at = data;

    *ret_name = file ? file->name : set->pattern[stream];
    if (!file)
        return -ENAMETOOLONG;
    if (file->failed)
        return 0;
    int rc = outfile_open(set, file);
    while (rc == 0 && n > 0) {
        ssize_t put = write(file->fd, at, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            rc = -errno;
            break;
        }
        at += put;
        n -= (size_t)put;
    }
    file->failed = rc < 0;
    return rc;
}

void outfile_deinit(struct outfile_set *set)
{
    struct outfile *file, *next;

    HASH_ITER(hh, set->files, file, next) {
        HASH_DEL(set->files, file);
        fd_closep(&file->fd);
        free(file->name);
        free(file);
    }
    free(set->of);
    free(set->node);
    free(set->node_number);
    free(set->names);
    free(set->pattern[0]);
    free(set->pattern[1]);
    *set = (struct outfile_set){0};
}
