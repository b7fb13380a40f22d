// SPDX-License-Identifier: Apache-2.0
#include "net/conformance/conformance.h"

#include "base/clock.h"
#include "net/conformance/tests.h"

#define POLL_NS TD_NS_PER_MS
#define GIVE_UP_NS (10 * TD_NS_PER_S)

bool td_net_conformance_poll(void *state, bool (*predicate)(void *user),
                             void *user)
{
    (void)state;
    int64_t now_ns = td_clock_monotonic_ns();
    int64_t give_up_ns = now_ns + GIVE_UP_NS;
    while (!predicate(user)) {
        now_ns = td_clock_monotonic_ns();
        if (now_ns > give_up_ns) return false;
        td_clock_sleep_until(now_ns + POLL_NS);
    }
    return true;
}

#define TEST(name) TD_CONF_TEST(#name, td_conf_##name),

int td_net_conformance(const td_net_fixture *fixture)
{
    static const struct CMUnitTest tests[] = {TD_CONF_TESTS(TEST)};
    td_conf_use(fixture);
    return cmocka_run_group_tests_name(fixture->name, tests, NULL, NULL);
}
