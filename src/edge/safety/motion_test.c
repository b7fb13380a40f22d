// SPDX-License-Identifier: Apache-2.0
#include "edge/safety/motion.h"

#include "base/err.h"
#include "base/rand.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

// How far it still goes with the brakes on, this step included.
static double braking_way(double step, double accel)
{
    double way = 0;
    while (step > 0) {
        way += step;
        step -= accel;
    }
    return way;
}

static void the_bound_is_known_for_whole_steps(void **state)
{
    (void)state;
    static const struct {
        double distance, step;
    } cases[] = {{0, 0},     {0.5, 0.5}, {1, 1},      {2, 1.5},
                 {3, 2},     {6, 3},     {5050, 100}, {INFINITY, INFINITY},
                 {2.5, 1.75}};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        assert_true(td_edge_motion_brakeable(cases[i].distance, 1) ==
                    cases[i].step);
    assert_true(td_edge_motion_brakeable(7, INFINITY) == 7);
}

static void the_bound_stops_in_time_and_a_little_more_does_not(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 1);
    for (int i = 0; i < 100000; i++) {
        double distance = pow(10, 8 * td_rand_unit(&rand) - 4);
        double accel = distance * pow(10, 6 * td_rand_unit(&rand) - 5);
        double step = td_edge_motion_brakeable(distance, accel);
        double way = braking_way(step, accel);
        if (way > distance * (1 + 1e-12))
            fail_msg("distance %.17g, braking way %.17g", distance, way);
        if (braking_way(step * (1 + 1e-9), accel) <= distance)
            fail_msg("distance %.17g: could be faster than %.17g", distance,
                     step);
    }
}

static td_edge_motion motion_of(double ahead, double moved, double last)
{
    return (td_edge_motion){.ahead = {ahead}, .moved = {moved}, .last = {last}};
}

static void each_case_of_seeking_plans_its_step(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double ahead, moved, last;
        double next;
        bool hit;
    } cases[] = {
        {"on the track of a fast target", 5, 5, 5, 5, false},
        {"its lag is one change of step", 6, 5, 5, 6, false},
        {"its lag is closed as can be braked", 11, 5, 7.5, 8, true},
        {"one change of step away", 1, -5, 1, 1, false},
        {"a target that stands", 6, 0, 3.5, 3, true},
        {"a target that comes closer", 6, -50, 3, 3, true},
        {"a target that was behind", 3, 50, 3, 3, false},
        {"a target that jumped away", 50, 50, 3, 4, true},
        {"a target that jumped back", 0, -50, 0.5, 0, false},
        {"a target that stopped", 0, 0, 3, 2, true},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_motion motion =
            motion_of(cases[i].ahead, cases[i].moved, cases[i].last);
        td_edge_motion_plan(&motion, INFINITY, 1);
        if (motion.next[0] != cases[i].next || motion.hit_accel != cases[i].hit)
            fail_msg("%s: %g", cases[i].name, motion.next[0]);
    }
}

static void a_target_that_left_sideways_is_on_the_way_itself(void **state)
{
    (void)state;
    td_edge_motion motion = {.turn = true,
                             .ahead = {3, 0, 0},
                             .moved = {3, 5, 0},
                             .last = {3, 0, 0}};
    td_edge_motion_plan(&motion, INFINITY, 1);
    assert_true(motion.next[0] == 3 && motion.next[1] == 0);
    assert_false(motion.hit_accel);
}

#define U ((double)FLT_EPSILON)

// u of a channel is that of the larger of the positions before and after, and
// 2 FLT_EPSILON of a turn; the step may exceed its limit by u, its change by
// 2u.
static void what_rounding_may_add_is_no_hit(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool turn;
        double at, ahead, max_step, max_accel_step;
        bool hit;
    } cases[] = {
        {"a turn by u", true, 0, 1 + 2 * U, 1, INFINITY, false},
        {"a turn by more", true, 0, 1 + 2.5 * U, 1, INFINITY, true},
        {"its change by 2u", true, 0, 1 + 4 * U, INFINITY, 1, false},
        {"its change by more", true, 0, 1 + 4.5 * U, INFINITY, 1, true},
        {"a step by less than u", false, 3, 1 + 3.5 * U, 1, INFINITY, false},
        {"a step by more", false, 3, 1 + 4.5 * U, 1, INFINITY, true},
        {"a step down by less", false, 4, -1 - 3.5 * U, 1, INFINITY, false},
        {"a step down by more", false, 4, -1 - 4.5 * U, 1, INFINITY, true},
        {"a change by less than 2u", false, 3, 1 + 7.5 * U, INFINITY, 1, false},
        {"a change by more", false, 3, 1 + 8.5 * U, INFINITY, 1, true},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_edge_motion motion = motion_of(cases[i].ahead, cases[i].ahead, 0);
        motion.turn = cases[i].turn;
        motion.at = cases[i].at;
        td_edge_motion_plan(&motion, cases[i].max_step,
                            cases[i].max_accel_step);
        if ((motion.hit_step || motion.hit_accel) != cases[i].hit)
            fail_msg("%s", cases[i].name);
    }
}

static void a_step_is_shortened_and_keeps_its_direction(void **state)
{
    (void)state;
    td_edge_motion motion = {.turn = true, .ahead = {3, 0, 4}};
    td_edge_motion_plan(&motion, 1, INFINITY);
    assert_float_equal(motion.next[0], 0.6, 1e-15);
    assert_float_equal(motion.next[2], 0.8, 1e-15);
    assert_true(motion.hit_step);
    assert_false(motion.hit_accel);
}

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
}

static void random_orientation(td_rand *rand, double *ret_orientation)
{
    for (int i = 0; i < 4; i++)
        ret_orientation[i] = td_rand_normal(rand);
}

static void the_turn_between_leads_from_one_to_the_other(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 1);
    for (int i = 0; i < 10000; i++) {
        double from[4], to[4], turn[3];
        random_orientation(&rand, from);
        random_orientation(&rand, to);
        td_edge_rotation_between(from, to, turn);
        assert_true(hypot(hypot(turn[0], turn[1]), turn[2]) <= M_PI + 1e-12);
        td_edge_rotation_apply(turn, from);
        assert_float_equal(dot(from, from), 1, 1e-12);
        assert_float_equal(fabs(dot(from, to)), sqrt(dot(to, to)), 1e-12);
    }
}

static void a_turn_is_about_the_axes_of_the_world(void **state)
{
    (void)state;
    const double half = sqrt(0.5);
    double at[4] = {0, 0, half, half}; // a quarter about z
    td_edge_rotation_apply((double[]){M_PI / 2, 0, 0}, at);
    const double expected[4] = {0.5, -0.5, 0.5, 0.5};
    assert_float_equal(dot(at, expected), 1, 1e-12);
}

static void no_turn_is_exactly_none(void **state)
{
    (void)state;
    const double at[4] = {0.1, 0.2, 0.3, 0.4};
    const double opposite[4] = {-0.1, -0.2, -0.3, -0.4};
    double turn[3];
    td_edge_rotation_between(at, at, turn);
    for (int i = 0; i < 3; i++)
        assert_float_equal(turn[i], 0, 0);
    td_edge_rotation_between(at, opposite, turn);
    for (int i = 0; i < 3; i++)
        assert_float_equal(turn[i], 0, 0);
}

static void no_turn_leaves_an_orientation_as_it_is(void **state)
{
    (void)state;
    double at[4] = {0.5, -0.5, 0.5, 0.5};
    td_edge_rotation_apply((double[]){0, 0, 0}, at);
    assert_true(at[0] == 0.5 && at[1] == -0.5 && at[2] == 0.5 && at[3] == 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_is_known_for_whole_steps),
        cmocka_unit_test(the_bound_stops_in_time_and_a_little_more_does_not),
        cmocka_unit_test(each_case_of_seeking_plans_its_step),
        cmocka_unit_test(a_target_that_left_sideways_is_on_the_way_itself),
        cmocka_unit_test(what_rounding_may_add_is_no_hit),
        cmocka_unit_test(a_step_is_shortened_and_keeps_its_direction),
        cmocka_unit_test(the_turn_between_leads_from_one_to_the_other),
        cmocka_unit_test(a_turn_is_about_the_axes_of_the_world),
        cmocka_unit_test(no_turn_is_exactly_none),
        cmocka_unit_test(no_turn_leaves_an_orientation_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
