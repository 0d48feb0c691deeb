/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A system that moves less than it was asked for, as network file systems may: an access goes on
 * where each call has ended. The calls with vectors are this file's own, so that every one of them
 * is cut short, in the middle of a piece of memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/abi/semantics.h"
#include "client/io/access/access.h"

/* Pieces that are long enough to go as vectors, with gaps between them. */
#define PIECE    3000
#define STEP     4096
#define PIECES   40
#define AT_ONCE  5000
#define AT_FIRST 123 /* where the stream begins in the file */

static int n_calls;

static ssize_t move_some(int fd, const struct iovec *v, int n_v, off_t at, bool write)
{
    size_t done = 0;
    n_calls++;
    for (int i = 0; i < n_v && done < AT_ONCE; i++) {
        size_t n = v[i].iov_len < AT_ONCE - done ? v[i].iov_len : AT_ONCE - done;
        ssize_t moved = write ? pwrite(fd, v[i].iov_base, n, at + (off_t)done)
                              : pread(fd, v[i].iov_base, n, at + (off_t)done);
        if (moved < 0)
            return -1;
        done += (size_t)moved;
        if ((size_t)moved < n)
            break;
    }
    return (ssize_t)done;
}

ssize_t preadv(int fd, const struct iovec *v, int n_v, off_t at)
{
    return move_some(fd, v, n_v, at, false);
}

ssize_t pwritev(int fd, const struct iovec *v, int n_v, off_t at)
{
    return move_some(fd, v, n_v, at, true);
}

static void access_all(int fd, bool write, const struct datatype *strided, unsigned char *memory)
{
    struct access a = {.fd = fd, .write = write};
    const MPI_Count n = (MPI_Count)PIECES * PIECE;

    type_cursor_init(&a.file, datatype_predefined(MPI_BYTE), n, (void *)(uintptr_t)AT_FIRST);
    type_cursor_init(&a.memory, strided, 1, memory);
    n_calls = 0;
    access_run(&a);
    assert_int_equal(a.errnum, 0);
    assert_int_equal(a.done, n);
    assert_true(n_calls >= n / AT_ONCE);
}

static void every_byte_finds_its_place(void **state)
{
    static unsigned char from[PIECES * STEP], to[PIECES * STEP], wanted[PIECES * STEP];
    unsigned char stream[PIECES * PIECE];
    struct datatype *strided;
    int fd = memfd_create("cut", MFD_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(
        mpi_type_vector(PIECES, PIECE, STEP, datatype_predefined(MPI_BYTE), &strided, false),
        MPI_SUCCESS);
    assert_int_equal(mpi_type_commit(&strided), MPI_SUCCESS);
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 2654435761u >> 24);
    access_all(fd, true, strided, from);
    assert_int_equal(pread(fd, stream, sizeof stream, AT_FIRST), sizeof stream);
    for (size_t p = 0; p < PIECES; p++) {
        assert_memory_equal(stream + p * PIECE, from + p * STEP, PIECE);
        memcpy(wanted + p * STEP, from + p * STEP, PIECE);
    }
    access_all(fd, false, strided, to);
    assert_memory_equal(to, wanted, sizeof to);
    mpi_type_free(&strided);
    close(fd);
}

int main(void)
{
    if (datatype_init() != MPI_SUCCESS)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_finds_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
