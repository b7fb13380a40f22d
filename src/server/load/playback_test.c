// SPDX-License-Identifier: Apache-2.0
#include "server/load/playback.h"

#include "config/factory/profile.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define PROFILES TD_SOURCE_DIR "/profiles/"

static td_config_engine engine_of(const char *file, bool continuous)
{
    return (td_config_engine){
        .continuous = continuous,
        .latency = {.kind = TD_CONFIG_LATENCY_PROFILE, .file = file},
    };
}

static void batches_take_what_the_planner_sees(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        bool continuous;
    } cases[] = {
        {PROFILES "gr00t-n1.6-h200.yaml", false},
        {PROFILES "qwen2.5-vl-7b-h200.yaml", true},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_config_engine engine = engine_of(cases[i].file, cases[i].continuous);
        TD_AUTO(td_config_profile) *profile = NULL;
        TD_AUTO(td_server_playback) *playback = NULL;
        td_errinfo info = {""};
        assert_int_equal(td_config_profile_load(cases[i].file, &profile, &info),
                         TD_OK);
        assert_int_equal(td_server_playback_open(&engine, &playback, &info),
                         TD_OK);
        assert_int_equal(playback->size_count,
                         td_config_profile_max_batch(profile));
        td_engine_latency latency = {.kind = TD_ENGINE_LATENCY_PROFILE,
                                     .sizes = playback->sizes,
                                     .size_count = playback->size_count};
        TD_AUTO(td_engine_synthetic_latency) *played = NULL;
        assert_int_equal(
            td_engine_synthetic_latency_new(&latency, &played, &info), TD_OK);
        for (uint32_t n = 1; n <= playback->size_count; n++)
            assert_true(
                fabs((double)td_engine_synthetic_latency_mean_ns(played, n) /
                         1e6 -
                     td_config_profile_mean_ms(profile, n)) < 1e-5);
    }
}

static void a_profile_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        bool continuous;
        td_err err;
        const char *part;
    } cases[] = {
        {PROFILES "gr00t-n1.6-h200.yaml", true, TD_ERR_MISMATCH,
         "the engine must have `continuous: false`"},
        {PROFILES "qwen2.5-vl-7b-h200.yaml", false, TD_ERR_MISMATCH,
         "the engine must have `continuous: true`"},
        {"/nowhere.yaml", false, TD_ERR_IO,
         "/nowhere.yaml: No such file or directory; `tendon profile`"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_config_engine engine = engine_of(cases[i].file, cases[i].continuous);
        td_server_playback *playback = NULL;
        td_errinfo info = {""};
        td_err err = td_server_playback_open(&engine, &playback, &info);
        if (err != cases[i].err || playback ||
            !strstr(info.text, cases[i].part))
            fail_msg("%s: %s", td_err_name(err), info.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_take_what_the_planner_sees),
        cmocka_unit_test(a_profile_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
