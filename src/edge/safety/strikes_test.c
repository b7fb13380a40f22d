// SPDX-License-Identifier: Apache-2.0
#include "edge/safety/strikes.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static td_edge_strikes strikes_of(uint32_t limit)
{
    td_edge_strikes strikes;
    const td_edge_strikes_limits limits = {limit, limit, limit};
    td_edge_strikes_init(&strikes, &limits);
    return strikes;
}

static bool late(td_edge_strikes *strikes, bool bad)
{
    return td_edge_strikes_answer(strikes, 1, !bad);
}

static bool unsafe(td_edge_strikes *strikes, bool bad)
{
    return td_edge_strikes_safety(strikes, !bad);
}

static bool failed(td_edge_strikes *strikes, bool bad)
{
    return td_edge_strikes_task(strikes, bad);
}

// One letter an event: '.' well, 'x' bad, 'X' bad and too much.
static const struct {
    const char *name;
    bool (*say)(td_edge_strikes *strikes, bool bad);
    uint32_t limit;
    const char *events;
} cases[] = {
    {"the third late answer in a row", late, 3, "xxX"},
    {"one on time forgives", late, 3, "xx.xxX.x"},
    {"the count begins again afterwards", late, 2, "xXxX"},
    {"a limit of one is the first", late, 1, "X.X"},
    {"none counts as one", late, 0, "XX"},
    {"warnings beyond those answered", unsafe, 2, "xxXxxX"},
    {"a safe answer forgives", unsafe, 2, "xx.xxX"},
    {"no warning is answered", unsafe, 0, "X.X"},
    {"failures beyond the retries", failed, 3, "xxxXx"},
    {"what goes well forgives", failed, 1, "x.x.xX"},
};

static void too_much_is_said_once_and_in_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_strikes strikes = strikes_of(cases[i].limit);
        for (const char *event = cases[i].events; *event; event++)
            if (cases[i].say(&strikes, *event != '.') != (*event == 'X'))
                fail_msg("%s: at %s", cases[i].name, event);
    }
}

static void components_are_late_each_by_itself(void **state)
{
    (void)state;
    td_edge_strikes strikes = strikes_of(2);
    assert_false(td_edge_strikes_answer(&strikes, 0, false));
    assert_false(td_edge_strikes_answer(&strikes, 3, false));
    assert_false(td_edge_strikes_answer(&strikes, 1, true));
    assert_true(td_edge_strikes_answer(&strikes, 3, false));
    assert_true(td_edge_strikes_answer(&strikes, 0, false));
}

static void a_late_check_is_no_warning(void **state)
{
    (void)state;
    td_edge_strikes strikes = strikes_of(1);
    assert_true(td_edge_strikes_answer(&strikes, 2, false));
    assert_false(td_edge_strikes_safety(&strikes, false));
    assert_true(td_edge_strikes_safety(&strikes, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_much_is_said_once_and_in_time),
        cmocka_unit_test(components_are_late_each_by_itself),
        cmocka_unit_test(a_late_check_is_no_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
