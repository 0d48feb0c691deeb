/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/command/split.h"

#include <errno.h>
#include <stdbool.h>

#include "launcher/cli/bytes.h"

/* The next character of text, with its line counted; '\0' at the end, where it stays. */
static char split_step(struct split_lines *s)
{
    char c = *s->text;

    if (c) {
        s->text++;
        s->passed += c == '\n';
    }
    return c;
}

/* Adds what stands between quotes. Within double quotes a backslash takes the next character as it
 * is, if that is a quote or a backslash. -EINVAL: no closing quote. */
static int take_quoted(struct split_lines *s, char quote, struct bytes *word)
{
    for (;;) {
        char c = split_step(s);
        if (!c)
            return -EINVAL;
        if (c == quote)
            return 0;
        if (quote == '"' && c == '\\' && (*s->text == '"' || *s->text == '\\'))
            c = split_step(s);
        bytes_append(word, &c, 1);
    }
}

static void finish_word(struct bytes *word, bool *in_word, struct words *words)
{
    if (*in_word)
        words_add_n(words, word->n ? bytes_data(word) : "", word->n);
    words->failed |= word->failed;
    bytes_drop(word, word->n);
    *in_word = false;
}

int split_next_line(struct split_lines *s, struct words *ret_words)
{
    struct bytes word = {0};
    bool in_word = false;
    size_t before = ret_words->n;
    int rc = 0;

    s->line = s->passed + 1;
    for (;;) {
        char c = split_step(s);
        if (c == '\\' && *s->text == '\n') {
            split_step(s);
        } else if (c == '\\' && *s->text) {
            c = split_step(s);
            bytes_append(&word, &c, 1);
            in_word = true;
        } else if (c == '\'' || c == '"') {
            in_word = true;
            rc = take_quoted(s, c, &word);
            if (rc < 0)
                break;
        } else if (c == '#' && !in_word && ret_words->n == before) {
            while (*s->text && *s->text != '\n')
                s->text++;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            finish_word(&word, &in_word, ret_words);
        } else if (c == '\n' || c == '\0') {
            finish_word(&word, &in_word, ret_words);
            if (ret_words->n > before || c == '\0')
                break;
            s->line = s->passed + 1;
        } else {
            bytes_append(&word, &c, 1);
            in_word = true;
        }
    }
    bytes_free(&word);
    if (rc == 0 && ret_words->failed)
        rc = -ENOMEM;
    if (rc < 0) {
        words_free(ret_words);
        return rc;
    }
    return ret_words->n > before;
}
