// SPDX-License-Identifier: Apache-2.0
// The C API over a network in this process, with fake servers. The
// fixture's own edge is the client's.
#include "edge/api/robot.h"
#include "edge/edge_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Fits the fixture's servers.
static const char file[] =
    "cluster_uuid: lab\n"
    "experiment_tag: trial\n"
    "model_id: act\n"
    "model_version: v1\n"
    "application_tag: demo\n"
    "client_uuid: arm-0\n"
    "endpoint: tcp/127.0.0.1:7447\n"
    "fps: 500\n"
    "actions_per_chunk: 20\n"
    "aggregate_fn_name: latest_only\n"
    "task: wave\n"
    "metrics_hz: 0\n"
    "driver_limit_s: 0.2\n"
    "boot_file: /dev/null/none\n"
    "realtime: {priority: 0, wake_us: -1, lock_memory: false}\n"
    "robot:\n"
    "  kind: callback\n"
    "  joints: [lift, turn]\n"
    "  cameras: {hand: {height: 96, width: 128}}\n";

// Hardware that is where it was last sent. What it does wrong is set by the
// test's thread.
static struct hardware {
    float at[CHANNELS]; // the driver's
    atomic_bool blocks, fails, lies, blend_blocks, blend_fails;
    td_event unblock;
    atomic_uint reads, writes, frames, controls, blends, stateful;
} device;

static td_err arm_read(void *user, float *ret_state, uint32_t count)
{
    struct hardware *self = user;
    atomic_fetch_add(&self->reads, 1);
    if (atomic_load(&self->blocks))
        (void)td_event_wait_until(&self->unblock, INT64_MAX);
    if (atomic_load(&self->fails)) return TD_ERR_IO;
    memcpy(ret_state, self->at, count * sizeof *ret_state);
    if (atomic_load(&self->lies)) ret_state[count - 1] = NAN;
    return TD_OK;
}

static td_err arm_write(void *user, const float *command, uint32_t count)
{
    struct hardware *self = user;
    memcpy(self->at, command, count * sizeof *command);
    atomic_fetch_add(&self->writes, 1);
    return TD_OK;
}

static td_err arm_frame(void *user, uint32_t camera, uint8_t *ret_rgb,
                        uint32_t height, uint32_t width)
{
    struct hardware *self = user;
    memset(ret_rgb, (int)camera, (size_t)height * width * 3);
    atomic_fetch_add(&self->frames, 1);
    return TD_OK;
}

static td_err arm_control(void *user, const float *command, const float *state,
                          uint32_t count, float *ret_out)
{
    struct hardware *self = user;
    (void)state;
    memcpy(ret_out, command, count * sizeof *command);
    atomic_fetch_add(&self->controls, 1);
    return TD_OK;
}

static void arm_blend(void *user, uint64_t step, const float *old_row,
                      const float *new_row, uint32_t count, float *ret_row)
{
    struct hardware *self = user;
    (void)step;
    (void)old_row;
    memcpy(ret_row, new_row, count * sizeof *new_row);
    atomic_fetch_add(&self->blends, 1);
}

static td_err arm_blend_all(void *user, const td_robot_overlap *overlap,
                            float *ret_rows)
{
    struct hardware *self = user;
    atomic_fetch_add(&self->blends, 1);
    if (atomic_load(&self->blend_blocks))
        (void)td_event_wait_until(&self->unblock, INT64_MAX);
    if (atomic_load(&self->blend_fails)) return TD_ERR_IO;
    memcpy(ret_rows, overlap->new_rows,
           (size_t)overlap->rows * overlap->count * sizeof *ret_rows);
    return TD_OK;
}

static const td_robot_driver whole = {
    .size = sizeof(td_robot_driver),
    .user = &device,
    .read = arm_read,
    .write = arm_write,
    .frame = arm_frame,
    .control = arm_control,
    .aggregate = arm_blend,
};
static const td_robot_driver pulled = {
    .size = sizeof(td_robot_driver), .user = &device, .frame = arm_frame};

static td_robot *client;

static td_config_robot *parsed(const char *text)
{
    td_config_robot *config = NULL;
    td_errinfo info = {.text = ""};
    if (td_config_robot_parse("f", text, strlen(text), &config, &info) != TD_OK)
        fail_msg("%s", info.text);
    return config;
}

static void be_silent(void *user, td_level level, const char *line)
{
    (void)user;
    (void)level;
    (void)line;
}

static int setup(void **state)
{
    device = (struct hardware){0};
    td_event_init(&device.unblock);
    assert_int_equal(td_log_to(be_silent, NULL, TD_LEVEL_WARN), TD_OK);
    return world_setup(state);
}

// The client's edge is the world's: closed here, by its owner.
static int teardown(void **state)
{
    world *w = *state;
    atomic_store(&device.blocks, false);
    atomic_store(&device.blend_blocks, false);
    td_event_signal(&device.unblock);
    w->edge = NULL;
    if (client) td_robot_close(TD_TAKE(client));
    return world_teardown(state);
}

static void open_config(world *w, td_config_robot *config,
                        const td_robot_driver *driver)
{
    td_errinfo info = {.text = ""};
    if (td_robot_open_on(w->net, config, driver, &client, &info) != TD_OK)
        fail_msg("%s", info.text);
    w->edge = client->parts.edge;
    td_wire_metrics *metrics = malloc(sizeof *metrics);
    assert_non_null(metrics);
    td_edge_metrics_get(w->edge, 0, metrics);
    w->config.core.boot = metrics->boot; // the fake servers look at it
    free(metrics);
}

static void open_with(world *w, const td_robot_driver *driver)
{
    open_config(w, parsed(file), driver);
}

static void start(world *w, const td_robot_driver *driver)
{
    (void)fake_server_open(w, 0, "gpu-1");
    open_with(w, driver);
    assert_int_equal(td_robot_start(client, NULL), TD_OK);
}

static double number(const char *name)
{
    double value = -1;
    if (td_robot_number(client, name, &value) != TD_OK)
        fail_msg("no number %s", name);
    return value;
}

static void every_function_is_called_and_measured(void **state)
{
    world *w = *state;
    start(w, &whole);
    world_until(w, has_merged_twenty);
    world_until(w, is_streaming);
    assert_true(atomic_load(&device.writes) > 0);
    assert_true(atomic_load(&device.frames) > 0);
    assert_true(atomic_load(&device.controls) > 0);
    assert_true(atomic_load(&device.blends) > 0);
    assert_true(number("control_ms/count") > 0);
    assert_true(number("merged") >= 20);
    td_robot_stop(client);
    assert_int_equal(td_robot_wait(client, NULL), TD_OK);
    assert_string_equal(td_robot_state(client), "STOPPED");
}

static bool has_acted(world *w)
{
    return w->report.counts.failsafes[TD_EDGE_FAILSAFE_FOR_DRIVER] > 0;
}

static bool has_failed(world *w)
{
    return w->report.driver_failed > 0;
}

static uint64_t played; // when the driver was back

static bool plays_again(world *w)
{
    return w->report.counts.fresh > played + ROWS;
}

static void a_driver_that_blocks_fails_or_lies_is_survived(void **state)
{
    static const struct {
        const char *name;
        atomic_bool *wrong;
    } cases[] = {
        {"blocks", &device.blocks},
        {"fails", &device.fails},
        {"lies", &device.lies},
    };
    world *w = *state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].name);
        start(w, &whole);
        world_until(w, has_merged_twenty);
        atomic_store(cases[i].wrong, true);
        world_until(w, has_acted);
        assert_true(number("failsafe_driver") > 0);
        if (i > 0) world_until(w, has_failed);
        atomic_store(cases[i].wrong, false);
        td_event_signal(&device.unblock);
        played = w->report.counts.fresh;
        world_until(w, plays_again);
        w->edge = NULL;
        td_robot_close(TD_TAKE(client));
        fake_server_close(&w->fake_servers[0]);
    }
}

static bool has_merged_forty(world *w)
{
    return world_outcome(w, TD_EDGE_MERGED) >= 40;
}

static void
a_blend_that_blocks_or_fails_is_counted_and_done_without(void **state)
{
    static const struct {
        const char *name;
        atomic_bool *wrong;
        double limit_s;
        const char *counter;
    } cases[] = {
        {"blocks", &device.blend_blocks, 0, "aggregate_late"},
        {"fails", &device.blend_fails, 60, "aggregate_failed"},
    };
    world *w = *state;
    td_robot_driver blends = whole;
    blends.aggregate = NULL;
    blends.blend = arm_blend_all;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].name);
        blends.blend_limit_s = cases[i].limit_s;
        start(w, &blends);
        world_until(w, has_merged_twenty);
        assert_true(atomic_load(&device.blends) > 0);
        atomic_store(cases[i].wrong, true);
        world_until(w, has_merged_forty);
        assert_true(number(cases[i].counter) > 0);
        atomic_store(cases[i].wrong, false);
        td_event_signal(&device.unblock);
        w->edge = NULL;
        td_robot_close(TD_TAKE(client));
        fake_server_close(&w->fake_servers[0]);
    }
}

static float state_now[CHANNELS], next[CHANNELS];
static td_robot_result result = {.size = sizeof(td_robot_result)};

static void step(void)
{
    assert_int_equal(td_robot_step(client, state_now, next, &result), TD_OK);
    if (result.doing != TD_ROBOT_IDLE)
        memcpy(state_now, next, sizeof state_now);
}

static bool has_stepped(world *w)
{
    (void)w;
    step();
    return result.doing == TD_ROBOT_FRESH && state_now[0] >= 50;
}

static bool has_run_dry(world *w)
{
    (void)w;
    step();
    return result.doing == TD_ROBOT_STARVED;
}

static void a_host_steps_through_the_chunks(void **state)
{
    world *w = *state;
    memset(state_now, 0, sizeof state_now);
    open_with(w, &pulled);
    next[0] = 42;
    step();
    assert_int_equal(result.doing, TD_ROBOT_IDLE);
    assert_true(next[0] == 42);
    fake_server *p = fake_server_open(w, 0, "gpu-1");
    assert_int_equal(td_robot_start(client, NULL), TD_OK);
    world_until(w, has_stepped);
    assert_true(state_now[1] == -state_now[0]);
    assert_true(result.age_us > 0 && !result.limited);
    p->answers_left = 0;
    world_until(w, has_run_dry);
    assert_int_equal(result.left, 0);
    assert_int_equal(atomic_load(&device.reads), 0);
    assert_int_equal(atomic_load(&device.writes), 0);
}

static void a_shorter_result_is_filled_as_far_as_it_goes(void **state)
{
    td_robot_result old = {
        .size = offsetof(td_robot_result, limited),
        .doing = TD_ROBOT_FAILSAFE,
        .limited = true,
        .left = 7,
        .age_us = 7,
    };
    open_with(*state, &pulled);
    assert_int_equal(td_robot_step(client, state_now, next, &old), TD_OK);
    assert_int_equal(old.doing, TD_ROBOT_IDLE);
    assert_true(old.limited && old.left == 7 && old.age_us == 7);
}

static void a_client_with_a_driver_is_not_stepped(void **state)
{
    open_with(*state, &whole);
    assert_int_equal(td_robot_step(client, state_now, next, NULL),
                     TD_ERR_UNSUPPORTED);
}

static void a_driver_that_makes_no_sense_is_refused(void **state)
{
    static struct {
        td_robot_driver known;
        void *newer;
    } later = {.newer = &later};
    later.known = whole;
    later.known.size = sizeof later;
    td_robot_driver sizeless = whole, half = whole, steered = pulled,
                    blind = whole, twice = whole, endless = whole,
                    talks = whole;
    sizeless.size = 0;
    half.write = NULL;
    steered.control = arm_control;
    blind.frame = NULL;
    twice.blend = arm_blend_all;
    endless.blend_limit_s = INFINITY;
    talks.observe_state = arm_read;
    const struct {
        const char *name;
        const td_robot_driver *driver;
        td_err err;
        const char *says;
    } cases[] = {
        {"no size", &sizeless, TD_ERR_INVALID, "driver: size must be"},
        {"newer functions", &later.known, TD_ERR_VERSION, "newer"},
        {"half a driver", &half, TD_ERR_INVALID, "both read and write"},
        {"a controller to pull", &steered, TD_ERR_INVALID, "control"},
        {"two blends", &twice, TD_ERR_INVALID, "either aggregate or blend"},
        {"no limit", &endless, TD_ERR_INVALID, "blend_limit_s"},
        {"states that are not there", &talks, TD_ERR_INVALID, "robot.states"},
        {"cameras without frames", &blind, TD_ERR_INVALID, "camera hand"},
    };
    world *w = *state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_errinfo info = {.text = ""};
        print_message("%s\n", cases[i].name);
        assert_int_equal(td_robot_open_on(w->net, parsed(file), cases[i].driver,
                                          &client, &info),
                         cases[i].err);
        assert_non_null(strstr(info.text, cases[i].says));
        assert_null(client);
    }
}

static td_config_robot *parsed_with_states(void)
{
    char text[sizeof file + 64];
    (void)snprintf(text, sizeof text, "%s  states: [lift, turn, force]\n",
                   file);
    return parsed(text);
}

static void states_without_a_function_are_refused(void **state)
{
    world *w = *state;
    td_errinfo info = {.text = ""};
    assert_int_equal(
        td_robot_open_on(w->net, parsed_with_states(), &whole, &client, &info),
        TD_ERR_INVALID);
    assert_non_null(strstr(info.text, "needs observe_state"));
}

static void a_newer_driver_that_uses_nothing_new_is_taken(void **state)
{
    static struct {
        td_robot_driver known;
        void *newer;
    } later;
    later.known = whole;
    later.known.size = sizeof later;
    open_with(*state, &later.known);
    assert_int_equal(td_robot_joints(client), CHANNELS);
}

static void a_file_of_another_robot_is_refused(void **state)
{
    world *w = *state;
    td_config_robot *synthetic = parsed(file);
    td_errinfo info = {.text = ""};
    synthetic->robot.kind = TD_CONFIG_ROBOT_SYNTHETIC;
    assert_int_equal(
        td_robot_open_on(w->net, synthetic, &whole, &client, &info),
        TD_ERR_INVALID);
    assert_non_null(strstr(info.text, "robot.kind: must be callback"));
    assert_int_equal(td_robot_open_text("fps: 0", &whole, &client, &info),
                     TD_ERR_INVALID);
    assert_non_null(strstr(info.text, "(text):1: "));
    assert_int_equal(td_robot_open("/none.yaml", &whole, &client, &info),
                     TD_ERR_IO);
    assert_null(client);
}

static void a_client_runs_once(void **state)
{
    world *w = *state;
    open_with(w, &pulled);
    assert_int_equal(td_robot_wait(client, NULL), TD_ERR_EMPTY);
    assert_int_equal(td_robot_start(client, NULL), TD_OK);
    assert_int_equal(td_robot_start(client, NULL), TD_ERR_EXISTS);
    assert_int_equal(td_robot_run(client, NULL), TD_ERR_EXISTS);
    td_robot_stop(client);
    assert_int_equal(td_robot_wait(client, NULL), TD_OK);
}

static void other_version(td_wire_status *status)
{
    status->model_version = td_wire_text_of("v2");
}

static bool has_ended(world *w)
{
    (void)w;
    return strcmp(td_robot_state(client), "STOPPED") == 0;
}

static void wait_says_why_a_server_does_not_fit(void **state)
{
    world *w = *state;
    td_errinfo info = {.text = ""};
    fake_server_open(w, 0, "gpu-1")->edit_status = other_version;
    open_with(w, &whole);
    assert_int_equal(td_robot_start(client, NULL), TD_OK);
    world_until(w, has_ended);
    assert_int_equal(td_robot_wait(client, &info), TD_ERR_MISMATCH);
    assert_non_null(strstr(info.text, "model_version"));
}

static td_err arm_state(void *user, float *ret_state, uint32_t count)
{
    struct hardware *self = user;
    for (uint32_t i = 0; i < count; i++)
        ret_state[i] = (float)(i + 1);
    atomic_fetch_add(&self->stateful, 1);
    return TD_OK;
}

static void a_server_that_wants_other_states_is_refused(void **state)
{
    world *w = *state; // its servers want lift and turn alone
    td_robot_driver stateful = whole;
    td_errinfo info = {.text = ""};
    stateful.observe_state = arm_state;
    (void)fake_server_open(w, 0, "gpu-1");
    open_config(w, parsed_with_states(), &stateful);
    assert_int_equal(td_robot_joints(client), CHANNELS);
    assert_int_equal(td_robot_start(client, NULL), TD_OK);
    world_until(w, has_ended);
    assert_int_equal(td_robot_wait(client, &info), TD_ERR_MISMATCH);
    assert_non_null(strstr(info.text, "state"));
    assert_int_equal(atomic_load(&device.stateful), 0);
}

static void count_name(void *user, const char *name, double value)
{
    (void)name;
    assert_true(isfinite(value));
    (*(size_t *)user)++;
}

static void numbers_are_found_by_name(void **state)
{
    size_t names = 0;
    double value = -1;
    open_with(*state, &pulled);
    assert_int_equal(td_robot_report(client, count_name, &names), TD_OK);
    assert_true(names > 40);
    assert_true(number("driver_failed") == 0);
    assert_true(number("buffer_rows") == 0);
    assert_true(number("lateness_ms/p99") == 0);
    assert_true(number("lateness_ms/p999") == 0);
    assert_int_equal(td_robot_number(client, "none", &value), TD_ERR_NOTFOUND);
    assert_true(value == -1);
}

static void where_the_log_goes_is_settled_before(void **state)
{
    open_with(*state, &pulled);
    assert_int_equal(td_log_to(NULL, NULL, TD_LEVEL_INFO), TD_ERR_BUSY);
}

static void the_versions_agree(void **state)
{
    char text[32];
    (void)state;
    (void)snprintf(text, sizeof text, "%d.%d.%d", TD_API_VERSION_MAJOR,
                   TD_API_VERSION_MINOR, TD_API_VERSION_PATCH);
    assert_string_equal(td_version_text(), text);
    assert_string_equal(TD_PROJECT_VERSION, text);
    assert_int_equal(td_version(), TD_API_VERSION);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_function_is_called_and_measured),
        TEST(a_driver_that_blocks_fails_or_lies_is_survived),
        TEST(a_blend_that_blocks_or_fails_is_counted_and_done_without),
        TEST(a_host_steps_through_the_chunks),
        TEST(a_shorter_result_is_filled_as_far_as_it_goes),
        TEST(a_client_with_a_driver_is_not_stepped),
        TEST(a_driver_that_makes_no_sense_is_refused),
        TEST(states_without_a_function_are_refused),
        TEST(a_newer_driver_that_uses_nothing_new_is_taken),
        TEST(a_file_of_another_robot_is_refused),
        TEST(a_client_runs_once),
        TEST(wait_says_why_a_server_does_not_fit),
        TEST(a_server_that_wants_other_states_is_refused),
        TEST(numbers_are_found_by_name),
        TEST(where_the_log_goes_is_settled_before),
        TEST(the_versions_agree),
    };
    return cmocka_run_group_tests_name("client/client", tests, NULL, NULL);
}
