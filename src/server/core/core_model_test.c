// SPDX-License-Identifier: Apache-2.0
// What a server says of its model, and which observations fit it.
#include "server/core/core_fixture.h"
#include "wire/wire.h"

#include <stdio.h>
#include <stdlib.h>

static const float joints[3] = {1, 2, 3};
static const unsigned char pixels[480 * 640 * 3];

static td_wire_image image(const char *name, td_wire_codec codec,
                           uint32_t height, uint32_t width)
{
    return (td_wire_image){
        .name = td_wire_text_of(name),
        .codec = codec,
        .shape = {height, width, height ? 3 : 0},
        .data = pixels,
        .size = codec == TD_WIRE_RAW ? (size_t)height * width * 3 : 100,
    };
}

static void fit(td_wire_obs *obs)
{
    *obs = (td_wire_obs){
        .state = {.dtype = TD_WIRE_F32,
                  .rank = 1,
                  .shape = {3},
                  .data = joints,
                  .size = sizeof joints},
        .images = {image("hand", TD_WIRE_RAW, 96, 128),
                   image("top", TD_WIRE_JPEG, 0, 0)},
        .image_count = 2,
    };
}

static void ask_for_rtc(td_wire_obs *obs)
{
    obs->has_rtc = true;
}

static void lose_state(td_wire_obs *obs)
{
    obs->state = (td_wire_tensor){0};
}

static void shorten_state(td_wire_obs *obs)
{
    obs->state.shape[0] = 2;
}

static void widen_state(td_wire_obs *obs)
{
    obs->state.dtype = TD_WIRE_F64;
}

static void stack_state(td_wire_obs *obs)
{
    obs->state.rank = 2;
    obs->state.shape[1] = 1;
}

static void lose_camera(td_wire_obs *obs)
{
    obs->image_count = 1;
}

static void rename_camera(td_wire_obs *obs)
{
    obs->images[1].name = td_wire_text_of("topp");
}

static void turn_camera(td_wire_obs *obs)
{
    obs->images[1] = image("top", TD_WIRE_RAW, 640, 480);
}

static void grey_camera(td_wire_obs *obs)
{
    obs->images[0].shape[2] = 1;
}

static void claim_jpeg_size(td_wire_obs *obs)
{
    obs->images[1] = image("top", TD_WIRE_JPEG, 240, 320);
}

static void hide_raw_size(td_wire_obs *obs)
{
    obs->images[0] = image("hand", TD_WIRE_RAW, 0, 0);
}

static void an_observation_that_does_not_fit_is_told_why(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*spoil)(td_wire_obs *obs);
        td_err err;
        const char *text;
    } cases[] = {
        {"rtc", ask_for_rtc, TD_ERR_UNSUPPORTED,
         "rtc: model act cannot do real-time chunking"},
        {"no state", lose_state, TD_ERR_MISMATCH,
         "state: is rank 0, 0 x <f4, the model wants 3 x <f4"},
        {"short state", shorten_state, TD_ERR_MISMATCH,
         "state: is rank 1, 2 x <f4, the model wants 3 x <f4"},
        {"state of doubles", widen_state, TD_ERR_MISMATCH,
         "state: is rank 1, 3 x <f8, the model wants 3 x <f4"},
        {"state of rank 2", stack_state, TD_ERR_MISMATCH,
         "state: is rank 2, 3 x <f4, the model wants 3 x <f4"},
        {"no camera", lose_camera, TD_ERR_MISMATCH,
         "images.top: missing, the model wants 480x640"},
        {"camera by another name", rename_camera, TD_ERR_MISMATCH,
         "images.top: missing, the model wants 480x640"},
        {"camera on its side", turn_camera, TD_ERR_MISMATCH,
         "images.top: is 640x480x3, the model wants 480x640x3"},
        {"grey camera", grey_camera, TD_ERR_MISMATCH,
         "images.hand: is 96x128x1, the model wants 96x128x3"},
        {"JPEG that claims a size", claim_jpeg_size, TD_ERR_MISMATCH,
         "images.top: is 240x320x3, the model wants 480x640x3"},
        {"raw frame that claims none", hide_raw_size, TD_ERR_MISMATCH,
         "images.hand: is 0x0x0, the model wants 96x128x3"},
    };
    td_engine_spec spec;
    model_describe(&spec);
    const td_server_settings settings = server_settings();
    TD_AUTO(td_server_dispatch) *dispatch = dispatch_new(&spec);
    TD_AUTO(td_server_core) *core = server_new(&settings, &spec, dispatch);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_wire_obs obs;
        fit(&obs);
        cases[i].spoil(&obs);
        td_errinfo info = {""};
        td_err err = td_server_core_fits(core, &obs, &info);
        if (err != cases[i].err || strcmp(info.text, cases[i].text) != 0)
            fail_msg("%s: %s", cases[i].name, info.text);
    }
}

static void keep(td_wire_obs *obs)
{
    (void)obs;
}

static void claim_right_jpeg_size(td_wire_obs *obs)
{
    obs->images[1] = image("top", TD_WIRE_JPEG, 480, 640);
}

static void add_camera(td_wire_obs *obs)
{
    obs->images[2] = image("back", TD_WIRE_RAW, 1, 1);
    obs->image_count = 3;
}

static void ask_again(td_wire_obs *obs)
{
    *obs = (td_wire_obs){.has_again = true};
}

static void an_observation_that_fits_passes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*change)(td_wire_obs *obs);
    } cases[] = {
        {"as the model wants it, images in any order", keep},
        {"JPEG with its size", claim_right_jpeg_size},
        {"one image more than asked for", add_camera},
        {"asked for again, without state or images", ask_again},
    };
    td_engine_spec spec;
    model_describe(&spec);
    const td_server_settings settings = server_settings();
    TD_AUTO(td_server_dispatch) *dispatch = dispatch_new(&spec);
    TD_AUTO(td_server_core) *core = server_new(&settings, &spec, dispatch);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_wire_obs obs;
        fit(&obs);
        cases[i].change(&obs);
        td_errinfo info = {""};
        if (td_server_core_fits(core, &obs, &info) != TD_OK)
            fail_msg("%s: %s", cases[i].name, info.text);
    }
}

static void a_model_that_can_do_rtc_takes_it(void **state)
{
    (void)state;
    td_engine_spec spec;
    model_describe(&spec);
    spec.rtc = true;
    const td_server_settings settings = server_settings();
    TD_AUTO(td_server_dispatch) *dispatch = dispatch_new(&spec);
    TD_AUTO(td_server_core) *core = server_new(&settings, &spec, dispatch);
    td_wire_obs obs;
    fit(&obs);
    ask_for_rtc(&obs);
    assert_int_equal(td_server_core_fits(core, &obs, NULL), TD_OK);
}

static void assert_describes_the_model(const td_wire_status *status)
{
    assert_true(td_wire_text_is(status->model_id, "act"));
    assert_true(td_wire_text_is(status->model_version, "v1"));
    assert_true(td_wire_text_is(status->server, "gpu-1"));
    assert_int_equal(status->server_boot, 11);
    assert_int_equal(status->state, TD_WIRE_DEGRADED);
    assert_int_equal(status->camera_count, 2);
    assert_true(td_wire_text_is(status->cameras[1].name, "hand"));
    assert_int_equal(status->cameras[1].height, 96);
    assert_int_equal(status->cameras[1].width, 128);
    assert_int_equal(status->action_dim, 2);
    assert_int_equal(status->action_count, 2);
    assert_true(td_wire_text_is(status->actions[1].name, "gripper"));
    assert_int_equal(status->actions[1].kind, TD_WIRE_HOLD);
    assert_int_equal(status->state_count, 3);
    assert_true(td_wire_text_is(status->states[1].name, "wrist"));
    assert_int_equal(status->states[1].kind, TD_WIRE_ANGLE);
    assert_int_equal(status->max_actions_per_chunk, 50);
    assert_int_equal(status->step_period_us, 33333);
    assert_true(status->rtc);
    assert_int_equal(status->capacity, 2);
    assert_int_equal(status->clients, 1);
    assert_float_equal(status->load, 0.5, 0);
    assert_false(status->has_attach);
}

static void assert_lists_the_features(const td_wire_status *status)
{
    assert_int_equal(status->feature_count, 3);
    assert_true(td_wire_text_is(status->features[0].name, "state"));
    assert_int_equal(status->features[0].dtype, TD_WIRE_F32);
    assert_int_equal(status->features[0].rank, 1);
    assert_int_equal(status->features[0].shape[0], 3);
    assert_true(td_wire_text_is(status->features[1].name, "top"));
    assert_int_equal(status->features[1].dtype, TD_WIRE_U8);
    assert_int_equal(status->features[1].rank, 3);
    assert_int_equal(status->features[1].shape[0], 480);
    assert_int_equal(status->features[1].shape[1], 640);
    assert_int_equal(status->features[1].shape[2], 3);
    assert_true(td_wire_text_is(status->features[2].name, "hand"));
}

static void status_tells_everything_over_the_wire(void **state)
{
    (void)state;
    td_engine_spec spec;
    model_describe(&spec);
    spec.rtc = true;
    const td_server_settings settings = server_settings();
    TD_AUTO(td_server_dispatch) *dispatch = dispatch_new(&spec);
    TD_AUTO(td_server_core) *core = server_new(&settings, &spec, dispatch);
    td_server_client client = {.id = "arm-0"};
    td_server_core_dropped dropped;
    const td_wire_attach attach = {.client = td_wire_text_of("arm-0")};
    assert_int_equal(
        td_server_core_attach(core, 0, &attach, &client, &dropped, NULL),
        TD_OK);
    td_server_core_set_state(core, TD_WIRE_DEGRADED);
    td_wire_status status;
    td_server_core_status(core, &status);
    assert_describes_the_model(&status);
    assert_lists_the_features(&status);

    TD_AUTO(td_wire_encoder) *encoder = NULL;
    TD_AUTO(td_wire_decoder) *decoder = NULL;
    assert_int_equal(td_wire_encoder_new(&encoder), TD_OK);
    assert_int_equal(td_wire_decoder_new(&decoder), TD_OK);
    td_errinfo info = {""};
    if (td_wire_status_encode(encoder, &status, &info) != TD_OK)
        fail_msg("%s", info.text);
    size_t size = td_wire_encoder_size(encoder);
    void *bytes = malloc(size);
    assert_non_null(bytes);
    td_wire_encoder_join(encoder, bytes);
    td_wire_status decoded;
    if (td_wire_status_decode(decoder, bytes, size, &decoded, &info) != TD_OK)
        fail_msg("%s", info.text);
    assert_describes_the_model(&decoded);
    assert_lists_the_features(&decoded);
    free(bytes);
}

static void the_largest_model_still_has_a_status(void **state)
{
    (void)state;
    td_engine_spec spec;
    model_describe(&spec);
    char names[TD_WIRE_MAX_CHANNELS][8];
    for (uint32_t i = 0; i < TD_WIRE_MAX_CHANNELS; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%u", i);
        spec.actions[i].name = spec.states[i].name = td_wire_text_of(names[i]);
        spec.actions[i].kind = spec.states[i].kind = TD_WIRE_LINEAR;
    }
    for (uint32_t i = 0; i < TD_WIRE_MAX_IMAGES; i++)
        spec.cameras[i] = (td_wire_camera){td_wire_text_of(names[i]), 2, 3};
    spec.action_count = spec.state_count = TD_WIRE_MAX_CHANNELS;
    spec.camera_count = TD_WIRE_MAX_IMAGES;
    const td_server_settings settings = server_settings();
    TD_AUTO(td_server_dispatch) *dispatch = dispatch_new(&spec);
    TD_AUTO(td_server_core) *core = server_new(&settings, &spec, dispatch);
    td_wire_status status;
    td_server_core_status(core, &status);
    assert_int_equal(status.feature_count, TD_WIRE_MAX_IMAGES + 1);
    TD_AUTO(td_wire_encoder) *encoder = NULL;
    assert_int_equal(td_wire_encoder_new(&encoder), TD_OK);
    td_errinfo info = {""};
    if (td_wire_status_encode(encoder, &status, &info) != TD_OK)
        fail_msg("%s", info.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_observation_that_does_not_fit_is_told_why),
        cmocka_unit_test(an_observation_that_fits_passes),
        cmocka_unit_test(a_model_that_can_do_rtc_takes_it),
        cmocka_unit_test(status_tells_everything_over_the_wire),
        cmocka_unit_test(the_largest_model_still_has_a_status),
    };
    return cmocka_run_group_tests_name("server/core_model", tests, NULL, NULL);
}
