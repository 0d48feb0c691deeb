/* SPDX-License-Identifier: BSD-3-Clause */
/* Host files and host lists, and placement on what they give: every rank has a place and no host
 * more than its limit. */
#include "launcher/mpiexec/command/hosts.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/launcher_input.h"

#define N_RANKS 300u

static void place(struct host_list *list, const struct hosts_mapping *mapping)
{
    struct words runs = {0};
    struct host_error error = {.text = ""};
    uint32_t placed = 0;
    int rc = hosts_place(list, mapping, N_RANKS, &runs, &error);

    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].max_slots && list->at[i].taken > list->at[i].max_slots)
            abort();
        placed += list->at[i].taken;
    }
    if (rc == 0 ? placed != N_RANKS : placed >= N_RANKS || !error.text[0])
        abort();
    words_free(&runs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = launcher_input_text(data, n);
    struct host_list list = {0};
    struct host_error error = {.text = ""};
    const struct hosts_mapping mapping = {.ppn = n > 0 ? data[0] % 5 : 0,
                                          .by_node = n > 0 && data[0] & 64,
                                          .ranks = n > 0 ? data[0] / 8 % 3 : 0};

    if (hosts_parse_text(&list, "file", text, &error) == 0)
        place(&list, &mapping);
    else if (!error.text[0])
        abort();
    hosts_free(&list);
    error.text[0] = '\0';
    if (hosts_parse_list(&list, text, &error) == 0)
        place(&list, &mapping);
    else if (!error.text[0])
        abort();
    hosts_free(&list);
    free(text);
    return 0;
}
