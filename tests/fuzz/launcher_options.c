/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of mpiexec, and what is made of it. Arguments are separated by zero bytes. */
#include <stdio.h>

#include "launcher/mpiexec/submit.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/launcher_input.h"

#define MAX_WORDS 256
/* Beyond this placement only takes longer. */
#define MAX_RANKS 5000

static bool small_enough(const struct options *o)
{
    uint64_t n = 0;

    for (size_t i = 0; i < o->n_parts; i++)
        n += o->parts[i].n_ranks;
    return n <= MAX_RANKS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char *const environment[] = {(char *)"FOO=1", (char *)"PMI_RANK=3", (char *)"ODD", NULL};
    char *text = launcher_input_text(data, n);
    const char *words[MAX_WORDS];
    size_t n_words = 0;
    struct options options;
    struct options_error error = {.text = ""};
    struct submit submit = {0};
    FILE *nowhere = fopen("/dev/null", "w");

    for (const char *p = text; p < text + n && n_words < MAX_WORDS; p += strlen(p) + 1)
        words[n_words++] = p;
    for (size_t i = 0; i < n_words; i++) {
        if (launcher_input_reads_file(words[i]))
            n_words = i;
    }
    if (options_parse(&options, n_words, words, &error) < 0) {
        if (!error.text[0])
            abort(); /* a refusal says why */
    } else if (options.action == ACTION_RUN && small_enough(&options) && nowhere) {
        if (submit_build(&options, environment, "/", nowhere, &submit, &error) < 0 &&
            !error.text[0])
            abort();
    }
    free(submit.body);
    options_free(&options);
    if (nowhere)
        fclose(nowhere);
    free(text);
    return 0;
}
