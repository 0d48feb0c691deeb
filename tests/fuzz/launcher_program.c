/* SPDX-License-Identifier: BSD-3-Clause */
/* An executable's dynamic section, as mpiexec reads it before it starts a program. */
#include "launcher/mpiexec/command/program.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct program_links links;
    size_t all = 0;

    if (program_read(data, n, &links) == 0) {
        for (size_t i = 0; i < links.needed.n; i++)
            all += strlen(links.needed.at[i]);
        for (size_t i = 0; i < links.runpath.n; i++)
            all += strlen(links.runpath.at[i]);
        /* Strings are copied; each ends within the file. */
        if (links.needed.n > 65536 || (links.needed.n > 0 && all > links.needed.n * n + n))
            __builtin_trap();
    }
    program_links_free(&links);
    return 0;
}
