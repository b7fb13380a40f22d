// SPDX-License-Identifier: Apache-2.0
#include "engine/probe.h"

#include "engine/synthetic/synthetic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// An engine that answers at once, and remembers what it was asked.
typedef struct scripted {
    td_engine engine;
    td_engine_spec spec;
    uint32_t sizes[4];
    uint32_t calls;
    td_err takes, answers;
    bool looked; // every picture was there in full
} scripted;

static const td_engine_spec *spec_of(const td_engine *engine)
{
    return &((const scripted *)engine)->spec;
}

static bool is_whole(const td_engine_spec *spec, const td_wire_obs *obs)
{
    bool whole = obs->image_count == spec->camera_count &&
                 obs->state.shape[0] == spec->state_count;
    for (uint32_t i = 0; i < obs->image_count; i++) {
        const uint8_t *pixels = obs->images[i].data;
        size_t size =
            (size_t)3 * spec->cameras[i].height * spec->cameras[i].width;
        whole = whole && obs->images[i].size == size && pixels[size - 1] == 0;
    }
    return whole;
}

static td_err submit(td_engine *engine, td_engine_batch *batch,
                     td_engine_done done, void *user)
{
    scripted *self = (scripted *)engine;
    if (self->takes != TD_OK) return self->takes;
    self->sizes[self->calls++] = batch->count;
    for (uint32_t i = 0; i < batch->count; i++) {
        self->looked = is_whole(&self->spec, batch->items[i]->obs);
        batch->items[i]->status = i == 0 ? TD_OK : self->answers; // not alone
        if (self->answers != TD_OK)
            (void)td_fail(batch->items[i]->info, TD_OK, "out of device memory");
    }
    done(user, batch);
    return TD_OK;
}

static const td_engine_ops scripted_ops = {
    .name = "scripted", .spec = spec_of, .submit = submit};

static scripted make(uint32_t max_batch)
{
    return (scripted){
        .engine = {&scripted_ops},
        .spec = {.cameras = {{td_wire_text_of("top"), 4, 6},
                             {td_wire_text_of("front"), 8, 6}},
                 .camera_count = 2,
                 .state_count = 3,
                 .action_count = 2,
                 .chunk_rows = 5,
                 .max_batch = max_batch},
    };
}

static void one_alone_and_then_a_full_batch_run(void **state)
{
    (void)state;
    scripted self = make(8);
    assert_int_equal(td_engine_probe_warm_up(&self.engine, NULL, NULL), TD_OK);
    assert_int_equal(self.calls, 2);
    assert_int_equal(self.sizes[0], 1);
    assert_int_equal(self.sizes[1], 8);
    assert_true(self.looked);
}

static void an_engine_of_one_runs_once(void **state)
{
    (void)state;
    scripted self = make(1);
    assert_int_equal(td_engine_probe_warm_up(&self.engine, NULL, NULL), TD_OK);
    assert_int_equal(self.calls, 1);
}

static void a_model_that_cannot_answer_is_found_out(void **state)
{
    (void)state;
    scripted self = make(4);
    td_errinfo info = {""};
    self.answers = TD_ERR_NOMEM;
    assert_int_equal(td_engine_probe_warm_up(&self.engine, NULL, &info),
                     TD_ERR_NOMEM);
    assert_string_equal(
        info.text,
        "the model does not answer a batch of 4: out of device memory");
}

static void an_engine_that_takes_nothing_is_found_out(void **state)
{
    (void)state;
    scripted self = make(4);
    td_errinfo info = {""};
    self.takes = TD_ERR_CLOSED;
    assert_int_equal(td_engine_probe_warm_up(&self.engine, NULL, &info),
                     TD_ERR_CLOSED);
    assert_string_equal(info.text, "the model takes no batch of 1: closed");
}

static void the_synthetic_engine_can_be_warmed_up(void **state)
{
    (void)state;
    td_engine_synthetic_settings settings = {
        .actions = {{td_wire_text_of("lift"), TD_WIRE_LINEAR}},
        .action_count = 1,
        .states = {{td_wire_text_of("lift"), TD_WIRE_LINEAR}},
        .state_count = 1,
        .cameras = {{td_wire_text_of("top"), 48, 64}},
        .camera_count = 1,
        .chunk_rows = 4,
        .max_batch = 4,
        .check_images = true,
    };
    const td_engine_config config = {.model_id = "act",
                                     .model_version = "v1",
                                     .step_period_us = 33333,
                                     .settings = &settings};
    TD_AUTO(td_engine) *engine = NULL;
    assert_int_equal(td_engine_open("synthetic", &config, &engine, NULL),
                     TD_OK);
    assert_int_equal(td_engine_probe_warm_up(engine, NULL, NULL), TD_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_alone_and_then_a_full_batch_run),
        cmocka_unit_test(an_engine_of_one_runs_once),
        cmocka_unit_test(a_model_that_cannot_answer_is_found_out),
        cmocka_unit_test(an_engine_that_takes_nothing_is_found_out),
        cmocka_unit_test(the_synthetic_engine_can_be_warmed_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
