// SPDX-License-Identifier: Apache-2.0
#include "engine/measure.h"

#include "engine/synthetic/synthetic.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct room {
    td_engine *engine;
    td_engine_probe *probe;
    td_engine_measure measure;
} room;

static int open_room(void **state)
{
    static room r;
    td_engine_synthetic_settings *settings = calloc(1, sizeof *settings);
    assert_non_null(settings);
    settings->actions[0].name = td_wire_text_of("a");
    settings->states[0].name = td_wire_text_of("a");
    settings->action_count = settings->state_count = settings->chunk_rows = 1;
    settings->max_batch = 4;
    settings->latency = (td_engine_latency){
        .kind = TD_ENGINE_LATENCY_FIXED, .ms = 2, .per_batch_ms = 1};
    const td_engine_config config = {.model_id = "m",
                                     .model_version = "v",
                                     .step_period_us = 1000,
                                     .settings = settings};
    td_errinfo info = {""};
    td_err err = td_engine_open("synthetic", &config, &r.engine, &info);
    free(settings);
    if (err != TD_OK) fail_msg("%s", info.text);
    assert_int_equal(
        td_engine_probe_new(r.engine->ops->spec(r.engine), &r.probe), TD_OK);
    r.measure = (td_engine_measure){r.engine, r.probe, NULL};
    *state = &r;
    return 0;
}

static int close_room(void **state)
{
    room *r = *state;
    td_engine_probe_free(r->probe);
    td_engine_close(r->engine);
    return 0;
}

// A busy machine makes times longer, never shorter.
static void a_batch_takes_at_least_what_its_model_does(void **state)
{
    const room *r = *state;
    double ms[5];
    td_errinfo info = {""};
    assert_int_equal(td_engine_measure_batches(&r->measure, 3, 5, ms, &info),
                     TD_OK);
    for (size_t i = 0; i < 5; i++)
        assert_true(ms[i] >= 4);
}

static void a_batch_that_is_too_large_is_refused(void **state)
{
    const room *r = *state;
    double ms[1];
    td_errinfo info = {""};
    assert_int_equal(td_engine_measure_batches(&r->measure, 5, 1, ms, &info),
                     TD_ERR_INVALID);
    assert_string_equal(info.text,
                        "the model takes no batch of 5: invalid argument");
}

static void a_load_is_answered_to_its_end(void **state)
{
    const room *r = *state;
    td_engine_traffic traffic;
    td_errinfo info = {""};
    assert_int_equal(td_engine_traffic_init(&traffic, 1000, 40, 4, 1, 0),
                     TD_OK);
    assert_int_equal(td_engine_measure_traffic(&r->measure, &traffic, &info),
                     TD_OK);
    assert_int_equal(traffic.done, 40);
    assert_true(td_engine_traffic_quantile_ms(&traffic, 0) >= 2);
    td_engine_traffic_done(&traffic);
}

static bool at_once(void)
{
    return true;
}

static void it_can_be_stopped(void **state)
{
    const room *r = *state;
    td_engine_measure measure = r->measure;
    measure.stop = at_once;
    double ms[1];
    td_errinfo info = {""};
    td_engine_traffic traffic;
    assert_int_equal(td_engine_traffic_init(&traffic, 1, 40, 4, 1, 0), TD_OK);
    assert_int_equal(td_engine_measure_batches(&measure, 1, 1, ms, &info),
                     TD_ERR_CANCELLED);
    assert_int_equal(td_engine_measure_traffic(&measure, &traffic, &info),
                     TD_ERR_CANCELLED);
    td_engine_traffic_done(&traffic);
}

static void noise_is_how_far_parts_differ(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double ms[10];
        size_t count;
        double noise;
    } cases[] = {
        {"steady", {4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, 10, 0},
        {"spread but steady", {4, 6, 4, 6, 4, 6, 4, 6, 4, 6}, 10, 0},
        {"slower at the end", {4, 4, 4, 4, 4, 4, 4, 4, 6, 6}, 10, 0.5},
        {"one that stands out", {4, 4, 4, 4, 4, 4, 4, 4, 4, 12}, 10, 1},
        {"too few to tell", {1, 9, 1, 9}, 4, 0},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        double noise = -1;
        assert_int_equal(
            td_engine_measure_noise(cases[i].ms, cases[i].count, &noise),
            TD_OK);
        if (fabs(noise - cases[i].noise) > 1e-9)
            fail_msg("%s: %g", cases[i].name, noise);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_batch_takes_at_least_what_its_model_does, open_room, close_room),
        cmocka_unit_test_setup_teardown(a_batch_that_is_too_large_is_refused,
                                        open_room, close_room),
        cmocka_unit_test_setup_teardown(a_load_is_answered_to_its_end,
                                        open_room, close_room),
        cmocka_unit_test_setup_teardown(it_can_be_stopped, open_room,
                                        close_room),
        cmocka_unit_test(noise_is_how_far_parts_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
