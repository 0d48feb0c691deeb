/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of strings that owns them. Used by the parsers of the launcher. Running out of memory ends
 * the program: a launcher that cannot hold its command line has nothing to clean up. */
#pragma once

#include <stddef.h>

struct words {
    char **at; /* a NULL follows the last one once there is any */
    size_t n, room;
};

/* Adds a copy of the first n characters of text. */
void words_add_n(struct words *w, const char *text, size_t n);
void words_add(struct words *w, const char *text);
/* Adds "name=value". */
void words_add_pair(struct words *w, const char *name, const char *value);
void words_free(struct words *w);
