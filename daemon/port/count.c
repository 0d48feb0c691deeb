/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/port/count.h"

#include <assert.h>
#include <string.h>

static const char *const names[COUNT_N] = {
#define COUNT_NAME(id, name) [COUNT_##id] = name,
    COUNT_LIST(COUNT_NAME)
#undef COUNT_NAME
};

const char *count_name(enum count_id id)
{
    return (unsigned)id < COUNT_N ? names[id] : "unknown";
}

void count_row_write(struct count_row *row, const void *snapshot, uint32_t n_bytes)
{
    uint64_t words[COUNT_ROW_WORDS] = {0};
    uint64_t version = atomic_load_explicit(&row->version, memory_order_relaxed);

    assert(n_bytes <= sizeof words);
    memcpy(words, snapshot, n_bytes);
    /* Odd first; the exchange (acquire) keeps the words' stores behind it. Pairs with the loads in
     * count_row_read. */
    atomic_exchange_explicit(&row->version, version + 1, memory_order_acq_rel);
    for (uint32_t i = 0; i < COUNT_ROW_WORDS; i++)
        /* release: a reader that sees a new word also sees the odd version. */
        atomic_store_explicit(&row->word[i], words[i], memory_order_release);
    /* release: pairs with the first acquire in count_row_read. */
    atomic_store_explicit(&row->version, version + 2, memory_order_release);
}

bool count_row_read(const struct count_row *row, void *ret_snapshot, uint32_t n_bytes)
{
    for (int attempt = 0; attempt < 1000; attempt++) {
        uint64_t words[COUNT_ROW_WORDS];
        uint64_t before = atomic_load_explicit(&row->version, memory_order_acquire);
        if (before == 0)
            return false;
        if (before & 1)
            continue;
        for (uint32_t i = 0; i < COUNT_ROW_WORDS; i++)
            /* acquire: pairs with the release of the word; a newer word makes the second look at
             * version see it too. */
            words[i] = atomic_load_explicit(&row->word[i], memory_order_acquire);
        if (atomic_load_explicit(&row->version, memory_order_relaxed) == before) {
            memcpy(ret_snapshot, words, n_bytes);
            return true;
        }
    }
    return false;
}
