// SPDX-License-Identifier: Apache-2.0
// A policy that denoises, served by the native engine: the conformance suite
// with its halves; what a robot may send, and what is refused by name; prefixes
// beyond the room for them; checkpoints and backends that cannot be served.
#include "engine/native/native.h"

#include "base/sync/event.h"
#include "engine/conformance.h"
#include "engine/native/golden.h"
#include "engine/native/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define JOINTS 6
#define ROWS 8
#define PIXELS (64 * 64 * 3)

static td_native_golden golden;
static td_engine_native_settings settings;
static td_engine_config config = {.model_id = "smolvla",
                                  .model_version = "v1",
                                  .device = "cpu",
                                  .step_period_us = 33333,
                                  .settings = &settings};

typedef struct request {
    float state[JOINTS], left[ROWS * JOINTS], actions[ROWS * JOINTS];
    td_wire_obs obs;
    td_errinfo why;
    td_engine_item item;
    td_engine_batch batch;
    td_event event;
} request;

static uint8_t pixels[PIXELS];

static int begin(void **state)
{
    (void)state;
    settings = (td_engine_native_settings){
        .max_batch = 2, .threads = 2, .prefix_bytes = 1};
    return 0;
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

static td_wire_tensor tensor_of(const float *data, uint32_t rows, uint32_t cols)
{
    td_wire_tensor tensor = {.dtype = TD_WIRE_F32,
                             .rank = rows ? 2 : 1,
                             .data = data,
                             .size = sizeof(float) * (rows ? rows : 1) * cols};
    tensor.shape[0] = rows ? rows : cols;
    tensor.shape[1] = rows ? cols : 0;
    return tensor;
}

static void make(request *r)
{
    static const struct {
        const char *name;
        uint32_t height;
    } cameras[] = {{"top", 36}, {"wrist", 64}};
    *r = (request){.obs = {.client = td_wire_text_of("arm")}};
    r->obs.state = tensor_of(r->state, 0, JOINTS);
    r->obs.task = td_wire_text_of("pick the red cube");
    r->obs.image_count = TD_COUNT_OF(cameras);
    for (size_t i = 0; i < TD_COUNT_OF(cameras); i++)
        r->obs.images[i] = (td_wire_image){
            .name = td_wire_text_of(cameras[i].name),
            .codec = TD_WIRE_RAW,
            .shape = {cameras[i].height, 64, 3},
            .data = pixels,
            .size = (size_t)cameras[i].height * 64 * 3,
        };
    r->item = (td_engine_item){
        .obs = &r->obs, .seed = 1, .actions = r->actions, .info = &r->why};
    r->batch = (td_engine_batch){.items = {&r->item}, .count = 1};
    td_event_init(&r->event);
}

static void on_done(void *user, td_engine_batch *batch)
{
    (void)batch;
    td_event_signal(user);
}

static td_err finish(request *r, td_err submitted)
{
    assert_int_equal(submitted, TD_OK);
    (void)td_event_wait_until(&r->event, INT64_MAX);
    return r->item.status;
}

static td_err ask(td_engine *engine, request *r)
{
    return finish(r,
                  engine->ops->submit(engine, &r->batch, on_done, &r->event));
}

static double apart(const request *a, const request *b)
{
    double off = 0;
    for (int i = 0; i < ROWS * JOINTS; i++)
        off = fmax(off, fabs((double)a->actions[i] - (double)b->actions[i]));
    return off;
}

static void it_says_what_it_can(void **state)
{
    (void)state;
    td_engine *engine = open_engine();
    const td_engine_spec *spec = engine->ops->spec(engine);
    assert_true(td_engine_splits(engine));
    assert_true(spec->rtc);
    assert_int_equal(spec->camera_count, 2);
    assert_int_equal(spec->chunk_rows, ROWS);
    td_engine_close(engine);
    settings.prefix_bytes = 0;
    engine = open_engine();
    assert_false(td_engine_splits(engine));
    td_engine_close(engine);
}

// Another seed is another chunk, the same seed the same.
static void chance_comes_from_the_seed_alone(void **state)
{
    (void)state;
    request one, again, other;
    td_engine *engine = open_engine();
    make(&one);
    make(&again);
    make(&other);
    other.item.seed = 2;
    assert_int_equal(ask(engine, &one), TD_OK);
    assert_int_equal(ask(engine, &other), TD_OK);
    assert_int_equal(ask(engine, &again), TD_OK);
    assert_memory_equal(one.actions, again.actions, sizeof one.actions);
    assert_true(apart(&one, &other) > 0.01);
    td_engine_close(engine);
}

static void a_task_may_be_anything_that_is_text(void **state)
{
    (void)state;
    static char longest[10000];
    static const struct {
        const char *text;
        uint32_t size;
        td_err err;
    } cases[] = {
        {"", 0, TD_OK},
        {longest, TD_WIRE_MAX_TEXT, TD_OK}, // cut at the right, as LeRobot does
        {longest, sizeof longest,
         sizeof longest > TD_WIRE_MAX_TEXT ? TD_ERR_LIMIT : TD_OK},
        {"\xff\xfe", 2, TD_ERR_INVALID},
        {"pick\0it", 7, TD_OK},
    };
    td_engine *engine = open_engine();
    memset(longest, 'a', sizeof longest);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        request r;
        make(&r);
        r.obs.task = (td_wire_text){cases[i].text, cases[i].size};
        assert_int_equal(ask(engine, &r), cases[i].err);
    }
    td_engine_close(engine);
}

static void what_does_not_fit_is_refused_by_name(void **state)
{
    (void)state;
    request r;
    td_engine *engine = open_engine();
    make(&r);
    r.obs.state = tensor_of(r.state, 0, JOINTS - 1);
    assert_int_equal(ask(engine, &r), TD_ERR_MISMATCH);
    assert_non_null(strstr(r.why.text, "state: 20 bytes"));
    make(&r);
    r.state[2] = NAN;
    assert_int_equal(ask(engine, &r), TD_ERR_INVALID);
    make(&r);
    r.obs.image_count = 1;
    assert_int_equal(ask(engine, &r), TD_ERR_MISMATCH);
    assert_string_equal(r.why.text, "images.wrist: is missing");
    make(&r);
    assert_int_equal(ask(engine, &r), TD_OK);
    td_engine_close(engine);
}

static void promise(request *r, uint32_t rows, uint32_t delay)
{
    make(r);
    for (int i = 0; i < ROWS * JOINTS; i++)
        r->left[i] = 0.3f;
    r->obs.has_rtc = true;
    r->obs.rtc_delay_steps = delay;
    r->obs.rtc_prefix = tensor_of(r->left, rows, JOINTS);
}

// How far row `row` is from what was promised.
static double off_promise(const request *r, int row)
{
    double off = 0;
    for (int i = 0; i < JOINTS; i++)
        off = fmax(off, fabs((double)r->actions[row * JOINTS + i] - 0.3));
    return off;
}

static void promised_rows_are_kept_to(void **state)
{
    (void)state;
    request free_one, guided, none;
    td_engine *engine = open_engine();
    make(&free_one);
    promise(&guided, 6, 4);
    promise(&none, 6, 0);
    none.obs.rtc_prefix = tensor_of(none.left, 1, JOINTS);
    assert_int_equal(ask(engine, &free_one), TD_OK);
    assert_int_equal(ask(engine, &guided), TD_OK);
    assert_int_equal(ask(engine, &none), TD_OK);
    for (int row = 0; row < 4; row++)
        assert_true(off_promise(&guided, row) <
                    0.5 * off_promise(&free_one, row));
    assert_true(apart(&free_one, &none) < apart(&free_one, &guided));
    make(&none);
    assert_int_equal(ask(engine, &none), TD_OK); // nothing is left of it
    assert_memory_equal(free_one.actions, none.actions, sizeof none.actions);
    td_engine_close(engine);
}

static void promises_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    request r;
    td_engine *engine = open_engine();
    promise(&r, 6, 1);
    r.obs.rtc_prefix.shape[1] = JOINTS - 1;
    assert_int_equal(ask(engine, &r), TD_ERR_MISMATCH);
    assert_non_null(strstr(r.why.text, "rtc_prefix"));
    promise(&r, 6, 1);
    r.obs.rtc_prefix.dtype = TD_WIRE_F64;
    assert_int_equal(ask(engine, &r), TD_ERR_MISMATCH);
    promise(&r, 6, 1);
    r.left[7] = INFINITY;
    assert_int_equal(ask(engine, &r), TD_ERR_INVALID);
    td_engine_close(engine);
}

static td_err ask_prefix(td_engine *engine, request *r)
{
    return finish(r,
                  engine->ops->prefix(engine, &r->batch, on_done, &r->event));
}

static void prefixes_beyond_the_room_are_refused_and_others_stay(void **state)
{
    (void)state;
    static request r[16];
    request whole, late;
    size_t made = 0;
    td_engine *engine = open_engine();
    while (made < TD_COUNT_OF(r)) {
        make(&r[made]);
        if (ask_prefix(engine, &r[made]) != TD_OK) break;
        assert_true(r[made++].item.prefix_bytes > 1000);
    }
    assert_int_equal(made, 4); // twice a batch, and none for one byte
    assert_int_equal(r[made].item.status, TD_ERR_NOMEM);
    assert_null(r[made].item.prefix);
    assert_non_null(strstr(r[made].why.text, "prefixes.mb"));
    engine->ops->drop(engine, r[0].item.prefix);
    make(&late);
    assert_int_equal(ask_prefix(engine, &late), TD_OK);
    make(&whole);
    assert_int_equal(ask(engine, &whole), TD_OK);
    td_event_init(&r[3].event);
    assert_int_equal(finish(&r[3], engine->ops->decode(engine, &r[3].batch,
                                                       on_done, &r[3].event)),
                     TD_OK);
    assert_memory_equal(whole.actions, r[3].actions, sizeof whole.actions);
    td_engine_close(engine);
}

// The first `from` in config.json becomes `to`, of the same length.
static void edit(const char *from, const char *to)
{
    char path[512], text[8192] = "";
    (void)snprintf(path, sizeof path, "%s/config.json", golden.folder);
    FILE *file = fopen(path, "r+e");
    if (!file) abort();
    size_t size = fread(text, 1, sizeof text - 1, file);
    char *at = strstr(text, from);
    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void options_that_nobody_computes_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *says;
        td_err err;
    } cases[] = {
        {"special_tokens\": false", "special_tokens\": true ",
         "add_image_special_tokens", TD_ERR_UNSUPPORTED},
        {"use_cache\": true,", "use_cache\":false,", "use_cache",
         TD_ERR_UNSUPPORTED},
        {"num_expert_layers\": -1", "num_expert_layers\":  3",
         "num_expert_layers", TD_ERR_UNSUPPORTED},
        {"num_steps\": 4", "num_steps\": 0", "num_steps", TD_ERR_LIMIT},
        {"min_period\": 0.004", "min_period\": 0.000", "min_period",
         TD_ERR_FORMAT},
        {"max_action_dim\": 32", "max_action_dim\":  5", "6 actions",
         TD_ERR_MISMATCH},
        {"max_action_dim\": 32", "max_action_dim\": 33", "action_in_proj",
         TD_ERR_MISMATCH},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_engine *engine = NULL;
        td_errinfo info = {.text = ""};
        edit(cases[i].from, cases[i].to);
        td_err err = td_engine_open("native", &config, &engine, &info);
        if (err != cases[i].err || !strstr(info.text, cases[i].says))
            fail_msg("%s: %s %s", cases[i].to, td_err_name(err), info.text);
        edit(cases[i].to, cases[i].from);
    }
}

static void a_backbone_that_nobody_knows_is_named(void **state)
{
    (void)state;
    char path[512], away[512];
    td_engine *engine = NULL;
    td_errinfo info = {.text = ""};
    (void)snprintf(path, sizeof path, "%s/vlm_config.json", golden.folder);
    (void)snprintf(away, sizeof away, "%s/away.json", golden.folder);
    assert_int_equal(rename(path, away), 0);
    edit("HuggingFaceTB/Smol", "HuggingFaceTB/Smil");
    assert_int_equal(td_engine_open("native", &config, &engine, &info),
                     TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, "vlm_config.json"));
    edit("HuggingFaceTB/Smil", "HuggingFaceTB/Smol");
    assert_int_equal(rename(away, path), 0);
    td_engine_close(open_engine());
}

static void a_backend_that_lacks_operations_is_named(void **state)
{
    (void)state;
    td_errinfo info = {.text = ""};
    td_native_checkpoint *checkpoint = NULL;
    td_native_pipeline *pipeline = NULL;
    td_native_model *model = NULL;
    td_ops lacking = td_ops_cpu;
    lacking.name = "slate";
    lacking.embed = NULL;
    assert_int_equal(
        td_native_checkpoint_open(golden.folder, &checkpoint, &info), TD_OK);
    assert_int_equal(td_native_pipeline_new(checkpoint, NULL, &pipeline, &info),
                     TD_OK);
    const td_native_model_config lacks = {
        .checkpoint = checkpoint,
        .pipeline = pipeline,
        .ops = &lacking,
        .backend = {.threads = 1},
        .max_batch = 1,
    };
    assert_int_equal(td_native_model_open(&lacks, &model, &info),
                     TD_ERR_UNSUPPORTED);
    assert_non_null(strstr(info.text, "type smolvla do not run on slate yet"));
    td_native_pipeline_free(pipeline);
    td_native_checkpoint_close(checkpoint);
}

int main(void)
{
    td_native_golden_make("flows", "smolvla-two-cameras", &golden);
    config.pretrained_path = golden.folder;
#define TEST(test) cmocka_unit_test_setup(test, begin)
    const struct CMUnitTest tests[] = {
        TEST(it_says_what_it_can),
        TEST(chance_comes_from_the_seed_alone),
        TEST(a_task_may_be_anything_that_is_text),
        TEST(what_does_not_fit_is_refused_by_name),
        TEST(promised_rows_are_kept_to),
        TEST(promises_that_do_not_fit_are_refused),
        TEST(prefixes_beyond_the_room_are_refused_and_others_stay),
        TEST(options_that_nobody_computes_are_refused_by_name),
        TEST(a_backbone_that_nobody_knows_is_named),
        TEST(a_backend_that_lacks_operations_is_named),
    };
    int failed = cmocka_run_group_tests_name("served", tests, NULL, NULL);
    (void)begin(NULL);
    failed += td_engine_conformance("native", &config);
    td_native_golden_remove(&golden);
    return failed;
}
