/* SPDX-License-Identifier: BSD-3-Clause */
/* Context ids: two members agree on ids that neither has in use, until none is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/client.h"
#include "client/comm/context.h"
#include "client/object/comm.h"
#include "client/object/err.h"

#define STEP     4u
#define MOST_IDS (64u * 1024u)

static struct client *members[2], *library;

static int set_up(void **state)
{
    (void)state;
    for (int m = 0; m < 2; m++) {
        members[m] = client_new();
        struct client *before = client_enter(members[m]);
        if (!library)
            library = before;
        context_init();
        context_init(); /* does nothing */
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    client_enter(library);
    for (int m = 0; m < 2; m++)
        client_free(members[m]);
    return 0;
}

static void combine(struct context_try *a, struct context_try *b)
{
    for (int k = 0; k < 3; k++)
        a->vote[k] = b->vote[k] = a->vote[k] & b->vote[k];
}

/* One agreement over both members. Returns what both got. */
static int agree(uint32_t parent, int tag, uint32_t *ret_id)
{
    struct context_try t[2];
    int rc[2];

    for (int m = 0; m < 2; m++) {
        client_enter(members[m]);
        context_begin(&t[m], parent, tag);
    }
    do {
        for (int m = 0; m < 2; m++) {
            client_enter(members[m]);
            context_offer(&t[m]);
        }
        combine(&t[0], &t[1]);
        for (int m = 0; m < 2; m++) {
            client_enter(members[m]);
            rc[m] = context_settle(&t[m]);
        }
        assert_int_equal(rc[0], rc[1]);
    } while (rc[0] == CONTEXT_AGAIN);
    if (!rc[0])
        assert_int_equal(t[0].id, t[1].id);
    *ret_id = t[0].id;
    return rc[0];
}

static void give_back(int member, uint32_t id)
{
    client_enter(members[member]);
    context_give_back(id);
}

static void test_no_id_twice(void **state)
{
    static bool seen[MOST_IDS];
    uint32_t id, n = 0;

    (void)state;
    while (agree(COMM_CONTEXT_WORLD, (int)(n % 7), &id) == MPI_SUCCESS) {
        assert_int_equal(id % STEP, 0);
        assert_true(id >= COMM_CONTEXT_FIRST && id / STEP < MOST_IDS);
        assert_false(seen[id / STEP]);
        seen[id / STEP] = true;
        n++;
    }
    /* All but those of MPI_COMM_WORLD and MPI_COMM_SELF, and that in which jobs meet. */
    assert_int_equal(n, MOST_IDS - 3);
    assert_string_not_equal(err_detail(MPI_ERR_OTHER), "");

    /* What one of them still has is not given again. */
    give_back(0, 4000 * STEP);
    assert_int_not_equal(agree(COMM_CONTEXT_WORLD, 0, &id), MPI_SUCCESS);
    give_back(1, 4000 * STEP);
    assert_int_equal(agree(COMM_CONTEXT_WORLD, 0, &id), MPI_SUCCESS);
    assert_int_equal(id, 4000 * STEP);
    /* Those two are never given back. */
    for (int m = 0; m < 2; m++) {
        give_back(m, COMM_CONTEXT_WORLD);
        give_back(m, COMM_CONTEXT_SELF);
    }
    assert_int_not_equal(agree(COMM_CONTEXT_WORLD, 0, &id), MPI_SUCCESS);
}

/* Two agreements at once begin with the same ids: what one has on offer the other one does not
 * offer. */
static void test_agreements_at_once(void **state)
{
    struct context_try a, b;

    (void)state;
    client_enter(members[0]);
    context_begin(&a, COMM_CONTEXT_WORLD, 1);
    context_begin(&b, COMM_CONTEXT_WORLD, 1);
    context_offer(&a);
    context_offer(&b);
    assert_true(a.vote[0] != 0);
    assert_int_equal(b.vote[0], 0);
    assert_int_equal(context_settle(&b), CONTEXT_AGAIN);
    context_offer(&b); /* the next word */
    assert_true(b.vote[0] != 0);
    assert_int_equal(context_settle(&a), MPI_SUCCESS);
    assert_int_equal(context_settle(&b), MPI_SUCCESS);
    assert_int_not_equal(a.id, b.id);

    context_begin(&a, COMM_CONTEXT_WORLD, 1);
    context_offer(&a);
    context_withdraw(&a);
    context_begin(&b, COMM_CONTEXT_WORLD, 1);
    context_offer(&b);
    assert_true(b.vote[0] != 0);
    context_withdraw(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_id_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_agreements_at_once, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
