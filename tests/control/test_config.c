/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration: values with units, complaints with file, line and what was expected, drop-ins,
 * reload, the printed default. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/config.h"
#include "daemon/config_seed.h"

struct complaints {
    int n;
    char last[1024], all[8192];
};

static void report(void *ctx, const char *line)
{
    struct complaints *c = ctx;

    c->n++;
    snprintf(c->last, sizeof c->last, "%s", line);
    size_t at = strlen(c->all);
    snprintf(c->all + at, sizeof c->all - at, "%s\n", line);
}

static int parse(struct config *config, const char *text, struct complaints *c)
{
    memset(c, 0, sizeof *c);
    config_defaults(config);
    return config_parse(config, text, strlen(text), "t.conf", report, c);
}

static void test_values(void **state)
{
    struct config config;
    struct complaints c;

    (void)state;
    assert_int_equal(parse(&config,
                           "[node]\nname = n1\nlog_level = debug\nclient_mode = 0660\n"
                           "[mesh]\nheartbeat = 50ms\n[transport]\npacket_bytes = 32KiB\n"
                           "[channel left]\ninterface = eth0\nseeds = a, b:7\n[channel "
                           "right]\ncidr = 10.0.0.0/8\nprovider=udp\n",
                           &c),
                     0);
    assert_int_equal(c.n, 0);
    assert_string_equal(config.name, "n1");
    assert_int_equal(config.heartbeat_ns, 50000000);
    assert_int_equal(config.packet_bytes, 32768);
    assert_int_equal(config.client_mode, 0660);
    assert_int_equal(config.n_channels, 2);
    assert_string_equal(config.channels[0].seeds, "a, b:7");
    assert_int_equal(config.channels[0].port, 7117);
    assert_string_equal(config.channels[1].provider, "udp");
    assert_int_equal(config.channels[1].wait_mode, CONFIG_WAIT_INHERIT);
    /* A defaulted value is still there. */
    assert_int_equal(config.kill_grace_ns, 1000000000);
}

static void expect_complaint(const char *text, const char *start, const char *part)
{
    struct config config;
    struct complaints c;

    assert_true(parse(&config, text, &c) < 0);
    assert_int_equal(c.n, 1);
    if (strncmp(c.last, start, strlen(start)) != 0 || !strstr(c.last, part))
        fail_msg("complaint is '%s'", c.last);
}

static void test_complaints(void **state)
{
    (void)state;
    expect_complaint("[node]\n\nnaem = x\n", "t.conf:3: ", "expected one of name, key_file");
    expect_complaint("[nod]\nname = x\n", "t.conf:2: ", "expected node, mesh");
    expect_complaint("[mesh]\nheartbeat = 200\n",
                     "t.conf:2: ", "a time like 200ms from 10ms to 10s");
    expect_complaint("[mesh]\nheartbeat = 1ns\n", "t.conf:2: ", "from 10ms");
    expect_complaint("[mesh]\nheartbeat = 99999999999999999999s\n", "t.conf:2: ", "a time");
    expect_complaint("[transport]\npacket_bytes = 16kb\n", "t.conf:2: ", "a size like 64KiB");
    expect_complaint("[transport]\nwait_mode = lazy\n", "t.conf:2: ", "adaptive, spin, event");
    expect_complaint("[node]\nname = a b\n", "t.conf:2: ", "a name of 1 to 55");
    expect_complaint("[node]\nclient_mode = 0999\n", "t.conf:2: ", "octal");
    expect_complaint("[channel]\nport = 1\n", "t.conf:2: ", "[channel NAME]");
    expect_complaint("[channel x]\nport = 70000\n", "t.conf:2: ", "from 1 to 65535");
    expect_complaint("[node]\nname = x\nrubbish\n", "t.conf:3: ", "expected [section]");
}

/* Mistakes of one who types, each with what was probably meant. */
static void test_hints(void **state)
{
    (void)state;
    expect_complaint("[node]\n\nnaem = x\n", "t.conf:3: ", "(did you mean name?)");
    expect_complaint("[nod]\nname = x\n", "t.conf:2: ", "(did you mean [node]?)");
    expect_complaint("[node]\nmax_jobs = 3\n", "t.conf:2: ", "(it belongs to [jobs])");
    expect_complaint("[mesh]\nport = 3\n", "t.conf:2: ", "(it belongs to [channel NAME])");
    expect_complaint("name = x\n[node]\n", "t.conf:1: ", "before any section");
    expect_complaint("[node]\nname = a\nlog_level = info\nname = b\n",
                     "t.conf:4: ", "first in line 2");
    expect_complaint("[channel a]\nport = 1\n[channel b]\nport = 1\n\n[channel a]\nnetwork = n\n",
                     "t.conf:6: ", "[channel a]: given twice in this file, first in line 1");
    expect_complaint("[channel a]\nport = 1\nport = 2\n", "t.conf:3: ", "first in line 2");
}

static void test_seeds(void **state)
{
    struct config config;
    struct complaints c;
    struct config_seed seed;
    const char *why, *at = " a:7, 10.0.0.1\tfd00::1,[fd00::2] [fd00::3]:99,";
    static const struct config_seed expected[] = {
        {"a", 7}, {"10.0.0.1", 5}, {"fd00::1", 5}, {"fd00::2", 5}, {"fd00::3", 99}};

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(config_seed_next(&at, 5, &seed, &why), 1);
        assert_string_equal(seed.host, expected[i].host);
        assert_int_equal(seed.port, expected[i].port);
    }
    assert_int_equal(config_seed_next(&at, 5, &seed, &why), 0);
    expect_complaint("[channel a]\n\nseeds = a, b:70000\n",
                     "t.conf:3: ", "b:70000: expected a port");
    expect_complaint("[channel a]\nseeds = b:x\n", "t.conf:2: ", "b:x: expected a port");
    expect_complaint("[channel a]\nseeds = b:0\n", "t.conf:2: ", "from 1 to 65535");
    expect_complaint("[channel a]\nseeds = b:\n", "t.conf:2: ", "from 1 to 65535");
    expect_complaint("[channel a]\nseeds = [fd00::1\n", "t.conf:2: ", "expected host");
    expect_complaint("[channel a]\nseeds = [fd00::1]7\n", "t.conf:2: ", "expected host");
    expect_complaint("[channel a]\nseeds = :7\n", "t.conf:2: ", "expected host");
    expect_complaint("[channel a]\nseeds = a/24\n", "t.conf:2: ", "expected host");
    /* Each wrong one is named. */
    assert_true(parse(&config, "[channel a]\nseeds = x:y, good, :3\n", &c) < 0);
    assert_int_equal(c.n, 2);
}

/* What just fits, and what just does not. */
static void test_limits(void **state)
{
    struct config config;
    struct complaints c;
    char name[CONFIG_NAME_BYTES + 1], path[CONFIG_PATH_BYTES + 1],
        text[CONFIG_PATH_BYTES + 200] = "";
    (void)state;

    memset(name, 'n', sizeof name);
    memset(path, 'p', sizeof path);
    name[CONFIG_NAME_BYTES - 1] = path[CONFIG_PATH_BYTES - 1] = '\0';
    snprintf(text, sizeof text, "[node]\nname = %s\n", name);
    assert_int_equal(parse(&config, text, &c), 0);
    assert_string_equal(config.name, name);
    snprintf(text, sizeof text, "[node]\nname = %sn\n", name);
    expect_complaint(text, "t.conf:2: ", "a name of 1 to 55");
    expect_complaint("[node]\nname = -n\n", "t.conf:2: ", "a name of 1 to 55");
    expect_complaint("[node]\nname = .n\n", "t.conf:2: ", "a name of 1 to 55");
    snprintf(text, sizeof text, "[node]\nkey_file = %s\n", path);
    assert_int_equal(parse(&config, text, &c), 0);
    assert_string_equal(config.key_file, path);
    snprintf(text, sizeof text, "[node]\nkey_file = %sp\n", path);
    expect_complaint(text, "t.conf:2: ", "expected at most");
    /* 2^34 GiB are 2^64 bytes: they must not come out as a few. */
    expect_complaint("[transport]\nrank_hold_bytes = 17179869185GiB\n", "t.conf:2: ", "a size");
    text[0] = '\0';
    for (int i = 0; i < CONFIG_MAX_CHANNELS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "[channel c%d]\nport=1\n", i);
    assert_int_equal(parse(&config, text, &c), 0);
    assert_int_equal(config.n_channels, CONFIG_MAX_CHANNELS);
    strcat(text, "[channel more]\nport=1\n");
    expect_complaint(text, "t.conf:18: ", "at most 8 channels");
}

static void test_long_line(void **state)
{
    struct config config;
    struct complaints c;
    char text[4096] = "[node]\nkey_file = ";

    (void)state;
    memset(text + strlen(text), 'x', 3000);
    strcat(text, "\nname = after\n");
    assert_true(parse(&config, text, &c) < 0);
    assert_non_null(strstr(c.all, "t.conf:2: line is too long"));
    assert_string_equal(config.name, "after");
}

static void test_finish(void **state)
{
    struct config config;
    struct complaints c;

    (void)state;
    assert_int_equal(parse(&config, "[channel a]\nnetwork = x\n", &c), 0);
    assert_true(config_finish(&config, report, &c) < 0);
    assert_non_null(strstr(c.all, "either interface or cidr"));
    assert_non_null(strstr(c.all, "key_file"));
    assert_int_equal(parse(&config, "[transport]\npacket_bytes = 5000B\n", &c), 0);
    assert_true(config_finish(&config, report, &c) < 0);
    assert_non_null(strstr(c.last, "t.conf:2: packet_bytes = 5000: expected a multiple of 64"));
    assert_int_equal(
        parse(&config, "[node]\nkey_file = k\n[channel a]\ninterface = i\ncidr = 10.0.0.0/8\n", &c),
        0);
    assert_true(config_finish(&config, report, &c) < 0);
    assert_non_null(strstr(c.last, "either interface or cidr"));
    assert_int_equal(parse(&config, "[mesh]\nheartbeat = 600ms\ndead_after = 1s\n", &c), 0);
    assert_true(config_finish(&config, report, &c) < 0);
    assert_non_null(strstr(c.last, "t.conf:3: "));
    assert_non_null(strstr(c.last, "twice heartbeat"));
    assert_int_equal(parse(&config,
                           "[node]\nkey_file = k\n[channel a]\ninterface = i\n\ndata_port = 7117\n",
                           &c),
                     0);
    assert_true(config_finish(&config, report, &c) < 0);
    assert_non_null(strstr(c.last, "t.conf:6: "));
    assert_non_null(strstr(c.last, "its port for control as well"));
    assert_int_equal(parse(&config, "[mesh]\nheartbeat = 500ms\ndead_after = 1s\n", &c), 0);
    assert_int_equal(config_finish(&config, report, &c), 0);
    assert_int_equal(parse(&config, "[node]\nruntime_dir = /tmp/x\n", &c), 0);
    assert_int_equal(config_finish(&config, report, &c), 0);
    assert_string_equal(config.client_socket, "/tmp/x/client.sock");
    assert_true(config.name[0] != '\0');
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[600];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void test_drop_ins(void **state)
{
    char dir[] = "/tmp/motet-config-XXXXXX", path[300], drop[300];
    struct config config;
    struct complaints c = {0};

    (void)state;
    assert_non_null(mkdtemp(dir));
    write_file(dir, "m.conf", "[node]\nname = first\n[jobs]\nmax_jobs = 3\n");
    snprintf(drop, sizeof drop, "%s/m.conf.d", dir);
    assert_int_equal(mkdir(drop, 0700), 0);
    write_file(drop, "10.conf", "[node]\nname = second\n");
    write_file(drop, "20.conf", "[node]\nname = third\nbad = 1\n");
    write_file(drop, "ignored.txt", "[node]\nname = no\n");
    snprintf(path, sizeof path, "%s/m.conf", dir);
    config_defaults(&config);
    assert_true(config_load(&config, path, report, &c) < 0);
    assert_string_equal(config.name, "third");
    assert_int_equal(config.max_jobs, 3);
    assert_int_equal(c.n, 1);
    assert_non_null(strstr(c.last, "20.conf:3: bad"));
    /* A mistake counts wherever it is. */
    write_file(drop, "30.conf", "[node]\nname = fourth\n");
    config_defaults(&config);
    assert_true(config_load(&config, path, report, &c) < 0);
    assert_string_equal(config.name, "fourth");
    snprintf(path, sizeof path, "rm -r %s", dir);
    assert_int_equal(system(path), 0);
}

/* An indented line is a line of its own, never the rest of the value above it. */
static void test_indented(void **state)
{
    struct config config;
    struct complaints c;

    (void)state;
    assert_int_equal(parse(&config,
                           "[node]\n  name = n1\n\t log_level = debug\n  [mesh]\n   ; a comment\n  "
                           " heartbeat = 50ms  \n \n",
                           &c),
                     0);
    assert_string_equal(config.name, "n1");
    assert_int_equal(config.heartbeat_ns, 50000000);
    assert_true(parse(&config, "[channel a]\nseeds = one,\n  two, three\nport = 1\n", &c) < 0);
    assert_string_equal(c.all,
                        "t.conf:3: expected [section], key = value, or a comment after # or ;\n");
    assert_string_equal(config.channels[0].seeds, "one,");
    assert_true(parse(&config, "[node]\nname = n1\n    colour = red\n", &c) < 0);
    assert_non_null(strstr(c.all, "t.conf:3: colour: unknown key in [node]"));
}

static void test_reload(void **state)
{
    struct config config, fresh;
    struct complaints c;

    (void)state;
    assert_int_equal(parse(&config, "[channel a]\ninterface = e\n", &c), 0);
    assert_int_equal(parse(&fresh,
                           "[node]\nlog_level = debug\nname = other\n[channel a]\ninterface = "
                           "f\nwait_mode = spin\n",
                           &c),
                     0);
    assert_int_equal(config_reload(&config, &fresh, report, &c), 2);
    assert_non_null(strstr(c.all, "name in [node] changed"));
    assert_non_null(strstr(c.all, "interface in [channel a] changed"));
    assert_int_equal(config.log_level, 7);
    assert_int_equal(config.channels[0].wait_mode, 1);
    assert_string_equal(config.name, "");
}

/* What is printed can be read again and means the same. */
static void test_print(void **state)
{
    struct config config, again;
    struct complaints c;
    char *text = NULL, *second = NULL;
    size_t n, n_second;

    (void)state;
    assert_int_equal(parse(&config,
                           "[node]\nname = n\n[channel a]\ninterface = e\nseeds = "
                           "x:1\n[mesh]\nheartbeat = 1500us\n",
                           &c),
                     -22);
    assert_int_equal(parse(&config,
                           "[node]\nname = n\n[channel a]\ninterface = e\nseeds = "
                           "x:1\n[mesh]\nheartbeat = 15000us\n",
                           &c),
                     0);
    FILE *f = open_memstream(&text, &n);
    config_print(&config, f);
    fclose(f);
    assert_int_equal(parse(&again, text, &c), 0);
    f = open_memstream(&second, &n_second);
    config_print(&again, f);
    fclose(f);
    assert_string_equal(text, second);
    free(text);
    free(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_complaints),
        cmocka_unit_test(test_hints),  cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_finish), cmocka_unit_test(test_drop_ins),
        cmocka_unit_test(test_reload), cmocka_unit_test(test_indented),
        cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
