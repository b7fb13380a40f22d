// SPDX-License-Identifier: Apache-2.0
// What every engine must do, whichever it is: one suite that each engine's own
// test runs with its name and settings.
//
// Each test opens an engine and makes observations of its spec, with a
// JPEG for every camera. It checks the contract of tendon/engine.h: `done`
// comes once and on another thread, equal inputs give equal answers, alone and
// in any batch, a bad member spoils no other, `done` may submit as many batches
// as the engine takes and the next is BUSY, close() finishes what was
// submitted; and of engines that work in two halves, that these give what the
// whole gives.
//
// Asserts are on the test's own thread; `done` only counts and signals.
#include "engine/conformance.h"

#include "base/sync/event.h"
#include "engine/results.h"
#include "media/jpeg.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef td_err (*submit_fn)(td_engine *engine, td_engine_batch *batch,
                            td_engine_done done, void *user);

// One observation that fits the engine, and room for its answer.
typedef struct request {
    td_wire_obs obs;
    float state[TD_WIRE_MAX_CHANNELS];
    float environment[TD_WIRE_MAX_CHANNELS];
    td_engine_results results;
    td_engine_item item;
} request;

typedef struct picture {
    void *jpeg;
    size_t size;
} picture;

typedef struct outcome {
    td_event event;
    _Atomic int calls;
    pthread_t thread;
    bool again;     // submit until it is busy from inside `done`
    uint32_t taken; // how many it took then
    td_err last;    // and what it said to the next
} outcome;

static const char *engine_name;
static const td_engine_config *engine_config;
static td_engine *engine;
static const td_engine_spec *spec;
static picture pictures[TD_WIRE_MAX_IMAGES];
static request requests[TD_ENGINE_MAX_BATCH];
static td_engine_batch batch, next[TD_ENGINE_MAX_BATCH - 1];
static outcome out;

static picture make_picture(uint32_t height, uint32_t width)
{
    td_media_jpeg_encoder *encoder = NULL;
    td_slice jpeg = {0};
    uint8_t *rgb = calloc((size_t)height * width, 3);
    assert_non_null(rgb);
    assert_int_equal(
        td_media_jpeg_encoder_new(80, TD_MEDIA_CHROMA_420, &encoder), TD_OK);
    assert_int_equal(
        td_media_jpeg_encode(encoder, rgb, height, width, &jpeg, NULL), TD_OK);
    void *copy = malloc(jpeg.size);
    assert_non_null(copy);
    memcpy(copy, jpeg.data, jpeg.size);
    td_media_jpeg_encoder_free(encoder);
    free(rgb);
    return (picture){copy, jpeg.size};
}

static size_t chunk_bytes(void)
{
    return (size_t)spec->chunk_rows * spec->action_count * sizeof(float);
}

static td_wire_tensor tensor_of(const float *data, uint32_t count)
{
    return (td_wire_tensor){.dtype = TD_WIRE_F32,
                            .rank = 1,
                            .shape = {count},
                            .data = data,
                            .size = count * sizeof(float)};
}

static void make_request(request *made, uint32_t index)
{
    *made = (request){0};
    for (uint32_t i = 0; i < spec->state_count; i++)
        made->state[i] = 0.1f * (float)i + 0.01f * (float)index;
    td_wire_obs *obs = &made->obs;
    obs->client = td_wire_text_of("robot");
    obs->ident.seq = index;
    obs->cursor = UINT64_C(10) * index;
    obs->state = tensor_of(made->state, spec->state_count);
    if (spec->environment_count > 0)
        obs->tensors[obs->tensor_count++] = (td_wire_named){
            .name = td_wire_text_of("environment_state"),
            .tensor = tensor_of(made->environment, spec->environment_count)};
    obs->image_count = spec->camera_count;
    for (uint32_t i = 0; i < spec->camera_count; i++)
        obs->images[i] = (td_wire_image){.name = spec->cameras[i].name,
                                         .codec = TD_WIRE_JPEG,
                                         .data = pictures[i].jpeg,
                                         .size = pictures[i].size};
    made->item = (td_engine_item){.obs = obs,
                                  .seed = td_engine_seed(obs->client, 0, index),
                                  .actions = calloc(1, chunk_bytes()),
                                  .status = TD_ERR_INTERNAL,
                                  .results = &made->results};
    assert_non_null(made->item.actions);
}

static int setup(void **state)
{
    (void)state;
    td_errinfo info = {""};
    td_err err = td_engine_open(engine_name, engine_config, &engine, &info);
    if (err != TD_OK) {
        print_error("%s: %s\n", td_err_name(err), info.text);
        return -1;
    }
    spec = engine->ops->spec(engine);
    for (uint32_t i = 0; i < spec->camera_count; i++)
        pictures[i] =
            make_picture(spec->cameras[i].height, spec->cameras[i].width);
    for (uint32_t i = 0; i < TD_ENGINE_MAX_BATCH; i++)
        make_request(&requests[i], i);
    out = (outcome){0};
    td_event_init(&out.event);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (engine) td_engine_close(engine);
    for (uint32_t i = 0; i < TD_ENGINE_MAX_BATCH; i++) {
        free(requests[i].item.actions);
        td_engine_results_done(&requests[i].results);
    }
    for (uint32_t i = 0; i < TD_WIRE_MAX_IMAGES; i++) {
        free(pictures[i].jpeg);
        pictures[i] = (picture){0};
    }
    return 0;
}

static void on_done(void *user, td_engine_batch *given);

static void submit_until_busy(outcome *self)
{
    do
        self->last =
            engine->ops->submit(engine, &next[self->taken], on_done, self);
    while (self->last == TD_OK && ++self->taken < TD_COUNT_OF(next));
}

static void on_done(void *user, td_engine_batch *given)
{
    outcome *self = user;
    (void)given;
    self->thread = pthread_self();
    if (self->again) {
        self->again = false;
        submit_until_busy(self);
    }
    self->calls++;
    td_event_signal(&self->event);
}

static void fill(td_engine_batch *given, uint32_t first, uint32_t count)
{
    *given = (td_engine_batch){.count = count};
    for (uint32_t i = 0; i < count && i < TD_ENGINE_MAX_BATCH; i++) {
        given->items[i] = &requests[first + i].item;
        td_engine_results_clear(&requests[first + i].results);
    }
}

// Runs requests [first, first + count) as one batch.
static void run(submit_fn submit, uint32_t first, uint32_t count)
{
    fill(&batch, first, count);
    assert_int_equal(submit(engine, &batch, on_done, &out), TD_OK);
    td_event_wait_until(&out.event, INT64_MAX);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(batch.items[i]->status, TD_OK);
}

static float *copy_answer(uint32_t index)
{
    float *copy = malloc(chunk_bytes());
    assert_non_null(copy);
    memcpy(copy, requests[index].item.actions, chunk_bytes());
    memset(requests[index].item.actions, 0, chunk_bytes());
    return copy;
}

static void assert_answer(uint32_t index, const float *want, float tolerance)
{
    const float *got = requests[index].item.actions;
    for (size_t i = 0; i < chunk_bytes() / sizeof(float); i++)
        assert_true(fabsf(got[i] - want[i]) <= tolerance);
}

// Takes what else the request was answered with, to compare it.
static td_engine_results take_results(uint32_t index)
{
    td_engine_results taken = requests[index].results;
    requests[index].results = (td_engine_results){0};
    return taken;
}

static void assert_text(td_wire_text got, td_wire_text want)
{
    assert_int_equal(got.size, want.size);
    if (want.size > 0) assert_memory_equal(got.data, want.data, want.size);
}

static void assert_results(uint32_t index, const td_engine_results *want)
{
    const td_engine_results *got = &requests[index].results;
    assert_int_equal(got->count, want->count);
    assert_text(got->text, want->text);
    for (uint32_t i = 0; i < want->count; i++) {
        const td_wire_tensor *a = &got->named[i].tensor;
        const td_wire_tensor *b = &want->named[i].tensor;
        assert_text(got->named[i].name, want->named[i].name);
        assert_int_equal(a->dtype, b->dtype);
        assert_int_equal(a->rank, b->rank);
        assert_memory_equal(a->shape, b->shape, sizeof a->shape);
        assert_int_equal(a->size, b->size);
        if (b->size > 0) assert_memory_equal(a->data, b->data, b->size);
    }
}

static void the_spec_says_what_it_was_opened_with(void **state)
{
    (void)state;
    assert_string_equal(engine->ops->name, engine_name);
    assert_string_equal(spec->model_id, engine_config->model_id);
    assert_string_equal(spec->model_version, engine_config->model_version);
    assert_int_equal(spec->step_period_us, engine_config->step_period_us);
    assert_true(spec->action_count >= 1 && spec->chunk_rows >= 1);
    assert_true(spec->max_batch >= 2 && spec->max_batch <= TD_ENGINE_MAX_BATCH);
}

static void done_comes_once_on_another_thread(void **state)
{
    (void)state;
    run(engine->ops->submit, 0, 1);
    assert_false(pthread_equal(out.thread, pthread_self()));
    assert_true(batch.service_ns >= 0);
    td_engine_close(engine);
    engine = NULL;
    assert_int_equal(out.calls, 1);
}

static void an_answer_has_finite_rows(void **state)
{
    (void)state;
    run(engine->ops->submit, 1, 1);
    const td_engine_item *item = &requests[1].item;
    assert_true(item->rows >= 1 && item->rows <= spec->chunk_rows);
    for (size_t i = 0; i < (size_t)item->rows * spec->action_count; i++)
        assert_true(isfinite(item->actions[i]));
}

static void a_batch_of_a_wrong_size_is_refused(void **state)
{
    (void)state;
    fill(&batch, 0, 0);
    assert_int_equal(engine->ops->submit(engine, &batch, on_done, &out),
                     TD_ERR_INVALID);
    fill(&batch, 0, spec->max_batch + 1);
    assert_int_equal(engine->ops->submit(engine, &batch, on_done, &out),
                     TD_ERR_INVALID);
    td_engine_close(engine);
    engine = NULL;
    assert_int_equal(out.calls, 0);
}

// Inside `done` the engine's thread is ours, so that nothing submitted there
// can have finished when the next one comes.
static void done_may_submit_as_many_as_it_takes(void **state)
{
    (void)state;
    if (spec->parallel) skip(); // it can: others of its threads go on
    uint32_t most = spec->most_inflight ? spec->most_inflight : 1;
    for (uint32_t i = 0; i < TD_COUNT_OF(next); i++)
        fill(&next[i], 1 + i, 1);
    out.again = true;
    run(engine->ops->submit, 0, 1);
    while (out.calls < 1 + (int)most)
        td_event_wait_until(&out.event, INT64_MAX);
    assert_int_equal(out.taken, most);
    assert_int_equal(out.last, TD_ERR_BUSY);
    for (uint32_t i = 0; i < most; i++)
        assert_int_equal(next[i].items[0]->status, TD_OK);
}

static void closing_finishes_what_was_submitted(void **state)
{
    (void)state;
    fill(&batch, 0, 2);
    assert_int_equal(engine->ops->submit(engine, &batch, on_done, &out), TD_OK);
    td_engine_close(engine);
    engine = NULL;
    assert_int_equal(out.calls, 1);
    assert_int_equal(requests[0].item.status, TD_OK);
    assert_int_equal(requests[1].item.status, TD_OK);
}

static void equal_inputs_give_equal_answers(void **state)
{
    (void)state;
    run(engine->ops->submit, 3, 1);
    float *first = copy_answer(3);
    run(engine->ops->submit, 5, 1);
    run(engine->ops->submit, 3, 1);
    assert_answer(3, first, 0);
    free(first);
}

static void equal_inputs_give_equal_results(void **state)
{
    (void)state;
    run(engine->ops->submit, 3, 1);
    td_engine_results first = take_results(3);
    run(engine->ops->submit, 5, 1);
    run(engine->ops->submit, 3, 1);
    assert_results(3, &first);
    td_engine_results_done(&first);
}

static void results_that_nobody_wants_are_not_given(void **state)
{
    (void)state;
    requests[3].item.results = NULL;
    run(engine->ops->submit, 3, 1);
    assert_int_equal(requests[3].results.count, 0);
}

static void an_answer_does_not_depend_on_its_batch(void **state)
{
    (void)state;
    uint32_t count = spec->max_batch;
    run(engine->ops->submit, count - 1, 1);
    float *alone = copy_answer(count - 1);
    run(engine->ops->submit, 0, count);
    assert_answer(count - 1, alone, spec->tolerance);
    free(alone);
}

static void a_bad_member_spoils_no_other(void **state)
{
    (void)state;
    run(engine->ops->submit, 1, 1);
    float *alone = copy_answer(1);
    requests[0].obs.state.size -= sizeof(float);
    fill(&batch, 0, 2);
    assert_int_equal(engine->ops->submit(engine, &batch, on_done, &out), TD_OK);
    td_event_wait_until(&out.event, INT64_MAX);
    assert_int_not_equal(requests[0].item.status, TD_OK);
    assert_int_equal(requests[1].item.status, TD_OK);
    assert_answer(1, alone, spec->tolerance);
    free(alone);
}

static void two_halves_give_what_the_whole_gives(void **state)
{
    (void)state;
    if (!td_engine_splits(engine)) skip();
    td_engine_item *item = &requests[2].item;
    run(engine->ops->submit, 2, 1);
    float *whole = copy_answer(2);
    td_engine_results more = take_results(2);
    run(engine->ops->prefix, 2, 1);
    assert_non_null(item->prefix);
    assert_true(item->prefix_bytes > 0);
    item->obs = NULL; // the prefix is all that a decode may need
    for (int i = 0; i < 2; i++) {
        memset(item->actions, 0, chunk_bytes());
        run(engine->ops->decode, 2, 1);
        assert_answer(2, whole, 0);
        assert_results(2, &more);
    }
    engine->ops->drop(engine, item->prefix);
    td_engine_results_done(&more);
    free(whole);
}

static void without_a_prefix_nothing_is_decoded(void **state)
{
    (void)state;
    if (!td_engine_splits(engine)) skip();
    run(engine->ops->prefix, 1, 1);
    fill(&batch, 0, 2);
    assert_int_equal(engine->ops->decode(engine, &batch, on_done, &out), TD_OK);
    td_event_wait_until(&out.event, INT64_MAX);
    assert_int_equal(requests[0].item.status, TD_ERR_INVALID);
    assert_int_equal(requests[1].item.status, TD_OK);
    engine->ops->drop(engine, requests[1].item.prefix);
}

static void a_prefix_outlives_other_batches(void **state)
{
    (void)state;
    if (!td_engine_splits(engine)) skip();
    run(engine->ops->submit, 0, 2);
    float *first = copy_answer(0);
    float *second = copy_answer(1);
    run(engine->ops->prefix, 0, 2);
    run(engine->ops->submit, 2, 2);
    run(engine->ops->decode, 0, 2);
    assert_answer(0, first, spec->tolerance);
    assert_answer(1, second, spec->tolerance);
    engine->ops->drop(engine, requests[0].item.prefix);
    engine->ops->drop(engine, requests[1].item.prefix);
    free(first);
    free(second);
}

static void the_estimate_never_falls_with_the_batch(void **state)
{
    (void)state;
    td_err (*estimate)(const td_engine *, uint32_t, int64_t *) =
        engine->ops->estimate;
    if (!estimate) {
        skip();
        return;
    }
    int64_t before_ns = 0, ns = 0;
    for (uint32_t n = 1; n <= spec->max_batch; n++) {
        assert_int_equal(estimate(engine, n, &ns), TD_OK);
        assert_true(ns >= before_ns);
        before_ns = ns;
    }
    assert_int_equal(estimate(engine, 0, &ns), TD_ERR_INVALID);
}

int td_engine_conformance(const char *name, const td_engine_config *config)
{
    engine_name = name;
    engine_config = config;
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_spec_says_what_it_was_opened_with),
        TEST(done_comes_once_on_another_thread),
        TEST(an_answer_has_finite_rows),
        TEST(a_batch_of_a_wrong_size_is_refused),
        TEST(done_may_submit_as_many_as_it_takes),
        TEST(closing_finishes_what_was_submitted),
        TEST(equal_inputs_give_equal_answers),
        TEST(equal_inputs_give_equal_results),
        TEST(results_that_nobody_wants_are_not_given),
        TEST(an_answer_does_not_depend_on_its_batch),
        TEST(a_bad_member_spoils_no_other),
        TEST(two_halves_give_what_the_whole_gives),
        TEST(without_a_prefix_nothing_is_decoded),
        TEST(a_prefix_outlives_other_batches),
        TEST(the_estimate_never_falls_with_the_batch),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
