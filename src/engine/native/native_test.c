// SPDX-License-Identifier: Apache-2.0
// The native engine in this process, with golden checkpoints.
//
// The conformance suite; the spec that a checkpoint makes, and names that the
// manifest gives; observations, pictures, folders and weights that are refused
// by name; the temporal ensemble of each client.
#include "engine/native/native.h"

#include "engine/conformance.h"
#include "engine/native/golden.h"
#include "engine/native/native_fixture.h"
#include "engine/probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static td_native_golden golden;
static td_engine_native_settings settings;
static td_engine_config config = {.model_id = "act",
                                  .model_version = "v1",
                                  .device = "cpu",
                                  .step_period_us = 33333,
                                  .settings = &settings};

static void make(request *r, uint64_t cursor, float value)
{
    make_request(r, "arm", cursor);
    r->state[0] = value;
}

static td_engine *open_engine(void)
{
    return open_as("native", &config);
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
    assert_int_equal(td_engine_probe_warm_up(engine, NULL, &info), TD_OK);
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

#define HEIGHT 64
#define WIDTH 96
#define JOINTS 6

// One observation of the checkpoint with two cameras, the second of which may
// be anything.
static void look(request *r, td_wire_image wrist, uint32_t joints)
{
    static const uint8_t black[HEIGHT * WIDTH * 3];
    static const float state[JOINTS + 1];
    make(r, 0, 0);
    r->obs.tensor_count = 0;
    r->obs.state = tensor_of(state, joints);
    wrist.data = black;
    r->obs.images[0] = (td_wire_image){.name = td_wire_text_of("top"),
                                       .codec = TD_WIRE_RAW,
                                       .shape = {HEIGHT, WIDTH, 3},
                                       .data = black,
                                       .size = sizeof black};
    r->obs.images[1] = wrist;
    r->obs.image_count = 2;
}

static void wrong_pictures_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *camera;
        td_wire_codec codec;
        uint32_t height;
        size_t size;
        uint32_t joints;
        td_err err;
        const char *says;
    } cases[] = {
        {"front", TD_WIRE_RAW, 64, 18432, JOINTS, TD_ERR_MISMATCH,
         "images.wrist: is missing"},
        {"wrist", TD_WIRE_RAW, 63, 18432, JOINTS, TD_ERR_MISMATCH,
         "images.wrist: is 63x96x3, the model wants 64x96x3"},
        {"wrist", TD_WIRE_RAW, 64, 18431, JOINTS, TD_ERR_FORMAT,
         "images.wrist: has 18431 bytes, its shape 18432"},
        {"wrist", TD_WIRE_JPEG, 64, 18432, JOINTS, TD_ERR_FORMAT,
         "images.wrist: "},
        {"wrist", TD_WIRE_RAW, 64, 18432, JOINTS + 1, TD_ERR_MISMATCH,
         "state: 28 bytes of <f4, the model wants 6 x <f4"},
        {"wrist", TD_WIRE_RAW, 64, 18432, JOINTS, TD_OK, ""},
    };
    td_native_golden cameras;
    td_native_golden_make("act", "two-cameras", &cameras);
    config.pretrained_path = cameras.folder;
    td_engine *engine = open_engine();
    config.pretrained_path = golden.folder;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        request r;
        const td_wire_image wrist = {.name = td_wire_text_of(cases[i].camera),
                                     .codec = cases[i].codec,
                                     .shape = {cases[i].height, WIDTH, 3},
                                     .size = cases[i].size};
        look(&r, wrist, cases[i].joints);
        assert_int_equal(ask(engine, &r), cases[i].err);
        assert_int_equal(
            strncmp(r.why.text, cases[i].says, strlen(cases[i].says)), 0);
    }
    td_engine_close(engine);
    td_native_golden_remove(&cameras);
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
    for (int i = 0; i < VALUES; i++)
        assert_true(fabsf(both.actions[i] -
                          (one.actions[i] + other.actions[i]) / 2) < 1e-4f);
}

static void what_cannot_be_opened_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *name, *path, *device, *text;
        uint32_t actions;
        const char *tokenizer;
        td_err err;
    } cases[] = {
        {"no folder", "", "cpu", "pretrained_path", 0, "", TD_ERR_INVALID},
        {"a folder that is not there", "/nowhere", "cpu", "/nowhere", 0, "",
         TD_ERR_NOTFOUND},
        {"a device", NULL, "tpu", "tpu", 0, "", TD_ERR_UNSUPPORTED},
        {"too few names", NULL, "cpu", "the manifest names 2", 2, "",
         TD_ERR_MISMATCH},
        {"a tokenizer for nothing", NULL, "cpu", "takes no text", 0, "t.json",
         TD_ERR_INVALID},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_engine_config bad = config;
        td_engine *engine = NULL;
        td_errinfo info = {.text = ""};
        if (cases[i].path) bad.pretrained_path = cases[i].path;
        bad.device = cases[i].device;
        settings.action_count = cases[i].actions;
        settings.tokenizer = cases[i].tokenizer;
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
    td_native_golden_make("act", "no-camera", &golden);
    config.pretrained_path = golden.folder;
#define TEST(test) cmocka_unit_test_setup(test, begin)
    const struct CMUnitTest tests[] = {
        TEST(the_spec_is_the_checkpoints),
        TEST(channels_have_the_names_that_the_manifest_gives),
        TEST(what_it_wants_is_enough_to_warm_it_up),
        TEST(bad_observations_are_refused_by_name),
        TEST(wrong_pictures_are_refused_by_name),
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
