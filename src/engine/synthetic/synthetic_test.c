// SPDX-License-Identifier: Apache-2.0
#include "engine/synthetic/synthetic.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "engine/conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 20
#define CHANNELS 3

static td_engine_synthetic_settings settings = {
    .actions = {{{"a", 1}, TD_WIRE_LINEAR},
                {{"b", 1}, TD_WIRE_ANGLE},
                {{"c", 1}, TD_WIRE_HOLD}},
    .action_count = CHANNELS,
    .states = {{{"x", 1}, TD_WIRE_LINEAR}, {{"y", 1}, TD_WIRE_LINEAR}},
    .state_count = 2,
    .cameras = {{{"front", 5}, 48, 64}},
    .camera_count = 1,
    .chunk_rows = ROWS,
    .max_batch = 8,
    .halves = true,
};

static const td_engine_config config = {.model_id = "pi0",
                                        .model_version = "v1",
                                        .step_period_us = 33333,
                                        .settings = &settings};

// The ways to run it: in turn, prepared while another runs, all at once.
typedef struct mode {
    const char *name;
    bool continuous;
    double prepare_ms;
} mode;

static const mode modes[] = {
    {"in turn", false, 0},
    {"prepared meanwhile", false, 0.2},
    {"continuous", true, 0},
    {"continuous, prepared", true, 0.2},
};

static void use(const mode *chosen)
{
    settings.continuous = chosen->continuous;
    settings.latency.prepare_ms = chosen->prepare_ms;
}

static void on_done(void *user, td_engine_batch *batch)
{
    (void)batch;
    td_event_signal(user);
}

static const float state_values[2] = {1, 2};

static td_wire_obs make_obs(td_wire_codec codec, td_slice picture)
{
    return (td_wire_obs){.state = {.dtype = TD_WIRE_F32,
                                   .rank = 1,
                                   .data = state_values,
                                   .size = sizeof state_values},
                         .images = {{.name = {"front", 5},
                                     .codec = codec,
                                     .shape = {48, 64, 3},
                                     .data = picture.data,
                                     .size = picture.size}},
                         .image_count = 1};
}

static td_err run_one(const td_wire_obs *obs, int64_t *ret_service_ns)
{
    float actions[ROWS * CHANNELS];
    td_engine_item item = {.obs = obs, .actions = actions};
    td_engine_batch batch = {.items = {&item}, .count = 1};
    td_event event;
    td_event_init(&event);
    TD_AUTO(td_engine) *engine = NULL;
    assert_int_equal(td_engine_open("synthetic", &config, &engine, NULL),
                     TD_OK);
    assert_int_equal(engine->ops->submit(engine, &batch, on_done, &event),
                     TD_OK);
    td_event_wait_until(&event, INT64_MAX);
    *ret_service_ns = batch.service_ns;
    return item.status;
}

static void an_image_is_looked_at_only_when_asked(void **state)
{
    (void)state;
    static uint8_t raw[48 * 64 * 3];
    static const struct {
        const char *name;
        td_wire_codec codec;
        td_slice picture;
        td_err checked;
    } cases[] = {
        {"a JPEG that is not one", TD_WIRE_JPEG, {"hello", 5}, TD_ERR_FORMAT},
        {"raw", TD_WIRE_RAW, {raw, sizeof raw}, TD_OK},
        {"raw cut short", TD_WIRE_RAW, {raw, 100}, TD_ERR_FORMAT},
        {"a PNG that is not one", TD_WIRE_PNG, {"\x89PNG", 4}, TD_ERR_FORMAT},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_wire_obs obs = make_obs(cases[i].codec, cases[i].picture);
        int64_t service_ns = 0;
        settings.check_images = false;
        assert_int_equal(run_one(&obs, &service_ns), TD_OK);
        settings.check_images = true;
        td_err err = run_one(&obs, &service_ns);
        settings.check_images = false;
        if (err != cases[i].checked)
            fail_msg("%s: %s", cases[i].name, td_err_name(err));
    }
}

static void it_takes_the_time_it_declares(void **state)
{
    (void)state;
    td_wire_obs obs = make_obs(TD_WIRE_JPEG, (td_slice){0});
    for (size_t i = 0; i < TD_COUNT_OF(modes); i++) {
        int64_t service_ns = 0;
        settings.latency =
            (td_engine_latency){.kind = TD_ENGINE_LATENCY_FIXED, .ms = 3};
        use(&modes[i]);
        assert_int_equal(run_one(&obs, &service_ns), TD_OK);
        if (service_ns < 3 * TD_NS_PER_MS)
            fail_msg("%s: %lld ns", modes[i].name, (long long)service_ns);
    }
    settings.latency = (td_engine_latency){0};
    use(&modes[0]);
}

#define MANY 24

typedef struct answers {
    float actions[MANY][ROWS * CHANNELS];
} answers;

// As many at a time as the engine takes.
static void run_many(answers *ret_answers)
{
    td_wire_obs obs[MANY];
    td_engine_item items[MANY];
    td_engine_batch batches[MANY];
    td_event event;
    td_event_init(&event);
    TD_AUTO(td_engine) *engine = NULL;
    assert_int_equal(td_engine_open("synthetic", &config, &engine, NULL),
                     TD_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        obs[i] = make_obs(TD_WIRE_JPEG, (td_slice){0});
        obs[i].cursor = i;
        items[i] = (td_engine_item){.obs = &obs[i],
                                    .actions = ret_answers->actions[i],
                                    .status = TD_ERR_INTERNAL};
        batches[i] = (td_engine_batch){.items = {&items[i]}, .count = 1};
        while (engine->ops->submit(engine, &batches[i], on_done, &event) !=
               TD_OK)
            td_event_wait_until(&event, INT64_MAX);
    }
    td_engine_close(TD_TAKE(engine)); // finishes all
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(items[i].status, TD_OK);
}

static void an_answer_is_the_same_however_it_is_run(void **state)
{
    (void)state;
    static answers want, got;
    settings.latency = (td_engine_latency){
        .kind = TD_ENGINE_LATENCY_NORMAL, .ms = 0.2, .std_ms = 0.1};
    for (size_t i = 0; i < TD_COUNT_OF(modes); i++) {
        use(&modes[i]);
        run_many(i == 0 ? &want : &got);
        print_message("%s\n", modes[i].name);
        if (i > 0) assert_memory_equal(&got, &want, sizeof got);
    }
    settings.latency = (td_engine_latency){0};
    use(&modes[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_is_looked_at_only_when_asked),
        cmocka_unit_test(it_takes_the_time_it_declares),
        cmocka_unit_test(an_answer_is_the_same_however_it_is_run),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    settings.check_images = true;
    settings.latency = (td_engine_latency){
        .kind = TD_ENGINE_LATENCY_NORMAL, .ms = 1, .per_batch_ms = 0.1};
    for (size_t i = 0; i < TD_COUNT_OF(modes); i++) {
        use(&modes[i]);
        failed += td_engine_conformance("synthetic", &config);
    }
    return failed;
}
