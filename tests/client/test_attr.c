/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes: the order of copying and deleting, callbacks that fail or meddle, keyvals in use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/client.h"
#include "client/object/attr.h"

static struct client *client, *library;
static char calls[64]; /* a letter each: of the attribute */
static int fails_at;   /* keyval whose callback fails */

static int set_up(void **state)
{
    (void)state;
    client = client_new();
    library = client_enter(client);
    calls[0] = '\0';
    fails_at = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    client_enter(library);
    client_free(client);
    return 0;
}

static int note(int keyval, const char *value)
{
    strcat(calls, value);
    return keyval == fails_at ? 77 : MPI_SUCCESS;
}

static int copy(uintptr_t handle, int keyval, void *extra, void *value_in, void *value_out,
                int *flag)
{
    assert_int_equal(handle, 11);
    assert_ptr_equal(extra, calls);
    *(void **)value_out = value_in;
    *flag = 1;
    return note(keyval, value_in);
}

static int drop(uintptr_t handle, int keyval, void *extra, void *value_in, void *value_out,
                int *flag)
{
    (void)handle, (void)extra, (void)value_out;
    *flag = 0;
    return note(keyval, value_in);
}

static int removed(uintptr_t handle, int keyval, void *value, void *extra)
{
    assert_int_equal(handle, 11);
    assert_ptr_equal(extra, calls);
    return note(keyval, value);
}

static int make_keyval(attr_copy_fn *how)
{
    int keyval;

    assert_int_equal(attr_keyval_new(ATTR_COMM, how, removed, calls, &keyval), MPI_SUCCESS);
    return keyval;
}

static void put(struct attr_table **table, int keyval, const char *value)
{
    assert_int_equal(attr_put(table, ATTR_COMM, 11, keyval, (void *)(uintptr_t)value), MPI_SUCCESS);
}

static void expect_attr(const struct attr_table *table, int keyval, const char *value)
{
    void *got = NULL;
    int flag;

    assert_int_equal(attr_get(table, ATTR_COMM, keyval, &got, &flag), MPI_SUCCESS);
    assert_int_equal(flag, value != NULL);
    if (value)
        assert_string_equal(got, value);
}

/* Copied in the order in which they were set, deleted the other way round (MPI-5.0 section 7.7). */
static void test_order(void **state)
{
    struct attr_table *from = NULL, *to;
    int c = make_keyval(copy), a = make_keyval(copy), d = make_keyval(drop), b = make_keyval(copy);

    (void)state;
    put(&from, b, "b");
    put(&from, a, "a");
    put(&from, d, "d");
    put(&from, c, "c");
    assert_int_equal(attr_copy_all(from, ATTR_COMM, 11, &to), MPI_SUCCESS);
    assert_string_equal(calls, "badc");
    expect_attr(to, a, "a");
    expect_attr(to, d, NULL);
    calls[0] = '\0';
    assert_int_equal(attr_delete_all(&to, ATTR_COMM, 11), MPI_SUCCESS);
    assert_string_equal(calls, "cab");
    assert_null(to);
    /* What is set anew comes last, and its old value is deleted. */
    calls[0] = '\0';
    put(&from, b, "B");
    assert_string_equal(calls, "b");
    assert_int_equal(attr_delete_all(&from, ATTR_COMM, 11), MPI_SUCCESS);
    assert_string_equal(calls, "bBcda");
}

static void test_failing_callbacks(void **state)
{
    struct attr_table *from = NULL, *to;
    int a = make_keyval(copy), b = make_keyval(copy), c = make_keyval(copy);

    (void)state;
    put(&from, a, "a");
    put(&from, b, "b");
    put(&from, c, "c");
    fails_at = b;
    assert_int_equal(attr_copy_all(from, ATTR_COMM, 11, &to), 77);
    assert_string_equal(calls, "ab");
    expect_attr(to, a, "a"); /* what was copied so far */
    expect_attr(to, b, NULL);
    assert_int_equal(attr_delete_all(&to, ATTR_COMM, 11), MPI_SUCCESS);
    calls[0] = '\0';
    assert_int_equal(attr_delete_all(&from, ATTR_COMM, 11), 77);
    assert_string_equal(calls, "cb");
    expect_attr(from, a, "a");
    expect_attr(from, b, "b");
    expect_attr(from, c, NULL);
    assert_int_equal(attr_delete(&from, ATTR_COMM, 11, b), 77);
    assert_int_equal(attr_put(&from, ATTR_COMM, 11, b, NULL), 77);
    expect_attr(from, b, "b");
    fails_at = 0;
    assert_int_equal(attr_delete(&from, ATTR_COMM, 11, b), MPI_SUCCESS);
    assert_int_equal(attr_delete(&from, ATTR_COMM, 11, b), MPI_ERR_KEYVAL);
    assert_int_equal(attr_delete_all(&from, ATTR_COMM, 11), MPI_SUCCESS);
}

/* A keyval that is freed lives on under the attributes that it has, and its number is not given to
 * another one before. */
static void test_freed_keyval(void **state)
{
    struct attr_table *table = NULL, *to;
    int a = make_keyval(copy), kept = a, other;

    (void)state;
    put(&table, a, "a");
    assert_int_equal(attr_keyval_free(ATTR_COMM, &a), MPI_SUCCESS);
    assert_int_equal(a, MPI_KEYVAL_INVALID);
    other = make_keyval(NULL);
    assert_int_not_equal(other, kept);
    expect_attr(table, kept, "a");
    assert_int_equal(attr_copy_all(table, ATTR_COMM, 11, &to), MPI_SUCCESS);
    assert_int_equal(attr_delete_all(&table, ATTR_COMM, 11), MPI_SUCCESS);
    expect_attr(to, kept, "a");
    assert_int_equal(attr_delete_all(&to, ATTR_COMM, 11), MPI_SUCCESS);
    a = kept;
    assert_int_equal(attr_keyval_free(ATTR_COMM, &a), MPI_ERR_KEYVAL);
    assert_int_equal(make_keyval(copy), kept);
}

static void test_wrong_kind(void **state)
{
    struct attr_table *table = NULL;
    int type_keyval, flag, null_copied, dup_copied;
    void *value;
    struct attr_table *to;

    (void)state;
    assert_int_equal(attr_keyval_new(ATTR_TYPE, NULL, NULL, NULL, &type_keyval), MPI_SUCCESS);
    assert_int_equal(attr_put(&table, ATTR_COMM, 11, type_keyval, NULL), MPI_ERR_KEYVAL);
    assert_int_equal(attr_get(table, ATTR_COMM, type_keyval, &value, &flag), MPI_ERR_KEYVAL);
    assert_int_equal(attr_get(table, ATTR_TYPE, type_keyval + 1, &value, &flag), MPI_ERR_KEYVAL);
    assert_int_equal(attr_get(table, ATTR_TYPE, 0, &value, &flag), MPI_ERR_KEYVAL);
    /* The constants of the ABI: never copied, and copied as it is. */
    assert_int_equal(attr_keyval_new(ATTR_COMM, NULL, NULL, NULL, &null_copied), MPI_SUCCESS);
    assert_int_equal(
        attr_keyval_new(ATTR_COMM, (attr_copy_fn *)(uintptr_t)1, NULL, NULL, &dup_copied),
        MPI_SUCCESS);
    put(&table, null_copied, "n");
    put(&table, dup_copied, "d");
    assert_int_equal(attr_copy_all(table, ATTR_COMM, 11, &to), MPI_SUCCESS);
    expect_attr(to, null_copied, NULL);
    expect_attr(to, dup_copied, "d");
    assert_int_equal(attr_delete_all(&to, ATTR_COMM, 11), MPI_SUCCESS);
    assert_int_equal(attr_delete_all(&table, ATTR_COMM, 11), MPI_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failing_callbacks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_freed_keyval, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_kind, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
