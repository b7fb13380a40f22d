// SPDX-License-Identifier: Apache-2.0
#include "base/finite.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void the_largest_numbers_are_finite(void **state)
{
    (void)state;
    const double f64[] = {0, -0.0, DBL_MAX, -DBL_MAX, DBL_TRUE_MIN};
    const float f32[] = {0, -0.0F, FLT_MAX, -FLT_MAX, FLT_TRUE_MIN};
    const uint16_t f16[] = {0, 0x8000, 0x7bff, 0xfbff, 1};
    const uint16_t bf16[] = {0, 0x8000, 0x7f7f, 0xff7f, 1};
    assert_true(td_finite_f64(f64, 5));
    assert_true(td_finite_f32(f32, 5));
    assert_true(td_finite_f16(f16, 5));
    assert_true(td_finite_bf16(bf16, 5));
    assert_int_equal(td_finite_first_bad(f32, 5), 5);
}

static void one_value_that_is_not_finite_is_found_wherever_it_is(void **state)
{
    (void)state;
    const double bad[] = {NAN, INFINITY, -INFINITY};
    const uint16_t bad_f16[] = {0x7e00, 0x7c00, 0xfc00};
    const uint16_t bad_bf16[] = {0x7fc0, 0x7f80, 0xff80};
    for (size_t b = 0; b < 3; b++)
        for (size_t at = 0; at < 19; at++) {
            double f64[19] = {0};
            float f32[19] = {0};
            uint16_t f16[19] = {0}, bf16[19] = {0};
            f64[at] = bad[b];
            f32[at] = (float)bad[b];
            f16[at] = bad_f16[b];
            bf16[at] = bad_bf16[b];
            assert_false(td_finite_f64(f64, 19));
            assert_false(td_finite_f32(f32, 19));
            assert_false(td_finite_f16(f16, 19));
            assert_false(td_finite_bf16(bf16, 19));
            assert_true(td_finite_f32(f32, at));
            assert_int_equal(td_finite_first_bad(f32, 19), at);
        }
}

static void values_may_lie_at_any_address(void **state)
{
    (void)state;
    char bytes[1 + 3 * sizeof(float)];
    memcpy(bytes + 1, (float[]){1, 2, 3}, 3 * sizeof(float));
    assert_true(td_finite_f32(bytes + 1, 3));
    memcpy(bytes + 1, (float[]){1, 2, NAN}, 3 * sizeof(float));
    assert_false(td_finite_f32(bytes + 1, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_numbers_are_finite),
        cmocka_unit_test(one_value_that_is_not_finite_is_found_wherever_it_is),
        cmocka_unit_test(values_may_lie_at_any_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
