/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/io/access/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Linux moves at most 2 GiB less a page at a time; whole MiB keep pages together. */
#define MOST_AT_ONCE ((size_t)1 << 30)
/* Vectors of pieces below this cost the kernel more than a copy. */
#define SHORT_PIECE  ((size_t)1 << 10)
#define BOUNCE_BYTES ((size_t)256 << 10)
#define MAX_VECTORS  256
#define MAX_PIECES   256

/* What one access_run() has in hand. */
struct access_state {
    struct access *a;
    char *bounce, *sieve;
};

/* ---- one run ---- */

size_t access_read(int fd, void *to, size_t n, MPI_Offset at, int *errnum)
{
    size_t done = 0;
    while (done < n) {
        size_t most = n - done < MOST_AT_ONCE ? n - done : MOST_AT_ONCE;
        ssize_t got = pread(fd, (char *)to + done, most, at + (MPI_Offset)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            *errnum = errno;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

size_t access_write(int fd, const void *from, size_t n, MPI_Offset at, int *errnum)
{
    size_t done = 0;
    while (done < n) {
        size_t most = n - done < MOST_AT_ONCE ? n - done : MOST_AT_ONCE;
        ssize_t put = pwrite(fd, (const char *)from + done, most, at + (MPI_Offset)done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            *errnum = put < 0 ? errno : EIO;
            break;
        }
        done += (size_t)put;
    }
    return done;
}

static size_t move_dense(struct access *a, void *memory, size_t n, MPI_Offset at)
{
    return a->write ? access_write(a->fd, memory, n, at, &a->errnum)
                    : access_read(a->fd, memory, n, at, &a->errnum);
}

static bool state_buffer(struct access_state *s, char **buffer, size_t n)
{
    if (!*buffer)
        *buffer = malloc(n);
    if (!*buffer) {
        s->a->errnum = ENOMEM;
        s->a->what = "no buffer for a copy";
    }
    return *buffer != NULL;
}

static size_t move_bounced(struct access_state *s, size_t n, MPI_Offset at)
{
    struct access *a = s->a;
    if (n > BOUNCE_BYTES)
        n = BOUNCE_BYTES;
    if (!state_buffer(s, &s->bounce, BOUNCE_BYTES))
        return 0;
    if (a->write)
        type_cursor_pack(&a->memory, s->bounce, n);
    size_t done = move_dense(a, s->bounce, n, at);
    if (!a->write)
        type_cursor_unpack(&a->memory, s->bounce, done);
    return done;
}

/* The next pieces of memory, as many as one call takes. */
static size_t move_vectors(struct access_state *s, size_t n, MPI_Offset at)
{
    struct access *a = s->a;
    struct iovec v[MAX_VECTORS];
    struct type_cursor before = a->memory;
    size_t bytes;
    if (n > MOST_AT_ONCE)
        n = MOST_AT_ONCE;
    int n_v = type_cursor_iov(&a->memory, v, MAX_VECTORS, n, &bytes);
    if (bytes / (size_t)n_v < SHORT_PIECE) {
        a->memory = before;
        return move_bounced(s, n, at);
    }
    for (;;) {
        ssize_t r = a->write ? pwritev(a->fd, v, n_v, at) : preadv(a->fd, v, n_v, at);
        if (r >= 0) {
            /* Cut short, it goes on from there; a read that finds nothing is at the end. */
            type_cursor_seek(&a->memory, before.position + r);
            if (r == 0 && a->write)
                a->errnum = EIO;
            return (size_t)r;
        }
        if (errno != EINTR) {
            a->errnum = errno;
            a->memory = before;
            return 0;
        }
    }
}

/* ---- locks ---- */

static bool range_set(struct access *a, short type, MPI_Offset low, MPI_Offset n_bytes)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = low, .l_len = n_bytes};
    while (fcntl(a->fd, F_OFD_SETLKW, &lock) != 0) {
        if (errno == EINTR)
            continue;
        a->errnum = errno;
        a->what = "cannot lock a part of the file";
        return false;
    }
    return true;
}

static bool range_lock(struct access *a, MPI_Offset low, MPI_Offset n_bytes)
{
    pthread_mutex_lock(a->lock.mutex);
    if (range_set(a, a->write ? F_WRLCK : F_RDLCK, low, n_bytes))
        return true;
    pthread_mutex_unlock(a->lock.mutex);
    return false;
}

static void range_unlock(struct access *a, MPI_Offset low, MPI_Offset n_bytes)
{
    range_set(a, F_UNLCK, low, n_bytes);
    pthread_mutex_unlock(a->lock.mutex);
}

/* ---- pieces of the file ---- */

/* The next n bytes of memory, one run of the file. */
static size_t move_run(struct access_state *s, size_t n, MPI_Offset at)
{
    struct access *a = s->a;
    size_t done = 0;
    bool locks = a->write && a->lock.each;
    if (locks && !range_lock(a, at, (MPI_Offset)n))
        return 0;
    if (datatype_is_run(a->memory.type, a->memory.count)) {
        uintptr_t base = (uintptr_t)datatype_run_start(a->memory.type, (void *)a->memory.base);
        done = move_dense(a, (void *)(base + (uintptr_t)a->memory.position), n, at);
        a->memory.position += (MPI_Count)done;
    } else {
        size_t moved = 1;
        while (done < n && moved > 0 && !a->errnum) {
            moved = move_vectors(s, n - done, at + (MPI_Offset)done);
            done += moved;
        }
    }
    if (locks)
        range_unlock(a, at, (MPI_Offset)n);
    return done;
}

static MPI_Offset piece_at(const struct iovec *piece)
{
    return (MPI_Offset)(uintptr_t)piece->iov_base;
}

static MPI_Offset piece_end(const struct iovec *piece)
{
    return piece_at(piece) + (MPI_Offset)piece->iov_len;
}

/* How many of the pieces are close enough to one another to be moved with what lies between. */
static int group_size(const struct access *a, const struct iovec *pieces, int n)
{
    int i = 1;
    while (i < n && piece_at(&pieces[i]) >= piece_end(&pieces[i - 1]) &&
           piece_at(&pieces[i]) - piece_end(&pieces[i - 1]) <= a->sieve.max_gap &&
           piece_end(&pieces[i]) - piece_at(&pieces[0]) <= a->sieve.buffer_bytes)
        i++;
    return i;
}

/* Pieces with what is between them. Returns the bytes of the pieces that were moved. */
static size_t move_group(struct access_state *s, const struct iovec *pieces, int n)
{
    struct access *a = s->a;
    MPI_Offset low = piece_at(&pieces[0]), high = piece_end(&pieces[n - 1]);
    size_t span = (size_t)(high - low), done = 0;
    if (!state_buffer(s, &s->sieve, (size_t)a->sieve.buffer_bytes))
        return 0;
    if (a->write && !a->lock.whole && !range_lock(a, low, high - low))
        return 0;
    size_t there = access_read(a->fd, s->sieve, span, low, &a->errnum);
    if (a->write && !a->errnum)
        memset(s->sieve + there, 0, span - there);
    for (int i = 0; i < n && !a->errnum; i++) {
        size_t at = (size_t)(piece_at(&pieces[i]) - low), length = pieces[i].iov_len;
        if (a->write) {
            done += type_cursor_pack(&a->memory, s->sieve + at, length);
            continue;
        }
        size_t valid = there > at ? there - at : 0;
        done += type_cursor_unpack(&a->memory, s->sieve + at, valid < length ? valid : length);
        if (valid < length)
            break;
    }
    if (a->write && !a->errnum && access_write(a->fd, s->sieve, span, low, &a->errnum) < span)
        done = 0;
    if (a->write && !a->lock.whole)
        range_unlock(a, low, high - low);
    return done;
}

static void move_pieces(struct access_state *s)
{
    struct access *a = s->a;
    bool whole = true;
    while (whole && !a->errnum && type_cursor_left(&a->file) > 0) {
        struct iovec pieces[MAX_PIECES];
        size_t bytes;
        int n = type_cursor_iov(&a->file, pieces, MAX_PIECES, SIZE_MAX, &bytes);
        for (int i = 0, k; i < n && whole && !a->errnum; i += k) {
            size_t wanted = 0, done;
            k = a->sieve.buffer_bytes > 0 ? group_size(a, pieces + i, n - i) : 1;
            for (int j = i; j < i + k; j++)
                wanted += pieces[j].iov_len;
            done = k > 1 ? move_group(s, pieces + i, k) : move_run(s, wanted, piece_at(&pieces[i]));
            a->done += (MPI_Count)done;
            whole = done == wanted;
        }
    }
}

void access_run(struct access *a)
{
    struct access_state s = {.a = a};
    a->done = 0;
    a->errnum = 0;
    a->what = a->write ? "cannot write" : "cannot read";
    if (a->lock.whole && !range_lock(a, a->lock.low, a->lock.n_bytes))
        return;
    move_pieces(&s);
    if (a->lock.whole)
        range_unlock(a, a->lock.low, a->lock.n_bytes);
    free(s.bounce);
    free(s.sieve);
}
