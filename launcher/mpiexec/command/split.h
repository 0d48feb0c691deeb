/* SPDX-License-Identifier: BSD-3-Clause */
/* Cuts text into lines of words as a shell would: quotes, backslashes, comment lines, joined lines.
 * No variables, no patterns. */
#pragma once

#include "launcher/cli/words.h"

struct split_lines {
    const char *text; /* what is left */
    unsigned line;    /* number of the line that the last words began on, from 1 */
    unsigned passed;  /* lines taken so far */
};

/* The words of the next line that has any, added to ret_words. 1, 0 at the end, or with no words
 * -EINVAL when a quote is not closed, or -ENOMEM. */
int split_next_line(struct split_lines *s, struct words *ret_words);
