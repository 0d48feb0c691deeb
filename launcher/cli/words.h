/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A list of strings that owns them. Used by the parsers of the launcher. For want of memory it
 * takes no more and says so, so that who adds many asks once, at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct words {
    char **at; /* a NULL follows the last one once there is any */
    size_t n, room;
    bool failed; /* something is missing; until words_free */
};

/* Adds a copy of the first n characters of text. */
void words_add_n(struct words *w, const char *text, size_t n);
void words_add(struct words *w, const char *text);
/* Adds "name=value". */
void words_add_pair(struct words *w, const char *name, const char *value);
void words_free(struct words *w);
