/* SPDX-License-Identifier: BSD-3-Clause */
/* The one list of settings: section, key, type, unit, default, limits and help of each. Everything
 * else about them (config.c) is made from it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_type {
    TYPE_NAME,
    TYPE_TEXT,
    TYPE_SEEDS,
    TYPE_COUNT,
    TYPE_SIZE,
    TYPE_TIME,
    TYPE_CHOICE,
    TYPE_MODE
};

struct config_choice {
    const char *word;
    uint64_t value;
};

struct config_entry {
    const char *section, *key;
    enum config_type type;
    size_t offset, size; /* place in struct config or struct config_channel; size of a text */
    const char *initial;
    uint64_t min, max;
    const struct config_choice *choices;
    bool reloadable;
    const char *help;
};

#define MS  1000000ull
#define SEC 1000000000ull
#define KIB 1024ull
#define MIB (1024ull * 1024)

extern const struct config_entry config_entries[];
extern const size_t config_n_entries;
