// SPDX-License-Identifier: Apache-2.0
#include "engine/synthetic/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 50
#define ACTIONS 4
#define STATES 3
#define PERIOD_US 33333

static td_engine_synthetic_settings settings;
static td_engine_synthetic_model *model;

static td_engine_config config(void)
{
    settings = (td_engine_synthetic_settings){
        .actions = {{{"a", 1}, TD_WIRE_LINEAR},
                    {{"b", 1}, TD_WIRE_ANGLE},
                    {{"c", 1}, TD_WIRE_HOLD},
                    {{"d", 1}, TD_WIRE_LINEAR}},
        .action_count = ACTIONS,
        .states = {{{"x", 1}, 0}, {{"y", 1}, 0}, {{"z", 1}, 0}},
        .state_count = STATES,
        .cameras = {{{"front", 5}, 96, 128}},
        .camera_count = 1,
        .chunk_rows = ROWS,
        .max_batch = 4,
        .latency = {.kind = TD_ENGINE_LATENCY_FIXED, .ms = 5},
    };
    return (td_engine_config){.model_id = "pi0",
                              .model_version = "v1",
                              .step_period_us = PERIOD_US,
                              .settings = &settings};
}

static int setup(void **state)
{
    (void)state;
    td_engine_config given = config();
    return td_engine_synthetic_model_new(&given, &model, NULL) == TD_OK ? 0
                                                                        : -1;
}

static int teardown(void **state)
{
    (void)state;
    td_engine_synthetic_model_free(model);
    return 0;
}

// As the header has it, word for word.
static double formula(const float *s, double c, int k, int j)
{
    double w = 2 * M_PI * 0.25 * (PERIOD_US * 1e-6);
    double p = 0.7 * j;
    if (j == 2) return s[j % STATES];
    return s[j % STATES] + 0.1 * (sin(w * (c + k) + p) - sin(w * c + p));
}

static void the_answer_is_the_documented_function(void **state)
{
    (void)state;
    static const uint64_t cursors[] = {0, 1, 49, 1000000};
    static const float at[STATES] = {0.5f, -1.25f, 3};
    float actions[ROWS * ACTIONS];
    for (size_t i = 0; i < TD_COUNT_OF(cursors); i++) {
        td_engine_synthetic_model_answer(model, at, cursors[i], actions);
        for (int k = 0; k < ROWS; k++)
            for (int j = 0; j < ACTIONS; j++)
                if (fabs(actions[k * ACTIONS + j] -
                         formula(at, (double)cursors[i], k, j)) > 1e-6)
                    fail_msg("cursor %d row %d channel %d", (int)cursors[i], k,
                             j);
    }
}

static void the_first_row_is_the_state_itself(void **state)
{
    (void)state;
    static const float at[STATES] = {0.1f, 0.2f, 0.3f};
    float actions[ROWS * ACTIONS];
    td_engine_synthetic_model_answer(model, at, 12345, actions);
    for (int j = 0; j < ACTIONS; j++)
        assert_true(actions[j] == at[j % STATES]);
}

static void chunks_of_later_cursors_continue_earlier_ones(void **state)
{
    (void)state;
    static const float at[STATES] = {0, 0, 0};
    float first[ROWS * ACTIONS], second[ROWS * ACTIONS];
    const size_t tenth = (size_t)10 * ACTIONS;
    td_engine_synthetic_model_answer(model, at, 100, first);
    td_engine_synthetic_model_answer(model, first + tenth, 110, second);
    for (size_t k = 0; k + 10 < ROWS; k++)
        assert_true(fabsf(second[k * ACTIONS] - first[(k + 10) * ACTIONS]) <
                    1e-6f);
}

static void chunks_from_states_on_the_path_follow_it(void **state)
{
    (void)state;
    float at[STATES], actions[ROWS * ACTIONS];
    const double w = 2 * M_PI * 0.25 * (PERIOD_US * 1e-6);
    td_engine_synthetic_model_path(model, 70, at);
    td_engine_synthetic_model_answer(model, at, 70, actions);
    for (int k = 0; k < ROWS; k++)
        for (int j = 0; j < 2; j++)
            assert_true(fabs(actions[k * ACTIONS + j] -
                             0.1 * sin(w * (70 + k) + 0.7 * j)) < 1e-6);
}

static void a_state_of_another_shape_is_refused(void **state)
{
    (void)state;
    static const float values[STATES + 1] = {1, 2, 3, 4};
    static const struct {
        const char *name;
        td_wire_dtype dtype;
        uint32_t rank;
        size_t size;
        td_err err;
    } cases[] = {
        {"right", TD_WIRE_F32, 1, sizeof(float[STATES]), TD_OK},
        {"absent", TD_WIRE_F32, 0, 0, TD_ERR_MISMATCH},
        {"too long", TD_WIRE_F32, 1, sizeof values, TD_ERR_MISMATCH},
        {"of another type", TD_WIRE_I32, 1, 12, TD_ERR_MISMATCH},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_wire_obs obs = {.state = {.dtype = cases[i].dtype,
                                     .rank = cases[i].rank,
                                     .data = values,
                                     .size = cases[i].size}};
        float got[STATES] = {9, 9, 9};
        td_err err = td_engine_synthetic_model_state(model, &obs, got);
        bool written = got[0] != 9;
        if (err != cases[i].err || written != (err == TD_OK))
            fail_msg("%s: %s", cases[i].name, td_err_name(err));
    }
}

static void the_spec_outlives_the_settings(void **state)
{
    (void)state;
    memset(&settings, 0, sizeof settings);
    const td_engine_spec *spec = td_engine_synthetic_model_spec(model);
    assert_string_equal(spec->model_id, "pi0");
    assert_string_equal(spec->model_version, "v1");
    assert_int_equal(spec->action_count, ACTIONS);
    assert_memory_equal(spec->actions[3].name.data, "d", 1);
    assert_int_equal(spec->actions[2].kind, TD_WIRE_HOLD);
    assert_memory_equal(spec->states[2].name.data, "z", 1);
    assert_memory_equal(spec->cameras[0].name.data, "front", 5);
    assert_int_equal(spec->cameras[0].width, 128);
    assert_int_equal(spec->chunk_rows, ROWS);
    assert_int_equal(spec->step_period_us, PERIOD_US);
    assert_int_equal(spec->max_batch, 4);
    assert_true(spec->tolerance == 0);
}

static void the_spec_says_how_many_batches_go_at_a_time(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool continuous;
        double prepare_ms;
        uint32_t most;
    } cases[] = {
        {"in turn, and nothing to prepare", false, 0, 1},
        {"the next is prepared meanwhile", false, 2, 2},
        {"all at once", true, 0, 4},
        {"all at once, prepared", true, 2, 4},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        TD_AUTO(td_engine_synthetic_model) *made = NULL;
        td_engine_config given = config();
        settings.continuous = cases[i].continuous;
        settings.latency.prepare_ms = cases[i].prepare_ms;
        assert_int_equal(td_engine_synthetic_model_new(&given, &made, NULL),
                         TD_OK);
        const td_engine_spec *spec = td_engine_synthetic_model_spec(made);
        if (spec->continuous != cases[i].continuous ||
            spec->most_inflight != cases[i].most)
            fail_msg("%s: %u", cases[i].name, spec->most_inflight);
    }
}

static void settings_out_of_range_are_refused_by_name(void **state)
{
    (void)state;
    td_engine_config given = config();
    td_engine_synthetic_model *other = NULL;
    td_errinfo info = {""};
    settings.max_batch = 65;
    assert_int_equal(td_engine_synthetic_model_new(&given, &other, &info),
                     TD_ERR_INVALID);
    assert_string_equal(info.text, "max_batch: must be 1 to 64, got 65");
    given = config();
    given.step_period_us = 0;
    assert_int_equal(td_engine_synthetic_model_new(&given, &other, &info),
                     TD_ERR_INVALID);
    assert_string_equal(info.text, "step_period_us: must be above 0, got 0");
    assert_null(other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_answer_is_the_documented_function),
        TEST(the_first_row_is_the_state_itself),
        TEST(chunks_of_later_cursors_continue_earlier_ones),
        TEST(chunks_from_states_on_the_path_follow_it),
        TEST(a_state_of_another_shape_is_refused),
        TEST(the_spec_outlives_the_settings),
        TEST(the_spec_says_how_many_batches_go_at_a_time),
        TEST(settings_out_of_range_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
