/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/cli/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(void)
{
    fputs("out of memory\n", stderr);
    exit(1);
}

static void take(struct words *w, char *text)
{
    if (w->n + 1 >= w->room) {
        size_t room = w->room ? w->room * 2 : 8;
        char **at = realloc(w->at, room * sizeof *at);
        if (!at)
            out_of_memory();
        w->at = at;
        w->room = room;
    }
    w->at[w->n++] = text;
    w->at[w->n] = NULL;
}

void words_add_n(struct words *w, const char *text, size_t n)
{
    char *copy = strndup(text, n);

    if (!copy)
        out_of_memory();
    take(w, copy);
}

void words_add(struct words *w, const char *text)
{
    words_add_n(w, text, strlen(text));
}

void words_add_pair(struct words *w, const char *name, const char *value)
{
    char *pair;

    if (asprintf(&pair, "%s=%s", name, value) < 0)
        out_of_memory();
    take(w, pair);
}

void words_free(struct words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->at[i]);
    free(w->at);
    *w = (struct words){0};
}
