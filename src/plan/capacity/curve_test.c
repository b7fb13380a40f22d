// SPDX-License-Identifier: Apache-2.0
#include "plan/capacity/curve.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const td_plan_curve_settings relaxed = {
    .deadline_ms = 190,
    .percentile = 99,
    .overhead_ms = 6,
    .jitter_ms = 10,
    .most = 16,
};

static int load(void **state)
{
    static td_config_profiles *profiles;
    td_errinfo info = {.text = ""};
    *state = NULL;
    if (td_config_profiles_load(TD_SOURCE_DIR "/profiles", &profiles, &info) !=
        TD_OK)
        fail_msg("%s", info.text);
    *state = profiles;
    return 0;
}

static int unload(void **state)
{
    td_config_profiles_free(*state);
    return 0;
}

static const td_config_profile *profile_of(void **state, const char *model)
{
    const td_config_profile *profile;
    assert_int_equal(td_config_profiles_find(*state, model, "", "NVIDIA H200",
                                             &profile, NULL),
                     TD_OK);
    return profile;
}

static void latencies_never_fall_as_the_rate_grows(void **state)
{
    static const char *const models[] = {"nvidia/GR00T-N1.6-3B",
                                         "Qwen2.5-VL-7B-Instruct"};
    for (size_t i = 0; i < TD_COUNT_OF(models); i++) {
        td_plan_curve curve;
        td_plan_point before = {0};
        td_plan_point point;
        td_plan_curve_settings settings = relaxed;
        settings.deadline_ms = i ? 2000 : 190;
        td_plan_curve_init(&curve, profile_of(state, models[i]), &settings);
        assert_true(curve.capacity_hz > 0);
        for (double rate = 0; rate < curve.capacity_hz; rate += 0.05) {
            assert_true(td_plan_curve_at(&curve, rate, &point));
            assert_true(point.mean_ms >= before.mean_ms - 1e-9);
            assert_true(point.tail_ms >= before.tail_ms - 1e-9);
            assert_true(point.tail_ms <= settings.deadline_ms + 1e-9);
            before = point;
        }
        assert_false(
            td_plan_curve_at(&curve, curve.capacity_hz * 1.01, &point));
    }
}

static void batches_are_as_large_as_the_deadline_allows(void **state)
{
    td_plan_curve curve;
    td_plan_point point;
    td_plan_curve_init(&curve, profile_of(state, "nvidia/GR00T-N1.6-3B"),
                       &relaxed);
    assert_true(curve.capacity_hz > 2 / 0.055); // more than batches of 2 give
    assert_true(td_plan_curve_at(&curve, curve.capacity_hz, &point));
    assert_int_equal(point.batch, 4); // two of 8 would take 270 ms
}

static void those_in_step_wait_for_the_last_of_them(void **state)
{
    td_plan_curve curve;
    td_plan_point point;
    td_plan_curve_settings settings = relaxed;
    settings.together = 2;
    td_plan_curve_init(&curve, profile_of(state, "nvidia/GR00T-N1.6-3B"),
                       &settings);
    assert_true(td_plan_curve_at(&curve, 22, &point));
    assert_int_equal(point.batch, 2);
    assert_true(point.wait_ms == 55);
    assert_true(fabs(point.mean_ms - (55 + 6 + 5.6)) < 1); // of two, the later
    assert_true(curve.capacity_hz <= 2 / 0.055);
}

static void a_tighter_deadline_leaves_less(void **state)
{
    td_plan_curve wide;
    td_plan_curve tight;
    td_plan_curve_settings settings = relaxed;
    const td_config_profile *profile =
        profile_of(state, "nvidia/GR00T-N1.6-3B");
    td_plan_curve_init(&wide, profile, &settings);
    settings.deadline_ms = 70;
    td_plan_curve_init(&tight, profile, &settings);
    assert_true(tight.capacity_hz > 0);
    assert_true(tight.capacity_hz < wide.capacity_hz / 2);
}

static void a_deadline_below_the_model_leaves_nothing(void **state)
{
    td_plan_curve curve;
    td_plan_curve_settings settings = relaxed;
    settings.deadline_ms = 51;
    td_plan_curve_init(&curve, profile_of(state, "nvidia/GR00T-N1.6-3B"),
                       &settings);
    assert_true(curve.capacity_hz == 0);
    assert_true(fabs(curve.alone_ms - 51.8) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latencies_never_fall_as_the_rate_grows),
        cmocka_unit_test(batches_are_as_large_as_the_deadline_allows),
        cmocka_unit_test(those_in_step_wait_for_the_last_of_them),
        cmocka_unit_test(a_tighter_deadline_leaves_less),
        cmocka_unit_test(a_deadline_below_the_model_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
