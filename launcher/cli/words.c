/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/cli/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes the text over; NULL: there was no memory for it. */
static void words_take(struct words *w, char *text)
{
    if (text && !w->failed && w->n + 1 >= w->room) {
        size_t room = w->room ? w->room * 2 : 8;
        char **at = realloc(w->at, room * sizeof *at);
        if (at) {
            w->at = at;
            w->room = room;
        }
        w->failed = !at;
    }
    if (!text || w->failed) {
        free(text);
        w->failed = true;
        return;
    }
    w->at[w->n++] = text;
    w->at[w->n] = NULL;
}

void words_add_n(struct words *w, const char *text, size_t n)
{
    words_take(w, strndup(text, n));
}

void words_add(struct words *w, const char *text)
{
    words_add_n(w, text, strlen(text));
}

void words_add_pair(struct words *w, const char *name, const char *value)
{
    char *pair;

    words_take(w, asprintf(&pair, "%s=%s", name, value) < 0 ? NULL : pair);
}

void words_free(struct words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->at[i]);
    free(w->at);
    *w = (struct words){0};
}
