// SPDX-License-Identifier: Apache-2.0
// Connections that want every observation answered, over a network in this
// process, to a real server of a model that answers when the test lets it. Each
// way out of the queue is made to happen, by its name and by its number.
#include "client/model.h"
#include "server/model_fixture.h"
#include "server/report/stats.h"
#include "tendon/robot.h"

#define PATIENCE_MS 30000

static const td_connection_settings own = {
    .size = sizeof own,
    .server = "tcp/127.0.0.1:1",
    .cluster = "lab",
    .experiment = "trial",
    .client_id = "planner-1",
    .every = true,
};
static const td_model_settings act = {
    .size = sizeof act,
    .model_id = "act",
    .version = "v1",
    .application = "demo",
};

static uint8_t rgb[48 * 64 * 3];
static float now_at[STATES] = {0.5f, -0.25f};

static struct {
    td_net *net;
    td_connection *connection;
    td_model *model;
    td_server_device *device;
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
    world *w = *state;
    if (mine.model) td_model_close(mine.model);
    td_connection_close(mine.connection);
    td_net_close(mine.net);
    if (w->server) world_close(w);
    if (mine.device) td_server_device_close(mine.device);
    return world_teardown(state);
}

static void open_model(void)
{
    td_errinfo info = {.text = ""};
    if (td_connection_model(mine.connection, &act, &mine.model, &info) != TD_OK)
        fail_msg("%s", info.text);
}

// A server that runs one at a time, and queues as said.
static void open_server(world *w, td_sched_queue_settings queue)
{
    td_server_device_settings settings = td_server_device_defaults;
    settings.queue = queue;
    assert_int_equal(td_server_device_open(&settings, &mine.device, NULL),
                     TD_OK);
    w->config.device = mine.device;
    w->config.model.batch =
        (td_sched_batch_rule){.wait = TD_SCHED_WAIT_NONE, .most = 1};
    world_open_gated(w);
}

static void open_both(world *w, td_sched_queue_settings queue)
{
    td_errinfo info = {.text = ""};
    open_server(w, queue);
    open_model();
    if (td_model_wait(mine.model, PATIENCE_MS, &info) != TD_OK)
        fail_msg("%s", info.text);
}

static td_err try_to_observe(void)
{
    const td_model_image picture = {
        .name = "top", .height = 48, .width = 64, .channels = 3, .data = rgb};
    const td_model_observation given = {
        .size = sizeof given,
        .state = {.rank = 1, .shape = {STATES}, .data = now_at},
        .images = &picture,
        .image_count = 1,
    };
    td_errinfo info = {.text = ""};
    uint64_t seq;
    return td_model_observe(mine.model, &given, &seq, &info);
}

static void observe(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(try_to_observe(), TD_OK);
}

static uint64_t goal;

static bool has_received(world *w)
{
    return w->report.counts.received == goal;
}

static void await_received(world *w, uint64_t count)
{
    goal = count;
    world_until(w, has_received);
}

static void finish_one(world *w, td_err status)
{
    world_until(w, is_running_one);
    gate_finish(&w->gate, status);
}

// The next result, whatever it is; its seq.
static uint64_t next(td_model_outcome outcome, td_err error)
{
    td_model_result *result = NULL;
    assert_int_equal(td_model_get_result(mine.model, PATIENCE_MS, &result),
                     TD_OK);
    assert_string_equal(td_model_outcome_name(result->outcome),
                        td_model_outcome_name(outcome));
    if (outcome == TD_MODEL_ERROR) assert_int_equal(result->error, error);
    assert_int_equal(result->superseded_count, 0);
    uint64_t seq = result->seq;
    td_model_result_free(result);
    return seq;
}

static void assert_answered(uint64_t seq)
{
    assert_int_equal(next(TD_MODEL_ANSWERED, TD_OK), seq);
}

static uint64_t metric(world *w, td_server_counter_id counter)
{
    return td_server_stats_counter(td_server_model_stats(w->server), counter);
}

static void each_one_is_answered_and_none_takes_anothers_place(void **state)
{
    world *w = *state;
    open_both(w, (td_sched_queue_settings)TD_SCHED_QUEUE_DEFAULTS);
    observe(20);
    for (uint64_t seq = 1; seq <= 20; seq++) {
        finish_one(w, TD_OK);
        assert_answered(seq);
    }
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_ANSWERED], 20);
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_SUPERSEDED], 0);
}

static void what_was_asked_before_there_is_a_server_is_answered(void **state)
{
    world *w = *state;
    open_model();
    observe(3);
    open_server(w, (td_sched_queue_settings)TD_SCHED_QUEUE_DEFAULTS);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        finish_one(w, TD_OK);
        assert_answered(seq);
    }
}

static void a_full_queue_drops_the_oldest_and_says_so(void **state)
{
    world *w = *state;
    td_sched_queue_settings queue = TD_SCHED_QUEUE_DEFAULTS;
    queue.size = 2;
    open_both(w, queue);
    observe(1);
    world_until(w, is_running_one);
    observe(4);
    assert_int_equal(next(TD_MODEL_ERROR, TD_ERR_FULL), 2);
    assert_int_equal(next(TD_MODEL_ERROR, TD_ERR_FULL), 3);
    await_received(w, 5);
    static const uint64_t rest[] = {1, 4, 5};
    for (uint32_t i = 0; i < TD_COUNT_OF(rest); i++) {
        finish_one(w, TD_OK);
        assert_answered(rest[i]);
    }
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_OVERFLOWED], 2);
    assert_int_equal(metric(w, TD_SERVER_COUNT_QUEUE_FULL_DROPS), 2);
}

static void a_full_queue_refuses_the_newest_where_the_file_says_so(void **state)
{
    world *w = *state;
    td_sched_queue_settings queue = TD_SCHED_QUEUE_DEFAULTS;
    queue.size = 2;
    queue.overflow = TD_SCHED_REJECT_NEWEST;
    open_both(w, queue);
    observe(1);
    world_until(w, is_running_one);
    observe(4);
    assert_int_equal(next(TD_MODEL_ERROR, TD_ERR_FULL), 4);
    assert_int_equal(next(TD_MODEL_ERROR, TD_ERR_FULL), 5);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        finish_one(w, TD_OK);
        assert_answered(seq);
    }
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_REFUSED], 2);
    assert_int_equal(metric(w, TD_SERVER_COUNT_QUEUE_FULL_DROPS), 2);
}

static void what_queues_for_too_long_expires(void **state)
{
    world *w = *state;
    td_sched_queue_settings queue = TD_SCHED_QUEUE_DEFAULTS;
    queue.ttl_ns = TD_NS_PER_MS;
    open_both(w, queue);
    observe(1);
    world_until(w, is_running_one);
    observe(2);
    assert_int_equal(next(TD_MODEL_ERROR, TD_ERR_TIMEOUT), 2);
    assert_int_equal(next(TD_MODEL_ERROR, TD_ERR_TIMEOUT), 3);
    finish_one(w, TD_OK); // which runs is not dropped
    assert_answered(1);
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_EXPIRED], 2);
    assert_int_equal(metric(w, TD_SERVER_COUNT_REQUESTS_EXPIRED), 2);
}

static void what_failed_runs_again_as_often_as_retries_says(void **state)
{
    world *w = *state;
    td_sched_queue_settings queue = TD_SCHED_QUEUE_DEFAULTS;
    queue.retries = 2;
    queue.backoff_ns = TD_NS_PER_MS;
    open_both(w, queue);
    observe(1);
    finish_one(w, TD_ERR_INTERNAL);
    finish_one(w, TD_ERR_INTERNAL);
    finish_one(w, TD_OK);
    assert_answered(1);
    assert_int_equal(metric(w, TD_SERVER_COUNT_DISPATCH_RETRIES), 2);
    observe(1);
    for (int i = 0; i < 3; i++)
        finish_one(w, TD_ERR_INTERNAL);
    assert_int_equal(next(TD_MODEL_ERROR, TD_ERR_INTERNAL), 2);
    assert_int_equal(metric(w, TD_SERVER_COUNT_DISPATCH_RETRIES), 4);
    assert_int_equal(metric(w, TD_SERVER_COUNT_DISPATCH_ERRORS), 1);
}

static bool is_unhealthy_and_idle(world *w)
{
    return !atomic_load(&w->gate.batch) &&
           w->report.counts.outcomes[TD_SERVER_RUNNING] == 0;
}

static void become(world *w, td_engine_health health)
{
    atomic_store(&w->gate.health, (int)health);
}

// As a worker's process dies: what it had fails, and it comes back.
static void what_an_engine_died_with_runs_when_it_is_back(void **state)
{
    world *w = *state;
    td_sched_queue_settings queue = TD_SCHED_QUEUE_DEFAULTS;
    queue.retries = 1;
    queue.backoff_ns = 0;
    w->gate.tells = true;
    open_both(w, queue);
    observe(2);
    await_received(w, 2);
    world_until(w, is_running_one);
    become(w, TD_ENGINE_WARMING);
    gate_finish(&w->gate, TD_ERR_CLOSED);
    world_until(w, is_unhealthy_and_idle);
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_WAITING], 2);
    become(w, TD_ENGINE_READY);
    for (uint64_t seq = 1; seq <= 2; seq++) {
        finish_one(w, TD_OK);
        assert_answered(seq);
    }
    assert_int_equal(metric(w, TD_SERVER_COUNT_DISPATCH_RETRIES), 1);
}

static void a_program_that_takes_no_results_is_told(void **state)
{
    (void)state;
    open_model();
    observe(TD_CLIENT_REQUESTS_OPEN);
    assert_int_equal(try_to_observe(), TD_ERR_FULL);
}

static void a_client_that_leaves_takes_its_queue_along(void **state)
{
    world *w = *state;
    open_both(w, (td_sched_queue_settings)TD_SCHED_QUEUE_DEFAULTS);
    observe(6);
    await_received(w, 6);
    world_until(w, is_running_one);
    td_model_close(mine.model);
    mine.model = NULL;
    gate_finish(&w->gate, TD_OK);
    world_until(w, is_without_clients);
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_DEPARTED], 5);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_one_is_answered_and_none_takes_anothers_place),
        TEST(what_was_asked_before_there_is_a_server_is_answered),
        TEST(a_full_queue_drops_the_oldest_and_says_so),
        TEST(a_full_queue_refuses_the_newest_where_the_file_says_so),
        TEST(what_queues_for_too_long_expires),
        TEST(what_failed_runs_again_as_often_as_retries_says),
        TEST(what_an_engine_died_with_runs_when_it_is_back),
        TEST(a_program_that_takes_no_results_is_told),
        TEST(a_client_that_leaves_takes_its_queue_along),
    };
    return cmocka_run_group_tests_name("client/every", tests, NULL, NULL);
}
