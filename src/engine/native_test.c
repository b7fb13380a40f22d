// SPDX-License-Identifier: Apache-2.0
#include "engine/native/native.h"

#include "base/event.h"
#include "engine/conformance.h"
#include "engine/native/golden.h"
#include "engine/warmup.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STATES 5
#define ENVIRONMENT 9
#define ROWS 33
#define ACTIONS 5

static td_native_golden golden;
static td_engine_native_settings settings;
static td_engine_config config = {.model_id = "act",
                                  .model_version = "v1",
                                  .device = "cpu",
                                  .step_period_us = 33333,
                                  .settings = &settings};

// One observation, and room for its answer.
typedef struct request {
    float state[STATES], environment[ENVIRONMENT];
    float actions[ROWS * ACTIONS];
    td_wire_obs obs;
    td_errinfo why;
    td_engine_item item;
    td_engine_batch batch;
    td_event event;
} request;

static void on_done(void *user, td_engine_batch *batch)
{
    (void)batch;
    td_event_signal(user);
}

static td_wire_tensor tensor_of(const float *data, uint32_t count)
{
    return (td_wire_tensor){.dtype = TD_WIRE_F32,
                            .rank = 1,
                            .shape = {count},
                            .data = data,
                            .size = count * sizeof(float)};
}

static void make(request *r, uint64_t cursor, float value)
{
    *r = (request){.state = {value}};
    r->obs.client = td_wire_text_of("arm");
    r->obs.cursor = cursor;
    r->obs.state = tensor_of(r->state, STATES);
    r->obs.tensors[0] =
        (td_wire_named){.name = td_wire_text_of("environment_state"),
                        .tensor = tensor_of(r->environment, ENVIRONMENT)};
    r->obs.tensor_count = 1;
    r->item = (td_engine_item){
        .obs = &r->obs, .actions = r->actions, .info = &r->why};
    r->batch = (td_engine_batch){.items = {&r->item}, .count = 1};
    td_event_init(&r->event);
}

static td_err ask(td_engine *engine, request *r)
{
    assert_int_equal(engine->ops->submit(engine, &r->batch, on_done, &r->event),
                     TD_OK);
    (void)td_event_wait_until(&r->event, INT64_MAX);
    return r->item.status;
}

static td_engine *open_engine(void)
{
    td_engine *engine = NULL;
    td_errinfo info = {.text = ""};
    td_err err = td_engine_open("native", &config, &engine, &info);
    if (err != TD_OK) print_error("%s\n", info.text);
    assert_int_equal(err, TD_OK);
    return engine;
}

static int begin(void **state)
{
    (void)state;
    settings = (td_engine_native_settings){.max_batch = 2, .threads = 2};
    return 0;
}

static void the_spec_is_the_checkpoints(void **state)
{
    (void)state;
    td_engine *engine = open_engine();
    const td_engine_spec *spec = engine->ops->spec(engine);
    assert_int_equal(spec->state_count, STATES);
    assert_int_equal(spec->environment_count, ENVIRONMENT);
    assert_int_equal(spec->action_count, ACTIONS);
    assert_int_equal(spec->chunk_rows, ROWS);
    assert_int_equal(spec->camera_count, 0);
    assert_memory_equal(spec->actions[4].name.data, "action_4", 8);
    assert_memory_equal(spec->states[4].name.data, "action_4", 8);
    td_engine_close(engine);
}

static void channels_have_the_names_that_the_manifest_gives(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ACTIONS; i++)
        settings.actions[i] = (td_wire_channel){
            td_wire_text_of(i == 4 ? "gripper" : "joint"), TD_WIRE_HOLD};
    settings.action_count = ACTIONS;
    td_engine *engine = open_engine();
    const td_engine_spec *spec = engine->ops->spec(engine);
    assert_int_equal(spec->actions[4].kind, TD_WIRE_HOLD);
    assert_memory_equal(spec->actions[4].name.data, "gripper", 7);
    assert_memory_equal(spec->states[4].name.data, "gripper", 7);
    td_engine_close(engine);
}

static void what_it_wants_is_enough_to_warm_it_up(void **state)
{
    (void)state;
    td_errinfo info = {.text = ""};
    td_engine *engine = open_engine();
    assert_int_equal(td_engine_warmup(engine, &info), TD_OK);
    td_engine_close(engine);
}

static void bad_observations_are_refused_by_name(void **state)
{
    (void)state;
    request r;
    td_engine *engine = open_engine();
    make(&r, 0, 0);
    r.obs.tensor_count = 0;
    assert_int_equal(ask(engine, &r), TD_ERR_MISMATCH);
    assert_string_equal(r.why.text, "tensors.environment_state: is missing");
    make(&r, 0, 0);
    r.obs.tensors[0].tensor.size -= 4;
    assert_int_equal(ask(engine, &r), TD_ERR_MISMATCH);
    make(&r, 0, 0);
    r.obs.state = tensor_of(r.state, STATES - 1);
    assert_int_equal(ask(engine, &r), TD_ERR_MISMATCH);
    assert_string_equal(r.why.text,
                        "state: 16 bytes of <f4, the model wants 5 x <f4");
    make(&r, 0, NAN);
    assert_int_not_equal(ask(engine, &r), TD_OK);
    make(&r, 0, 0);
    assert_int_equal(ask(engine, &r), TD_OK);
    assert_int_equal(r.item.rows, ROWS);
    td_engine_close(engine);
}

// Two chunks that speak of the same step: their mean, with equal weights.
static void an_ensemble_is_the_mean_of_a_clients_chunks(void **state)
{
    (void)state;
    request one, other, both;
    td_engine *engine = open_engine();
    make(&one, 0, 0.5f);
    make(&other, 0, -0.5f);
    assert_int_equal(ask(engine, &one), TD_OK);
    assert_int_equal(ask(engine, &other), TD_OK);
    td_engine_close(engine);
    settings.ensemble = true;
    engine = open_engine();
    make(&both, 10, 0.5f);
    assert_int_equal(ask(engine, &both), TD_OK);
    make(&both, 10, -0.5f);
    assert_int_equal(ask(engine, &both), TD_OK);
    td_engine_close(engine);
    for (int i = 0; i < ROWS * ACTIONS; i++)
        assert_true(fabsf(both.actions[i] -
                          (one.actions[i] + other.actions[i]) / 2) < 1e-4f);
}

static void what_cannot_be_opened_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *name, *path, *device, *text;
        uint32_t actions;
        td_err err;
    } cases[] = {
        {"no folder", "", "cpu", "pretrained_path", 0, TD_ERR_INVALID},
        {"a folder that is not there", "/nowhere", "cpu", "/nowhere", 0,
         TD_ERR_NOTFOUND},
        {"a device", NULL, "tpu", "tpu", 0, TD_ERR_UNSUPPORTED},
        {"too few names", NULL, "cpu", "the manifest names 2", 2,
         TD_ERR_MISMATCH},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_engine_config bad = config;
        td_engine *engine = NULL;
        td_errinfo info = {.text = ""};
        if (cases[i].path) bad.pretrained_path = cases[i].path;
        bad.device = cases[i].device;
        settings.action_count = cases[i].actions;
        assert_int_equal(td_engine_open("native", &bad, &engine, &info),
                         cases[i].err);
        assert_non_null(strstr(info.text, cases[i].text));
    }
}

// The last number of the weights, and of the bytes of their file.
static void set_last(float value)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/model.safetensors", golden.folder);
    FILE *file = fopen(path, "r+be");
    if (!file) abort();
    assert_int_equal(fseek(file, -(long)sizeof value, SEEK_END), 0);
    assert_int_equal(fwrite(&value, sizeof value, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

static void weights_that_are_not_finite_are_refused_by_name(void **state)
{
    (void)state;
    td_engine *engine = NULL;
    td_errinfo info = {.text = ""};
    set_last(NAN);
    assert_int_equal(td_engine_open("native", &config, &engine, &info),
                     TD_ERR_FORMAT);
    assert_non_null(strstr(info.text, "model."));
    set_last(0.5f);
    td_engine_close(open_engine());
}

int main(void)
{
    td_native_golden_make("no-camera", &golden);
    config.pretrained_path = golden.folder;
#define TEST(test) cmocka_unit_test_setup(test, begin)
    const struct CMUnitTest tests[] = {
        TEST(the_spec_is_the_checkpoints),
        TEST(channels_have_the_names_that_the_manifest_gives),
        TEST(what_it_wants_is_enough_to_warm_it_up),
        TEST(bad_observations_are_refused_by_name),
        TEST(an_ensemble_is_the_mean_of_a_clients_chunks),
        TEST(what_cannot_be_opened_says_why),
        TEST(weights_that_are_not_finite_are_refused_by_name),
    };
    int failed = cmocka_run_group_tests_name("native", tests, NULL, NULL);
    (void)begin(NULL);
    failed += td_engine_conformance("native", &config);
    td_native_golden_remove(&golden);
    return failed;
}
