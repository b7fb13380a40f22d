// SPDX-License-Identifier: Apache-2.0
#include "sim/factory/events.h"

#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void put(td_sim_factory_events *events, int64_t at_ns, uint64_t tag)
{
    td_sim_factory_events_put(
        events, &(td_sim_factory_event){.at_ns = at_ns, .tag = tag});
}

static void an_empty_one_gives_nothing(void **state)
{
    (void)state;
    td_sim_factory_events events = {0};
    td_sim_factory_event event;
    assert_false(td_sim_factory_events_take(&events, &event));
    td_sim_factory_events_done(&events);
}

static void events_of_one_moment_leave_as_they_were_put(void **state)
{
    (void)state;
    td_sim_factory_events events = {0};
    td_sim_factory_event event;
    for (uint64_t i = 0; i < 100; i++)
        put(&events, 7, i);
    for (uint64_t i = 0; i < 100; i++) {
        assert_true(td_sim_factory_events_take(&events, &event));
        assert_int_equal(event.tag, i);
    }
    td_sim_factory_events_done(&events);
}

static void the_earliest_leaves_first_whatever_is_put_meanwhile(void **state)
{
    (void)state;
    td_sim_factory_events events = {0};
    td_sim_factory_event event;
    td_rand rand;
    int64_t now_ns = 0;
    td_rand_init(&rand, 1);
    for (int i = 0; i < 500; i++)
        put(&events, (int64_t)(td_rand_u64(&rand) % 1000), 0);
    for (int i = 0; i < 5000; i++) {
        assert_true(td_sim_factory_events_take(&events, &event));
        assert_true(event.at_ns >= now_ns);
        now_ns = event.at_ns;
        put(&events, now_ns + (int64_t)(td_rand_u64(&rand) % 1000), 0);
    }
    assert_int_equal(events.count, 500);
    assert_int_equal(events.taken, 5000);
    td_sim_factory_events_done(&events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_gives_nothing),
        cmocka_unit_test(events_of_one_moment_leave_as_they_were_put),
        cmocka_unit_test(the_earliest_leaves_first_whatever_is_put_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
