/* SPDX-License-Identifier: BSD-3-Clause */
/* The contents of a -configfile. */
#include "launcher/mpiexec/command/options.h"
#include "launcher/mpiexec/command/split.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/launcher_input.h"

static bool reads_file(const char *text)
{
    struct split_lines lines = {.text = text};
    struct words line = {0};
    bool found = false;

    while (split_next_line(&lines, &line) > 0) {
        for (size_t i = 0; i < line.n; i++)
            found |= launcher_input_reads_file(line.at[i]);
        words_free(&line);
    }
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = launcher_input_text(data, n);
    struct options options = {0};
    struct options_error error = {.text = ""};

    if (!reads_file(text) && options_parse_config(&options, "file", text, &error) < 0 &&
        !error.text[0])
        abort();
    options_free(&options);
    free(text);
    return 0;
}
