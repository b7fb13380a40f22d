// SPDX-License-Identifier: Apache-2.0
// Against PyTorch 2.11: torch.normal(0.0, 1.0, (count,),
// generator=torch.Generator().manual_seed(seed)).
#include "engine/native/flow/noise.h"

#include "base/err.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MOST 2000

static const struct {
    uint64_t seed;
    size_t count;
    struct {
        size_t at;
        float is;
    } some[6];
} cases[] = {
    {UINT64_C(0),
     1600,
     {{0, -1.12583983f},
      {1, -1.1523602f},
      {8, 0.322274923f},
      {15, -0.247278154f},
      {800, -1.35683358f},
      {1599, 1.30013084f}}},
    {UINT64_C(123456789),
     16,
     {{0, 0.264255404f},
      {1, -0.414898962f},
      {8, -0.984586418f},
      {15, 1.2969768f},
      {8, -0.984586418f},
      {15, 1.2969768f}}},
    {UINT64_C(16045690984503098046),
     250,
     {{0, 0.196444497f},
      {1, 0.50038588f},
      {8, 1.39914882f},
      {15, 1.09360385f},
      {125, -1.46166003f},
      {249, -0.313795269f}}},
    {UINT64_C(9223372036854775813),
     1600,
     {{0, 1.84232986f},
      {1, 0.518887162f},
      {8, 0.39076823f},
      {15, -0.782335103f},
      {800, 0.209214002f},
      {1599, 1.29887283f}}},
    {UINT64_C(42),
     37,
     {{0, 1.92691529f},
      {1, 1.48728406f},
      {8, -0.752135277f},
      {15, 0.76244539f},
      {18, -0.497397542f},
      {36, 1.17895091f}}},
};

static float values[MOST], again[MOST];

static void numbers_are_those_of_pytorch(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_native_noise_fill(cases[i].seed, cases[i].count, values);
        for (size_t k = 0; k < TD_COUNT_OF(cases[i].some); k++)
            assert_true(fabsf(values[cases[i].some[k].at] -
                              cases[i].some[k].is) < 2e-6f);
    }
}

static void a_seed_gives_the_same_bits_and_another_others(void **state)
{
    (void)state;
    td_native_noise_fill(7, MOST, values);
    td_native_noise_fill(7, MOST, again);
    assert_memory_equal(values, again, sizeof values);
    td_native_noise_fill(8, MOST, again);
    assert_memory_not_equal(values, again, sizeof values);
}

static void nothing_is_written_beyond(void **state)
{
    (void)state;
    for (size_t count = TD_NATIVE_NOISE_LEAST; count < 70; count++) {
        values[count] = 77;
        td_native_noise_fill(1, count, values);
        assert_true(values[count] == 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_pytorch),
        cmocka_unit_test(a_seed_gives_the_same_bits_and_another_others),
        cmocka_unit_test(nothing_is_written_beyond),
    };
    return cmocka_run_group_tests_name("noise", tests, NULL, NULL);
}
