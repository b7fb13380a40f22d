// SPDX-License-Identifier: Apache-2.0
#include "edge/safety/rotation.h"

#include "base/rand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_turn_between_leads_from_one_to_the_other),
        cmocka_unit_test(a_turn_is_about_the_axes_of_the_world),
        cmocka_unit_test(no_turn_is_exactly_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
