/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's configuration file: whatever it holds, it is refused or can be printed and read
 * again. */
#include <stdlib.h>

#include "daemon/config.h"
#include "tests/fuzz/fuzz.h"

static void report(void *ctx, const char *line)
{
    (void)ctx, (void)line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct config config, again;
    char *text = NULL;
    size_t len = 0;

    config_defaults(&config);
    if (config_parse(&config, (const char *)data, n, "fuzz", report, NULL) < 0)
        return 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return 0;
    config_print(&config, out);
    fclose(out);
    config_defaults(&again);
    if (config_parse(&again, text, len, "printed", report, NULL) < 0)
        abort();
    config_finish(&config, report, NULL);
    config_reload(&again, &config, report, NULL);
    free(text);
    return 0;
}
