/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a fuzzer's function over files and the files of directories, for compilers without libFuzzer
 * and as a test. Besides each file itself it tries every shorter beginning of the small ones, and a
 * few thousand seeded changes of each: not fuzzing, but enough to find a parser that reads past its
 * end.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/rand.h"
#include "tests/fuzz/fuzz.h"

#define MAX_BYTES (1u << 20)
#define CUT_BYTES 512u
#define N_CHANGES 2000u

static unsigned n_inputs;

/* A copy of exactly n bytes, so that a sanitizer sees the first byte behind it. */
static void run(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);

    if (!copy)
        exit(2);
    memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
    n_inputs++;
}

static void run_changed(const uint8_t *data, size_t n, struct rand *r)
{
    uint8_t *copy = malloc(n);

    if (!copy)
        exit(2);
    memcpy(copy, data, n);
    for (uint64_t i = 0, changes = 1 + rand_below(r, 4); i < changes; i++) {
        size_t at = rand_below(r, n);
        copy[at] = (uint8_t)(rand_below(r, 2) ? rand_next(r) : copy[at] ^ 1u << rand_below(r, 8));
    }
    run(copy, n);
    free(copy);
}

static void replay_file(const char *path)
{
    static uint8_t data[MAX_BYTES];
    FILE *f = fopen(path, "rb");
    struct rand r;

    if (!f) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(2);
    }
    size_t n = fread(data, 1, sizeof data, f);
    fclose(f);
    run(data, n);
    for (size_t cut = 0; cut < n && cut < CUT_BYTES; cut++)
        run(data, cut);
    r = (struct rand){.state = n};
    for (unsigned i = 0; n > 0 && n < CUT_BYTES && i < N_CHANGES; i++)
        run_changed(data, n, &r);
}

static void replay(const char *path)
{
    struct stat st;
    DIR *dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    struct dirent *entry;

    if (!dir) {
        replay_file(path);
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        replay_file(name);
    }
    closedir(dir);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    printf("%u inputs\n", n_inputs);
    return n_inputs > 0 ? 0 : 1;
}
