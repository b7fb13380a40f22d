// SPDX-License-Identifier: Apache-2.0
// Each case is a checkpoint that LeRobot saved and what it answers to a few
// observations, free and guided by what is left of a chunk before
// (tests/golden/make_flows.py).
#include "engine/native/flow/flow_cases.h"

#include "engine/native/golden.h"
#include "engine/native/model.h"
#include "engine/native/ops/hashed.h"
#include "engine/native/request.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OBSERVATIONS 3
#define MOST_TOKENS 64

static const char *const names[] = {
    "smolvla-two-cameras", "smolvla-odd",  "smolvla-self",
    "pi0-two-cameras",     "pi0-relative", "pi05-two-cameras",
    "pi05-half",           "pi05-trained",
};
static const td_native_flow_backend *tested;

typedef struct world {
    td_native_golden golden;
    td_native_checkpoint *checkpoint;
    td_native_pipeline *pipeline;
    td_native_model *model;
    json_t *asked;
    size_t values; // of a chunk
    float *left;   // rows of what is left, of one observation
    td_native_pipeline_prepared prepared[OBSERVATIONS]; // by slot
} world;

static void check(td_err err, const td_errinfo *info)
{
    if (err != TD_OK) print_error("%s: %s\n", td_err_name(err), info->text);
    assert_int_equal(err, TD_OK);
}

static json_t *read_asked(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path,
                   TD_SOURCE_DIR "/tests/golden/flows/%s/asked.json", name);
    json_t *asked = json_load_file(path, 0, NULL);
    assert_non_null(asked);
    return asked;
}

static int open_world(void **state)
{
    world *w = calloc(1, sizeof *w);
    td_errinfo info = {.text = ""};
    assert_non_null(w);
    w->asked = read_asked(*state);
    td_native_golden_make("flows", *state, &w->golden);
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
        .kept_bytes = 1,
    };
    check(td_native_model_open(&config, &w->model, &info), &info);
    w->values = (size_t)w->checkpoint->policy.chunk_rows *
                w->checkpoint->policy.action_dim;
    w->left = malloc(w->values * sizeof *w->left);
    assert_non_null(w->left);
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
    json_decref(w->asked);
    free(w->left);
    free(w);
    return 0;
}

static void name_of(const world *w, int observation, const char *key,
                    char ret_name[256])
{
    (void)snprintf(ret_name, 256, "%s/%d/%s", w->golden.name, observation, key);
}

static uint32_t asked_number(const world *w, int observation, const char *name)
{
    const json_t *asked = json_array_get(w->asked, (size_t)observation);
    return (uint32_t)json_integer_value(json_object_get(asked, name));
}

static void check_ids(const world *w, int observation,
                      const td_native_pipeline_prepared *prepared)
{
    const json_t *ids =
        json_object_get(json_array_get(w->asked, (size_t)observation), "ids");
    assert_int_equal(prepared->id_count, json_array_size(ids));
    for (uint32_t i = 0; i < prepared->id_count; i++)
        assert_int_equal(prepared->ids[i],
                         json_integer_value(json_array_get(ids, i)));
}

static void draw_frames(world *w, int observation, uint32_t slot)
{
    const td_native_policy *policy = &w->checkpoint->policy;
    uint32_t camera = 0;
    char name[256];
    for (uint32_t i = 0; i < policy->camera_count; i++) {
        const td_native_camera *of = &policy->cameras[i];
        if (of->empty) continue;
        name_of(w, observation, of->key, name);
        td_native_hashed_pixels(
            name, (size_t)of->height * of->width * 3,
            td_native_model_frame(w->model, slot, camera++));
    }
}

// Observation `observation` into member `slot`.
static void observe(world *w, int observation, uint32_t slot)
{
    td_native_pipeline_prepared *prepared = &w->prepared[slot];
    const char *task = json_string_value(
        json_object_get(json_array_get(w->asked, (size_t)observation), "task"));
    float given[TD_WIRE_MAX_CHANNELS];
    const td_native_pipeline_input input = {
        .state = given, .task = {task, (uint32_t)strlen(task)}};
    td_errinfo info = {.text = ""};
    char name[256];
    name_of(w, observation, "observation.state", name);
    td_native_hashed_floats(name, w->checkpoint->policy.state_dim, given);
    check(td_native_pipeline_preprocess(w->pipeline, &input, prepared, &info),
          &info);
    check_ids(w, observation, prepared);
    draw_frames(w, observation, slot);
    check(td_native_request_observe(w->model, slot, prepared, &info), &info);
}

// The noise of an observation, and what guides it.
static void sample(world *w, int observation, uint32_t slot, bool guided)
{
    char name[256];
    float *noise = td_native_model_noise(w->model, slot);
    uint32_t count = td_native_model_noise_count(w->model);
    name_of(w, observation, "noise", name);
    td_native_hashed_floats(name, count, noise);
    for (uint32_t i = 0; i < count; i++)
        noise[i] *= 2;
    td_native_model_left left = {
        .rows = w->left,
        .count = asked_number(w, observation, "rows"),
        .delay = asked_number(w, observation, "delay"),
        .horizon = asked_number(w, observation, "horizon"),
    };
    name_of(w, observation, "left", name);
    td_native_hashed_floats(
        name, (size_t)left.count * w->checkpoint->policy.action_dim, w->left);
    td_errinfo info = {.text = ""};
    check(td_native_model_guide(w->model, slot, guided ? &left : NULL, &info),
          &info);
}

static void run(world *w, td_native_part part, uint32_t count)
{
    td_errinfo info = {.text = ""};
    check(td_native_model_run(w->model, part, count, &info), &info);
}

static double largest(const float *values, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)values[i]));
    return most;
}

static double apart(const float *a, const float *b, size_t count)
{
    double off = 0;
    for (size_t i = 0; i < count; i++)
        off = fmax(off, isfinite(a[i]) ? fabs((double)a[i] - (double)b[i])
                                       : INFINITY);
    return off;
}

// Chunk 2 i + guided, of observation i. Owned: free().
static float *new_chunks(const world *w)
{
    float *chunks =
        malloc((size_t)OBSERVATIONS * 2 * w->values * sizeof *chunks);
    assert_non_null(chunks);
    return chunks;
}

static float *ask_alone(world *w)
{
    float *chunks = new_chunks(w);
    for (int i = 0; i < 2 * OBSERVATIONS; i++) {
        observe(w, i / 2, 0);
        sample(w, i / 2, 0, i % 2);
        run(w, TD_NATIVE_WHOLE, 1);
        td_native_model_actions(w->model, 0, chunks + (size_t)i * w->values);
    }
    return chunks;
}

static void answers_are_those_of_lerobot(void **state)
{
    world *w = *state;
    size_t count = 2 * OBSERVATIONS * w->values;
    float *expected = td_native_golden_expected(&w->golden, count);
    float *chunks = ask_alone(w);
    double most = largest(expected, count);
    for (int i = 0; i < 2 * OBSERVATIONS; i++) {
        observe(w, i / 2, 0); // what actions are relative to
        td_native_pipeline_postprocess(w->pipeline, &w->prepared[0],
                                       w->checkpoint->policy.chunk_rows,
                                       chunks + (size_t)i * w->values);
    }
    double off = apart(chunks, expected, count);
    print_message("%s: off by %.1e of %.1f\n", w->golden.name, off / most,
                  most);
    assert_true(off <= tested->tolerance * most);
    free(expected);
    free(chunks);
}

static void same_observation_gives_the_same_bits(void **state)
{
    world *w = *state;
    float *once = ask_alone(w), *again = ask_alone(w);
    assert_memory_equal(once, again,
                        2 * OBSERVATIONS * w->values * sizeof *once);
    free(once);
    free(again);
}

static double across(const world *w)
{
    td_ops_info backend;
    td_native_model_info(w->model, &backend);
    return backend.tolerance;
}

// Texts of different lengths, some guided and some not. Bit for bit where the
// backend's tolerance is 0.
static void answers_are_the_same_in_any_batch_and_place(void **state)
{
    world *w = *state;
    float *alone = ask_alone(w), *got = new_chunks(w);
    double most = largest(alone, 2 * OBSERVATIONS * w->values), off = 0;
    for (int shift = 0; shift < 2 * OBSERVATIONS; shift++) {
        for (uint32_t slot = 0; slot < OBSERVATIONS; slot++) {
            int which = ((int)slot + shift) % OBSERVATIONS;
            observe(w, which, slot);
            sample(w, which, slot, ((int)slot + shift / 3) % 2);
        }
        run(w, TD_NATIVE_WHOLE, OBSERVATIONS);
        for (uint32_t slot = 0; slot < OBSERVATIONS; slot++) {
            int which = ((int)slot + shift) % OBSERVATIONS;
            int guided = ((int)slot + shift / 3) % 2;
            td_native_model_actions(w->model, slot, got);
            off = fmax(off,
                       apart(got,
                             alone + (size_t)(2 * which + guided) * w->values,
                             w->values));
        }
    }
    print_message("%s: in a batch off by %.1e\n", w->golden.name, off / most);
    assert_true(off <= across(w) * most);
    free(alone);
    free(got);
}

// Kept, and decoded in another place and order, twice, after others.
static void prefix_then_decode_is_the_whole(void **state)
{
    world *w = *state;
    td_errinfo info = {.text = ""};
    float *alone = ask_alone(w), *got = new_chunks(w);
    double most = largest(alone, 2 * OBSERVATIONS * w->values), off = 0;
    assert_true(td_native_model_slots(w->model) >= OBSERVATIONS);
    for (int i = 0; i < OBSERVATIONS; i++) {
        observe(w, i, 0);
        run(w, TD_NATIVE_PREFIX, 1);
        check(td_native_model_keep(w->model, 0, (uint32_t)i, &info), &info);
    }
    for (int guided = 0; guided < 2; guided++) {
        for (uint32_t slot = 0; slot < OBSERVATIONS; slot++) {
            uint32_t which = OBSERVATIONS - 1 - slot;
            check(td_native_model_restore(w->model, which, slot, &info), &info);
            sample(w, (int)which, slot, guided);
        }
        run(w, TD_NATIVE_DECODE, OBSERVATIONS);
        for (uint32_t slot = 0; slot < OBSERVATIONS; slot++) {
            uint32_t which = OBSERVATIONS - 1 - slot;
            td_native_model_actions(w->model, slot, got);
            off =
                fmax(off, apart(got,
                                alone + (size_t)(2 * which + (uint32_t)guided) *
                                            w->values,
                                w->values));
        }
    }
    assert_true(off <= across(w) * most);
    free(alone);
    free(got);
}

static void what_does_not_fit_is_refused(void **state)
{
    world *w = *state;
    uint32_t ids[MOST_TOKENS * 10] = {0};
    float numbers[TD_WIRE_MAX_CHANNELS] = {0};
    td_errinfo info = {.text = ""};
    td_native_model_input input = {.state = numbers, .ids = ids, .id_count = 2};
    ids[1] = 640;
    assert_int_equal(td_native_model_observe(w->model, 0, &input, &info),
                     TD_ERR_INVALID);
    assert_non_null(strstr(info.text, "token 1 of the text is 640"));
    ids[1] = 0;
    input.id_count = TD_COUNT_OF(ids);
    assert_int_equal(td_native_model_observe(w->model, 0, &input, &info),
                     TD_ERR_LIMIT);
    assert_int_equal(td_native_model_run(w->model, TD_NATIVE_WHOLE, 0, NULL),
                     TD_ERR_INVALID);
}

int td_native_flow_cases(const td_native_flow_backend *backend,
                         const char *kind)
{
    int failed = 0;
    tested = backend;
    for (size_t i = 0; i < TD_COUNT_OF(names); i++) {
        if (strncmp(names[i], kind, strlen(kind)) != 0 ||
            names[i][strlen(kind)] != '-')
            continue;
#define WORLD(test)                                                            \
    {#test, test, open_world, close_world, (void *)(uintptr_t)names[i]}
        const struct CMUnitTest tests[] = {
            WORLD(answers_are_those_of_lerobot),
            WORLD(same_observation_gives_the_same_bits),
            WORLD(answers_are_the_same_in_any_batch_and_place),
            WORLD(prefix_then_decode_is_the_whole),
            WORLD(what_does_not_fit_is_refused),
        };
        failed += cmocka_run_group_tests_name(names[i], tests, NULL, NULL);
    }
    return failed;
}
