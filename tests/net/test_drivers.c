/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of drivers: who serves which provider, and how endpoints are opened, or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/log.h"
#include "daemon/net/block.h"
#include "daemon/net/net_drivers.h"

#define PACKET 16384u

static const struct net_driver *pick(const char *provider, const char *interface)
{
    struct net_config config = {.provider = provider, .interface = interface};

    return net_drivers_pick(&config);
}

static void test_pick(void **state)
{
    const struct net_driver *tcp = net_drivers_find("tcp"), *ofi = net_drivers_find("ofi");

    (void)state;
    assert_non_null(tcp);
    assert_non_null(ofi);
    assert_null(net_drivers_find("pigeon"));
    assert_ptr_equal(pick("tcp", "lo"), tcp);
    assert_ptr_equal(pick("auto", "lo"), tcp);
    assert_ptr_equal(pick("auto", NULL), tcp);
    assert_ptr_equal(pick(NULL, "lo"), tcp);
    assert_ptr_equal(pick("", "lo"), tcp);
    assert_ptr_equal(pick("udp", "lo"), net_drivers_find("udp"));
    assert_ptr_equal(pick("ofi-udp", "lo"), ofi);
    assert_ptr_equal(pick("ofi-tcp", "lo"), ofi);
    assert_ptr_equal(pick("verbs", "lo"), ofi);
}

static char names[64][64];
static uint32_t n_names;

static void take_name(void *ctx, const char *provider)
{
    (void)ctx;
    for (uint32_t i = 0; i < n_names; i++)
        assert_string_not_equal(names[i], provider);
    assert_true(n_names < 64 && strlen(provider) > 0 && strlen(provider) < sizeof names[0]);
    strcpy(names[n_names++], provider);
}

static void test_list(void **state)
{
    bool udp = false;

    (void)state;
    net_drivers_list_providers(take_name, NULL);
    assert_string_equal(names[0], "tcp");
    for (uint32_t i = 0; i < n_names; i++)
        udp |= strcmp(names[i], "udp") == 0;
    assert_true(udp);
}

static int try_open(const char *provider, const char *interface, const char *fault,
                    struct net_info *ret_info)
{
    struct net_config config = {.provider = provider,
                                .interface = interface,
                                .n_blocks = 16,
                                .max_bytes = PACKET + (uint32_t)sizeof(struct wire_header)};
    struct net_endpoint e;
    struct arena arena;

    assert_int_equal(arena_init(&arena, 16, PACKET), 0);
    int rc = net_drivers_open(NULL, &config, fault, &arena, &e);
    if (rc == 0) {
        struct sockaddr_in address;
        size_t len = sizeof address;
        assert_int_equal(e.driver->address(e.net, &address, &len), 0);
        assert_int_equal(address.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
        *ret_info = e.info;
        e.driver->close(e.net);
    }
    arena_deinit(&arena);
    return rc;
}

/* By the name of an interface; whatever comes around it, packets of any size go through it. */
static void test_open(void **state)
{
    struct net_info info;

    (void)state;
    assert_int_equal(try_open("tcp", "lo", NULL, &info), 0);
    assert_string_equal(info.driver, "tcp");
    assert_true(info.max_datagram >= PACKET + sizeof(struct wire_header));
    assert_int_equal(try_open("udp", "lo", "", &info), 0);
    assert_string_equal(info.driver, "udp");
    assert_false(info.caps & NET_CAP_DATAGRAM);
    assert_true(info.caps & NET_CAP_WAIT);
    assert_true(info.max_datagram >= PACKET + sizeof(struct wire_header));
    assert_int_equal(try_open("ofi-udp", "lo", "", &info), 0);
    assert_string_equal(info.driver, "ofi");
    assert_true(info.caps & NET_CAP_DATAGRAM);
    assert_true(info.max_datagram >= PACKET + sizeof(struct wire_header));
    assert_int_equal(try_open("tcp", "lo", "drop=0.5,seed=3", &info), 0);
    assert_false(info.caps & NET_CAP_WAIT);
}

static void test_refused(void **state)
{
    struct net_info info;

    (void)state;
    assert_true(try_open("tcp", "nosuchnic0", NULL, &info) < 0);
    assert_true(try_open("udp", "nosuchnic0", NULL, &info) < 0);
    assert_true(try_open("pigeon", "lo", NULL, &info) < 0);
    assert_true(try_open("tcp", "lo", "drop=2", &info) < 0);
    assert_true(try_open("tcp", "lo", "pigeons=1", &info) < 0);
    assert_true(try_open("tcp", "lo", "lose=0.1", &info) < 0);
    assert_true(try_open("udp", "lo", "lose=1.1", &info) < 0);
    assert_int_equal(try_open("udp", "lo", "lose=0.1,seed=4", &info), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_refused),
    };

    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
