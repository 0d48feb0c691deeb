/* SPDX-License-Identifier: BSD-3-Clause */
/* What mpiexec is made of: words, bytes, numbers, hosts and their placement, lines of output, the
 * command line, and the stream of frames to the daemon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/near.h"
#include "launcher/cli/bytes.h"
#include "launcher/cli/file.h"
#include "launcher/cli/number.h"
#include "launcher/cli/words.h"
#include "launcher/mpiexec/command/hosts.h"
#include "launcher/mpiexec/command/options.h"
#include "launcher/mpiexec/command/soft.h"
#include "launcher/mpiexec/command/split.h"
#include "launcher/mpiexec/frame_stream.h"
#include "launcher/mpiexec/lines.h"
#include "launcher/mpiexec/output.h"
#include "launcher/mpiexec/submit.h"
#include "proto/control.pb-c.h"
#include "proto/frame.h"
#include "tests/launcher/memory.h"

/* ---- bytes, words, numbers, files ---- */

static void bytes_are_a_queue(void **state)
{
    struct bytes b = {0};
    char block[3000];
    (void)state;

    memset(block, 'x', sizeof block);
    bytes_append(&b, "abc", 3);
    bytes_append(&b, block, 0);
    bytes_drop(&b, 1);
    assert_int_equal(b.n, 2);
    assert_memory_equal(bytes_data(&b), "bc", 2);
    bytes_append(&b, block, sizeof block);
    bytes_drop(&b, 2 + 2500);
    bytes_append(&b, block, sizeof block); /* fits only if moved to the front */
    bytes_append(&b, "end", 3);
    assert_int_equal(b.n, 3503);
    assert_memory_equal(bytes_data(&b) + 3500, "end", 3);
    bytes_drop(&b, 100000);
    assert_int_equal(b.n, 0);
    memory_until_none = 0;
    bytes_append(&b, block, sizeof block);
    bytes_append(&b, block, sizeof block);
    bytes_append(&b, block, sizeof block);
    memory_until_none = -1;
    assert_true(b.failed);
    size_t n = b.n;
    bytes_append(&b, "a", 1); /* nothing stands behind a gap */
    assert_int_equal(b.n, n);
    bytes_free(&b);
    assert_false(b.failed);
}

static void words_end_in_null(void **state)
{
    struct words w = {0};
    (void)state;

    for (int i = 0; i < 40; i++)
        words_add_n(&w, "word and more", 4);
    words_add_pair(&w, "name", "va=lue");
    assert_int_equal(w.n, 41);
    assert_string_equal(w.at[39], "word");
    assert_string_equal(w.at[40], "name=va=lue");
    assert_null(w.at[41]);
    memory_until_none = 0;
    words_add(&w, "lost");
    memory_until_none = -1;
    assert_true(w.failed);
    words_add(&w, "lost too");
    assert_int_equal(w.n, 41);
    assert_null(w.at[41]);
    words_free(&w);
}

static void numbers_are_digits(void **state)
{
    uint32_t n = 0;
    uint64_t ns;
    (void)state;

    assert_int_equal(number_parse("4294967295", 10, 0, UINT32_MAX, &n), 0);
    assert_int_equal(n, UINT32_MAX);
    assert_int_equal(number_parse("12x", 2, 12, 12, &n), 0);
    assert_int_equal(n, 12);
    static const char *const wrong[] = {"",   "-1",  "+1",         " 1",
                                        "1 ", "0x1", "4294967296", "00000000001"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(number_parse(wrong[i], strlen(wrong[i]), 0, UINT32_MAX, &n), -EINVAL);
    assert_int_equal(number_parse("11", 2, 12, 13, &n), -EINVAL);
    assert_int_equal(number_parse("14", 2, 12, 13, &n), -EINVAL);
    assert_int_equal(number_parse_seconds("1.25", &ns), 0);
    assert_int_equal(ns, 1250000000);
    assert_int_equal(number_parse_seconds("0.0000000001", &ns), -EINVAL);
    assert_int_equal(number_parse_seconds("0", &ns), -EINVAL);
    assert_int_equal(number_parse_seconds(".5", &ns), -EINVAL);
    assert_int_equal(number_parse_seconds("1.5s", &ns), -EINVAL);
    assert_int_equal(number_parse_seconds("315360001", &ns), -EINVAL);
}

static void files_are_text(void **state)
{
    char path[] = "/tmp/motet-test-XXXXXX", *text;
    int fd = mkstemp(path);
    (void)state;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "one\n", 4), 4);
    assert_int_equal(file_read_text(path, &text), 0);
    assert_string_equal(text, "one\n");
    free(text);
    assert_int_equal(write(fd, "\0", 1), 1);
    assert_int_equal(file_read_text(path, &text), -EILSEQ);
    assert_int_equal(ftruncate(fd, (16 << 20) + 1), 0);
    assert_int_equal(file_read_text(path, &text), -EFBIG);
    memory_until_none = 0;
    assert_int_equal(file_read_text(path, &text), -ENOMEM);
    memory_until_none = -1;
    close(fd);
    unlink(path);
    assert_int_equal(file_read_text(path, &text), -ENOENT);
}

/* ---- split ---- */

static void splits(const char *text, const char *expected)
{
    struct split_lines s = {.text = text};
    struct words w = {0};
    char got[256] = "";

    while (split_next_line(&s, &w) > 0) {
        snprintf(got + strlen(got), sizeof got - strlen(got), "%u:", s.line);
        for (size_t i = 0; i < w.n; i++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "[%s]", w.at[i]);
        words_free(&w);
    }
    assert_string_equal(got, expected);
}

static void lines_are_cut_as_by_a_shell(void **state)
{
    struct split_lines open = {.text = "a 'b"};
    struct words w = {0};
    (void)state;

    splits("", "");
    splits("\n  \n# nothing\n a  b # c\n", "4:[a][b][#][c]");
    splits("a\\\nb c\nd", "1:[ab][c]3:[d]");
    splits("'a b' \"c \\\"d\\\" \\n\" e\\ f ''", "1:[a b][c \"d\" \\n][e f][]");
    splits("a\r\nb\r\n", "1:[a]2:[b]");
    assert_int_equal(split_next_line(&open, &w), -EINVAL);
    assert_int_equal(w.n, 0);
    open = (struct split_lines){.text = "a b"};
    memory_until_none = 0;
    assert_int_equal(split_next_line(&open, &w), -ENOMEM);
    memory_until_none = -1;
    assert_int_equal(w.n, 0);
}

/* ---- hosts ---- */

static void mapped(const char *hosts, const struct hosts_mapping *mapping, uint32_t n, int rc,
                   const char *expected)
{
    struct host_list list = {0};
    struct words runs = {0};
    struct host_error error = {""};
    char got[256] = "";

    assert_int_equal(hosts_parse_text(&list, "hosts", hosts, &error), 0);
    assert_int_equal(hosts_place(&list, mapping, n, &runs, &error), rc);
    for (size_t i = 0; i < runs.n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "", runs.at[i]);
    if (rc == 0)
        assert_string_equal(got, expected);
    words_free(&runs);
    hosts_free(&list);
}

static void placed(const char *hosts, uint32_t ppn, uint32_t n, int rc, const char *expected)
{
    mapped(hosts, &(const struct hosts_mapping){.ppn = ppn}, n, rc, expected);
}

static void ranks_go_by_node(void **state)
{
    struct hosts_mapping m = {.by_node = true};
    (void)state;

    mapped("a:4\nb:2\n", &m, 7, 0, "a:1 b:1 a:1 b:1 a:2 b:1");
    mapped("a max_slots=1\nb\n", &m, 4, 0, "a:1 b:3");
    mapped("a max_slots=1\nb max_slots=2\n", &m, 4, -ENOSPC, "");
    m.ranks = HOSTS_RANKS_BY_SLOT;
    mapped("a:4\nb:2\n", &m, 4, 0, "a:2 b:2");
    m = (struct hosts_mapping){.ranks = HOSTS_RANKS_BY_NODE};
    mapped("a:3\nb:1\n", &m, 4, 0, "a:1 b:1 a:2");
    mapped("a:2\nb:1\n", &m, 5, 0, "a:1 b:1 a:3");
}

static void some_numbers_of_ranks_will_do(void **state)
{
    static const struct {
        const char *list;
        uint32_t high, best;
    } cases[] = {{"4", 5, 4},       {"4", 3, 0},        {"2:10:3", 9, 8},   {"2:10:3", 100, 8},
                 {"10:1:-4", 9, 6}, {"10:1:-4", 1, 0},  {"1,8:16", 12, 12}, {"3:2", 9, 0},
                 {"2:3:-5", 9, 0},  {"-4:4:2", 100, 4}, {"-4:-2", 9, 0},    {"1,3,9", 8, 3},
                 {"0:1", 1, 1},     {"5:5:1", 5, 5}};
    static const char *const wrong[] = {
        "", ",", "a", "1:", "1:2:", "1:2:0", "1:2:3:4", "1,", "1 2", "99999999999999999999"};
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(soft_check(cases[i].list), 0);
        assert_int_equal(soft_best(cases[i].list, cases[i].high), cases[i].best);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(soft_check(wrong[i]), -EINVAL);
}

static void names_can_be_near(void **state)
{
    (void)state;
    assert_int_equal(near_distance("prepend-rank", "prepend-rank"), 0);
    assert_int_equal(near_distance("prepend-rnak", "prepend-rank"), 1);
    assert_int_equal(near_distance("hostfle", "hostfile"), 1);
    assert_int_equal(near_distance("n", "x"), NEAR_NONE);
    assert_int_equal(near_distance("oversubcribed", "oversubscribe"), 2);
    assert_int_equal(near_distance("", ""), 0);
    assert_int_equal(near_distance("a-name-that-is-longer-than-any-of-them", "n"), NEAR_NONE);
}

static void ranks_go_round_the_hosts(void **state)
{
    (void)state;
    placed("a\nb\n", 0, 5, 0, "a:1 b:1 a:1 b:1 a:1");
    placed("a:2\nb slots=3\n", 0, 7, 0, "a:2 b:3 a:2");
    placed("a:2\nb:3\n", 4, 6, 0, "a:4 b:2");
    placed("a max_slots=1\nb\n", 0, 4, 0, "a:1 b:3");
    placed("a slots=3 max-slots=2\nb\n", 0, 4, 0, "a:2 b:2");
    placed("a max_slots=2\nb max_slots=1\n", 0, 3, 0, "a:1 b:1 a:1");
    placed("a max_slots=2\nb max_slots=1\n", 0, 4, -ENOSPC, "");
    placed("a:4096\n", 0, 4096, 0, "a:4096");
}

static void placing_goes_on_where_it_ended(void **state)
{
    const struct hosts_mapping slots = {0};
    struct host_list list = {0};
    struct words runs = {0};
    struct host_error error;
    (void)state;

    assert_int_equal(hosts_parse_list(&list, "a:2,b:2", &error), 0);
    assert_int_equal(hosts_n_slots(&list, 0), 4);
    assert_int_equal(hosts_n_slots(&list, 3), 6);
    assert_int_equal(hosts_place(&list, &slots, 1, &runs, &error), 0);
    assert_int_equal(hosts_place(&list, &slots, 2, &runs, &error), 0);
    assert_int_equal(runs.n, 3);
    assert_string_equal(runs.at[1], "a:1");
    assert_string_equal(runs.at[2], "b:1");
    memory_until_none = 0;
    assert_int_equal(hosts_place(&list, &slots, 2, &runs, &error), -ENOMEM);
    memory_until_none = -1;
    words_free(&runs);
    hosts_free(&list);
}

static void hosts_are_checked(void **state)
{
    static const char *const wrong[] = {"",    "a,",  "a:0", "a:4097", "a:x", "-a",
                                        "a b", "a/b", ",a",  "a:",     ":2",  "a:1:2"};
    struct host_list list = {0};
    struct host_error error;
    char name[80];
    (void)state;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(hosts_parse_list(&list, wrong[i], &error), -EINVAL);
    hosts_free(&list);
    assert_int_equal(hosts_parse_text(&list, "f", "a\n\nb slots=0\n", &error), -EINVAL);
    assert_non_null(strstr(error.text, "f:3: 'slots=0'"));
    assert_int_equal(hosts_parse_text(&list, "f", "# none\n", &error), -EINVAL);
    hosts_free(&list);
    memset(name, 'n', sizeof name);
    name[HOSTS_NAME_MAX] = '\0';
    assert_int_equal(hosts_parse_list(&list, name, &error), 0);
    name[HOSTS_NAME_MAX] = 'n';
    name[HOSTS_NAME_MAX + 1] = '\0';
    assert_int_equal(hosts_parse_list(&list, name, &error), -EINVAL);
    memory_until_none = 0;
    assert_int_equal(hosts_parse_list(&list, "b", &error), -ENOMEM);
    memory_until_none = -1;
    hosts_free(&list);
    assert_true(hosts_is_local("localhost"));
    assert_true(hosts_is_local("127.0.0.1"));
    assert_false(hosts_is_local("there"));
    assert_int_equal(hosts_parse_list(&list, "localhost,there", &error), 0);
    assert_false(hosts_all_local(&list));
    hosts_free(&list);
    assert_true(hosts_all_local(&list));
}

/* ---- lines ---- */

#define MS CLOCK_NS_PER_MS

static void taken(struct bytes *out, const char *expected)
{
    assert_int_equal(out->n, strlen(expected));
    if (out->n)
        assert_memory_equal(bytes_data(out), expected, out->n);
    bytes_drop(out, out->n);
}

static void output_keeps_its_lines(void **state)
{
    struct lines l;
    struct bytes out = {0};
    (void)state;

    assert_int_equal(lines_init(&l, 2, false), 0);
    lines_add(&l, 0, "one\ntw", 6, 0, &out);
    taken(&out, "one\n");
    lines_add(&l, 1, "other\n", 6, 5 * MS, &out);
    taken(&out, "other\n");
    assert_int_equal(lines_timer(&l, 19 * MS, &out), 20 * MS);
    taken(&out, "");
    lines_add(&l, 0, "o\nand ", 6, 19 * MS, &out);
    taken(&out, "two\n");
    assert_int_equal(lines_timer(&l, 39 * MS, &out), UINT64_MAX); /* a prompt shows */
    taken(&out, "and ");
    lines_add(&l, 1, "end", 3, 40 * MS, &out);
    lines_end(&l, 1, &out);
    taken(&out, "end");
    lines_end(&l, 1, &out);
    taken(&out, "");
    lines_free(&l);
    bytes_free(&out);
}

static void tags_wait_for_the_line(void **state)
{
    struct lines l;
    struct bytes out = {0};
    char *block = malloc(LINES_MAX_BYTES);
    (void)state;

    assert_int_equal(lines_init(&l, 12, true), 0);
    lines_add(&l, 11, "one\ntw", 6, 0, &out);
    taken(&out, "[11] one\n");
    assert_int_equal(lines_timer(&l, 1000 * MS, &out), UINT64_MAX);
    lines_add(&l, 11, "o\n\n", 3, 0, &out);
    taken(&out, "[11] two\n[11] \n");
    lines_add(&l, 3, "rest", 4, 0, &out);
    lines_end(&l, 3, &out);
    taken(&out, "[3] rest\n");
    memset(block, 'x', LINES_MAX_BYTES);
    lines_add(&l, 0, block, LINES_MAX_BYTES - 1, 0, &out);
    assert_int_equal(out.n, 0);
    lines_add(&l, 0, "yz", 2, 0, &out); /* cut */
    assert_int_equal(out.n, 4 + LINES_MAX_BYTES + 1);
    assert_memory_equal(bytes_data(&out) + out.n - 2, "y\n", 2);
    bytes_drop(&out, out.n);
    lines_end(&l, 0, &out);
    taken(&out, "[0] z\n");
    memory_until_none = 0;
    lines_add(&l, 5, "lost", 4, 0, &out);
    memory_until_none = -1;
    lines_end(&l, 5, &out);
    assert_int_equal(out.n, 0);
    assert_false(out.failed); /* nothing was held, so there is no line to end */
    lines_free(&l);
    bytes_free(&out);
    free(block);
    memory_until_none = 0;
    assert_int_equal(lines_init(&l, 2, true), -ENOMEM);
    memory_until_none = -1;
    lines_end(&l, 1, &out);
    lines_free(&l);
}

/* ---- output ---- */

static void output_tells_its_end_once(void **state)
{
    struct output o;
    int ends[2];
    char got[8];
    (void)state;

    assert_int_equal(pipe(ends), 0);
    output_init(&o, ends[1]);
    assert_false(output_waits(&o));
    bytes_append(&o.queue, "text", 4);
    assert_true(output_waits(&o));
    assert_int_equal(output_flush(&o), 0);
    assert_int_equal(read(ends[0], got, sizeof got), 4);
    o.queue.failed = true;
    assert_true(output_waits(&o));
    assert_int_equal(output_flush(&o), -ENOMEM);
    assert_int_equal(output_flush(&o), 0);
    assert_true(o.gone);
    close(ends[0]);
    close(ends[1]);
    bytes_free(&o.queue);
}

/* ---- the stream of frames ---- */

static void frames_go_both_ways(void **state)
{
    struct frame_stream s;
    struct frame_header h = {.len = 3, .type = 5, .magic = FRAME_MAGIC};
    char wire[64];
    const uint8_t *body;
    uint16_t type;
    uint32_t n;
    int ends[2];
    (void)state;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    frame_stream_init(&s, ends[0]);
    frame_stream_send_raw(&s, 9, "hello", 5);
    assert_int_equal(read(ends[1], wire, sizeof wire), (ssize_t)sizeof h + 5);
    assert_memory_equal(wire + sizeof h, "hello", 5);
    assert_false(frame_stream_has_output(&s));
    memcpy(wire, &h, sizeof h);
    memcpy(wire + sizeof h, "abc", 3);
    memcpy(wire + sizeof h + 3, &h, sizeof h);
    assert_int_equal(frame_stream_fill(&s), 0); /* nothing yet */
    assert_int_equal(write(ends[1], wire, 2 * sizeof h + 4), (ssize_t)(2 * sizeof h + 4));
    assert_int_equal(frame_stream_fill(&s), 0);
    assert_int_equal(frame_stream_next(&s, &type, &body, &n), 1);
    assert_int_equal(type, 5);
    assert_int_equal(n, 3);
    assert_memory_equal(body, "abc", 3);
    assert_int_equal(frame_stream_next(&s, &type, &body, &n), 0); /* its body is not all there */
    h.magic = 0;
    assert_int_equal(write(ends[1], "bc", 2), 2);
    assert_int_equal(write(ends[1], &h, sizeof h), (ssize_t)sizeof h);
    assert_int_equal(frame_stream_fill(&s), 0);
    assert_int_equal(frame_stream_next(&s, &type, &body, &n), 1);
    assert_int_equal(frame_stream_next(&s, &type, &body, &n), -EPROTO);
    close(ends[1]);
    assert_int_equal(frame_stream_fill(&s), -ECONNRESET);
    frame_stream_close(&s);
}

static void half_a_frame_does_not_go_out(void **state)
{
    struct frame_stream s;
    char got[64];
    int ends[2];
    (void)state;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    frame_stream_init(&s, ends[0]);
    memory_until_none = 0;
    frame_stream_send_raw(&s, 9, "hello", 5);
    memory_until_none = -1;
    assert_int_equal(read(ends[1], got, sizeof got), 0);
    assert_int_equal(frame_stream_fill(&s), -ENOMEM);
    assert_false(frame_stream_has_output(&s));
    frame_stream_close(&s);
    close(ends[1]);
}

/* ---- the command line ---- */

/* Words separated by blanks. Returns what parsing does; the submission if it is built. */
static int submitted(const char *line, Motet__Submit **ret_message, char *why, size_t room)
{
    static char home[] = "HOME=/h", path[] = "PATH=/bin";
    char *const environment[] = {home, path, NULL};
    struct split_lines split = {.text = line};
    struct words argv = {0};
    struct options o;
    struct options_error error = {""};
    struct submit submit = {0};
    FILE *nowhere = fopen("/dev/null", "w");

    *ret_message = NULL;
    assert_true(split_next_line(&split, &argv) >= 0);
    int rc = options_parse(&o, argv.n, (const char *const *)argv.at, &error);
    if (rc == 0)
        rc = submit_build(&o, environment, "/w", nowhere, &submit, &error);
    if (rc == 0) {
        *ret_message = motet__submit__unpack(NULL, submit.n, submit.body);
        assert_non_null(*ret_message);
    }
    snprintf(why, room, "%s", error.text);
    free(submit.body);
    options_free(&o);
    words_free(&argv);
    fclose(nowhere);
    return rc;
}

static void a_command_line_becomes_a_submission(void **state)
{
    Motet__Submit *m;
    char why[400];
    (void)state;

    assert_int_equal(submitted("-n 3 -env A 1 --host a:2,b /x/prog -n : -n 2 -wdir /d other", &m,
                               why, sizeof why),
                     0);
    assert_int_equal(m->n_apps, 2);
    assert_int_equal(m->apps[0]->n_ranks, 3);
    assert_int_equal(m->apps[0]->n_argv, 2);
    assert_string_equal(m->apps[0]->argv[1], "-n");
    assert_string_equal(m->apps[0]->env[0], "A=1");
    assert_string_equal(m->apps[1]->wdir, "/d");
    assert_string_equal(m->name, "prog");
    assert_string_equal(m->wdir, "/w");
    assert_int_equal(m->n_hosts, 3);
    assert_string_equal(m->hosts[0], "a:2");
    assert_string_equal(m->hosts[1], "b:1");
    assert_string_equal(m->hosts[2], "a:2"); /* the second program goes on */
    motet__submit__free_unpacked(m, NULL);
    assert_int_equal(submitted("--host a:2,b prog", &m, why, sizeof why), 0);
    assert_int_equal(m->apps[0]->n_ranks, 3);
    motet__submit__free_unpacked(m, NULL);
}

/* What other launchers' users type. */
static void other_spellings_mean_the_same(void **state)
{
    static const char *const four[] = {"-n4 p",
                                       "-np4 p",
                                       "-c 4 p",
                                       "--np=4 p",
                                       "-n=4 p",
                                       "-N4 p",
                                       "-ppn 4 p",
                                       "-map-by ppr:4:node p",
                                       "-n 6 -soft 2:5:2 p"};
    Motet__Submit *m;
    char why[400];
    (void)state;

    for (size_t i = 0; i < sizeof four / sizeof *four; i++) {
        if (submitted(four[i], &m, why, sizeof why) < 0)
            fail_msg("%s: %s", four[i], why);
        assert_int_equal(m->apps[0]->n_ranks, 4);
        motet__submit__free_unpacked(m, NULL);
    }
    assert_int_equal(submitted("-genvexcl HOME -mca btl tcp -path /a:/b p", &m, why, sizeof why),
                     0);
    assert_int_equal(m->n_env, 1);
    assert_string_equal(m->env[0], "PATH=/bin");
    assert_string_equal(m->apps[0]->path, "/a:/b");
    motet__submit__free_unpacked(m, NULL);
    assert_int_equal(submitted("-initial-errhandler mpi_errors_return p", &m, why, sizeof why), 0);
    assert_string_equal(m->apps[0]->env[0], "MOTET_INITIAL_ERRHANDLER=mpi_errors_return");
    motet__submit__free_unpacked(m, NULL);
    assert_int_equal(submitted("-host localhost:3 p", &m, why, sizeof why), 0);
    assert_int_equal(m->apps[0]->n_ranks, 3);
    assert_string_equal(m->hosts[0], "localhost:3");
    motet__submit__free_unpacked(m, NULL);
}

static void bindings_are_understood(void **state)
{
    static const struct {
        const char *line;
        uint32_t to, over, width;
    } cases[] = {
        {"-bind-to core p", BINDING_CORE, BINDING_NONE, 1},
        {"-bind-to core:4 p", BINDING_CORE, BINDING_NONE, 4},
        {"-bind-to socket p", BINDING_SOCKET, BINDING_NONE, 1},
        {"-bind-to L3 p", BINDING_L3CACHE, BINDING_NONE, 1},
        {"-bind-to core:overload-allowed p", BINDING_CORE, BINDING_NONE, 1},
        {"-map-by numa p", BINDING_NUMA, BINDING_NUMA, 1},
        {"-map-by socket -bind-to core p", BINDING_CORE, BINDING_SOCKET, 1},
        {"-bind-to core -map-by socket p", BINDING_CORE, BINDING_SOCKET, 1},
        {"-map-by slot:pe=2 p", BINDING_CORE, BINDING_NONE, 2},
        {"-map-by socket:PE=2,span p", BINDING_CORE, BINDING_SOCKET, 2},
        {"-map-by ppr:2:node:pe=3 p", BINDING_CORE, BINDING_NONE, 3},
    };
    Motet__Submit *m;
    char why[400];
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (submitted(cases[i].line, &m, why, sizeof why) < 0)
            fail_msg("%s: %s", cases[i].line, why);
        assert_non_null(m->binding);
        if (m->binding->to != cases[i].to || m->binding->over != cases[i].over ||
            m->binding->width != cases[i].width)
            fail_msg("%s: to %u over %u width %u", cases[i].line, m->binding->to, m->binding->over,
                     m->binding->width);
        motet__submit__free_unpacked(m, NULL);
    }
    assert_int_equal(submitted("-bind-to none p", &m, why, sizeof why), 0);
    assert_null(m->binding);
    motet__submit__free_unpacked(m, NULL);
}

static void what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {{"", "no program given"},
                 {"-n 0 p", "-n 0: expected a whole number from 1"},
                 {"-n 1048577 p", "expected a whole number"},
                 {"-n 600000 p : -n 600000 q", "a job has at most 1048576 ranks"},
                 {"-n", "expected"},
                 {"-colour p", "unknown option"},
                 {"-prepend-rnk p", "did you mean -prepend-rank?"},
                 {"--hostfle=x p", "did you mean -hostfile?"},
                 {"-n=x p", "expected a whole number"},
                 {"-env=A p", "unknown option"},
                 {"-host localhost -f /dev/null p", "there is no host"},
                 {"-bind-to chair p", "expected none, hwthread, core"},
                 {"-bind-to none:2 p", "expected none, hwthread, core"},
                 {"-bind-to core:0 p", "expected none, hwthread, core"},
                 {"-map-by chair p", "expected slot, node"},
                 {"-map-by ppr:0:node p", "expected slot, node"},
                 {"-map-by slot:pe=0 p", "expected pe=N"},
                 {"-rank-by core p", "expected slot, fill or node"},
                 {"-display maps p", "expected map, bind"},
                 {"-soft 1: p", "expected numbers of ranks"},
                 {"-n 3 -soft 4:9 p", "no number of ranks up to 3 is in it"},
                 {"-arch vax p", "the nodes of this cluster are"},
                 {"-path '' p", "the list of folders is empty"},
                 {"-initial-errhandler mine p", "expected mpi_errors_are_fatal"},
                 {"-file /nowhere/at/all p", "cannot read '/nowhere/at/all'"},
                 {"p : ", "names no program"},
                 {"p : -timeout 3 q", "must stand before the first program"},
                 {"-host a:x p", "expected a number of ranks"},
                 {"p : -host a q", "some programs have hosts and some have not"},
                 {"''", "the program's name is empty"},
                 {"-wdir '' p", "the directory's name is empty"},
                 {"-env =x 1 p", "expected the name of a variable"}};
    Motet__Submit *m;
    char why[400];
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(submitted(cases[i].line, &m, why, sizeof why), -EINVAL);
        if (!strstr(why, cases[i].says))
            fail_msg("\"%s\": \"%s\" does not say \"%s\"", cases[i].line, why, cases[i].says);
    }
}

static void a_command_line_may_not_fit_in_memory(void **state)
{
    static const char *const argv[] = {"-n",  "2",     "-env", "A", "1", "-x", "HOME", "-host",
                                       "a,b", "-wdir", "/d",   "p", "q", "r",  ":",    "s"};
    static char home[] = "HOME=/h";
    char *const environment[] = {home, NULL};
    int rc = -1, n_failed = 0;
    (void)state;

    for (long n = 0; rc != 0; n++) {
        struct options o;
        struct options_error error = {""};
        struct submit submit = {0};
        memory_until_none = n;
        rc = options_parse(&o, sizeof argv / sizeof *argv, argv, &error);
        if (rc == 0)
            rc = submit_build(&o, environment, "/w", stderr, &submit, &error);
        memory_until_none = -1;
        if (rc != 0 && !strstr(error.text, "out of memory"))
            fail_msg("after %ld allocations: \"%s\"", n, error.text);
        n_failed += rc != 0;
        free(submit.body);
        options_free(&o);
        assert_true(n < 200);
    }
    assert_true(n_failed > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_a_queue),
        cmocka_unit_test(words_end_in_null),
        cmocka_unit_test(numbers_are_digits),
        cmocka_unit_test(files_are_text),
        cmocka_unit_test(lines_are_cut_as_by_a_shell),
        cmocka_unit_test(ranks_go_round_the_hosts),
        cmocka_unit_test(ranks_go_by_node),
        cmocka_unit_test(some_numbers_of_ranks_will_do),
        cmocka_unit_test(names_can_be_near),
        cmocka_unit_test(placing_goes_on_where_it_ended),
        cmocka_unit_test(hosts_are_checked),
        cmocka_unit_test(output_keeps_its_lines),
        cmocka_unit_test(tags_wait_for_the_line),
        cmocka_unit_test(output_tells_its_end_once),
        cmocka_unit_test(frames_go_both_ways),
        cmocka_unit_test(half_a_frame_does_not_go_out),
        cmocka_unit_test(a_command_line_becomes_a_submission),
        cmocka_unit_test(other_spellings_mean_the_same),
        cmocka_unit_test(bindings_are_understood),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(a_command_line_may_not_fit_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
