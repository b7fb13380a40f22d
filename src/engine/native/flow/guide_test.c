// SPDX-License-Identifier: Apache-2.0
// Against LeRobot 0.6.1: RTCProcessor.get_prefix_weights(delay, min(horizon,
// left), rows) and the guidance weight of its denoise_step.
#include "engine/native/flow/guide.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 8

static const struct {
    td_native_guide_schedule schedule;
    uint32_t delay, horizon, left;
    float weights[ROWS];
} cases[] = {
    {TD_NATIVE_GUIDE_ZEROS, 2, 6, 7, {1, 1, 0, 0, 0, 0, 0, 0}},
    {TD_NATIVE_GUIDE_ZEROS, 0, 8, 8, {0, 0, 0, 0, 0, 0, 0, 0}},
    {TD_NATIVE_GUIDE_ZEROS, 3, 30, 5, {1, 1, 1, 0, 0, 0, 0, 0}},
    {TD_NATIVE_GUIDE_ZEROS, 6, 4, 8, {1, 1, 1, 1, 0, 0, 0, 0}},
    {TD_NATIVE_GUIDE_ZEROS, 8, 8, 8, {1, 1, 1, 1, 1, 1, 1, 1}},
    {TD_NATIVE_GUIDE_ZEROS, 0, 3, 1, {0, 0, 0, 0, 0, 0, 0, 0}},
    {TD_NATIVE_GUIDE_ONES, 2, 6, 7, {1, 1, 1, 1, 1, 1, 0, 0}},
    {TD_NATIVE_GUIDE_ONES, 0, 8, 8, {1, 1, 1, 1, 1, 1, 1, 1}},
    {TD_NATIVE_GUIDE_ONES, 3, 30, 5, {1, 1, 1, 1, 1, 0, 0, 0}},
    {TD_NATIVE_GUIDE_ONES, 6, 4, 8, {1, 1, 1, 1, 0, 0, 0, 0}},
    {TD_NATIVE_GUIDE_ONES, 8, 8, 8, {1, 1, 1, 1, 1, 1, 1, 1}},
    {TD_NATIVE_GUIDE_ONES, 0, 3, 1, {1, 0, 0, 0, 0, 0, 0, 0}},
    {TD_NATIVE_GUIDE_LINEAR,
     2,
     6,
     7,
     {1, 1, 0.80000001f, 0.60000002f, 0.40000001f, 0.2f, 0, 0}},
    {TD_NATIVE_GUIDE_LINEAR,
     0,
     8,
     8,
     {0.8888889f, 0.77777779f, 0.66666669f, 0.55555558f, 0.44444445f,
      0.33333334f, 0.22222222f, 0.11111111f}},
    {TD_NATIVE_GUIDE_LINEAR,
     3,
     30,
     5,
     {1, 1, 1, 0.66666663f, 0.33333334f, 0, 0, 0}},
    {TD_NATIVE_GUIDE_LINEAR, 6, 4, 8, {1, 1, 1, 1, 0, 0, 0, 0}},
    {TD_NATIVE_GUIDE_LINEAR, 8, 8, 8, {1, 1, 1, 1, 1, 1, 1, 1}},
    {TD_NATIVE_GUIDE_LINEAR, 0, 3, 1, {0.5f, 0, 0, 0, 0, 0, 0, 0}},
    {TD_NATIVE_GUIDE_EXP,
     2,
     6,
     7,
     {1, 1, 0.57058901f, 0.28707242f, 0.11449222f, 0.025770251f, 0, 0}},
    {TD_NATIVE_GUIDE_EXP,
     0,
     8,
     8,
     {0.7410118f, 0.53259981f, 0.36770612f, 0.24019766f, 0.14475015f,
      0.076745749f, 0.032183163f, 0.007599263f}},
    {TD_NATIVE_GUIDE_EXP,
     3,
     30,
     5,
     {1, 1, 1, 0.36770603f, 0.076745749f, 0, 0, 0}},
    {TD_NATIVE_GUIDE_EXP, 6, 4, 8, {1, 1, 1, 1, 0, 0, 0, 0}},
    {TD_NATIVE_GUIDE_EXP, 8, 8, 8, {1, 1, 1, 1, 1, 1, 1, 1}},
    {TD_NATIVE_GUIDE_EXP, 0, 3, 1, {0.18877034f, 0, 0, 0, 0, 0, 0, 0}},
};

static void weights_are_those_of_lerobot(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_native_guide guide = {.schedule = cases[i].schedule};
        float weights[ROWS];
        td_native_guide_weights(&guide, cases[i].delay, cases[i].horizon,
                                cases[i].left, ROWS, weights);
        for (size_t k = 0; k < ROWS; k++)
            assert_true(fabsf(weights[k] - cases[i].weights[k]) < 1e-6f);
    }
}

static void strength_is_that_of_lerobot(void **state)
{
    (void)state;
    static const struct {
        double time;
        float most, is;
    } strengths[] = {
        {1, 10, 10},
        {0.90000000000000002, 10, 9.1111107f},
        {0.80000000000000004, 10, 4.25f},
        {0.69999999999999996, 10, 2.7619047f},
        {0.59999999999999998, 10, 2.1666667f},
        {0.5, 10, 2},
        {0.39999999999999991, 10, 2.1666667f},
        {0.29999999999999993, 10, 2.761905f},
        {0.19999999999999996, 10, 4.2500005f},
        {0.099999999999999978, 10, 9.1111088f},
        {1, 10, 10},
        {0.75, 10, 3.3333335f},
        {0.5, 10, 2},
        {0.25, 10, 3.3333335f},
        {1, 2, 2},
        {0.66666666666666674, 2, 2},
        {0.33333333333333337, 2, 2},
    };
    for (size_t i = 0; i < TD_COUNT_OF(strengths); i++) {
        const td_native_guide guide = {.most = strengths[i].most};
        assert_true(fabsf(td_native_guide_strength(&guide, strengths[i].time) -
                          strengths[i].is) < 1e-5f);
    }
}

static td_err read(const char *text, td_native_guide *ret_guide,
                   td_errinfo *info)
{
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    const td_json_at at = {"config.json", "", json};
    td_err err = td_native_guide_read(&at, ret_guide, info);
    json_decref(json);
    return err;
}

static void options_are_read_or_lerobots_own(void **state)
{
    (void)state;
    td_native_guide guide = {0};
    assert_int_equal(read("{\"rtc_config\": null}", &guide, NULL), TD_OK);
    assert_int_equal(guide.schedule, TD_NATIVE_GUIDE_LINEAR);
    assert_true(guide.most == 10 && guide.horizon == 10);
    assert_int_equal(
        read("{\"rtc_config\": {\"prefix_attention_schedule\": \"EXP\", "
             "\"max_guidance_weight\": 2.5, \"execution_horizon\": 7}}",
             &guide, NULL),
        TD_OK);
    assert_int_equal(guide.schedule, TD_NATIVE_GUIDE_EXP);
    assert_true(guide.most == 2.5f && guide.horizon == 7);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        td_err err;
        const char *says;
    } bad[] = {
        {"{\"rtc_config\": 3}", TD_ERR_FORMAT, "rtc_config"},
        {"{\"rtc_config\": {\"prefix_attention_schedule\": \"COSINE\"}}",
         TD_ERR_UNSUPPORTED, "rtc_config.prefix_attention_schedule"},
        {"{\"rtc_config\": {\"prefix_attention_schedule\": \"EXP\", "
         "\"max_guidance_weight\": 0, \"execution_horizon\": 7}}",
         TD_ERR_FORMAT, "rtc_config.max_guidance_weight"},
        {"{\"rtc_config\": {\"prefix_attention_schedule\": \"EXP\", "
         "\"max_guidance_weight\": 1, \"execution_horizon\": 70000}}",
         TD_ERR_LIMIT, "rtc_config.execution_horizon"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++) {
        td_native_guide guide = {.horizon = 77};
        td_errinfo info = {.text = ""};
        assert_int_equal(read(bad[i].text, &guide, &info), bad[i].err);
        assert_non_null(strstr(info.text, bad[i].says));
        assert_int_equal(guide.horizon, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_lerobot),
        cmocka_unit_test(strength_is_that_of_lerobot),
        cmocka_unit_test(options_are_read_or_lerobots_own),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests_name("guide", tests, NULL, NULL);
}
