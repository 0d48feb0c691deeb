/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of three ranks in pieces: without tags no byte is lost or changed, with tags every line
 * begins with one. The first byte chooses; then each piece is a byte (rank, end or timer) with a
 * length, and its data. */
#include "launcher/mpiexec/lines.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/launcher_input.h"

#define N_RANKS 3u

static void check_tagged(const struct bytes *out)
{
    const char *p = bytes_data(out), *end = p ? p + out->n : NULL;

    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (!newline || newline - p < 4 || p[0] != '[' || p[1] < '0' ||
            p[1] >= '0' + (char)N_RANKS || p[2] != ']' || p[3] != ' ')
            abort();
        p = newline + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct lines lines;
    struct bytes out = {0};
    bool tags = n > 0 && data[0] & 1;
    size_t put = 0;
    uint64_t now_ns = 1;

    lines_init(&lines, N_RANKS, tags);
    for (size_t i = 1; i + 1 < n;) {
        uint32_t rank = data[i] % N_RANKS, what = data[i] / 64;
        size_t len = data[i + 1] < n - i - 2 ? data[i + 1] : n - i - 2;
        i += 2;
        now_ns += 5000000;
        if (what == 0) {
            lines_end(&lines, rank, &out);
        } else if (what == 1) {
            lines_timer(&lines, now_ns, &out);
        } else {
            lines_add(&lines, rank, (const char *)data + i, len, now_ns, &out);
            i += len;
            put += len;
        }
    }
    for (uint32_t rank = 0; rank < N_RANKS; rank++)
        lines_end(&lines, rank, &out);
    if (lines.n_waiting != 0)
        abort();
    if (tags)
        check_tagged(&out);
    else if (out.n != put)
        abort();
    bytes_free(&out);
    lines_free(&lines);
    return 0;
}
