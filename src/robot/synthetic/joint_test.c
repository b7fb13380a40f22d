// SPDX-License-Identifier: Apache-2.0
#include "robot/synthetic/joint.h"

#include "base/err.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const td_robot_synthetic_drive drive = {.speed_limit = 2,
                                               .time_constant_s = 0.1};

static double follow(double from, double command, double elapsed_s)
{
    return td_robot_synthetic_joint_follow(&drive, from, command, elapsed_s);
}

static void a_joint_follows_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double from, command, elapsed_s, at;
    } cases[] = {
        {"no time", 1, 5, 0, 1},
        {"no way to go", 3, 3, 7, 3},
        {"at its limit", 0, 10, 1, 2},
        {"at its limit, backwards", 0, -10, 1, -2},
        {"until the limit ends", 0, 10, 4.9, 9.8},
        {"then exponentially", 0, 10, 5.0, 10 - 0.2 * 0.36787944117144233},
        {"near from the start", 0, 0.1, 0.1, 0.1 * (1 - 0.36787944117144233)},
        {"long after", 0, -10, 1000, -10},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        double at = follow(cases[i].from, cases[i].command, cases[i].elapsed_s);
        if (fabs(at - cases[i].at) > 1e-12)
            fail_msg("%s: %.15g, not %.15g", cases[i].name, at, cases[i].at);
    }
}

static void how_often_it_is_asked_changes_nothing(void **state)
{
    (void)state;
    double at = -3;
    for (int i = 0; i < 1000; i++)
        at = follow(at, 4, 0.0035);
    assert_true(fabs(at - follow(-3, 4, 3.5)) < 1e-9);
}

static void it_never_passes_its_command(void **state)
{
    (void)state;
    for (int ms = 0; ms < 10000; ms += 10)
        assert_true(follow(0, 7, ms * 1e-3) <= 7);
}

static void angles_wrap_to_the_half_open_circle(void **state)
{
    (void)state;
    assert_true(td_robot_synthetic_joint_wrap(0) == 0);
    assert_true(fabs(td_robot_synthetic_joint_wrap(4) - (4 - 2 * M_PI)) <
                1e-12);
    assert_true(td_robot_synthetic_joint_wrap(M_PI) == M_PI);
    assert_true(td_robot_synthetic_joint_wrap(-M_PI) == M_PI);
    assert_true(fabs(td_robot_synthetic_joint_wrap(-7) - (-7 + 2 * M_PI)) <
                1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_joint_follows_exactly),
        cmocka_unit_test(how_often_it_is_asked_changes_nothing),
        cmocka_unit_test(it_never_passes_its_command),
        cmocka_unit_test(angles_wrap_to_the_half_open_circle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
