// SPDX-License-Identifier: Apache-2.0
// The worker engine with python/tendon/worker as its process, which runs
// tests/worker/policy.py.
//
// The conformance suite with a Python model; everything of an observation
// arrives, frames in shared memory included; results beside actions; exceptions
// and starts that fail, with their texts; coroutines; prefixes that are dropped
// are dropped.
#include "engine/worker/worker.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "engine/conformance.h"
#include "engine/results.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define ROWS 12
#define CHANNELS 3
#define POLICY TD_SOURCE_DIR "/tests/worker/policy.py:"
#define PYTHON TD_SOURCE_DIR "/build/venv/bin/python"

static const char *command[6] = {PYTHON, "-m", "tendon.worker"};
static td_engine_worker_settings settings = {
    .spec = {.camera_count = 1,
             .state_count = 2,
             .action_count = CHANNELS,
             .chunk_rows = ROWS,
             .max_batch = 4,
             .cameras = {{"front", 48, 64}},
             .states = {{"x", TD_WIRE_LINEAR}, {"y", TD_WIRE_LINEAR}},
             .actions = {{"a", TD_WIRE_LINEAR},
                         {"b", TD_WIRE_LINEAR},
                         {"c", TD_WIRE_HOLD}}},
    .command = command,
    .start_ns = 60 * TD_NS_PER_S,
    .answer_ns = 60 * TD_NS_PER_S,
};
static const td_engine_config config = {.model_id = "act",
                                        .model_version = "v1",
                                        .step_period_us = 33333,
                                        .settings = &settings};

static uint8_t pixels[48 * 64 * 3];
static const float state_values[2] = {1, 2};
static float actions[ROWS * CHANNELS];
static td_errinfo info;

static td_wire_obs make_obs(void)
{
    memset(pixels, 7, sizeof pixels);
    return (td_wire_obs){
        .client = td_wire_text_of("robot"),
        .ident = {.seq = 30},
        .cursor = 40,
        .state = {.dtype = TD_WIRE_F32,
                  .rank = 1,
                  .shape = {2},
                  .data = state_values,
                  .size = sizeof state_values},
        .images = {{.name = td_wire_text_of("front"),
                    .codec = TD_WIRE_RAW,
                    .shape = {48, 64, 3},
                    .data = pixels,
                    .size = sizeof pixels}},
        .image_count = 1,
    };
}

static void use(const char *policy, const char *option)
{
    command[3] = policy;
    command[4] = option;
}

static void on_done(void *user, td_engine_batch *batch)
{
    (void)batch;
    td_event_signal(user);
}

static td_err run_for(td_engine *engine, const td_wire_obs *obs,
                      td_engine_results *results)
{
    td_event event;
    td_event_init(&event);
    info.text[0] = '\0';
    td_engine_item item = {
        .obs = obs, .actions = actions, .info = &info, .results = results};
    td_engine_batch batch = {.items = {&item}, .count = 1};
    assert_int_equal(engine->ops->submit(engine, &batch, on_done, &event),
                     TD_OK);
    td_event_wait_until(&event, INT64_MAX);
    assert_true(item.status != TD_OK || item.rows == ROWS);
    return item.status;
}

static td_err run(td_engine *engine, const td_wire_obs *obs)
{
    return run_for(engine, obs, NULL);
}

static td_engine *open_engine(void)
{
    td_engine *engine = NULL;
    if (td_engine_open("worker", &config, &engine, &info) != TD_OK)
        fail_msg("%s", info.text);
    return engine;
}

static void everything_of_an_observation_arrives(void **state)
{
    (void)state;
    static const double force[2] = {1.5, 2.5};
    td_wire_obs obs = make_obs();
    pixels[0] = 200;
    obs.tensors[0] = (td_wire_named){td_wire_text_of("force"),
                                     {.dtype = TD_WIRE_F64,
                                      .rank = 1,
                                      .shape = {2},
                                      .data = force,
                                      .size = sizeof force}};
    obs.tensor_count = 1;
    obs.metadata[0] =
        (td_wire_pair){td_wire_text_of("tool"), td_wire_text_of("hammer")};
    obs.metadata_count = 1;
    obs.has_rtc = true;
    obs.rtc_delay_steps = 5;
    obs.rtc_prefix = obs.state;
    use(POLICY "infer_all", NULL);
    TD_AUTO(td_engine) *engine = open_engine();
    assert_int_equal(run(engine, &obs), TD_OK);
    static const float want[] = {200, 7.0209417F, 40, 30, 4, 6, 5, 3};
    for (size_t i = 0; i < TD_COUNT_OF(want); i++)
        assert_float_equal(actions[i * CHANNELS], want[i], 1e-3);
}

// Whether the engine's process has mapped the file.
static bool has_mapped(const td_engine *engine, const char *name)
{
    char path[64], line[512];
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%d/maps",
                   td_engine_worker_pid(engine));
    FILE *maps = fopen(path, "re");
    assert_non_null(maps);
    while (!found && fgets(line, sizeof line, maps))
        found = strstr(line, name) != NULL;
    (void)fclose(maps);
    return found;
}

static void a_frame_in_shared_memory_is_read_there(void **state)
{
    (void)state;
    char name[64];
    (void)snprintf(name, sizeof name, "/tendon-frame-%d", (int)getpid());
    int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
    assert_int_equal(ftruncate(fd, sizeof pixels), 0);
    uint8_t *frame =
        mmap(NULL, sizeof pixels, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(frame, MAP_FAILED);
    (void)close(fd);
    td_wire_obs obs = make_obs();
    obs.images[0].data = frame;
    use(POLICY "infer_all", NULL);
    TD_AUTO(td_engine) *engine = open_engine();
    do // it is copied until then
        assert_int_equal(run(engine, &obs), TD_OK);
    while (!has_mapped(engine, name));
    for (int color = 0; color < 200; color++) {
        memset(frame, color, sizeof pixels);
        assert_int_equal(run(engine, &obs), TD_OK);
        assert_float_equal(actions[0], color, 0);
        assert_float_equal(actions[CHANNELS], color, 0);
    }
    (void)munmap(frame, sizeof pixels);
    (void)shm_unlink(name);
    obs = make_obs();
    do // and again from then on
        assert_int_equal(run(engine, &obs), TD_OK);
    while (has_mapped(engine, name));
}

static void one_that_raises_fails_with_its_text(void **state)
{
    (void)state;
    static const struct {
        const char *task;
        td_err status;
        const char *text;
    } cases[] = {
        {"wave", TD_OK, ""},
        {"raise", TD_ERR_INTERNAL,
         "ValueError: the gripper is made of ch\xc3\xa4se"},
        {"grow", TD_ERR_NOMEM, "Unable to allocate 8.00 GiB"},
        {"misfit", TD_ERR_MISMATCH,
         "Misfit: the policy gave 3 x 1, the model has 1 to 12 x 3"},
        {"write", TD_ERR_INTERNAL,
         "ValueError: assignment destination is read-only"},
        {"die", TD_ERR_CLOSED, "worker act/v1 ended with code 7"},
    };
    use(POLICY "infer_or_not", NULL);
    settings.memory_bytes = UINT64_C(4) << 30;
    TD_AUTO(td_engine) *engine = open_engine();
    settings.memory_bytes = 0;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_wire_obs obs = make_obs();
        obs.task = td_wire_text_of(cases[i].task);
        td_err status = run(engine, &obs);
        if (!strstr(info.text, cases[i].text))
            fail_msg("%s: %s", cases[i].task, info.text);
        assert_int_equal(status, cases[i].status);
    }
}

static void a_policy_may_say_what_it_is(void **state)
{
    (void)state;
    use(POLICY "Loaded", NULL);
    TD_AUTO(td_engine) *engine = open_engine();
    const td_engine_spec *spec = engine->ops->spec(engine);
    assert_true(spec->rtc);
    assert_true(spec->tolerance == 0.5F);
    td_wire_obs obs = make_obs();
    assert_int_equal(run(engine, &obs), TD_OK);
}

static void a_coroutine_is_awaited(void **state)
{
    (void)state;
    use(POLICY "infer_async", NULL);
    TD_AUTO(td_engine) *engine = open_engine();
    td_wire_obs obs = make_obs();
    assert_int_equal(run(engine, &obs), TD_OK);
    assert_true(actions[0] == state_values[0]);
}

static void a_start_that_fails_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *text;
    } cases[] = {
        {POLICY "nobody",
         "worker act/v1 cannot: AttributeError: module 'policy' has no "
         "attribute 'nobody'"},
        {"nowhere:infer", "worker act/v1 cannot: ModuleNotFoundError: No "
                          "module named 'nowhere'"},
        {POLICY "HalfHalves", "worker act/v1 cannot: TypeError: spec says "
                              "prefix, but there is no decode"},
        {POLICY "infer_nothing",
         "worker act/v1 cannot: Misfit: the policy gave 1 x 1, the model has 1 "
         "to 12 x 3"},
        {"policy.py", "worker act/v1 cannot: ValueError: 'policy.py' is not "
                      "module:callable or file.py:callable"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_engine *engine = NULL;
        use(cases[i].policy, NULL);
        assert_int_equal(td_engine_open("worker", &config, &engine, &info),
                         TD_ERR_CLOSED);
        assert_string_equal(info.text, cases[i].text);
    }
}

static void what_it_names_beside_actions_comes_with_them(void **state)
{
    (void)state;
    use(POLICY "infer_more", NULL);
    TD_AUTO(td_engine) *engine = open_engine();
    td_wire_obs obs = make_obs();
    td_engine_results results = {0};
    assert_int_equal(run_for(engine, &obs, &results), TD_OK);
    assert_int_equal(results.count, 3);
    assert_true(td_wire_text_is(results.named[0].name, "value"));
    assert_true(td_wire_text_is(results.named[1].name, "plan"));
    assert_int_equal(results.named[1].tensor.dtype, TD_WIRE_U8);
    assert_true(td_wire_text_is(results.named[2].name, "attention"));
    const td_wire_tensor *attention = &results.named[2].tensor;
    assert_int_equal(attention->dtype, TD_WIRE_F64);
    assert_int_equal(attention->shape[1], 2);
    assert_memory_equal(attention->data, ((double[]){1, 2}), 16);
    assert_true(td_wire_text_is(results.text, "waving"));
    td_engine_results_done(&results);
}

static void what_is_dropped_is_let_go(void **state)
{
    (void)state;
    use(POLICY "Halves", NULL);
    TD_AUTO(td_engine) *engine = open_engine();
    td_wire_obs obs = make_obs();
    td_event event;
    td_event_init(&event);
    for (int i = 0; i < 3; i++) {
        td_engine_item item = {.obs = &obs, .actions = actions, .info = &info};
        td_engine_batch batch = {.items = {&item}, .count = 1};
        assert_int_equal(engine->ops->prefix(engine, &batch, on_done, &event),
                         TD_OK);
        td_event_wait_until(&event, INT64_MAX);
        assert_int_equal(item.status, TD_OK);
        assert_int_equal(item.prefix_bytes, 1);
        engine->ops->drop(engine, item.prefix);
    }
}

int main(void)
{
    if (access(PYTHON, X_OK) != 0) command[0] = "python3";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_of_an_observation_arrives),
        cmocka_unit_test(a_frame_in_shared_memory_is_read_there),
        cmocka_unit_test(one_that_raises_fails_with_its_text),
        cmocka_unit_test(a_policy_may_say_what_it_is),
        cmocka_unit_test(a_coroutine_is_awaited),
        cmocka_unit_test(what_it_names_beside_actions_comes_with_them),
        cmocka_unit_test(what_is_dropped_is_let_go),
        cmocka_unit_test(a_start_that_fails_says_why),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    use(POLICY "infer", NULL);
    failed += td_engine_conformance("worker", &config);
    use(POLICY "Halves", NULL);
    failed += td_engine_conformance("worker", &config);
    use(POLICY "infer_batch", "--batched");
    return failed + td_engine_conformance("worker", &config);
}
