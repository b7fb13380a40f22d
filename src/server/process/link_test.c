// SPDX-License-Identifier: Apache-2.0
#include "server/process/link.h"

#include "net/inproc/inproc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void an_address_belongs_to_what_was_dialled(void **state)
{
    static const struct {
        const char *name, *address, *endpoint;
        bool leads;
    } cases[] = {
        {"number", "tcp/10.0.0.1:7447", "tcp/10.0.0.1:7447", true},
        {"other number", "tcp/10.0.0.2:7447", "tcp/10.0.0.1:7447", false},
        {"other port", "tcp/10.0.0.1:7448", "tcp/10.0.0.1:7447", false},
        {"longer port", "tcp/10.0.0.1:74471", "tcp/10.0.0.1:7447", false},
        {"other protocol", "udp/10.0.0.1:7447", "tcp/10.0.0.1:7447", false},
        {"options", "tcp/10.0.0.1:7447", "tcp/10.0.0.1:7447#iface=lo", true},
        {"name", "tcp/10.0.0.1:7447", "tcp/gpu-1:7447", true},
        {"name, options", "tcp/10.0.0.1:7447", "tcp/gpu-1:7447?rel=1", true},
        {"name, other port", "tcp/10.0.0.1:7448", "tcp/gpu-1:7447", false},
        {"name, other protocol", "udp/10.0.0.1:7447", "tcp/gpu-1:7447", false},
        {"IPv6", "tcp/[::1]:7447", "tcp/[0:0::1]:7447", true},
        {"socket", "unixsock-stream//run/t", "unixsock-stream//run/t", true},
        {"other socket", "unixsock-stream//run/u", "unixsock-stream//run/t",
         false},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].name);
        assert_int_equal(
            td_server_link_leads_to(cases[i].address, cases[i].endpoint),
            cases[i].leads);
    }
}

// Links come and go while the thread waits out its second.
static void a_watch_may_end_at_any_time(void **state)
{
    static const char *const endpoints[] = {"tcp/127.0.0.1:7447", "tcp/gpu:1"};
    (void)state;
    TD_AUTO(td_net_hub) *hub = NULL;
    assert_int_equal(td_net_hub_new_threaded(1, &hub), TD_OK);
    for (size_t count = 0; count <= TD_COUNT_OF(endpoints); count++) {
        td_net *net = NULL, *other = NULL;
        td_server_link *link = NULL;
        assert_int_equal(td_net_inproc_open(hub, "a", &net, NULL), TD_OK);
        assert_int_equal(
            td_server_link_watch(net, endpoints, count, &link, NULL), TD_OK);
        assert_int_equal(td_net_inproc_open(hub, "b", &other, NULL), TD_OK);
        td_net_close(other);
        td_server_link_end(link);
        td_net_close(net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_belongs_to_what_was_dialled),
        cmocka_unit_test(a_watch_may_end_at_any_time),
    };
    return cmocka_run_group_tests_name("host/link", tests, NULL, NULL);
}
