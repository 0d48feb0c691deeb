/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's queue board and its counters, filled with anything, as the status socket reads them. The
 * reader is compiled in here with a job and a node made up around it.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/job.h"
#include "daemon/status/status_node.h"
#include "daemon/status/status_view.h"

/* The reader asks for the first job and for the user's rights; it gets the made-up ones, which are
 * those of anybody. */
static struct job fuzz_job;
#define jobs_first(jobs)       ((void)(jobs), &fuzz_job)
#define status_privileged(uid) ((void)(uid), false)
#include "daemon/status/status_view_ranks.c"
#include "tests/fuzz/fuzz.h"

#define N_RECORDS 64u

static struct status_node fuzz_node;

static void make_job(void)
{
    static struct job_rank rank;
    struct segment_shape shape = {.n_world = 4, .n_nodes = 1, .n_local = 1};

    if (fuzz_job.segment)
        return;
    segment_shape_defaults(&shape);
    shape.board_records = N_RECORDS;
    segment_layout(&shape, &fuzz_job.layout);
    fuzz_job.segment = aligned_alloc(4096, fuzz_job.layout.total);
    if (!fuzz_job.segment)
        abort();
    fuzz_job.node_name = "n1";
    fuzz_job.n_local = 1;
    fuzz_job.ranks = &rank;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct status_request q = {.rank = -1, .limit = 50};
    uint32_t high = 0;

    make_job();
    struct segment_rank *area = segment_rank_at(fuzz_job.segment, &fuzz_job.layout, 0);
    struct queue_record *board = segment_board_at(fuzz_job.segment, &fuzz_job.layout, 0);
    memset(area, n > 4 ? data[4] : 0, sizeof *area);
    if (n >= sizeof high)
        memcpy(&high, data, sizeof high);
    atomic_store_explicit(&area->board_high, high, memory_order_relaxed);
    memset(board, 0, N_RECORDS * sizeof *board);
    if (n > 5)
        memcpy(board, data + 5,
               n - 5 < N_RECORDS * sizeof *board ? n - 5 : N_RECORDS * sizeof *board);
    json_t *rows = json_array();
    status_view_ranks(&fuzz_node, &q, rows);
    status_view_queues(&fuzz_node, &q, rows);
    char *text = json_dumps(rows, JSON_COMPACT);
    if (!text || json_array_size(rows) > q.limit)
        abort();
    free(text);
    json_decref(rows);
    return 0;
}
