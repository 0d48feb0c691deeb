/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A row of cells whose steps overlap, as they do with several nonblocking collectives under way:
 * claimed, read and finished in any order, with publications as large as they may be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/transport/cells.h"
#include "mpi.h"
#include "tests/client/ranks.h"

#define MEMBERS_MAX 4
#define SLOT        3u /* no communicator has it */
#define ROW         1u

struct row {
    struct ranks *ranks;
    uint32_t n;
    struct cells *cells[MEMBERS_MAX];
    uint64_t first; /* step */
};

static void row_init(struct row *row, uint32_t n, uint64_t base)
{
    uint32_t locals[MEMBERS_MAX];

    row->ranks = ranks_new(n, MPI_THREAD_SINGLE);
    row->n = n;
    row->first = base + 1;
    for (uint32_t i = 0; i < n; i++)
        locals[i] = i;
    for (uint32_t i = 0; i < n; i++) {
        ranks_turn(row->ranks, i);
        row->cells[i] = cells_open(SLOT, ROW, base, n, locals, i);
        assert_non_null(row->cells[i]);
    }
}

static void row_deinit(struct row *row)
{
    for (uint32_t i = 0; i < row->n; i++) {
        ranks_turn(row->ranks, i);
        cells_close(row->cells[i]);
    }
    ranks_free(row->ranks);
}

/* What the others see of a member's count. */
static uint64_t row_done(const struct row *row, uint32_t member)
{
    return atomic_load(
        &segment_cell(row->ranks->base, &row->ranks->layout, SLOT, ROW, member)->done);
}

static bool row_claim(const struct row *row, uint32_t member, uint64_t step, uint32_t len)
{
    ranks_turn(row->ranks, member);
    return cells_claim(row->cells[member], step, len) != NULL;
}

static bool row_put(const struct row *row, uint32_t member, uint64_t step, uint32_t len)
{
    if (!row_claim(row, member, step, len))
        return false;
    cells_publish(row->cells[member], step, CELLS_ALL);
    return true;
}

static void row_finish(const struct row *row, uint64_t step)
{
    for (uint32_t i = 0; i < row->n; i++) {
        ranks_turn(row->ranks, i);
        assert_true(cells_finish(row->cells[i], step));
    }
}

/* Later steps that claim first leave room for the earlier ones, for one after the other. */
static void test_claims_out_of_order(void **state)
{
    struct row row;

    (void)state;
    row_init(&row, 2, 0);
    uint32_t most = cells_max_bytes();
    assert_true(row_put(&row, 0, 5, most));
    assert_false(row_claim(&row, 0, 6, most));
    for (uint64_t step = 1; step <= 4; step++) {
        assert_true(row_put(&row, 0, step, most));
        assert_false(row_claim(&row, 0, step + 1, most)); /* there is no more room */
        row_finish(&row, step);
    }
    row_finish(&row, 5);
    assert_true(row_put(&row, 0, 7, most)); /* leaves room for 6 */
    assert_true(row_put(&row, 0, 6, most));
    row_deinit(&row);
}

/* What is published in the order of steps has all the room. */
static void test_claims_in_order(void **state)
{
    struct row row;

    (void)state;
    row_init(&row, 2, 0);
    uint32_t most = cells_max_bytes();
    assert_true(row_put(&row, 0, 1, most));
    assert_true(row_put(&row, 0, 2, most));
    assert_false(row_claim(&row, 0, 3, most));
    row_finish(&row, 2);
    assert_false(row_claim(&row, 0, 3, most)); /* 1 lies before it */
    row_finish(&row, 1);
    /* 3 publishes nothing, 4 overtakes it, 5 would fill the room. */
    assert_true(row_put(&row, 0, 4, most));
    assert_false(row_claim(&row, 0, 5, most));
    ranks_turn(row.ranks, 0);
    assert_true(cells_finish(row.cells[0], 3));
    assert_true(row_put(&row, 0, 5, most));
    row_deinit(&row);
}

/* Parts that are free already, but lie between others, count in the list of parts: overtaking ends
 * where the earlier steps would find no place in it. */
static void test_parts_between(void **state)
{
    struct row row;
    uint64_t step;

    (void)state;
    row_init(&row, 2, 0);
    assert_true(row_put(&row, 0, 100, 100)); /* with two each time, one place is left at last */
    for (step = 1; step < 80 && row_put(&row, 0, 100 + step, 100); step++) {
        assert_true(row_put(&row, 0, step, 100));
        if (step > 1)
            row_finish(&row, step - 1); /* behind 100 + step - 1, before 100 + step */
    }
    assert_in_range(step, 60, 66);
    row_finish(&row, step - 1);
    for (uint64_t last = step + 5; step <= last; step++) {
        assert_true(row_put(&row, 0, step, cells_max_bytes()));
        row_finish(&row, step);
    }
    row_deinit(&row);
}

/* A step that was finished without a publication, and not in its order, asks for no room. */
static void test_finished_needs_no_room(void **state)
{
    struct row row;

    (void)state;
    row_init(&row, 2, 0);
    uint32_t most = cells_max_bytes();
    assert_true(row_put(&row, 0, 1, most));
    ranks_turn(row.ranks, 0);
    for (uint64_t step = 2; step <= 65; step++) {
        assert_false(row_claim(&row, 0, step + 1, most));
        assert_true(cells_finish(row.cells[0], step));
    }
    assert_true(row_put(&row, 0, 66, most));
    row_deinit(&row);
}

/* The count that the others see is that of the longest beginning that is finished. */
static void test_finishes_out_of_order(void **state)
{
    struct row row;

    (void)state;
    row_init(&row, 2, 10);
    struct cells *x = row.cells[0];
    ranks_turn(row.ranks, 0);
    uint64_t order[] = {13, 12, 16, 11, 14, 18, 17, 15}, done[] = {0, 0, 0, 13, 14, 14, 14, 18};
    for (int i = 0; i < 8; i++) {
        assert_true(cells_finish(x, order[i]));
        assert_int_equal(row_done(&row, 0), done[i]);
    }
    assert_true(cells_finish(x, 18 + 2 + 63));
    assert_false(cells_finish(x, 18 + 2 + 64)); /* asked for again */
    assert_true(cells_finish(x, 19));
    assert_int_equal(row_done(&row, 0), 19);
    assert_true(cells_finish(x, 18 + 2 + 64));
    for (uint64_t step = 82; step >= 20; step--) {
        assert_int_equal(row_done(&row, 0), 19);
        assert_true(cells_finish(x, step));
    }
    assert_int_equal(row_done(&row, 0), 84);
    row_deinit(&row);
}

/* Steps that run at once on all members, each at its own pace. */
#define STEPS 400

enum stage { CLAIM, READ, FINISH, END };

static uint32_t draw(uint32_t below)
{
    return (uint32_t)rand() % below;
}

static uint32_t len_of[STEPS];
static bool publishes[STEPS][MEMBERS_MAX];
static enum stage stage_of[STEPS][MEMBERS_MAX];

static uint8_t mark_of(uint32_t member, uint32_t idx)
{
    return (uint8_t)(1 + member * 61 + idx * 7);
}

static void draw_steps(uint32_t n, uint32_t most)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        len_of[i] = draw(3) == 0 ? most : draw(4) == 0 ? draw(64) : 1 + draw(most);
        for (uint32_t m = 0; m < n; m++) {
            publishes[i][m] = draw(4) != 0;
            stage_of[i][m] = publishes[i][m] ? CLAIM : READ;
        }
    }
}

static bool read_all(const struct row *row, uint32_t me, uint32_t idx)
{
    uint32_t len;

    for (uint32_t m = 0; m < row->n; m++) {
        if (!publishes[idx][m])
            continue;
        const uint8_t *data = cells_peek(row->cells[me], m, row->first + idx, &len);
        if (!data)
            return false;
        assert_int_equal(len, len_of[idx]);
        if (len > 0) {
            assert_int_equal(data[0], mark_of(m, idx));
            assert_int_equal(data[len - 1], mark_of(m, idx));
        }
    }
    return true;
}

/* Goes on with one step of one member; false: it waits. */
static bool advance(const struct row *row, uint32_t me, uint32_t idx)
{
    struct cells *x = row->cells[me];
    uint64_t step = row->first + idx;
    uint8_t *place;

    switch (stage_of[idx][me]) {
    case CLAIM:
        place = cells_claim(x, step, len_of[idx]);
        if (!place)
            return false;
        if (len_of[idx] > 0)
            place[0] = place[len_of[idx] - 1] = mark_of(me, idx);
        cells_publish(x, step, CELLS_ALL);
        break;
    case READ:
        if (!read_all(row, me, idx))
            return false;
        break;
    case FINISH:
        if (!cells_finish(x, step))
            return false;
        break;
    case END:
        return false;
    }
    stage_of[idx][me]++;
    return true;
}

/* Whether anything at all can go on. */
static bool advance_any(const struct row *row, const uint32_t *first, uint32_t window)
{
    for (uint32_t m = 0; m < row->n; m++) {
        ranks_turn(row->ranks, m);
        for (uint32_t i = first[m]; i < first[m] + window && i < STEPS; i++)
            if (advance(row, m, i))
                return true;
    }
    return false;
}

static void run_steps(struct row *row, uint32_t window)
{
    uint32_t first[MEMBERS_MAX] = {0}, n_ended = 0, in_vain = 0;

    draw_steps(row->n, cells_max_bytes());
    while (n_ended < row->n) {
        uint32_t m = draw(row->n), idx = first[m] + draw(window);
        if (idx < STEPS && first[m] < STEPS) {
            ranks_turn(row->ranks, m);
            in_vain = advance(row, m, idx) ? 0 : in_vain + 1;
        }
        if (in_vain > 200) {
            assert_true(advance_any(row, first, window)); /* else they wait for one another */
            in_vain = 0;
        }
        while (first[m] < STEPS && stage_of[first[m]][m] == END)
            n_ended += ++first[m] == STEPS;
    }
    for (uint32_t m = 0; m < row->n; m++)
        assert_int_equal(row_done(row, m), row->first + STEPS - 1);
    row->first += STEPS;
}

static void test_any_order(void **state)
{
    static const uint32_t windows[] = {2, 5, 20, 90, 150};

    (void)state;
    for (uint32_t n = 2; n <= MEMBERS_MAX; n++) {
        struct row row;
        unsigned seed = 4711 + n;
        printf("seed %u, %u members\n", seed, n);
        srand(seed);
        row_init(&row, n, 1000 * n);
        for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++)
            run_steps(&row, windows[w]);
        row_deinit(&row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claims_out_of_order),   cmocka_unit_test(test_claims_in_order),
        cmocka_unit_test(test_parts_between),         cmocka_unit_test(test_finished_needs_no_room),
        cmocka_unit_test(test_finishes_out_of_order), cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
