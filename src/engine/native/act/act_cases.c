// SPDX-License-Identifier: Apache-2.0
#include "engine/native/act/act_cases.h"

#include "engine/native/golden.h"
#include "engine/native/model.h"
#include "engine/native/ops/hashed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OBSERVATIONS 3

static const char *const names[] = {"two-cameras", "norms-first", "no-camera"};
static const td_native_act_backend *tested;

typedef struct world {
    td_native_golden golden;
    td_native_checkpoint *checkpoint;
    td_native_pipeline *pipeline;
    td_native_model *model;
    size_t values; // of a chunk
    float across;  // largest difference that a batch may make, of the largest
} world;

static void check(td_err err, const td_errinfo *info)
{
    if (err != TD_OK) print_error("%s: %s\n", td_err_name(err), info->text);
    assert_int_equal(err, TD_OK);
}

static int open_world(void **state)
{
    world *w = calloc(1, sizeof *w);
    td_errinfo info = {.text = ""};
    assert_non_null(w);
    td_native_golden_make("act", *state, &w->golden);
    check(td_native_checkpoint_open(w->golden.folder, &w->checkpoint, &info),
          &info);
    check(td_native_pipeline_new(w->checkpoint, NULL, &w->pipeline, &info),
          &info);
    const td_native_model_config config = {
        .checkpoint = w->checkpoint,
        .pipeline = w->pipeline,
        .ops = tested->ops,
        .backend = tested->config,
        .max_batch = OBSERVATIONS,
    };
    td_ops_info backend;
    check(td_native_model_open(&config, &w->model, &info), &info);
    td_native_model_info(w->model, &backend);
    w->across = backend.tolerance;
    w->values = (size_t)w->checkpoint->policy.chunk_rows *
                w->checkpoint->policy.action_dim;
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    world *w = *state;
    td_native_model_close(w->model);
    td_native_pipeline_free(w->pipeline);
    td_native_checkpoint_close(w->checkpoint);
    td_native_golden_remove(&w->golden);
    free(w);
    return 0;
}

static void input_name(const world *w, int observation, const char *key,
                       char ret_name[256])
{
    (void)snprintf(ret_name, 256, "%s/%d/%s", w->golden.name, observation, key);
}

// Observation `observation` into member `slot`.
static void observe(world *w, int observation, uint32_t slot,
                    td_native_pipeline_prepared *prepared)
{
    const td_native_policy *policy = &w->checkpoint->policy;
    float given_state[TD_WIRE_MAX_CHANNELS], given_env[TD_WIRE_MAX_CHANNELS];
    const td_native_pipeline_input input = {.state = given_state,
                                            .env = given_env};
    td_errinfo info = {.text = ""};
    char name[256];
    input_name(w, observation, "observation.state", name);
    td_native_hashed_floats(name, policy->state_dim, given_state);
    input_name(w, observation, "observation.environment_state", name);
    td_native_hashed_floats(name, policy->env_dim, given_env);
    check(td_native_pipeline_preprocess(w->pipeline, &input, prepared, &info),
          &info);
    for (uint32_t i = 0; i < policy->camera_count; i++) {
        const td_native_camera *camera = &policy->cameras[i];
        input_name(w, observation, camera->key, name);
        td_native_hashed_pixels(name,
                                (size_t)camera->height * camera->width * 3,
                                td_native_model_frame(w->model, slot, i));
    }
    const td_native_model_input taken = {.state = prepared->state,
                                         .env = prepared->env};
    check(td_native_model_observe(w->model, slot, &taken, &info), &info);
}

static void run(world *w, uint32_t count)
{
    td_errinfo info = {.text = ""};
    check(td_native_model_run(w->model, TD_NATIVE_WHOLE, count, &info), &info);
}

static double largest(const float *values, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)values[i]));
    return most;
}

static void answers_are_those_of_lerobot(void **state)
{
    world *w = *state;
    float *actions = malloc(w->values * sizeof *actions);
    float *expected =
        td_native_golden_expected(&w->golden, OBSERVATIONS * w->values);
    double most = largest(expected, OBSERVATIONS * w->values), off = 0;
    assert_non_null(actions);
    for (int i = 0; i < OBSERVATIONS; i++) {
        td_native_pipeline_prepared prepared;
        observe(w, i, 0, &prepared);
        run(w, 1);
        td_native_model_actions(w->model, 0, actions);
        td_native_pipeline_postprocess(
            w->pipeline, &prepared, w->checkpoint->policy.chunk_rows, actions);
        for (size_t k = 0; k < w->values; k++)
            off = fmax(off, fabs((double)actions[k] -
                                 (double)expected[i * w->values + k]));
    }
    print_message("%s: off by %.1e of %.1f\n", w->golden.name, off / most,
                  most);
    assert_true(off <= tested->tolerance * most);
    free(actions);
    free(expected);
}

// Every observation by itself, one chunk after the other. Owned: free().
static float *ask_alone(world *w)
{
    float *alone = malloc(OBSERVATIONS * w->values * sizeof *alone);
    td_native_pipeline_prepared prepared;
    assert_non_null(alone);
    for (int i = 0; i < OBSERVATIONS; i++) {
        observe(w, i, 0, &prepared);
        run(w, 1);
        td_native_model_actions(w->model, 0, alone + i * w->values);
    }
    return alone;
}

static void same_observation_gives_the_same_bits(void **state)
{
    world *w = *state;
    float *once = ask_alone(w), *again = ask_alone(w);
    assert_memory_equal(once, again, OBSERVATIONS * w->values * sizeof *once);
    free(once);
    free(again);
}

// Bit for bit where the backend's tolerance is 0.
static void answers_are_the_same_in_any_batch_and_place(void **state)
{
    world *w = *state;
    float *alone = ask_alone(w), *got = malloc(w->values * sizeof *got);
    double most = largest(alone, OBSERVATIONS * w->values), off = 0;
    assert_non_null(got);
    for (int shift = 0; shift < OBSERVATIONS; shift++) {
        td_native_pipeline_prepared prepared;
        for (uint32_t slot = 0; slot < OBSERVATIONS; slot++)
            observe(w, ((int)slot + shift) % OBSERVATIONS, slot, &prepared);
        run(w, OBSERVATIONS);
        for (uint32_t slot = 0; slot < OBSERVATIONS; slot++) {
            td_native_model_actions(w->model, slot, got);
            const float *want =
                alone + ((int)slot + shift) % OBSERVATIONS * w->values;
            for (size_t k = 0; k < w->values; k++)
                off = fmax(off, fabs((double)got[k] - (double)want[k]));
        }
    }
    print_message("%s: in a batch off by %.1e\n", w->golden.name, off / most);
    assert_true(off <= (double)w->across * most);
    free(alone);
    free(got);
}

static void a_batch_of_a_wrong_size_is_refused(void **state)
{
    world *w = *state;
    assert_int_equal(td_native_model_run(w->model, TD_NATIVE_WHOLE, 0, NULL),
                     TD_ERR_INVALID);
    assert_int_equal(
        td_native_model_run(w->model, TD_NATIVE_WHOLE, OBSERVATIONS + 1, NULL),
        TD_ERR_INVALID);
}

int td_native_act_cases(const td_native_act_backend *backend)
{
    int failed = 0;
    tested = backend;
    for (size_t i = 0; i < TD_COUNT_OF(names); i++) {
#define WORLD(test)                                                            \
    {#test, test, open_world, close_world, (void *)(uintptr_t)names[i]}
        const struct CMUnitTest tests[] = {
            WORLD(answers_are_those_of_lerobot),
            WORLD(same_observation_gives_the_same_bits),
            WORLD(answers_are_the_same_in_any_batch_and_place),
            WORLD(a_batch_of_a_wrong_size_is_refused),
        };
        failed += cmocka_run_group_tests_name(names[i], tests, NULL, NULL);
    }
    return failed;
}
