/* SPDX-License-Identifier: BSD-3-Clause */
/* An answer of the status socket, made into a table and into what motetctl finds out from several;
 * and the kernel's list of sockets, in which private daemons are found. */
#include <stdio.h>

#include "launcher/motetctl/ask.h"
#include "launcher/motetctl/doctor.h"
#include "launcher/motetctl/metrics.h"
#include "launcher/motetctl/show.h"
#include "launcher/motetctl/waits.h"
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
    json_t *answer = NULL;

    if (ask_parse((const char *)data, n, 1, &answer, why, sizeof why) == 0) {
        json_t *rows = json_object_get(answer, "data");
        if (nowhere) {
            show_data(rows, nowhere);
            const struct waits_rows alike = {rows, rows, rows, rows, rows, rows};
            json_t *waits = waits_find(&alike);
            waits_show(waits, nowhere);
            json_decref(waits);
            struct metrics_rows all = {
                .node = "n", .counters = rows, .nodes = rows, .links = rows, .ranks = rows};
            metrics_print(&all, nowhere);
            doctor_compare(rows, json_object_get(answer, "errors"), 0, 1);
            doctor_show(rows, nowhere);
        }
        json_decref(answer);
    } else if (!why[0]) {
        abort();
    }
    ask_scan(text, 0, found, NULL);
    if (nowhere)
        fclose(nowhere);
    free(text);
    return 0;
}
