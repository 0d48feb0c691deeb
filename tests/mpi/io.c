/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files: every form of reading and writing, views that interleave the ranks' data, pointers, modes,
 * hints, representations and errors. Uses mpi.h alone, so the same binary runs on any library of
 * the standard ABI. The byte at each place of a file follows from the place alone, so whatever is
 * read can be checked without what was written.
 */
#include "tests/topo/check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, size;
static char name[512];

static unsigned char byte_at(MPI_Offset place)
{
    return (unsigned char)((uint64_t)place * UINT64_C(0x9E3779B97F4A7C15) >> 56);
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        int ok_err = (call);                                                                       \
        if (ok_err != MPI_SUCCESS) {                                                               \
            char ok_text[MPI_MAX_ERROR_STRING];                                                    \
            int ok_n;                                                                              \
            MPI_Error_string(ok_err, ok_text, &ok_n);                                              \
            CHECK(false, "%s", ok_text);                                                           \
        }                                                                                          \
    } while (0)

static int class_of(int err)
{
    int error_class;
    MPI_Error_class(err, &error_class);
    return error_class;
}

static MPI_File open_new(int amode, MPI_Info info)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, amode | MPI_MODE_CREATE, info, &file));
    OK(MPI_File_set_size(file, 0));
    return file;
}

static MPI_File open_fresh(MPI_Info info)
{
    return open_new(MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info);
}

/* ---- the forms ---- */

enum form {
    AT,
    AT_ALL,
    POINTER,
    ALL,
    SHARED,
    ORDERED,
    I_AT,
    I_AT_ALL,
    I_POINTER,
    I_ALL,
    I_SHARED,
    SPLIT_AT_ALL,
    SPLIT_ALL,
    SPLIT_ORDERED,
    FORMS
};

static int do_read(enum form form, MPI_File f, MPI_Offset at, void *buf, int n, MPI_Datatype type,
                   MPI_Status *status)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int err = MPI_SUCCESS;
    switch (form) {
    case AT:
        return MPI_File_read_at(f, at, buf, n, type, status);
    case AT_ALL:
        return MPI_File_read_at_all(f, at, buf, n, type, status);
    case POINTER:
        return MPI_File_read(f, buf, n, type, status);
    case ALL:
        return MPI_File_read_all(f, buf, n, type, status);
    case SHARED:
        return MPI_File_read_shared(f, buf, n, type, status);
    case ORDERED:
        return MPI_File_read_ordered(f, buf, n, type, status);
    case I_AT:
        err = MPI_File_iread_at(f, at, buf, n, type, &request);
        break;
    case I_AT_ALL:
        err = MPI_File_iread_at_all(f, at, buf, n, type, &request);
        break;
    case I_POINTER:
        err = MPI_File_iread(f, buf, n, type, &request);
        break;
    case I_ALL:
        err = MPI_File_iread_all(f, buf, n, type, &request);
        break;
    case I_SHARED:
        err = MPI_File_iread_shared(f, buf, n, type, &request);
        break;
    case SPLIT_AT_ALL:
        OK(MPI_File_read_at_all_begin(f, at, buf, n, type));
        return MPI_File_read_at_all_end(f, buf, status);
    case SPLIT_ALL:
        OK(MPI_File_read_all_begin(f, buf, n, type));
        return MPI_File_read_all_end(f, buf, status);
    case SPLIT_ORDERED:
        OK(MPI_File_read_ordered_begin(f, buf, n, type));
        return MPI_File_read_ordered_end(f, buf, status);
    case FORMS:
        break;
    }
    return err ? err : MPI_Wait(&request, status);
}

static int do_write(enum form form, MPI_File f, MPI_Offset at, const void *buf, int n,
                    MPI_Datatype type, MPI_Status *status)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int err = MPI_SUCCESS;
    switch (form) {
    case AT:
        return MPI_File_write_at(f, at, buf, n, type, status);
    case AT_ALL:
        return MPI_File_write_at_all(f, at, buf, n, type, status);
    case POINTER:
        return MPI_File_write(f, buf, n, type, status);
    case ALL:
        return MPI_File_write_all(f, buf, n, type, status);
    case SHARED:
        return MPI_File_write_shared(f, buf, n, type, status);
    case ORDERED:
        return MPI_File_write_ordered(f, buf, n, type, status);
    case I_AT:
        err = MPI_File_iwrite_at(f, at, buf, n, type, &request);
        break;
    case I_AT_ALL:
        err = MPI_File_iwrite_at_all(f, at, buf, n, type, &request);
        break;
    case I_POINTER:
        err = MPI_File_iwrite(f, buf, n, type, &request);
        break;
    case I_ALL:
        err = MPI_File_iwrite_all(f, buf, n, type, &request);
        break;
    case I_SHARED:
        err = MPI_File_iwrite_shared(f, buf, n, type, &request);
        break;
    case SPLIT_AT_ALL:
        OK(MPI_File_write_at_all_begin(f, at, buf, n, type));
        return MPI_File_write_at_all_end(f, buf, status);
    case SPLIT_ALL:
        OK(MPI_File_write_all_begin(f, buf, n, type));
        return MPI_File_write_all_end(f, buf, status);
    case SPLIT_ORDERED:
        OK(MPI_File_write_ordered_begin(f, buf, n, type));
        return MPI_File_write_ordered_end(f, buf, status);
    case FORMS:
        break;
    }
    return err ? err : MPI_Wait(&request, status);
}

static void check_count(const MPI_Status *status, MPI_Datatype type, int wanted, const char *what)
{
    int n;
    MPI_Get_count(status, type, &n);
    CHECK(n == wanted, "%s: %d elements instead of %d", what, n, wanted);
}

static bool uses_shared(enum form form)
{
    return form == SHARED || form == I_SHARED || form == ORDERED || form == SPLIT_ORDERED;
}

/* Each rank writes a block of the file in every form, and reads that of its neighbour. */
static void check_forms(int n, MPI_Info info)
{
    unsigned char *mine = malloc((size_t)n), *got = malloc((size_t)n);
    for (enum form form = AT; form < FORMS; form++) {
        MPI_File f = open_fresh(info);
        MPI_Status status;
        MPI_Offset at = (MPI_Offset)rank * n;
        if (form == SHARED || form == I_SHARED) {
            /* Whose block is where is not said: all blocks are alike. */
            for (int i = 0; i < n; i++)
                mine[i] = byte_at(i);
        } else {
            for (int i = 0; i < n; i++)
                mine[i] = byte_at(at + i);
        }
        OK(MPI_File_seek(f, at, MPI_SEEK_SET));
        OK(do_write(form, f, at, mine, n, MPI_BYTE, &status));
        check_count(&status, MPI_BYTE, n, "written");
        OK(MPI_File_sync(f));
        MPI_Barrier(MPI_COMM_WORLD);
        OK(MPI_File_sync(f));
        MPI_Offset end;
        OK(MPI_File_get_size(f, &end));
        CHECK(end == (MPI_Offset)n * size, "form %d: size %lld", form, (long long)end);
        at = (MPI_Offset)((rank + 1) % size) * n;
        if (form == ORDERED || form == SPLIT_ORDERED)
            at = (MPI_Offset)rank * n;
        OK(MPI_File_seek(f, at, MPI_SEEK_SET));
        OK(MPI_File_seek_shared(f, 0, MPI_SEEK_SET));
        memset(got, 0, (size_t)n);
        OK(do_read(form, f, at, got, n, MPI_BYTE, &status));
        check_count(&status, MPI_BYTE, n, "read");
        int wrong = 0;
        for (int i = 0; i < n; i++)
            wrong += got[i] != byte_at(form == SHARED || form == I_SHARED ? i : at + i);
        CHECK(wrong == 0, "form %d: %d of %d bytes are wrong", form, wrong, n);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Offset position, shared;
        OK(MPI_File_get_position(f, &position));
        OK(MPI_File_get_position_shared(f, &shared));
        bool moves = form == POINTER || form == ALL || form == I_POINTER || form == I_ALL ||
                     form == SPLIT_ALL;
        CHECK(position == at + (moves ? n : 0), "form %d: position %lld", form,
              (long long)position);
        CHECK(shared == (uses_shared(form) ? end : 0), "form %d: shared position %lld", form,
              (long long)shared);
        OK(MPI_File_close(&f));
        CHECK(f == MPI_FILE_NULL, "a closed file is not null");
    }
    free(mine);
    free(got);
}

/* ---- views ---- */

/* The ranks' parts of a row of the file, each `block` elements, from memory with gaps. */
static void check_interleaved(int n_blocks, int block, bool collective, bool gaps, MPI_Info info)
{
    MPI_Datatype filetype, memtype;
    MPI_Status status;
    int n = n_blocks * block;
    size_t step = gaps ? 2 : 1;
    int32_t *mine = malloc((size_t)n * step * sizeof *mine);
    int64_t wrong = 0;
    MPI_File f = open_fresh(info);

    MPI_Type_vector(n_blocks, block, block * size, MPI_INT32_T, &filetype);
    MPI_Type_commit(&filetype);
    MPI_Type_vector(n, 1, (int)step, MPI_INT32_T, &memtype);
    MPI_Type_commit(&memtype);
    MPI_Offset disp = 12 + (MPI_Offset)rank * block * 4;
    OK(MPI_File_set_view(f, disp, MPI_INT32_T, filetype, "native", MPI_INFO_NULL));
    for (int i = 0; i < n; i++)
        mine[(size_t)i * step] = (int32_t)((i / block * size + rank) * block + i % block);
    if (collective)
        OK(MPI_File_write_all(f, mine, 1, memtype, &status));
    else
        OK(MPI_File_write(f, mine, 1, memtype, &status));
    check_count(&status, MPI_INT32_T, n, "written through a view");
    MPI_Offset position, byte;
    OK(MPI_File_get_position(f, &position));
    CHECK(position == n, "position %lld after %d etypes", (long long)position, n);
    OK(MPI_File_get_byte_offset(f, block, &byte));
    CHECK(n_blocks < 2 || byte == disp + (MPI_Offset)block * size * 4, "byte offset %lld",
          (long long)byte);
    OK(MPI_File_sync(f));
    MPI_Barrier(MPI_COMM_WORLD);
    memset(mine, 0xee, (size_t)n * step * sizeof *mine);
    if (collective)
        OK(MPI_File_read_at_all(f, 0, mine, 1, memtype, &status));
    else
        OK(MPI_File_read_at(f, 0, mine, 1, memtype, &status));
    check_count(&status, MPI_INT32_T, n, "read through a view");
    for (int i = 0; i < n; i++)
        wrong += mine[(size_t)i * step] != (i / block * size + rank) * block + i % block;
    CHECK(wrong == 0, "%d blocks of %d: %lld elements are wrong", n_blocks, block,
          (long long)wrong);
    for (size_t i = 1; gaps && i < (size_t)n * step; i += step)
        CHECK(mine[i] == (int32_t)0xeeeeeeee, "a gap in memory was written");

    /* As a whole: the numbers in their order. */
    OK(MPI_File_set_view(f, 12, MPI_INT32_T, MPI_INT32_T, "native", MPI_INFO_NULL));
    int32_t *whole = malloc((size_t)n * (size_t)size * sizeof *whole);
    OK(MPI_File_read_at(f, 0, whole, n * size, MPI_INT32_T, &status));
    check_count(&status, MPI_INT32_T, n * size, "read as a whole");
    for (int i = 0; i < n * size; i++)
        wrong += whole[i] != i;
    CHECK(wrong == 0, "%lld elements of the whole are wrong", (long long)wrong);
    free(whole);
    free(mine);
    MPI_Type_free(&memtype);
    MPI_Type_free(&filetype);
    OK(MPI_File_close(&f));
}

/* A part of a 3-D array for each rank, in the collective forms that go on while others compute. */
static void check_array(int edge, MPI_Info info)
{
    int dims[3] = {0, 0, 0}, sizes[3], subsizes[3], starts[3], place[3], rest = rank;
    MPI_Datatype filetype;
    MPI_Request requests[2];
    MPI_Dims_create(size, 3, dims);
    for (int i = 2; i >= 0; i--) {
        place[i] = rest % dims[i];
        rest /= dims[i];
        sizes[i] = edge * dims[i];
        subsizes[i] = edge;
        starts[i] = edge * place[i];
    }
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &filetype);
    MPI_Type_commit(&filetype);
    size_t n = (size_t)edge * (size_t)edge * (size_t)edge, wrong = 0;
    double *a = malloc(2 * n * sizeof *a), *b = calloc(2 * n, sizeof *b);
    for (size_t i = 0; i < 2 * n; i++)
        a[i] = (double)rank * 1e6 + (double)i;
    MPI_File f = open_fresh(info);
    OK(MPI_File_set_view(f, 0, MPI_DOUBLE, filetype, "native", MPI_INFO_NULL));
    /* Two at a time, waited for in the other order. */
    OK(MPI_File_iwrite_all(f, a, (int)n, MPI_DOUBLE, &requests[0]));
    OK(MPI_File_iwrite_all(f, a + n, (int)n, MPI_DOUBLE, &requests[1]));
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_File_iread_at_all(f, (MPI_Offset)n, b + n, (int)n, MPI_DOUBLE, &requests[0]));
    OK(MPI_File_iread_at_all(f, 0, b, (int)n, MPI_DOUBLE, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (size_t i = 0; i < 2 * n; i++)
        wrong += a[i] != b[i];
    CHECK(wrong == 0, "%zu of %zu elements of an array are wrong", wrong, 2 * n);
    MPI_Offset end;
    OK(MPI_File_get_size(f, &end));
    CHECK(end == (MPI_Offset)(2 * n * sizeof *a) * size, "size %lld", (long long)end);
    free(a);
    free(b);
    MPI_Type_free(&filetype);
    OK(MPI_File_close(&f));
}

/* Runs of the file without any pattern, of which each window of an aggregator has another number.
 */
static void check_irregular(MPI_Info info)
{
    enum { WINDOWS = 64, WINDOW = 4096, MOST = 13 };
    static int lengths[WINDOWS * MOST];
    static MPI_Aint places[WINDOWS * MOST];
    int n = 0, bytes = 0, wrong = 0, part = WINDOW / size, step = part / MOST;
    MPI_Datatype filetype;
    MPI_Status status;
    if (step < 3)
        return;
    for (int w = 0; w < WINDOWS; w++) {
        int n_here = 3 + byte_at(w * size + rank) % (MOST - 2);
        for (int i = 0; i < n_here; i++) {
            int random = byte_at(1000000 + n);
            places[n] = (MPI_Aint)w * WINDOW + rank * part + i * step + random % 2;
            lengths[n] = 1 + random % (step - 2);
            bytes += lengths[n++];
        }
    }
    MPI_Type_create_hindexed(n, lengths, places, MPI_BYTE, &filetype);
    MPI_Type_commit(&filetype);
    unsigned char *mine = malloc((size_t)bytes), *got = calloc((size_t)bytes, 1);
    for (int i = 0, at = 0; i < n; at += lengths[i++])
        for (int k = 0; k < lengths[i]; k++)
            mine[at + k] = byte_at(places[i] + k);
    MPI_File f = open_fresh(info);
    OK(MPI_File_set_view(f, 0, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(f, mine, bytes, MPI_BYTE, &status));
    check_count(&status, MPI_BYTE, bytes, "written in runs");
    OK(MPI_File_read_at_all(f, 0, got, bytes, MPI_BYTE, &status));
    check_count(&status, MPI_BYTE, bytes, "read in runs");
    for (int i = 0; i < bytes; i++)
        wrong += got[i] != mine[i];
    CHECK(wrong == 0, "%d of %d bytes in runs are wrong", wrong, bytes);
    free(mine);
    free(got);
    MPI_Type_free(&filetype);
    OK(MPI_File_close(&f));
}

/* Two collectives at once, of which the second is over first where the other is long: each has its
 * own result, though only one rank writes, and what the second writes is beyond the largest file
 * allowed. */
static void check_own_results(void)
{
    enum { LONG = 2 << 20, SHORT = 20000, LIMIT = 16 << 20 };
    struct rlimit before, limit;
    MPI_Request requests[2];
    MPI_Info info;
    char *data = calloc(LONG, 1);
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "cb_nodes", "1");
    MPI_Info_set(info, "cb_buffer_size", "4096");
    MPI_File f = open_fresh(info);
    MPI_Info_free(&info);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = LIMIT;
    setrlimit(RLIMIT_FSIZE, &limit);
    OK(MPI_File_iwrite_at_all(f, 0, data, rank == 0 ? LONG : 0, MPI_BYTE, &requests[0]));
    OK(MPI_File_iwrite_at_all(f, 2 * LIMIT, data, rank == 1 ? SHORT : 0, MPI_BYTE, &requests[1]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    int err = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    CHECK(size < 2 || rank > 1 || err != MPI_SUCCESS, "a write beyond the limit succeeds");
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    free(data);
    OK(MPI_File_close(&f));
}

/* Reading stops at the end of the file, in the middle of a strided access as well. */
static void check_end(bool collective, MPI_Info info)
{
    unsigned char whole[1000], got[1000];
    MPI_Datatype filetype;
    MPI_Status status;
    MPI_File f = open_fresh(info);
    for (int i = 0; i < 1000; i++)
        whole[i] = byte_at(i);
    if (rank == 0)
        OK(MPI_File_write_at(f, 0, whole, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(f));
    MPI_Barrier(MPI_COMM_WORLD);
    /* 10 of 10 * size bytes each, to byte 2,000. */
    MPI_Type_vector(2000 / (10 * size), 10, 10 * size, MPI_BYTE, &filetype);
    MPI_Type_commit(&filetype);
    OK(MPI_File_set_view(f, rank * 10, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    int wanted = 0, n = 2000 / (10 * size) * 10;
    for (int i = 0; i < n; i++)
        wanted += (i / 10 * size + rank) * 10 + i % 10 < 1000;
    if (n > 1000)
        n = 1000;
    if (wanted > n)
        wanted = n;
    memset(got, 0, sizeof got);
    if (collective)
        OK(MPI_File_read_all(f, got, n, MPI_BYTE, &status));
    else
        OK(MPI_File_read(f, got, n, MPI_BYTE, &status));
    check_count(&status, MPI_BYTE, wanted, "read up to the end");
    for (int i = 0; i < wanted; i++)
        CHECK(got[i] == byte_at((i / 10 * size + rank) * 10 + i % 10), "byte %d is wrong", i);
    OK(MPI_File_read_at(f, 5000, got, 10, MPI_BYTE, &status));
    check_count(&status, MPI_BYTE, 0, "read behind the end");
    MPI_Type_free(&filetype);
    OK(MPI_File_close(&f));
}

/* Writers of neighbouring pieces by themselves: nobody's bytes are undone by another's. */
static void check_neighbours(MPI_Info info)
{
    enum { PIECES = 200, LENGTH = 7 };
    MPI_Datatype filetype;
    unsigned char mine[PIECES * LENGTH], *whole = malloc((size_t)(PIECES * LENGTH * size));
    MPI_File f = open_fresh(info);
    MPI_Type_vector(PIECES, LENGTH, LENGTH * size, MPI_BYTE, &filetype);
    MPI_Type_commit(&filetype);
    OK(MPI_File_set_view(f, rank * LENGTH, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    for (int i = 0; i < PIECES * LENGTH; i++)
        mine[i] = byte_at((i / LENGTH * size + rank) * LENGTH + i % LENGTH);
    for (int round = 0; round < 5; round++)
        OK(MPI_File_write_at(f, 0, mine, PIECES * LENGTH, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(f));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(f, 0, whole, PIECES * LENGTH * size, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < PIECES * LENGTH * size; i++)
        CHECK(whole[i] == byte_at(i), "byte %d of the neighbours' is wrong", i);
    free(whole);
    MPI_Type_free(&filetype);
    OK(MPI_File_close(&f));
}

/* In atomic mode a reader sees all of a write or nothing. */
static void check_atomic(void)
{
    enum { N = 20000 };
    int got[N];
    MPI_File f = open_fresh(MPI_INFO_NULL);
    int flag;
    OK(MPI_File_set_atomicity(f, 1));
    OK(MPI_File_get_atomicity(f, &flag));
    CHECK(flag == 1, "atomicity was not set");
    memset(got, 0, sizeof got);
    if (rank == 0)
        OK(MPI_File_write_at(f, 0, got, N, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 1; round <= 20; round++) {
        for (int i = 0; rank == 0 && i < N; i++)
            got[i] = round;
        if (rank == 0)
            OK(MPI_File_write_at(f, 0, got, N, MPI_INT, MPI_STATUS_IGNORE));
        else
            OK(MPI_File_read_at(f, 0, got, N, MPI_INT, MPI_STATUS_IGNORE));
        for (int i = 1; i < N; i++)
            CHECK(got[i] == got[0], "element %d is %d, the first %d", i, got[i], got[0]);
    }
    OK(MPI_File_close(&f));
}

/* ---- the shared pointer ---- */

static void check_shared(void)
{
    enum { N = 50 };
    MPI_File f = open_fresh(MPI_INFO_NULL);
    char *seen = calloc((size_t)(size * N), 1);
    int *all = malloc((size_t)(size * N) * sizeof *all), one;
    for (int i = 0; i < N; i++) {
        one = rank * N + i;
        OK(MPI_File_write_shared(f, &one, 1, MPI_INT, MPI_STATUS_IGNORE));
    }
    OK(MPI_File_sync(f));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Offset at;
    OK(MPI_File_get_position_shared(f, &at));
    CHECK(at == (MPI_Offset)sizeof(int) * N * size, "shared position %lld", (long long)at);
    OK(MPI_File_read_at(f, 0, all, size * N, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < size * N; i++) {
        CHECK(all[i] >= 0 && all[i] < size * N && !seen[all[i]], "element %d is %d", i, all[i]);
        seen[all[i]] = 1;
    }
    /* In the order of ranks, parts of unlike lengths. */
    OK(MPI_File_seek_shared(f, 0, MPI_SEEK_SET));
    for (int i = 0; i <= rank; i++)
        all[i] = rank * 100 + i;
    OK(MPI_File_write_ordered(f, all, rank + 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_write_ordered_begin(f, all, rank + 1, MPI_INT));
    OK(MPI_File_write_ordered_end(f, all, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    int n = size * (size + 1) / 2, at_int = 0;
    OK(MPI_File_read_at(f, (MPI_Offset)sizeof(int) * n, all, n, MPI_INT, MPI_STATUS_IGNORE));
    for (int r = 0; r < size; r++)
        for (int i = 0; i <= r; i++)
            CHECK(all[at_int++] == r * 100 + i, "ordered: rank %d's element %d is wrong", r, i);
    free(all);
    free(seen);
    OK(MPI_File_close(&f));
}

/* ---- modes, sizes, names ---- */

static void check_modes(void)
{
    MPI_File f;
    MPI_Offset at;
    int amode, err;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY,
                     MPI_INFO_NULL, &f));
    OK(MPI_File_get_amode(f, &amode));
    CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY), "amode %d", amode);
    err = MPI_File_read_at(f, 0, &amode, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(class_of(err) == MPI_ERR_ACCESS, "reading a write-only file: class %d", class_of(err));
    OK(MPI_File_preallocate(f, 1000));
    OK(MPI_File_get_size(f, &at));
    CHECK(at == 1000, "preallocated: size %lld", (long long)at);
    OK(MPI_File_set_size(f, 100));
    OK(MPI_File_get_size(f, &at));
    CHECK(at == 100, "cut: size %lld", (long long)at);
    OK(MPI_File_close(&f));
    err = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR,
                        MPI_INFO_NULL, &f);
    CHECK(class_of(err) == MPI_ERR_FILE_EXISTS, "MPI_MODE_EXCL: class %d", class_of(err));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL, &f));
    OK(MPI_File_get_position(f, &at));
    CHECK(at == 100, "MPI_MODE_APPEND: position %lld", (long long)at);
    OK(MPI_File_get_position_shared(f, &at));
    CHECK(at == 100, "MPI_MODE_APPEND: shared position %lld", (long long)at);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_seek(f, -10, MPI_SEEK_END));
    OK(MPI_File_get_position(f, &at));
    CHECK(at == 90, "MPI_SEEK_END: position %lld", (long long)at);
    OK(MPI_File_seek(f, 5, MPI_SEEK_CUR));
    OK(MPI_File_get_position(f, &at));
    CHECK(at == 95, "MPI_SEEK_CUR: position %lld", (long long)at);
    err = MPI_File_seek(f, -96, MPI_SEEK_CUR);
    CHECK(class_of(err) == MPI_ERR_ARG, "seeking before 0: class %d", class_of(err));
    OK(MPI_File_close(&f));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE,
                     MPI_INFO_NULL, &f));
    err = MPI_File_write_at(f, 0, &amode, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(class_of(err) == MPI_ERR_READ_ONLY, "writing a read-only file: class %d", class_of(err));
    OK(MPI_File_close(&f));
    err = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
    CHECK(class_of(err) == MPI_ERR_NO_SUCH_FILE, "a deleted file: class %d", class_of(err));
    CHECK(access(name, F_OK) != 0, "MPI_MODE_DELETE_ON_CLOSE left the file");
    err = MPI_File_delete(name, MPI_INFO_NULL);
    CHECK(class_of(err) == MPI_ERR_NO_SUCH_FILE, "deleting nothing: class %d", class_of(err));
    err = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_WRONLY, MPI_INFO_NULL, &f);
    CHECK(class_of(err) == MPI_ERR_AMODE, "two accesses: class %d", class_of(err));
    err = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &f);
    CHECK(class_of(err) == MPI_ERR_AMODE, "RDONLY and CREATE: class %d", class_of(err));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void check_sequential(void)
{
    MPI_File f;
    char c = (char)('a' + rank);
    OK(MPI_File_open(MPI_COMM_WORLD, name,
                     MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL |
                         MPI_MODE_DELETE_ON_CLOSE,
                     MPI_INFO_NULL, &f));
    int err = MPI_File_write_at(f, 0, &c, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    CHECK(class_of(err) == MPI_ERR_UNSUPPORTED_OPERATION, "sequential: class %d", class_of(err));
    err = MPI_File_seek(f, 0, MPI_SEEK_SET);
    CHECK(class_of(err) == MPI_ERR_UNSUPPORTED_OPERATION, "sequential: class %d", class_of(err));
    OK(MPI_File_write_ordered(f, &c, 1, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(f, MPI_DISPLACEMENT_CURRENT, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
    MPI_Offset disp;
    MPI_Datatype etype, filetype;
    char rep[MPI_MAX_DATAREP_STRING];
    OK(MPI_File_get_view(f, &disp, &etype, &filetype, rep));
    CHECK(disp == size, "MPI_DISPLACEMENT_CURRENT led to %lld", (long long)disp);
    OK(MPI_File_close(&f));
}

/* ---- what a file tells of itself ---- */

static void check_told(void)
{
    MPI_Info info, used;
    MPI_Group group;
    MPI_Datatype etype, filetype, vector;
    MPI_Offset disp;
    char rep[MPI_MAX_DATAREP_STRING], value[64];
    int n, flag, length = sizeof value;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "65536");
    MPI_Info_set(info, "cb_nodes", "1");
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_File f = open_fresh(info);
    OK(MPI_File_get_info(f, &used));
    MPI_Info_get_string(used, "cb_buffer_size", &length, value, &flag);
    CHECK(flag && strcmp(value, "65536") == 0, "cb_buffer_size is %s", flag ? value : "not there");
    length = sizeof value;
    MPI_Info_get_string(used, "romio_cb_write", &length, value, &flag);
    CHECK(flag && strcmp(value, "enable") == 0, "romio_cb_write is %s", flag ? value : "not there");
    MPI_Info_free(&used);
    MPI_Info_free(&info);
    OK(MPI_File_get_group(f, &group));
    MPI_Group_size(group, &n);
    CHECK(n == size, "a group of %d", n);
    MPI_Group_free(&group);
    MPI_Type_vector(3, 2, 5, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    OK(MPI_File_set_view(f, 40, MPI_INT, vector, "native", MPI_INFO_NULL));
    MPI_Type_free(&vector);
    OK(MPI_File_get_view(f, &disp, &etype, &filetype, rep));
    CHECK(disp == 40 && etype == MPI_INT && strcmp(rep, "native") == 0, "view %lld %s",
          (long long)disp, rep);
    MPI_Type_size(filetype, &n);
    CHECK(n == 6 * (int)sizeof(int), "a filetype of %d bytes", n);
    MPI_Type_free(&filetype);
    int err = MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "nonsense", MPI_INFO_NULL);
    CHECK(class_of(err) == MPI_ERR_UNSUPPORTED_DATAREP, "a wrong datarep: class %d", class_of(err));
    err = MPI_File_set_view(f, 0, MPI_INT, MPI_BYTE, "native", MPI_INFO_NULL);
    CHECK(err != MPI_SUCCESS, "a filetype that is no multiple of its etype");
    OK(MPI_File_close(&f));
}

/* ---- error handlers ---- */

static int n_heard, heard_class;
static MPI_File heard_file;

static void on_error(MPI_File *file, int *code, ...)
{
    n_heard++;
    heard_file = *file;
    heard_class = class_of(*code);
}

static void check_handlers(void)
{
    MPI_Errhandler handler, before;
    MPI_File f = open_fresh(MPI_INFO_NULL);
    int one;
    OK(MPI_File_get_errhandler(f, &before));
    CHECK(before == MPI_ERRORS_RETURN, "a new file's error handler is another one");
    OK(MPI_File_create_errhandler(on_error, &handler));
    OK(MPI_File_set_errhandler(f, handler));
    int err = MPI_File_read_at(f, -1, &one, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(err != MPI_SUCCESS && n_heard == 1 && heard_file == f, "heard %d times", n_heard);
    OK(MPI_File_set_errhandler(f, MPI_ERRORS_RETURN));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
    MPI_File none;
    MPI_File_open(MPI_COMM_WORLD, "/nonexistent/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &none);
    CHECK(n_heard == 2 && heard_class == MPI_ERR_NO_SUCH_FILE, "heard %d times, class %d", n_heard,
          heard_class);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    MPI_Errhandler_free(&handler);
    OK(MPI_File_close(&f));
}

/* ---- representations ---- */

static void check_external32(bool collective)
{
    unsigned char raw[8];
    int mine[40], got[40];
    MPI_Datatype vector;
    MPI_Aint extent;
    MPI_Status status;
    MPI_File f = open_fresh(MPI_INFO_NULL);
    /* Every size-th int is this rank's. */
    MPI_Type_vector(40, 1, size, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    OK(MPI_File_set_view(f, rank * 4, MPI_INT, vector, "external32", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(f, MPI_INT, &extent));
    CHECK(extent == 4, "an int of %d bytes in external32", (int)extent);
    for (int i = 0; i < 40; i++)
        mine[i] = 0x01020304 + i * size + rank;
    if (collective)
        OK(MPI_File_write_all(f, mine, 40, MPI_INT, &status));
    else
        OK(MPI_File_write(f, mine, 40, MPI_INT, &status));
    check_count(&status, MPI_INT, 40, "written in external32");
    OK(MPI_File_sync(f));
    MPI_Barrier(MPI_COMM_WORLD);
    memset(got, 0, sizeof got);
    OK(MPI_File_read_at(f, 0, got, 40, MPI_INT, &status));
    check_count(&status, MPI_INT, 40, "read in external32");
    CHECK(memcmp(mine, got, sizeof mine) == 0, "external32 came back otherwise");
    OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(f, 4, raw, 4, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(raw[0] == 1 && raw[1] == 2 && raw[2] == 3 && raw[3] == 5, "external32 is %d %d %d %d",
          raw[0], raw[1], raw[2], raw[3]);
    MPI_Type_free(&vector);
    OK(MPI_File_close(&f));
}

/* Registered: ints of eight bytes, negated. */
static int rep_extent(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    int n;
    MPI_Type_size(type, &n);
    *extent = 2 * n;
    ++*(int *)extra;
    return MPI_SUCCESS;
}

static int rep_read(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position,
                    void *extra)
{
    (void)type;
    ++*(int *)extra;
    for (int i = 0; i < count; i++) {
        int64_t value;
        memcpy(&value, (char *)file + (size_t)i * 8, 8);
        ((int *)user)[position + i] = (int)-value;
    }
    return MPI_SUCCESS;
}

static int rep_write(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position,
                     void *extra)
{
    (void)type;
    ++*(int *)extra;
    for (int i = 0; i < count; i++) {
        int64_t value = -((int *)user)[position + i];
        memcpy((char *)file + (size_t)i * 8, &value, 8);
    }
    return MPI_SUCCESS;
}

static void check_registered(void)
{
    static int n_calls;
    int mine[100], got[100];
    int64_t raw;
    MPI_Status status;
    OK(MPI_Register_datarep("io.c: wide", rep_read, rep_write, rep_extent, &n_calls));
    int err = MPI_Register_datarep("io.c: wide", rep_read, rep_write, rep_extent, &n_calls);
    CHECK(class_of(err) == MPI_ERR_DUP_DATAREP, "registered twice: class %d", class_of(err));
    MPI_File f = open_fresh(MPI_INFO_NULL);
    OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "io.c: wide", MPI_INFO_NULL));
    for (int i = 0; i < 100; i++)
        mine[i] = rank * 1000 + i;
    OK(MPI_File_write_at_all(f, rank * 100, mine, 100, MPI_INT, &status));
    check_count(&status, MPI_INT, 100, "written in a registered representation");
    MPI_Request request;
    OK(MPI_File_iread_at(f, rank * 100, got, 100, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    check_count(&status, MPI_INT, 100, "read in a registered representation");
    CHECK(memcmp(mine, got, sizeof mine) == 0, "a registered representation came back otherwise");
    OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(f, (rank * 100 + 7) * 8, &raw, 8, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(raw == -(rank * 1000 + 7), "the file has %lld", (long long)raw);
    CHECK(n_calls > 2, "%d calls of conversions", n_calls);
    OK(MPI_File_close(&f));
}

/* Many requests at once, of which some are freed before they are over. */
static void check_many(void)
{
    enum { N = 64, BYTES = 3000 };
    MPI_Request requests[N];
    unsigned char *mine = malloc(N * BYTES), *got = malloc(N * BYTES);
    MPI_File f = open_fresh(MPI_INFO_NULL);
    MPI_Offset base = (MPI_Offset)rank * N * BYTES;
    for (int i = 0; i < N * BYTES; i++)
        mine[i] = byte_at(base + i);
    for (int i = 0; i < N; i++)
        OK(MPI_File_iwrite_at(f, base + i * BYTES, mine + i * BYTES, BYTES, MPI_BYTE,
                              &requests[i]));
    OK(MPI_Waitall(N, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++)
        OK(MPI_File_iread_at(f, base + i * BYTES, got + i * BYTES, BYTES, MPI_BYTE, &requests[i]));
    for (int i = 0; i < N; i += 2)
        MPI_Request_free(&requests[i]);
    for (int done = 0; !done;)
        MPI_Testall(N, requests, &done, MPI_STATUSES_IGNORE);
    OK(MPI_File_close(&f)); /* what was freed is over */
    CHECK(memcmp(mine, got, N * BYTES) == 0, "many requests brought wrong data");
    free(mine);
    free(got);
}

int main(int argc, char **argv)
{
    MPI_Info together, alone;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        snprintf(name, sizeof name, "%s/checked-%d.io",
                 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Info_create(&together);
    MPI_Info_set(together, "romio_cb_write", "enable");
    MPI_Info_set(together, "romio_cb_read", "enable");
    MPI_Info_set(together, "cb_buffer_size", "4096");
    MPI_Info_create(&alone);
    MPI_Info_set(alone, "romio_cb_write", "disable");
    MPI_Info_set(alone, "romio_cb_read", "disable");
    MPI_Info_set(alone, "romio_ds_write", "enable");
    MPI_Info infos[] = {MPI_INFO_NULL, together, alone};
    for (int i = 0; i < 3; i++) {
        check_forms(1000, infos[i]);
        check_forms(100000, infos[i]);
        for (int k = 0; k < 4; k++) {
            check_interleaved(100, 3, k & 1, k & 2, infos[i]);
            check_interleaved(1, 1000, k & 1, k & 2, infos[i]);
            check_interleaved(2000, 11, k & 1, k & 2, infos[i]);
        }
        check_irregular(infos[i]);
        check_array(17, infos[i]);
        check_end(false, infos[i]);
        check_end(true, infos[i]);
        check_neighbours(infos[i]);
    }
    check_array(40, MPI_INFO_NULL);
    check_atomic();
    check_shared();
    check_modes();
    check_sequential();
    check_told();
    check_handlers();
    check_external32(false);
    check_external32(true);
    check_registered();
    check_many();
    check_own_results();
    MPI_Info_free(&together);
    MPI_Info_free(&alone);
    if (rank == 0)
        printf("No Errors\n");
    MPI_Finalize();
    return 0;
}
