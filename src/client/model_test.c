// SPDX-License-Identifier: Apache-2.0
// Connections over a network in this process, to a real server of a synthetic
// model, or of one that answers when the test lets it.
#include "client/model.h"
#include "edge/api/api.h"
#include "server/model_fixture.h"
#include "tendon/robot.h"

#include <poll.h>
#include <stdlib.h>

#define PATIENCE_MS 30000

static const td_connection_settings own = {
    .size = sizeof own,
    .server = "tcp/127.0.0.1:1",
    .cluster = "lab",
    .experiment = "trial",
    .client_id = "planner-1",
    .client_type = "planner",
};
static const td_model_settings act = {
    .size = sizeof act,
    .model_id = "act",
    .version = "v1",
    .application = "demo",
};

static uint8_t rgb[48 * 64 * 3];
static float now_at[STATES] = {0.5f, -0.25f};

// What a test opens, to be closed whatever comes of it.
static struct {
    td_net *net;
    td_connection *connection;
    td_model *model;
} mine;

static void be_silent(void *user, td_level level, const char *line)
{
    (void)user;
    (void)level;
    (void)line;
}

static int setup(void **state)
{
    world_setup(state);
    world *w = *state;
    memset(&mine, 0, sizeof mine);
    assert_int_equal(td_log_to(be_silent, NULL, TD_LEVEL_ERROR), TD_OK);
    assert_int_equal(td_net_inproc_open(w->hub, "planner", &mine.net, NULL),
                     TD_OK);
    assert_int_equal(
        td_client_connection_open_on(mine.net, &own, &mine.connection, NULL),
        TD_OK);
    return 0;
}

static int teardown(void **state)
{
    if (mine.model) td_model_close(mine.model);
    if (mine.connection) td_connection_close(mine.connection);
    td_net_close(mine.net);
    return world_teardown(state);
}

static td_model *open_with(td_model_settings settings)
{
    td_errinfo info = {.text = ""};
    if (td_connection_model(mine.connection, &settings, &mine.model, &info) !=
        TD_OK)
        fail_msg("%s", info.text);
    return mine.model;
}

static td_model *open_attached(void)
{
    td_errinfo info = {.text = ""};
    td_model *model = open_with(act);
    if (td_model_wait(model, PATIENCE_MS, &info) != TD_OK)
        fail_msg("%s", info.text);
    return model;
}

static const td_model_image picture = {
    .name = "top",
    .height = 48,
    .width = 64,
    .channels = 3,
    .data = rgb,
};

static td_model_observation good(void)
{
    return (td_model_observation){
        .size = sizeof(td_model_observation),
        .state = {.rank = 1, .shape = {STATES}, .data = now_at},
        .images = &picture,
        .image_count = 1,
    };
}

static uint64_t observe(td_model *model, const td_model_observation *input)
{
    td_errinfo info = {.text = ""};
    uint64_t seq = 0;
    if (td_model_observe(model, input, &seq, &info) != TD_OK)
        fail_msg("%s", info.text);
    return seq;
}

static uint64_t observe_good(td_model *model)
{
    const td_model_observation input = good();
    return observe(model, &input);
}

static td_model_result *next(td_model *model)
{
    td_model_result *result = NULL;
    if (td_model_get_result(model, PATIENCE_MS, &result) != TD_OK)
        fail_msg("no result");
    return result;
}

static void assert_next(td_model *model, uint64_t seq, td_model_outcome outcome)
{
    td_model_result *result = next(model);
    assert_int_equal(result->seq, seq);
    assert_string_equal(td_model_outcome_name(result->outcome),
                        td_model_outcome_name(outcome));
    td_model_result_free(result);
}

static uint64_t number(td_model *model, const char *name)
{
    double value = -1;
    assert_int_equal(td_model_number(model, name, &value), TD_OK);
    return (uint64_t)value;
}

static void assert_is_the_models(world *w, const td_model_result *result,
                                 uint64_t cursor)
{
    float expected[ROWS * ACTIONS];
    td_engine_synthetic_model_answer(w->model, now_at, cursor, expected);
    assert_int_equal(result->outcome, TD_MODEL_ANSWERED);
    assert_int_equal(result->actions.dtype, TD_MODEL_F32);
    assert_int_equal(result->actions.rank, 2);
    assert_int_equal(result->actions.shape[0], ROWS);
    assert_int_equal(result->actions.shape[1], ACTIONS);
    assert_int_equal((uintptr_t)result->actions.data % sizeof(float), 0);
    assert_memory_equal(result->actions.data, expected, sizeof expected);
}

static void each_observation_has_its_own_answer(void **state)
{
    world *w = *state;
    world_open(w);
    td_model *model = open_attached();
    assert_string_equal(td_model_state(model), "ATTACHED");
    td_model_observation input = good();
    for (uint64_t i = 1; i <= 20; i++) {
        input.cursor = 3 * i;
        assert_int_equal(observe(model, &input), i);
        td_model_result *result = next(model);
        assert_int_equal(result->seq, i);
        assert_is_the_models(w, result, input.cursor);
        assert_string_equal(result->server, "gpu-1");
        assert_string_equal(result->error_text, "");
        assert_true(result->round_trip_us > 0);
        td_model_result_free(result);
    }
    assert_int_equal(number(model, "answered"), 20);
    assert_int_equal(number(model, "observed"), 20);
    assert_int_equal(number(model, "round_trip_ms/count"), 20);
    assert_true(number(model, "round_trip_ms/p999") >=
                number(model, "round_trip_ms/p50"));
}

static void what_is_observed_early_waits_for_a_server(void **state)
{
    world *w = *state;
    td_model *model = open_with(act);
    assert_int_equal(observe_good(model), 1);
    assert_int_equal(observe_good(model), 2);
    world_open(w);
    td_model_result *result = next(model);
    assert_int_equal(result->seq, 2);
    assert_is_the_models(w, result, 0);
    assert_int_equal(result->superseded_count, 1);
    assert_int_equal(result->superseded[0], 1);
    td_model_result_free(result);
}

static bool has_received_three(world *w)
{
    return w->report.counts.received == 3;
}

static void a_newer_one_takes_the_place_of_what_waits(void **state)
{
    world *w = *state;
    world_open_gated(w);
    td_model *model = open_attached();
    assert_int_equal(observe_good(model), 1);
    world_until(w, is_running_one);
    assert_int_equal(observe_good(model), 2);
    assert_int_equal(observe_good(model), 3);
    world_until(w, has_received_three);
    gate_finish(&w->gate, TD_OK);
    world_until(w, is_running_one);
    assert_next(model, 1, TD_MODEL_ANSWERED);
    gate_finish(&w->gate, TD_OK);
    // Whichever answer is the first to leave names what was superseded.
    assert_next(model, 3, TD_MODEL_ANSWERED);
    assert_int_equal(number(model, "superseded"), 1);
    assert_int_equal(number(model, "open"), 0);
}

static void a_failure_of_the_model_is_an_error(void **state)
{
    world *w = *state;
    world_open_gated(w);
    td_model *model = open_attached();
    observe_good(model);
    world_until(w, is_running_one);
    gate_finish(&w->gate, TD_ERR_INTERNAL);
    td_model_result *result = next(model);
    assert_int_equal(result->outcome, TD_MODEL_ERROR);
    assert_int_equal(result->error, TD_ERR_INTERNAL);
    assert_string_not_equal(result->error_text, "");
    assert_int_equal(result->actions.rank, 0);
    td_model_result_free(result);
}

static void what_does_not_fit_the_model_is_an_error(void **state)
{
    world *w = *state;
    world_open(w);
    td_model *model = open_attached();
    td_model_observation input = good();
    input.state = (td_model_tensor){0};
    observe(model, &input);
    td_model_result *result = next(model);
    assert_int_equal(result->outcome, TD_MODEL_ERROR);
    assert_int_equal(result->error, TD_ERR_MISMATCH);
    assert_non_null(strstr(result->error_text, "state: is rank 1, 0 x <f4"));
    td_model_result_free(result);
}

static void a_server_that_goes_loses_what_it_had(void **state)
{
    world *w = *state;
    world_open_gated(w);
    td_model *model = open_attached();
    observe_good(model);
    world_until(w, is_running_one);
    assert_int_equal(td_net_hub_partition(w->hub, "server", "planner", true),
                     TD_OK);
    td_model_result *result = next(model);
    assert_int_equal(result->outcome, TD_MODEL_LOST);
    assert_int_equal(result->error, TD_ERR_IO);
    assert_string_equal(result->error_text, "its server is gone");
    td_model_result_free(result);
    assert_string_equal(td_model_state(model), "RECONNECTING");
    observe_good(model);
    assert_int_equal(td_net_hub_partition(w->hub, "server", "planner", false),
                     TD_OK);
    gate_finish(&w->gate, TD_OK);
    world_until(w, is_running_one);
    gate_finish(&w->gate, TD_OK);
    assert_next(model, 2, TD_MODEL_ANSWERED);
    assert_int_equal(number(model, "attached"), 2);
}

static void an_observation_expires_at_its_limit(void **state)
{
    world *w = *state;
    world_open_gated(w);
    td_model *model = open_attached();
    td_model_observation input = good();
    input.limit_ms = 5;
    observe(model, &input);
    td_model_result *result = next(model);
    assert_int_equal(result->outcome, TD_MODEL_EXPIRED);
    assert_int_equal(result->error, TD_ERR_TIMEOUT);
    assert_true(result->round_trip_us >= 5000);
    td_model_result_free(result);
    world_until(w, is_running_one);
    gate_finish(&w->gate, TD_OK);
    observe_good(model);
    world_until(w, is_running_one);
    gate_finish(&w->gate, TD_OK);
    assert_next(model, 2, TD_MODEL_ANSWERED);
    assert_int_equal(number(model, "late"), 1);
}

static void without_a_server_wait_says_why(void **state)
{
    (void)state;
    td_errinfo info = {.text = ""};
    td_model *model = open_with(act);
    td_model_observation input = good();
    input.limit_ms = 1;
    observe(model, &input);
    assert_next(model, 1, TD_MODEL_EXPIRED);
    while (td_model_wait(model, 1, &info) == TD_ERR_TIMEOUT)
        continue;
    assert_int_equal(td_model_wait(model, 1, &info), TD_ERR_NOTFOUND);
    assert_string_equal(info.text, "no server answers for act/v1/demo");
    assert_true(number(model, "status_nobody") > 0);
    observe(model, &input);
    td_model_result *result = next(model);
    assert_non_null(strstr(result->error_text, "no server answers for act"));
    td_model_result_free(result);
}

static void a_refusal_is_reported_with_its_reason(void **state)
{
    world *w = *state;
    td_errinfo info = {.text = ""};
    w->config.settings.accept_unknown = false;
    world_open(w);
    td_model *model = open_with(act);
    td_err err;
    do
        err = td_model_wait(model, 1, &info);
    while (err == TD_ERR_TIMEOUT || err == TD_ERR_NOTFOUND);
    assert_int_equal(err, TD_ERR_DENIED);
    assert_non_null(strstr(info.text, "planner-1 is not in the manifest"));
    assert_true(number(model, "status_refused") > 0);
}

static void the_descriptor_is_readable_while_a_result_waits(void **state)
{
    world *w = *state;
    world_open(w);
    td_model *model = open_attached();
    struct pollfd polled = {.events = POLLIN};
    assert_int_equal(td_model_fd(model, &polled.fd), TD_OK);
    assert_int_equal(poll(&polled, 1, 0), 0);
    observe_good(model);
    assert_int_equal(poll(&polled, 1, PATIENCE_MS), 1);
    assert_next(model, 1, TD_MODEL_ANSWERED);
    assert_int_equal(poll(&polled, 1, 0), 0);
    td_model_stop(model);
    assert_int_equal(poll(&polled, 1, 0), 1);
}

static void wait_for_a_result(void *user)
{
    td_model_result *result = NULL;
    td_err *ret_err = user;
    *ret_err = td_model_get_result(mine.model, -1, &result);
    if (result) td_model_result_free(result);
}

static void stopping_wakes_whoever_waits(void **state)
{
    (void)state;
    const td_thread_config config = {.name = "waits", .cpu = -1};
    td_thread *thread = NULL;
    td_err err = TD_OK;
    uint64_t seq;
    td_errinfo info;
    td_model *model = open_with(act);
    assert_int_equal(
        td_thread_start(&config, wait_for_a_result, &err, &thread, NULL),
        TD_OK);
    td_model_stop(model);
    td_thread_join(thread);
    assert_int_equal(err, TD_ERR_CLOSED);
    const td_model_observation input = good();
    assert_int_equal(td_model_observe(model, &input, &seq, &info),
                     TD_ERR_CLOSED);
    assert_int_equal(td_model_wait(model, -1, &info), TD_ERR_CLOSED);
    assert_string_equal(td_model_state(model), "STOPPED");
}

static void stopping_loses_what_is_open_and_it_can_be_taken(void **state)
{
    world *w = *state;
    world_open_gated(w);
    td_model *model = open_attached();
    observe_good(model);
    td_model_stop(model);
    assert_next(model, 1, TD_MODEL_LOST);
    td_model_result *result;
    assert_int_equal(td_model_get_result(model, -1, &result), TD_ERR_CLOSED);
}

static void one_model_is_open_once(void **state)
{
    world *w = *state;
    td_model *second = NULL;
    td_errinfo info;
    world_open(w);
    open_attached();
    assert_int_equal(td_connection_model(mine.connection, &act, &second, &info),
                     TD_ERR_EXISTS);
    assert_string_equal(info.text, "this connection has act/v1/demo open");
    td_model_close(TD_TAKE(mine.model));
    open_attached();
}

static void a_model_leaves_its_server_when_it_is_closed(void **state)
{
    world *w = *state;
    world_open(w);
    td_model_close(open_attached());
    mine.model = NULL;
    world_until(w, is_without_clients);
}

static void a_result_outlives_its_connection(void **state)
{
    world *w = *state;
    world_open(w);
    td_model *model = open_attached();
    observe_good(model);
    td_model_result *result = next(model);
    td_model_close(TD_TAKE(mine.model));
    td_connection_close(TD_TAKE(mine.connection));
    assert_is_the_models(w, result, 0);
    td_model_result_free(result);
}

static void a_connection_lives_as_long_as_its_models(void **state)
{
    world *w = *state;
    world_open(w);
    td_model *model = open_attached();
    td_connection_close(TD_TAKE(mine.connection));
    observe_good(model);
    assert_next(model, 1, TD_MODEL_ANSWERED);
}

static bool knows_of_strangers(world *w)
{
    (void)w;
    return number(mine.model, "strangers") == 1 &&
           number(mine.model, "malformed") == 1;
}

static void strangers_and_nonsense_are_counted(void **state)
{
    world *w = *state;
    world_open(w);
    td_model *model = open_attached();
    td_net_pub *pub = NULL;
    static const td_net_qos reliable = {TD_NET_DATA, .reliable = true};
    char key[TD_WIRE_MAX_KEY];
    assert_int_equal(
        td_wire_key(&w->config.route, "planner-1", "action", key, NULL), TD_OK);
    assert_int_equal(td_net_publish(w->net, key, &reliable, &pub, NULL), TD_OK);
    const td_wire_action action = {
        .ident = {.boot = model->boot, .seq = 1},
        .server = td_wire_text_of("gpu-2"),
        .error_code = td_wire_text_of("IO"),
    };
    size_t count;
    assert_int_equal(td_wire_action_encode(w->encoder, &action, NULL), TD_OK);
    const td_slice *parts = td_wire_encoder_parts(w->encoder, &count);
    assert_int_equal(td_net_put(pub, parts, count, NULL, NULL), TD_OK);
    client_send_bytes(pub, "nonsense", 8);
    world_until(w, knows_of_strangers);
    td_net_unpublish(pub);
}

static void pictures_travel_as_the_settings_say(void **state)
{
    static const struct {
        const char *name;
        uint32_t quality;
        bool raw_if_shared;
        td_wire_codec codec;
    } cases[] = {
        {"raw", 0, false, TD_WIRE_RAW},
        {"as jpeg", 90, false, TD_WIRE_JPEG},
        {"raw where it is shared, which is not so for little", 90, true,
         TD_WIRE_JPEG},
    };
    world *w = *state;
    world_open_gated(w);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_model_settings settings = act;
        settings.jpeg_quality = cases[i].quality;
        settings.raw_if_shared = cases[i].raw_if_shared;
        observe_good(open_with(settings));
        world_until(w, is_running_one);
        const td_engine_batch *batch = atomic_load(&w->gate.batch);
        const td_wire_obs *obs = batch->items[0]->obs;
        if (obs->image_count != 1 || obs->images[0].codec != cases[i].codec)
            fail_msg("%s: codec %d", cases[i].name, obs->images[0].codec);
        assert_true(td_wire_text_is(obs->metadata[0].text, "planner"));
        gate_finish(&w->gate, TD_OK);
        assert_next(mine.model, 1, TD_MODEL_ANSWERED);
        td_model_close(TD_TAKE(mine.model));
    }
}

static void bad_observations_are_refused_at_once(void **state)
{
    static const float nan_state[STATES] = {__builtin_nanf(""), 0};
    static const td_model_tensor nameless = {.rank = 1, .data = ""};
    static const td_model_tensor empty = {
        .name = "depth", .rank = 1, .shape = {4}};
    static const td_model_tensor odd = {
        .name = "depth", .dtype = TD_MODEL_BOOL + 1, .rank = 1, .data = ""};
    static const td_model_image cut = {.name = "top",
                                       .height = 48,
                                       .width = 64,
                                       .channels = 3,
                                       .data = rgb,
                                       .bytes = 5};
    static const td_model_pair half = {.name = "who"};
    (void)state;
    const td_model_observation base = good();
    td_model_observation rows[8];
    for (size_t i = 0; i < TD_COUNT_OF(rows); i++)
        rows[i] = base;
    rows[0].size = 8;
    rows[1].state.data = nan_state;
    rows[2].tensors = &nameless, rows[2].tensor_count = 1;
    rows[3].tensors = &empty, rows[3].tensor_count = 1;
    rows[4].tensors = &odd, rows[4].tensor_count = 1;
    rows[5].images = &cut;
    rows[6].metadata = &half, rows[6].metadata_count = 1;
    rows[7].urgency = 2;
    static const char *const says[] = {
        "observation: size must be", "state: a value is not finite",
        "tensor: has no name",       "tensor depth: has no data",
        "dtype 10 and rank 1",       "raw 48x64x3 needs 9216 bytes, got 5",
        "metadata who: has no data", "urgency"};
    td_model *model = open_with(act);
    for (size_t i = 0; i < TD_COUNT_OF(rows); i++) {
        td_errinfo info = {.text = ""};
        uint64_t seq = 77;
        assert_int_not_equal(td_model_observe(model, &rows[i], &seq, &info),
                             TD_OK);
        if (!strstr(info.text, says[i])) fail_msg("%zu: %s", i, info.text);
        assert_int_equal(seq, 77);
    }
    td_model_observation crowded = base;
    crowded.tensor_count = TD_WIRE_MAX_TENSORS + 1;
    uint64_t seq;
    assert_int_equal(td_model_observe(model, &crowded, &seq, NULL),
                     TD_ERR_LIMIT);
    assert_int_equal(number(model, "observed"), 0);
}

static void what_is_missing_is_named_with_where_to_give_it(void **state)
{
    (void)state;
    td_connection *connection = NULL;
    td_errinfo info;
    td_connection_settings settings = own;
    settings.client_id = NULL;
    unsetenv("TENDON_CLIENT_ID");
    assert_int_equal(
        td_client_connection_open_on(mine.net, &settings, &connection, &info),
        TD_ERR_INVALID);
    assert_string_equal(info.text, "client_id: is missing: give it, or set "
                                   "TENDON_CLIENT_ID in the environment");
    setenv("TENDON_CLIENT_ID", "not/an/id", 1);
    assert_int_equal(
        td_client_connection_open_on(mine.net, &settings, &connection, &info),
        TD_ERR_INVALID);
    setenv("TENDON_CLIENT_ID", "planner-7", 1);
    assert_int_equal(
        td_client_connection_open_on(mine.net, &settings, &connection, &info),
        TD_OK);
    assert_string_equal(connection->client, "planner-7");
    td_connection_close(connection);
    unsetenv("TENDON_CLIENT_ID");
}

static void newer_settings_are_refused_and_older_ones_filled_up(void **state)
{
    (void)state;
    struct {
        td_connection_settings known;
        uint64_t news;
    } newer = {.known = own, .news = 0};
    td_connection *connection = NULL;
    newer.known.size = sizeof newer;
    assert_int_equal(
        td_client_connection_open_on(mine.net, &newer.known, &connection, NULL),
        TD_OK);
    td_connection_close(connection);
    newer.news = 1;
    assert_int_equal(
        td_client_connection_open_on(mine.net, &newer.known, &connection, NULL),
        TD_ERR_VERSION);
}

#define THREADS 3
#define EACH 80 // so that all of them may be open at once

static void observe_many(void *user)
{
    _Atomic uint32_t *failed = user;
    const td_model_observation input = good();
    uint64_t seq;
    for (int i = 0; i < EACH; i++)
        if (td_model_observe(mine.model, &input, &seq, NULL) != TD_OK)
            atomic_fetch_add(failed, 1);
}

static void several_threads_may_observe_and_every_one_ends(void **state)
{
    world *w = *state;
    const td_thread_config config = {.name = "observes", .cpu = -1};
    td_thread *threads[THREADS] = {0};
    _Atomic uint32_t failed = 0;
    world_open(w);
    td_model *model = open_attached();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(
            td_thread_start(&config, observe_many, &failed, &threads[i], NULL),
            TD_OK);
    for (int i = 0; i < THREADS; i++)
        td_thread_join(threads[i]);
    assert_int_equal(failed, 0);
    while (number(model, "open") > 0)
        td_model_result_free(next(model));
    assert_int_equal(number(model, "observed"), THREADS * EACH);
    assert_true(number(model, "answered") > 0);
    assert_int_equal(number(model, "answered") + number(model, "superseded") +
                         number(model, "lost"),
                     THREADS * EACH);
}

#define MODEL_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MODEL_TEST(each_observation_has_its_own_answer),
        MODEL_TEST(what_is_observed_early_waits_for_a_server),
        MODEL_TEST(a_newer_one_takes_the_place_of_what_waits),
        MODEL_TEST(a_failure_of_the_model_is_an_error),
        MODEL_TEST(what_does_not_fit_the_model_is_an_error),
        MODEL_TEST(a_server_that_goes_loses_what_it_had),
        MODEL_TEST(an_observation_expires_at_its_limit),
        MODEL_TEST(without_a_server_wait_says_why),
        MODEL_TEST(a_refusal_is_reported_with_its_reason),
        MODEL_TEST(the_descriptor_is_readable_while_a_result_waits),
        MODEL_TEST(stopping_wakes_whoever_waits),
        MODEL_TEST(stopping_loses_what_is_open_and_it_can_be_taken),
        MODEL_TEST(one_model_is_open_once),
        MODEL_TEST(a_model_leaves_its_server_when_it_is_closed),
        MODEL_TEST(a_result_outlives_its_connection),
        MODEL_TEST(a_connection_lives_as_long_as_its_models),
        MODEL_TEST(strangers_and_nonsense_are_counted),
        MODEL_TEST(pictures_travel_as_the_settings_say),
        MODEL_TEST(bad_observations_are_refused_at_once),
        MODEL_TEST(what_is_missing_is_named_with_where_to_give_it),
        MODEL_TEST(newer_settings_are_refused_and_older_ones_filled_up),
        MODEL_TEST(several_threads_may_observe_and_every_one_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
