// SPDX-License-Identifier: Apache-2.0
// An engine that is a function of the program's own: what it is shown, and what
// becomes of what it gives.
//
// The conformance suite with a function in place of a model; then the whole of
// an observation in its view, pictures decoded or in pieces; members that fail
// alone or all with the function's reason; results that go with the answer or
// are refused.
#include "engine/callback/callback.h"

#include "base/sync/event.h"
#include "engine/conformance.h"
#include "engine/results.h"
#include "media/jpeg.h"

#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 5
#define CHANNELS 2
#define MOST 4

enum { HEIGHT = 48, WIDTH = 64, PIXELS = HEIGHT * WIDTH * 3 };

// What the function does for the first value of a state.
enum {
    FAILS = 1001,
    FAILS_ALL,
    NO_ROWS,
    MANY_ROWS,
    NOT_FINITE,
    BAD_TEXT,
    WILD,
    GIVES,
    GIVES_FEW,
    GIVES_DEEP,
    GIVES_WILD,
    GIVES_NAMELESS,
};

static const td_engine_spec spec = {
    .cameras = {{{"front", 5}, HEIGHT, WIDTH}},
    .camera_count = 1,
    .states = {{{"x", 1}, TD_WIRE_LINEAR}, {{"y", 1}, TD_WIRE_LINEAR}},
    .state_count = 2,
    .actions = {{{"a", 1}, TD_WIRE_LINEAR}, {{"b", 1}, TD_WIRE_HOLD}},
    .action_count = CHANNELS,
    .chunk_rows = ROWS,
    .max_batch = MOST,
};

// What the function saw of its last request, copied.
static struct seen {
    uint32_t count;
    char client[64], task[64], metadata[64], tensor[64], extra[64];
    uint64_t cursor, seed;
    uint8_t pixel, extra_last;
    bool rgb_is_as_it_came, extra_has_rgb;
    uint32_t images;
} seen;

static void copy(char to[64], td_infer_text text)
{
    (void)snprintf(to, 64, "%.*s", (int)text.size, text.data);
}

static void look_at(const td_infer_request *request, uint32_t count)
{
    seen = (struct seen){.count = count,
                         .cursor = request->cursor,
                         .seed = request->seed,
                         .pixel = request->images[0].rgb[PIXELS - 1],
                         .images = request->image_count};
    const td_infer_image *first = &request->images[0];
    seen.rgb_is_as_it_came = (const void *)first->rgb == first->data;
    copy(seen.client, request->client);
    copy(seen.task, request->task);
    if (request->metadata_count) copy(seen.metadata, request->metadata[0].text);
    if (request->tensor_count) copy(seen.tensor, request->tensors[0].name);
    if (request->image_count > 1) {
        copy(seen.extra, request->images[1].name);
        seen.extra_has_rgb = request->images[1].rgb;
        const uint8_t *extra = request->images[1].data;
        seen.extra_last = extra[request->images[1].bytes - 1];
    }
}

static const int16_t forces[] = {-3, 4};

static td_infer_text text_of(const char *text)
{
    return (td_infer_text){text, (uint32_t)strlen(text)};
}

static td_err give_results(td_infer_request *request, int wish,
                           td_errinfo *info)
{
    td_infer_tensor result = {.name = text_of("grip"),
                              .dtype = TD_INFER_I16,
                              .rank = 1,
                              .shape = {2},
                              .data = forces,
                              .bytes = sizeof forces,
                              .age_us = -1};
    if (wish == GIVES_FEW) result.bytes = 2;
    if (wish == GIVES_DEEP) result.rank = TD_INFER_MAX_RANK + 1;
    if (wish == GIVES_WILD) result.dtype = (td_infer_dtype)4711;
    if (wish == GIVES_NAMELESS) result.name.size = 0;
    TD_TRY(td_infer_result(request, &result, info));
    return td_infer_set_text(request, text_of("holding"), info);
}

static td_err answer(td_infer_request *request, td_errinfo *info)
{
    int wish = (int)request->state[0];
    for (uint32_t i = 0; i < ROWS * CHANNELS; i++)
        request->actions[i] = request->state[i % 2] + (float)request->cursor;
    if (wish == FAILS)
        request->status = td_fail(request->info, TD_ERR_IO, "no such thing");
    if (wish == BAD_TEXT)
        request->status = td_fail(request->info, TD_ERR_IO,
                                  "a\n\xff"
                                  "b");
    if (wish == WILD) request->status = (td_err)4711;
    if (wish >= GIVES) return give_results(request, wish, info);
    if (wish == NO_ROWS) request->rows = 0;
    if (wish == MANY_ROWS) request->rows = ROWS + 1;
    if (wish == NOT_FINITE) request->actions[3] = NAN;
    if (wish == FAILS_ALL)
        return td_fail(info, TD_ERR_BUSY, "the model is out to lunch");
    return TD_OK;
}

static td_err infer(void *user, td_infer_request *const *requests,
                    uint32_t count, td_errinfo *info)
{
    *(uint32_t *)user += 1;
    look_at(requests[count - 1], count);
    for (uint32_t i = 0; i < count; i++)
        TD_TRY(answer(requests[i], info));
    return TD_OK;
}

static uint32_t calls;
static const td_engine_callback_settings settings = {
    .spec = &spec, .infer = infer, .user = &calls};
static const td_engine_config config = {.model_id = "mine",
                                        .model_version = "v1",
                                        .step_period_us = 33333,
                                        .settings = &settings};

static uint8_t raw[PIXELS];
static td_engine *engine;
static td_event done_event;

typedef struct request {
    float state[2];
    float actions[ROWS * CHANNELS];
    td_errinfo info;
    td_wire_obs obs;
    td_engine_item item;
} request;

static void make_request(request *made, float first)
{
    *made = (request){.state = {first, 2}};
    made->obs = (td_wire_obs){
        .client = td_wire_text_of("robot"),
        .task = td_wire_text_of("wave"),
        .cursor = 10,
        .state = {.dtype = TD_WIRE_F32,
                  .rank = 1,
                  .shape = {2},
                  .data = made->state,
                  .size = sizeof made->state},
        .images = {{.name = td_wire_text_of("front"),
                    .codec = TD_WIRE_RAW,
                    .shape = {HEIGHT, WIDTH, 3},
                    .data = raw,
                    .size = sizeof raw}},
        .image_count = 1,
    };
    made->item = (td_engine_item){.obs = &made->obs,
                                  .seed = 77,
                                  .actions = made->actions,
                                  .info = &made->info};
}

static void on_done(void *user, td_engine_batch *batch)
{
    (void)user;
    (void)batch;
    td_event_signal(&done_event);
}

static void run(request *requests, uint32_t count)
{
    td_engine_batch batch = {.count = count};
    for (uint32_t i = 0; i < count; i++)
        batch.items[i] = &requests[i].item;
    assert_int_equal(engine->ops->submit(engine, &batch, on_done, NULL), TD_OK);
    (void)td_event_wait_until(&done_event, INT64_MAX);
}

static int setup(void **state)
{
    (void)state;
    calls = 0;
    td_event_init(&done_event);
    return td_engine_open("callback", &config, &engine, NULL);
}

static int teardown(void **state)
{
    (void)state;
    td_engine_close(engine);
    return 0;
}

static void the_function_sees_the_whole_observation(void **state)
{
    (void)state;
    request one;
    make_request(&one, 1);
    raw[PIXELS - 1] = 99;
    one.obs.metadata_count = 1;
    one.obs.metadata[0] =
        (td_wire_pair){td_wire_text_of("operator"), td_wire_text_of("Ada")};
    one.obs.tensor_count = 1;
    one.obs.tensors[0].name = td_wire_text_of("force");
    one.obs.image_count = 2;
    one.obs.images[1] = one.obs.images[0];
    one.obs.images[1].name = td_wire_text_of("stray");
    run(&one, 1);
    assert_int_equal(one.item.status, TD_OK);
    assert_int_equal(one.item.rows, ROWS);
    assert_true(one.actions[1] == 12 && one.actions[2] == 11);
    assert_string_equal(seen.client, "robot");
    assert_string_equal(seen.task, "wave");
    assert_string_equal(seen.metadata, "Ada");
    assert_string_equal(seen.tensor, "force");
    assert_int_equal(seen.cursor, 10);
    assert_int_equal(seen.seed, 77);
    assert_int_equal(seen.pixel, 99);
    assert_true(seen.rgb_is_as_it_came); // a raw picture is not copied
    assert_int_equal(seen.images, 2);
    assert_string_equal(seen.extra, "stray");
    assert_false(seen.extra_has_rgb);
}

static void a_state_that_is_not_aligned_is_read_all_the_same(void **state)
{
    (void)state;
    request one;
    make_request(&one, 1);
    char bytes[1 + sizeof one.state];
    memcpy(bytes + 1, one.state, sizeof one.state);
    one.obs.state.data = bytes + 1;
    run(&one, 1);
    assert_int_equal(one.item.status, TD_OK);
    assert_true(one.actions[0] == 11);
}

static void a_jpeg_is_decoded(void **state)
{
    (void)state;
    td_media_jpeg_encoder *encoder = NULL;
    static uint8_t white[PIXELS];
    td_slice jpeg;
    memset(white, 255, sizeof white);
    assert_int_equal(
        td_media_jpeg_encoder_new(90, TD_MEDIA_CHROMA_420, &encoder), TD_OK);
    assert_int_equal(
        td_media_jpeg_encode(encoder, white, HEIGHT, WIDTH, &jpeg, NULL),
        TD_OK);
    request one;
    make_request(&one, 1);
    one.obs.images[0].codec = TD_WIRE_JPEG;
    one.obs.images[0].data = jpeg.data;
    one.obs.images[0].size = jpeg.size;
    run(&one, 1);
    td_media_jpeg_encoder_free(encoder);
    assert_int_equal(one.item.status, TD_OK);
    assert_int_equal(seen.pixel, 255);
    assert_false(seen.rgb_is_as_it_came);
}

// Two of them, each cut in the middle.
static void pictures_in_pieces_are_seen_whole(void **state)
{
    (void)state;
    static uint8_t half[PIXELS - 1000], rest[1000];
    const td_slice pieces[] = {{half, sizeof half}, {rest, sizeof rest}};
    rest[sizeof rest - 1] = 98;
    request one;
    make_request(&one, 1);
    one.obs.images[0].data = NULL;
    one.obs.images[0].pieces = pieces;
    one.obs.images[1] = one.obs.images[0];
    one.obs.images[1].name = td_wire_text_of("stray");
    one.obs.image_count = 2;
    for (int again = 0; again < 2; again++) {
        run(&one, 1);
        assert_int_equal(one.item.status, TD_OK);
        assert_int_equal(seen.pixel, 98);
        assert_int_equal(seen.extra_last, 98);
    }
}

static void a_member_that_fails_says_why_and_fails_alone(void **state)
{
    (void)state;
    static const struct {
        int wish;
        td_err status;
        const char *why;
    } cases[] = {
        {FAILS, TD_ERR_IO, "no such thing"},
        {BAD_TEXT, TD_ERR_IO, "a ?b"},
        {WILD, TD_ERR_INTERNAL, "the model's function could not answer this"},
        {NO_ROWS, TD_ERR_FORMAT,
         "the model's function gave 0 rows, a chunk has 1 to 5"},
        {MANY_ROWS, TD_ERR_FORMAT,
         "the model's function gave 6 rows, a chunk has 1 to 5"},
        {NOT_FINITE, TD_ERR_FORMAT,
         "the model's function gave row 1, not finite in channel 1"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        request two[2];
        make_request(&two[0], (float)cases[i].wish);
        make_request(&two[1], 1);
        run(two, 2);
        assert_int_equal(two[0].item.status, cases[i].status);
        assert_string_equal(two[0].info.text, cases[i].why);
        assert_int_equal(two[1].item.status, TD_OK);
    }
}

static void results_and_a_text_go_with_the_answer(void **state)
{
    (void)state;
    td_engine_results results = {.count = 0};
    request one;
    make_request(&one, GIVES);
    one.item.results = &results;
    run(&one, 1);
    assert_int_equal(one.item.status, TD_OK);
    assert_int_equal(results.count, 1);
    assert_true(td_wire_text_is(results.named[0].name, "grip"));
    assert_int_equal(results.named[0].tensor.dtype, TD_WIRE_I16);
    assert_int_equal(results.named[0].tensor.shape[0], 2);
    assert_memory_equal(results.named[0].tensor.data, forces, sizeof forces);
    assert_true(td_wire_text_is(results.text, "holding"));
    td_engine_results_done(&results);
    one.item.results = NULL; // nobody wants them
    run(&one, 1);
    assert_int_equal(one.item.status, TD_OK);
}

static void results_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    td_engine_results results = {.count = 0};
    static const struct {
        const char *name;
        int wish;
        td_err status;
    } cases[] = {
        {"a shape of other bytes", GIVES_FEW, TD_ERR_FORMAT},
        {"too many dimensions", GIVES_DEEP, TD_ERR_FORMAT},
        {"no such dtype", GIVES_WILD, TD_ERR_FORMAT},
        {"no name", GIVES_NAMELESS, TD_ERR_FORMAT},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        request one;
        make_request(&one, (float)cases[i].wish);
        one.item.results = &results;
        run(&one, 1);
        if (one.item.status != cases[i].status || !one.info.text[0])
            fail_msg("%s: %s: %s", cases[i].name, td_err_name(one.item.status),
                     one.info.text);
        td_engine_results_clear(&results);
    }
    td_engine_results_done(&results);
}

static void a_function_that_fails_fails_all_with_its_reason(void **state)
{
    (void)state;
    request two[2];
    make_request(&two[0], 1);
    make_request(&two[1], FAILS_ALL);
    run(two, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(two[i].item.status, TD_ERR_BUSY);
        assert_string_equal(two[i].info.text, "the model is out to lunch");
    }
}

static void a_damaged_picture_never_meets_the_function(void **state)
{
    (void)state;
    request two[2];
    make_request(&two[0], 1);
    make_request(&two[1], 1);
    two[0].obs.images[0].codec = TD_WIRE_JPEG;
    two[0].obs.images[0].size = 100;
    run(two, 2);
    assert_int_equal(two[0].item.status, TD_ERR_FORMAT);
    assert_int_equal(two[1].item.status, TD_OK);
    assert_int_equal(seen.count, 1);
    run(two, 1);
    assert_int_equal(calls, 1);
}

static _Atomic bool lets_go;
static _Atomic bool is_in;

static td_err hang(void *user, td_infer_request *const *given, uint32_t count,
                   td_errinfo *info)
{
    (void)user;
    (void)given;
    (void)count;
    atomic_store(&is_in, true);
    while (!atomic_load(&lets_go))
        sched_yield();
    return td_fail(info, TD_ERR_BUSY, "it was asleep");
}

static void a_function_that_hangs_is_broken_until_it_returns(void **state)
{
    (void)state;
    const td_engine_callback_settings sleepy = {
        .spec = &spec, .infer = hang, .answer_ns = 1000000};
    td_engine_config other = config;
    other.settings = &sleepy;
    td_engine *opened = NULL;
    assert_int_equal(td_engine_open("callback", &other, &opened, NULL), TD_OK);
    assert_int_equal(td_engine_health_of(opened), TD_ENGINE_READY);
    static request one;
    make_request(&one, 1);
    td_engine_batch only = {.items = {&one.item}, .count = 1};
    td_event_init(&done_event);
    assert_int_equal(opened->ops->submit(opened, &only, on_done, NULL), TD_OK);
    while (!atomic_load(&is_in) ||
           td_engine_health_of(opened) == TD_ENGINE_READY)
        sched_yield();
    assert_int_equal(td_engine_health_of(opened), TD_ENGINE_BROKEN);
    atomic_store(&lets_go, true);
    (void)td_event_wait_until(&done_event, INT64_MAX);
    assert_int_equal(td_engine_health_of(opened), TD_ENGINE_READY);
    assert_string_equal(one.info.text, "it was asleep");
    td_engine_close(opened);
}

static void an_engine_without_its_function_is_refused(void **state)
{
    (void)state;
    const td_engine_callback_settings none = {.spec = &spec};
    td_engine_config other = config;
    other.settings = &none;
    td_engine *opened = NULL;
    td_errinfo info = {.text = ""};
    assert_int_equal(td_engine_open("callback", &other, &opened, &info),
                     TD_ERR_INVALID);
    assert_string_equal(info.text, "model mine: there is no function for it");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_function_sees_the_whole_observation),
        TEST(a_state_that_is_not_aligned_is_read_all_the_same),
        TEST(a_jpeg_is_decoded),
        TEST(pictures_in_pieces_are_seen_whole),
        TEST(a_member_that_fails_says_why_and_fails_alone),
        TEST(results_and_a_text_go_with_the_answer),
        TEST(results_that_make_no_sense_are_refused),
        TEST(a_function_that_fails_fails_all_with_its_reason),
        TEST(a_damaged_picture_never_meets_the_function),
        cmocka_unit_test(a_function_that_hangs_is_broken_until_it_returns),
        cmocka_unit_test(an_engine_without_its_function_is_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + td_engine_conformance("callback", &config);
}
