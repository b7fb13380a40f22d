// SPDX-License-Identifier: Apache-2.0
#include "dataset/read/compare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static td_dataset_compare compare;

static int setup(void **state)
{
    (void)state;
    return td_dataset_compare_init(&compare, 2, 3) == TD_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    td_dataset_compare_done(&compare);
    return 0;
}

static void errors_are_kept_by_channel_and_step(void **state)
{
    (void)state;
    td_dataset_compare_add(&compare, 0, (float[]){1, 5}, (float[]){2, 5});
    td_dataset_compare_add(&compare, 0, (float[]){1, 5}, (float[]){-2, 5});
    td_dataset_compare_add(&compare, 2, (float[]){0, 5}, (float[]){0, 9});
    td_dataset_compare_error first = td_dataset_compare_channel(&compare, 0, 1);
    assert_int_equal(first.count, 2);
    assert_true(td_dataset_compare_mean(first) == 2);
    assert_true(td_dataset_compare_rms(first) == sqrt(5));
    assert_true(first.largest == 3);
    td_dataset_compare_error all = td_dataset_compare_channel(&compare, 1, 3);
    assert_int_equal(all.count, 3);
    assert_true(all.largest == 4);
    assert_true(td_dataset_compare_channel(&compare, 1, 2).largest == 0);
}

static void nothing_added_is_no_error(void **state)
{
    (void)state;
    td_dataset_compare_error none = td_dataset_compare_channel(&compare, 0, 3);
    assert_int_equal(none.count, 0);
    assert_true(td_dataset_compare_mean(none) == 0);
    assert_true(td_dataset_compare_rms(none) == 0);
}

static void an_angle_goes_the_short_way(void **state)
{
    (void)state;
    compare.wraps[1] = true;
    td_dataset_compare_add(&compare, 0, (float[]){3.1f, 3.1f},
                           (float[]){-3.1f, -3.1f});
    double straight = td_dataset_compare_channel(&compare, 0, 1).largest;
    double around = td_dataset_compare_channel(&compare, 1, 1).largest;
    assert_true(fabs(straight - 6.2) < 1e-6);
    assert_true(fabs(around - (2 * M_PI - 6.2)) < 1e-6);
}

static void what_is_not_finite_is_infinitely_far(void **state)
{
    (void)state;
    td_dataset_compare_add(&compare, 1, (float[]){0, 0}, (float[]){NAN, 0});
    assert_true(isinf(td_dataset_compare_channel(&compare, 0, 3).largest));
    assert_true(td_dataset_compare_channel(&compare, 1, 3).largest == 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(errors_are_kept_by_channel_and_step),
        TEST(nothing_added_is_no_error),
        TEST(an_angle_goes_the_short_way),
        TEST(what_is_not_finite_is_infinitely_far),
    };
    return cmocka_run_group_tests_name("dataset/compare", tests, NULL, NULL);
}
