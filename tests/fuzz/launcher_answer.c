/* SPDX-License-Identifier: BSD-3-Clause */
/* An answer of the status socket, made into a table; and the kernel's list of sockets, in which private
 * daemons are found. */
#include <stdio.h>

#include "launcher/motetctl_ask.h"
#include "launcher/motetctl_show.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/launcher_input.h"

static void found(void *arg, const char *name)
{
    (void)arg;
    if (name[0] != '@' || strlen(name) < 8)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = launcher_input_text(data, n), why[512] = "";
    FILE *nowhere = fopen("/dev/null", "w");
    json_t *rows = NULL;

    if (motetctl_ask_parse((const char *)data, n, 1, &rows, why, sizeof why) == 0) {
        if (nowhere)
            motetctl_show(rows, nowhere);
        json_decref(rows);
    } else if (!why[0]) {
        abort();
    }
    motetctl_ask_scan(text, 0, found, NULL);
    if (nowhere)
        fclose(nowhere);
    free(text);
    return 0;
}
