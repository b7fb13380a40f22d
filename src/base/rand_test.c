// SPDX-License-Identifier: Apache-2.0
#include "base/rand.h"

#include "base/err.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { DRAWS = 200000 };

// From the reference implementation of splitmix64.
static const struct {
    const char *name;
    uint64_t seed;
    uint64_t out[4];
} goldens[] = {
    {"seed 0",
     0,
     {0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f,
      0xf88bb8a8724c81ec}},
    {"seed 1234567",
     1234567,
     {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
      4593380528125082431u}},
};

static void numbers_are_those_of_splitmix64(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(goldens); i++) {
        td_rand rand;
        td_rand_init(&rand, goldens[i].seed);
        for (size_t k = 0; k < TD_COUNT_OF(goldens[i].out); k++)
            if (td_rand_u64(&rand) != goldens[i].out[k])
                fail_msg("%s: number %zu differs", goldens[i].name, k);
    }
}

static void unit_is_at_least_0_and_below_1(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 1);
    double sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        double unit = td_rand_unit(&rand);
        assert_true(unit >= 0 && unit < 1);
        sum += unit;
    }
    assert_true(fabs(sum / DRAWS - 0.5) < 0.005);
}

static void normal_has_mean_0_and_deviation_1(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 2);
    double sum = 0, squares = 0;
    int beyond_2 = 0;
    for (int i = 0; i < DRAWS; i++) {
        double value = td_rand_normal(&rand);
        sum += value;
        squares += value * value;
        beyond_2 += fabs(value) > 2;
    }
    assert_true(fabs(sum / DRAWS) < 0.01);
    assert_true(fabs(squares / DRAWS - 1) < 0.02);
    assert_true(fabs((double)beyond_2 / DRAWS - 0.0455) < 0.003);
}

static void forks_are_repeatable_and_differ(void **state)
{
    (void)state;
    td_rand rand, fork, again, other;
    td_rand_init(&rand, 3);
    td_rand_fork(&rand, 7, &fork);
    td_rand_fork(&rand, 7, &again);
    td_rand_fork(&rand, 8, &other);
    assert_int_equal(rand.state, 3);
    for (int i = 0; i < 100; i++) {
        uint64_t number = td_rand_u64(&fork);
        assert_true(number == td_rand_u64(&again));
        assert_true(number != td_rand_u64(&other));
        assert_true(number != td_rand_u64(&rand));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_splitmix64),
        cmocka_unit_test(unit_is_at_least_0_and_below_1),
        cmocka_unit_test(normal_has_mean_0_and_deviation_1),
        cmocka_unit_test(forks_are_repeatable_and_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
