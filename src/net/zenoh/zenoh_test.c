// SPDX-License-Identifier: Apache-2.0
#include "net/conformance/conformance.h"
#include "net/zenoh/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void a_port_in_use_is_refused_and_named(void **state)
{
    (void)state;
    td_ztest_endpoint at;
    td_ztest_tcp(&at);
    TD_AUTO(td_net) *first =
        td_ztest_open(td_ztest_listening(TD_NET_ZENOH_PEER, &at));

    td_net_zenoh_config config = td_ztest_listening(TD_NET_ZENOH_ROUTER, &at);
    td_net *second = NULL;
    td_errinfo info = {0};
    assert_int_equal(TD_ERR_EXISTS, td_net_zenoh_open(&config, &second, &info));
    assert_null(second);
    assert_non_null(strstr(info.text, strrchr(at.text, ':')));
}

static const struct {
    const char *name;
    const char *endpoint;
} bad_endpoints[] = {
    {"empty", ""},
    {"no address", "tcp/"},
    {"no protocol", "127.0.0.1:7447"},
    {"no port", "tcp/127.0.0.1"},
    {"port that is no number", "tcp/127.0.0.1:http"},
    {"port too large", "tcp/127.0.0.1:70000"},
    {"protocol that is not built in", "carrier-pigeon/roof:1"},
    {"unix socket without a path", "unixsock-stream/"},
    {"quote", "tcp/\"127.0.0.1:7447"},
    {"control character", "tcp/127.0.0.1:74\n47"},
};

static void what_is_no_endpoint_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(bad_endpoints); i++) {
        td_net_zenoh_config config = {
            .mode = TD_NET_ZENOH_CLIENT,
            .connect = &bad_endpoints[i].endpoint,
            .connect_count = 1,
        };
        td_net *net = NULL;
        td_errinfo info = {0};
        if (td_net_zenoh_open(&config, &net, &info) != TD_ERR_INVALID ||
            info.text[0] == '\0') {
            fail_msg("%s: was not refused", bad_endpoints[i].name);
        }
    }
}

static void a_client_must_know_whom_to_connect_to(void **state)
{
    (void)state;
    td_net_zenoh_config config = {.mode = TD_NET_ZENOH_CLIENT};
    td_net *net = NULL;
    assert_int_equal(TD_ERR_INVALID, td_net_zenoh_open(&config, &net, NULL));
}

static void a_client_may_open_before_its_router(void **state)
{
    (void)state;
    td_ztest_endpoint at;
    td_ztest_tcp(&at);
    TD_AUTO(td_net) *client =
        td_ztest_open(td_ztest_connecting(TD_NET_ZENOH_CLIENT, &at));
    TD_AUTO(td_net_pub) *pub = td_ztest_publish(client);
    assert_false(td_ztest_is_matched(pub));

    TD_AUTO(td_net) *router =
        td_ztest_open(td_ztest_listening(TD_NET_ZENOH_ROUTER, &at));
    td_ztest_inbox box;
    td_ztest_inbox_open(&box, router);
    td_ztest_send(pub, &box, 100);
    td_ztest_inbox_close(&box);
}

static void a_client_returns_to_a_restarted_router(void **state)
{
    (void)state;
    td_ztest_endpoint at;
    td_ztest_tcp(&at);
    td_net *router =
        td_ztest_open(td_ztest_listening(TD_NET_ZENOH_ROUTER, &at));
    TD_AUTO(td_net) *client =
        td_ztest_open(td_ztest_connecting(TD_NET_ZENOH_CLIENT, &at));
    TD_AUTO(td_net_pub) *pub = td_ztest_publish(client);
    for (int start = 0; start < 2; start++) {
        td_ztest_inbox box;
        td_ztest_inbox_open(&box, router);
        td_ztest_send(pub, &box, 100);
        td_ztest_inbox_close(&box);
        td_net_close(router);
        if (start == 0) {
            router =
                td_ztest_open(td_ztest_listening(TD_NET_ZENOH_ROUTER, &at));
        }
    }
}

static void a_client_that_never_connects_closes(void **state)
{
    (void)state;
    td_ztest_endpoint at;
    td_ztest_tcp(&at);
    td_net *client =
        td_ztest_open(td_ztest_connecting(TD_NET_ZENOH_CLIENT, &at));
    td_net_close(client);
}

static void a_router_joins_two_clients(void **state)
{
    (void)state;
    td_ztest_endpoint at;
    td_ztest_tcp(&at);
    TD_AUTO(td_net) *router =
        td_ztest_open(td_ztest_listening(TD_NET_ZENOH_ROUTER, &at));
    TD_AUTO(td_net) *sender =
        td_ztest_open(td_ztest_connecting(TD_NET_ZENOH_CLIENT, &at));
    TD_AUTO(td_net) *receiver =
        td_ztest_open(td_ztest_connecting(TD_NET_ZENOH_CLIENT, &at));
    TD_AUTO(td_net_pub) *pub = td_ztest_publish(sender);
    td_ztest_inbox box;
    td_ztest_inbox_open(&box, receiver);
    td_ztest_send(pub, &box, 200000);
    td_ztest_inbox_close(&box);
}

typedef struct self_ender {
    td_net_decl *decl;
    atomic_int outcome; // 1 + the td_err of undeclaring inside the callback
} self_ender;

static void end_itself(void *user, const td_net_sample *sample)
{
    (void)sample;
    self_ender *ender = user;
    atomic_store(&ender->outcome, 1 + (int)td_net_undeclare(ender->decl));
}

static void undeclaring_inside_a_callback_is_refused(void **state)
{
    (void)state;
    td_ztest_endpoint at;
    td_ztest_tcp(&at);
    TD_AUTO(td_net) *a =
        td_ztest_open(td_ztest_listening(TD_NET_ZENOH_PEER, &at));
    TD_AUTO(td_net) *b =
        td_ztest_open(td_ztest_connecting(TD_NET_ZENOH_PEER, &at));
    TD_AUTO(td_net_pub) *pub = td_ztest_publish(b);
    self_ender ender = {0};
    assert_int_equal(TD_OK, td_net_subscribe(a, TD_ZTEST_KEY, end_itself,
                                             &ender, &ender.decl, NULL));
    assert_true(td_ztest_until(td_ztest_is_matched, pub));
    td_slice part = {"x", 1};
    assert_int_equal(TD_OK, td_net_put(pub, &part, 1, NULL, NULL));
    assert_true(td_ztest_until(td_ztest_is_set, &ender.outcome));
    assert_int_equal(1 + TD_ERR_BUSY, atomic_load(&ender.outcome));
    assert_int_equal(TD_OK, td_net_undeclare(ender.decl));
}

typedef struct gate {
    atomic_int open;
} gate;

static void wait_at_gate(void *user, const td_net_sample *sample)
{
    (void)sample;
    gate *shut = user;
    while (!atomic_load(&shut->open)) {
        usleep(1000);
    }
}

static void drops_on_a_congested_link_are_counted(void **state)
{
    (void)state;
    td_ztest_endpoint at;
    td_ztest_tcp(&at);
    TD_AUTO(td_net) *receiver =
        td_ztest_open(td_ztest_listening(TD_NET_ZENOH_PEER, &at));
    TD_AUTO(td_net) *sender =
        td_ztest_open(td_ztest_connecting(TD_NET_ZENOH_PEER, &at));
    TD_AUTO(td_net_pub) *pub = td_ztest_publish(sender);
    gate shut = {0};
    td_net_decl *decl = NULL;
    assert_int_equal(TD_OK, td_net_subscribe(receiver, TD_ZTEST_KEY,
                                             wait_at_gate, &shut, &decl, NULL));
    assert_true(td_ztest_until(td_ztest_is_matched, pub));
    assert_int_equal(0, td_net_counts_get(sender).drops);

    uint8_t *bytes = td_ztest_pattern(1 << 20);
    td_slice part = {bytes, 1 << 20};
    for (int i = 0; i < 500 && td_net_counts_get(sender).drops == 0; i++) {
        assert_int_equal(TD_OK, td_net_put(pub, &part, 1, NULL, NULL));
    }
    free(bytes);
    atomic_store(&shut.open, 1);
    assert_true(td_net_counts_get(sender).drops > 0);
    assert_int_equal(TD_OK, td_net_undeclare(decl));
}

static void the_version_reads_as_one(void **state)
{
    (void)state;
    unsigned major = 0, minor = 0, patch = 0;
    char rest = 0;
    assert_int_equal(3, sscanf(td_net_zenoh_version(), "%u.%u.%u%c", &major,
                               &minor, &patch, &rest));
}

// Runs last: whatever went before must not have panicked.
static void no_panic_was_caught(void **state)
{
    (void)state;
    assert_int_equal(0, td_net_zenoh_panics());
}

static td_err open_tcp_pair(void *state, td_net **ret_a, td_net **ret_b)
{
    td_ztest_endpoint at;
    td_ztest_tcp(&at);
    td_net_zenoh_config config = td_ztest_listening(TD_NET_ZENOH_PEER, &at);
    config.shared_memory = state != NULL;
    *ret_a = td_ztest_open(config);
    config = td_ztest_connecting(TD_NET_ZENOH_PEER, &at);
    config.shared_memory = state != NULL;
    *ret_b = td_ztest_open(config);
    return TD_OK;
}

static bool shares_memory(const td_net *net)
{
    return !td_net_zenoh_shm_refusal(net);
}

static td_err open_unix_pair(void *state, td_net **ret_a, td_net **ret_b)
{
    td_ztest_unix *dir = state;
    td_ztest_unix_init(dir);
    *ret_a = td_ztest_open(td_ztest_listening(TD_NET_ZENOH_PEER, &dir->at));
    *ret_b = td_ztest_open(td_ztest_connecting(TD_NET_ZENOH_PEER, &dir->at));
    return TD_OK;
}

static void close_unix_pair(void *state)
{
    td_ztest_unix_done(state);
}

static int run_own(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_in_use_is_refused_and_named),
        cmocka_unit_test(what_is_no_endpoint_is_refused),
        cmocka_unit_test(a_client_must_know_whom_to_connect_to),
        cmocka_unit_test(a_client_may_open_before_its_router),
        cmocka_unit_test(a_client_returns_to_a_restarted_router),
        cmocka_unit_test(a_client_that_never_connects_closes),
        cmocka_unit_test(a_router_joins_two_clients),
        cmocka_unit_test(undeclaring_inside_a_callback_is_refused),
        cmocka_unit_test(drops_on_a_congested_link_are_counted),
        cmocka_unit_test(the_version_reads_as_one),
        cmocka_unit_test(no_panic_was_caught),
    };
    return cmocka_run_group_tests_name("zenoh", tests, NULL, NULL);
}

int main(void)
{
    static td_ztest_unix dir;
    static const char shared[] = "shared memory";
    const td_net_fixture fixtures[] = {
        {.name = "zenoh over tcp",
         .open_pair = open_tcp_pair,
         .until = td_net_conformance_poll},
        {.name = "zenoh over a unix socket",
         .state = &dir,
         .open_pair = open_unix_pair,
         .close_pair = close_unix_pair,
         .until = td_net_conformance_poll},
        {.name = "zenoh with shared memory",
         .state = (void *)(uintptr_t)shared,
         .open_pair = open_tcp_pair,
         .until = td_net_conformance_poll,
         .lends = shares_memory},
    };
    int failed = 0;
    for (size_t i = 0; i < TD_COUNT_OF(fixtures); i++) {
        failed += td_net_conformance(&fixtures[i]);
    }
    return failed + run_own();
}
