/* SPDX-License-Identifier: BSD-3-Clause */
/* What the launcher's fuzzers share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The input as a string to free; a zero byte ends it early. */
static inline char *launcher_input_text(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);

    if (!text)
        abort();
    memcpy(text, data, n);
    text[n] = '\0';
    return text;
}

/* Whether a word is an option that reads a file: a fuzzer does not read what it happens to name. */
static inline bool launcher_input_reads_file(const char *word)
{
    static const char *const names[] = {"f", "hostfile", "machinefile", "configfile", "file"};

    if (word[0] != '-')
        return false;
    word += 1 + (word[1] == '-');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) == strcspn(word, "=") &&
            strncmp(word, names[i], strcspn(word, "=")) == 0)
            return true;
    }
    return false;
}
