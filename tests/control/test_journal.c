/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's log in systemd's journal: whether it is asked for, and the fields of a line. The
 * journal itself is played by this program (--wrap, see meson.build). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/control/journal.h"

#define MAX_FIELDS 10

static char fields[MAX_FIELDS][2200];
static int n_fields;

static bool no_journal, journal_fails;

int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
    (void)path, (void)mode;
    return no_journal ? -1 : 0;
}

int __wrap_sd_journal_sendv(const struct iovec *iov, int n);
int __wrap_sd_journal_sendv(const struct iovec *iov, int n)
{
    assert_true(n <= MAX_FIELDS);
    n_fields = n;
    for (int i = 0; i < n; i++) {
        assert_true(iov[i].iov_len < sizeof fields[i]);
        memcpy(fields[i], iov[i].iov_base, iov[i].iov_len);
        fields[i][iov[i].iov_len] = '\0';
        assert_int_equal(strlen(fields[i]), iov[i].iov_len);
    }
    return journal_fails ? -1 : 0;
}

static bool said(const char *field)
{
    for (int i = 0; i < n_fields; i++)
        if (strcmp(fields[i], field) == 0)
            return true;
    return false;
}

static void set_stream(long device_off, long inode_off)
{
    struct stat st;
    char text[64];

    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    snprintf(text, sizeof text, "%llu:%llu", (unsigned long long)st.st_dev + device_off,
             (unsigned long long)st.st_ino + inode_off);
    setenv("JOURNAL_STREAM", text, 1);
}

/* The variable alone says nothing: whatever a service starts inherits it. */
static void test_opened_where_stderr_is_the_journal(void **state)
{
    (void)state;
    unsetenv("JOURNAL_STREAM");
    assert_false(journal_open("n1"));
    setenv("JOURNAL_STREAM", "rubbish", 1);
    assert_false(journal_open("n1"));
    setenv("JOURNAL_STREAM", "12", 1);
    assert_false(journal_open("n1"));
    set_stream(1, 0);
    assert_false(journal_open("n1"));
    set_stream(0, 1);
    assert_false(journal_open("n1"));
    set_stream(0, 0);
    assert_true(journal_open("n1"));
}

static void test_fields(void **state)
{
    (void)state;
    set_stream(0, 0);
    assert_true(journal_open("n1"));
    journal_line(4, "job 00ff rank 3: ring holds rubbish on channel eth0, ending the job");
    assert_int_equal(n_fields, 7);
    assert_true(
        said("MESSAGE=job 00ff rank 3: ring holds rubbish on channel eth0, ending the job"));
    assert_true(said("PRIORITY=4"));
    assert_true(said("SYSLOG_IDENTIFIER=motetd"));
    assert_true(said("MOTET_NODE=n1"));
    assert_true(said("MOTET_JOB=00ff"));
    assert_true(said("MOTET_RANK=3"));
    assert_true(said("MOTET_CHANNEL=eth0"));
    journal_line(6, "link to node a1 is up");
    assert_int_equal(n_fields, 4);
    journal_line(6, "the job : has no number");
    assert_int_equal(n_fields, 4);
}

/* A line that is too long is cut, and words too long for a field are left out. */
static void test_lengths(void **state)
{
    char line[4000], word[300];

    (void)state;
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    journal_line(3, line);
    assert_int_equal(strlen(fields[0]), strlen("MESSAGE=") + 2000);
    memset(word, 'y', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    snprintf(line, sizeof line, "rank %s job 7", word);
    journal_line(3, line);
    assert_int_equal(n_fields, 5);
    assert_true(said("MOTET_JOB=7"));
}

/* Lines for which there is no journal, or not any more, are written where systemd, or whoever
 * started the daemon, looks. */
static void test_no_journal(void **state)
{
    char text[200] = "";
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);

    (void)state;
    assert_non_null(file);
    set_stream(0, 0);
    assert_true(journal_open("n1"));
    assert_true(saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    no_journal = true;
    journal_line(4, "first");
    no_journal = false;
    journal_fails = true;
    journal_line(3, "second");
    journal_fails = false;
    journal_line(3, "third");
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    rewind(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
    assert_string_equal(text, "<4>n1: first\n<3>n1: second\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opened_where_stderr_is_the_journal),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_no_journal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
