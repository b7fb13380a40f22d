// SPDX-License-Identifier: Apache-2.0
#include "engine/synthetic/latency.h"

#include "base/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define DRAWS 20000

static td_engine_synthetic_latency *made(td_engine_latency settings)
{
    td_engine_synthetic_latency *latency = NULL;
    td_errinfo info = {""};
    td_err err = td_engine_synthetic_latency_new(&settings, &latency, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    return latency;
}

static double draw_ms(const td_engine_synthetic_latency *latency, td_rand *rand,
                      uint32_t n)
{
    int64_t ns = td_engine_synthetic_latency_draw_ns(latency, rand, n);
    return (double)ns / (double)TD_NS_PER_MS;
}

static double mean_ms(const td_engine_synthetic_latency *latency, uint32_t n)
{
    int64_t ns = td_engine_synthetic_latency_mean_ns(latency, n);
    return (double)ns / (double)TD_NS_PER_MS;
}

static void further_members_add_their_time(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        td_engine_latency settings;
        uint32_t n;
        double ms;
    } cases[] = {
        {"none", {.kind = TD_ENGINE_LATENCY_NONE}, 8, 0},
        {"fixed, one",
         {.kind = TD_ENGINE_LATENCY_FIXED, .ms = 30, .per_batch_ms = 2},
         1,
         30},
        {"fixed, five",
         {.kind = TD_ENGINE_LATENCY_FIXED, .ms = 30, .per_batch_ms = 2},
         5,
         38},
        {"normal, no spread",
         {.kind = TD_ENGINE_LATENCY_NORMAL, .ms = 7, .per_batch_ms = 1},
         2,
         8},
        {"lognormal, no spread",
         {.kind = TD_ENGINE_LATENCY_LOGNORMAL, .ms = 7, .per_batch_ms = 1},
         2,
         8},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_rand rand;
        td_rand_init(&rand, 1);
        TD_AUTO(td_engine_synthetic_latency) *latency = made(cases[i].settings);
        double drawn = draw_ms(latency, &rand, cases[i].n);
        double mean = mean_ms(latency, cases[i].n);
        if (fabs(drawn - cases[i].ms) > 1e-6 || fabs(mean - cases[i].ms) > 1e-6)
            fail_msg("%s: %g, mean %g", cases[i].name, drawn, mean);
    }
}

static void draws_have_the_mean_and_deviation_asked_for(void **state)
{
    (void)state;
    static const td_engine_latency_kind kinds[] = {TD_ENGINE_LATENCY_NORMAL,
                                                   TD_ENGINE_LATENCY_LOGNORMAL};
    for (size_t i = 0; i < TD_COUNT_OF(kinds); i++) {
        TD_AUTO(td_engine_synthetic_latency) *latency =
            made((td_engine_latency){.kind = kinds[i], .ms = 50, .std_ms = 10});
        td_rand rand;
        td_rand_init(&rand, 7);
        double sum = 0, squares = 0;
        for (int k = 0; k < DRAWS; k++) {
            double ms = draw_ms(latency, &rand, 1);
            sum += ms;
            squares += ms * ms;
        }
        double mean = sum / DRAWS;
        assert_true(fabs(mean - 50) < 0.5);
        assert_true(fabs(sqrt(squares / DRAWS - mean * mean) - 10) < 0.5);
    }
}

static void no_draw_is_below_zero(void **state)
{
    (void)state;
    TD_AUTO(td_engine_synthetic_latency) *latency = made((td_engine_latency){
        .kind = TD_ENGINE_LATENCY_NORMAL, .ms = 1, .std_ms = 5});
    td_rand rand;
    td_rand_init(&rand, 3);
    for (int i = 0; i < DRAWS; i++)
        assert_true(draw_ms(latency, &rand, 1) >= 0);
}

static void the_same_seed_gives_the_same_draws(void **state)
{
    (void)state;
    TD_AUTO(td_engine_synthetic_latency) *latency = made((td_engine_latency){
        .kind = TD_ENGINE_LATENCY_LOGNORMAL, .ms = 20, .std_ms = 5});
    td_rand a, b;
    td_rand_init(&a, 11);
    td_rand_init(&b, 11);
    for (int i = 0; i < 100; i++)
        assert_true(draw_ms(latency, &a, 3) == draw_ms(latency, &b, 3));
}

static void a_profile_is_played_back_by_batch_size(void **state)
{
    (void)state;
    static const struct {
        uint32_t n;
        double low, high, mean;
    } cases[] = {
        {1, 10, 12, 11}, {2, 20, 24, 22}, {3, 40, 40, 40},
        {4, 40, 40, 40}, {5, 41, 41, 41}, {8, 44, 44, 44},
    };
    static const double one[] = {10, 12, 11}, two[] = {20, 24, 22},
                        four[] = {40};
    static const td_engine_latency_size sizes[] = {
        {1, one, 3}, {2, two, 3}, {4, four, 1}};
    TD_AUTO(td_engine_synthetic_latency) *latency =
        made((td_engine_latency){.kind = TD_ENGINE_LATENCY_PROFILE,
                                 .per_batch_ms = 1,
                                 .sizes = sizes,
                                 .size_count = TD_COUNT_OF(sizes)});
    td_rand rand;
    td_rand_init(&rand, 5);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        double low = INFINITY, high = 0;
        for (int k = 0; k < 200; k++) {
            double ms = draw_ms(latency, &rand, cases[i].n);
            low = fmin(low, ms);
            high = fmax(high, ms);
        }
        double mean = mean_ms(latency, cases[i].n);
        if (low != cases[i].low || high != cases[i].high ||
            fabs(mean - cases[i].mean) > 1e-6)
            fail_msg("%u: %g to %g, mean %g", cases[i].n, low, high, mean);
    }
}

static void a_broken_profile_is_refused(void **state)
{
    (void)state;
    static const double good[] = {3}, bad[] = {3, NAN}, less[] = {-1};
    static const struct {
        const char *name;
        td_engine_latency_size sizes[2];
        size_t count;
        const char *error;
    } cases[] = {
        {"empty", {{0}}, 0, "latency: the profile is empty"},
        {"size 0",
         {{0, good, 1}},
         1,
         "latency: batch sizes must grow from 1 to 64, got 0"},
        {"size 65",
         {{65, good, 1}},
         1,
         "latency: batch sizes must grow from 1 to 64, got 65"},
        {"sizes back",
         {{2, good, 1}, {1, good, 1}},
         2,
         "latency: batch sizes must grow from 1 to 64, got 1"},
        {"no samples",
         {{1, good, 0}},
         1,
         "latency: no samples of a batch of 1"},
        {"nan",
         {{1, bad, 2}},
         1,
         "latency: a sample must be 0 to 3600000 milliseconds, got nan"},
        {"negative",
         {{1, less, 1}},
         1,
         "latency: a sample must be 0 to 3600000 milliseconds, got -1"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_engine_latency settings = {.kind = TD_ENGINE_LATENCY_PROFILE,
                                      .sizes = cases[i].sizes,
                                      .size_count = cases[i].count};
        td_engine_synthetic_latency *latency = NULL;
        td_errinfo info = {""};
        td_err err =
            td_engine_synthetic_latency_new(&settings, &latency, &info);
        if (err != TD_ERR_INVALID || latency ||
            strcmp(info.text, cases[i].error) != 0)
            fail_msg("%s: %s, %s", cases[i].name, td_err_name(err), info.text);
    }
}

static void settings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const td_engine_latency cases[] = {
        {.kind = TD_ENGINE_LATENCY_FIXED, .ms = -1},
        {.kind = TD_ENGINE_LATENCY_NORMAL, .std_ms = NAN},
        {.kind = TD_ENGINE_LATENCY_LOGNORMAL, .std_ms = 1},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_engine_synthetic_latency *latency = NULL;
        td_errinfo info = {""};
        assert_int_equal(
            td_engine_synthetic_latency_new(&cases[i], &latency, &info),
            TD_ERR_INVALID);
        assert_null(latency);
        assert_string_not_equal(info.text, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(further_members_add_their_time),
        cmocka_unit_test(draws_have_the_mean_and_deviation_asked_for),
        cmocka_unit_test(no_draw_is_below_zero),
        cmocka_unit_test(the_same_seed_gives_the_same_draws),
        cmocka_unit_test(a_profile_is_played_back_by_batch_size),
        cmocka_unit_test(a_broken_profile_is_refused),
        cmocka_unit_test(settings_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
