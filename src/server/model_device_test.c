// SPDX-License-Identifier: Apache-2.0
// What a device does with batches that fail, engines that die, several models
// and the passing of time.
#include "server/model_fixture.h"

#include <stdatomic.h>
#include <string.h>

static client *attached(world *w, size_t index, const char *id)
{
    client *c = client_open(w, index, id, 1);
    assert_true(client_attach(c, "gpu-1"));
    return c;
}

static bool one_waits(world *w)
{
    return w->report.counts.outcomes[TD_SERVER_WAITING] == 1;
}

static bool two_wait(world *w)
{
    return w->report.counts.outcomes[TD_SERVER_WAITING] == 2;
}

// One runs, so that the next two share a batch.
static void send_pair(world *w, client *a, client *b, client *first)
{
    client_send_seq(first, 1);
    world_until(w, is_running_one);
    client_send_seq(a, 1);
    client_send_seq(b, 1);
    world_until(w, two_wait);
    gate_finish(&w->gate, TD_OK);
    world_until(w, is_running_one);
    assert_int_equal(gate_batch_size(&w->gate), 2);
    assert_int_equal(client_hear(first)->error_code.size, 0);
}

static void batches_each_of_a_failed_one_runs_once_more_alone(void **state)
{
    world *w = *state;
    world_open_gated(w);
    client *a = attached(w, 0, "arm-0");
    client *b = attached(w, 1, "arm-1");
    send_pair(w, a, b, attached(w, 2, "arm-2"));
    gate_finish(&w->gate, TD_ERR_INTERNAL);
    for (int i = 0; i < 2; i++) { // whichever is first
        world_until(w, is_running_one);
        assert_int_equal(gate_batch_size(&w->gate), 1);
        gate_finish_one(&w->gate, "arm-1", TD_ERR_IO);
    }
    assert_int_equal(client_hear(a)->error_code.size, 0);
    assert_true(td_wire_text_is(client_hear(b)->error_code, "IO"));
    world_until(w, is_idle);
    td_server_counts counts = world_counts(w);
    assert_int_equal(counts.outcomes[TD_SERVER_ANSWERED], 2);
    assert_int_equal(counts.outcomes[TD_SERVER_FAILED], 1);
    assert_int_equal(counts.rerun, 2);
    assert_int_equal(counts.offenders, 1);
}

// The engine has named the offender; the others have their answers.
static void a_member_that_fails_by_itself_costs_no_second_run(void **state)
{
    world *w = *state;
    world_open_gated(w);
    client *a = attached(w, 0, "arm-0");
    client *b = attached(w, 1, "arm-1");
    send_pair(w, a, b, attached(w, 2, "arm-2"));
    gate_finish_one(&w->gate, "arm-1", TD_ERR_FORMAT);
    assert_int_equal(client_hear(a)->error_code.size, 0);
    assert_true(td_wire_text_is(client_hear(b)->error_code, "FORMAT"));
    world_until(w, is_idle);
    assert_int_equal(world_counts(w).rerun, 0);
}

static void engines_when_one_dies_all_are_told_and_status_says_so(void **state)
{
    world *w = *state;
    w->gate.tells = true;
    world_open_gated(w);
    client *a = attached(w, 0, "arm-0");
    client *b = attached(w, 1, "arm-1");
    client_send_seq(a, 1);
    world_until(w, is_running_one);
    client_send_seq(a, 2);
    client_send_seq(b, 1);
    world_until(w, two_wait);
    atomic_store(&w->gate.health, TD_ENGINE_WARMING);
    gate_finish(&w->gate, TD_ERR_CLOSED);
    for (uint64_t seq = 1; seq <= 2; seq++)
        assert_true(td_wire_text_is(client_hear(a)->error_code, "CLOSED"));
    assert_true(td_wire_text_is(client_hear(b)->error_code, "CLOSED"));
    client_send_seq(b, 2); // while it is away
    assert_true(td_wire_text_is(client_hear(b)->error_code, "CLOSED"));
    assert_non_null(strstr(b->answer.error_text.data, "started again"));
    client_query(a, NULL, 0);
    assert_int_equal(w->status.state, TD_WIRE_WARMING);
    td_server_counts counts = world_counts(w);
    assert_int_equal(counts.outcomes[TD_SERVER_FAILED], 1);
    assert_int_equal(counts.outcomes[TD_SERVER_UNREADY], 3);
    assert_int_equal(counts.rerun, 0);

    atomic_store(&w->gate.health, TD_ENGINE_READY);
    client_query(a, NULL, 0);
    assert_int_equal(w->status.state, TD_WIRE_READY);
    client_send_seq(b, 3);
    world_until(w, is_running_one);
    gate_finish(&w->gate, TD_OK);
    assert_int_equal(client_hear(b)->error_code.size, 0);
}

static void engines_one_that_is_broken_degrades_its_server(void **state)
{
    world *w = *state;
    w->gate.tells = true;
    world_open_gated(w);
    client *c = attached(w, 0, "arm-0");
    atomic_store(&w->gate.health, TD_ENGINE_BROKEN);
    client_query(c, NULL, 0);
    assert_int_equal(w->status.state, TD_WIRE_DEGRADED);
    client_send_seq(c, 1);
    assert_true(td_wire_text_is(client_hear(c)->error_code, "CLOSED"));
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_UNREADY], 1);
}

// Nothing runs whose end would tell.
static void engines_one_that_dies_idle_is_noticed(void **state)
{
    world *w = *state;
    w->gate.tells = true;
    w->config.model.batch =
        (td_sched_batch_rule){.wait = TD_SCHED_WAIT_FULL, .most = 2};
    world_open_gated(w);
    client *c = attached(w, 0, "arm-0");
    client_send_seq(c, 1);
    world_until(w, one_waits);
    atomic_store(&w->gate.health, TD_ENGINE_WARMING);
    assert_true(td_wire_text_is(client_hear(c)->error_code, "CLOSED"));
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_UNREADY], 1);
}

// A second model on the device, with a gate of its own.
typedef struct second {
    td_server_device *device;
    gate gate;
    td_net *net;
    td_server_model *server;
    client client;
} second;

static void open_both(world *w, second *s)
{
    td_server_device_settings settings = td_server_device_defaults;
    settings.models = 2;
    settings.clients = 2 * MAX_CLIENTS;
    assert_int_equal(td_server_device_open(&settings, &s->device, NULL), TD_OK);
    w->config.device = s->device;
    world_open_gated(w);
    gate_open(w, &s->gate);
    td_server_model_config config = w->config;
    config.settings.server_id = "gpu-2";
    config.route.model = "smolvla";
    assert_int_equal(td_net_inproc_open(w->hub, "server-2", &s->net, NULL),
                     TD_OK);
    assert_int_equal(
        td_server_model_open(s->net, &s->gate.base, &config, &s->server, NULL),
        TD_OK);
}

static void close_both(world *w, second *s)
{
    td_server_model_close(s->server);
    td_net_close(s->net);
    world_close(w);
    td_server_device_close(s->device);
}

// A client of the second model.
static client *attached_to_second(world *w, size_t index, const char *id)
{
    const char *model = w->config.route.model;
    w->config.route.model = "smolvla";
    client *c = client_open(w, index, id, 2);
    assert_true(client_attach(c, "gpu-2"));
    w->config.route.model = model;
    return c;
}

static second other; // what is_running_other() looks at

static bool is_running_other(world *w)
{
    (void)w;
    return atomic_load(&other.gate.batch) != NULL;
}

static bool one_waits_for_other(world *w)
{
    td_server_model_report report;
    (void)w;
    td_server_model_report_get(other.server, &report);
    return report.counts.outcomes[TD_SERVER_WAITING] == 1;
}

static void devices_one_run_at_a_time_whichever_model(void **state)
{
    world *w = *state;
    other = (second){0};
    open_both(w, &other);
    client *a = attached(w, 0, "arm-0");
    client *b = attached_to_second(w, 1, "arm-0");
    client_send_seq(a, 1);
    world_until(w, is_running_one);
    client_send_seq(b, 1);
    world_until(w, one_waits_for_other);
    assert_false(is_running_other(w));
    client_send_seq(a, 2);
    gate_finish(&w->gate, TD_OK); // the other model's turn
    world_until(w, is_running_other);
    assert_false(is_running_one(w));
    gate_finish(&other.gate, TD_OK);
    world_until(w, is_running_one);
    gate_finish(&w->gate, TD_OK);
    assert_int_equal(client_hear(a)->ident.seq, 1);
    assert_int_equal(client_hear(a)->ident.seq, 2);
    assert_true(td_wire_text_is(client_hear(b)->server, "gpu-2"));
    td_sched_counts counts;
    td_server_device_counts(other.device, &counts);
    assert_int_equal(counts.submitted, 3);
    assert_int_equal(counts.outcomes[TD_SCHED_ANSWERED], 3);
    close_both(w, &other);
}

static void one_server_of_a_device_closes_and_the_other_goes_on(void **state)
{
    world *w = *state;
    other = (second){0};
    open_both(w, &other);
    client *a = attached(w, 0, "arm-0");
    (void)attached_to_second(w, 1, "arm-0");
    world_close(w); // it kept the time
    client_close(a);
    client *b = &w->clients[1];
    client_send_seq(b, 1);
    world_until(w, is_running_other);
    gate_finish(&other.gate, TD_OK);
    assert_int_equal(client_hear(b)->ident.seq, 1);
    td_server_model_close(other.server);
    td_net_close(other.net);
    td_server_device_close(other.device);
}

static void a_batch_that_waits_for_more_starts_by_itself(void **state)
{
    world *w = *state;
    w->config.model.batch = (td_sched_batch_rule){
        .wait = TD_SCHED_WAIT_FIXED, .most = 2, .wait_ns = 20 * TD_NS_PER_MS};
    world_open_gated(w);
    client *a = attached(w, 0, "arm-0");
    int64_t sent_ns = td_clock_now_ns(&td_clock_monotonic);
    client_send_seq(a, 1);
    world_until(w, is_running_one);
    assert_true(td_clock_now_ns(&td_clock_monotonic) - sent_ns >=
                20 * TD_NS_PER_MS);
    gate_finish(&w->gate, TD_OK);
    (void)client_hear(a);
}

static void strategies_change_and_nothing_waiting_is_lost(void **state)
{
    world *w = *state;
    td_server_device_settings settings = td_server_device_defaults;
    td_server_device *device = NULL;
    assert_int_equal(td_server_device_open(&settings, &device, NULL), TD_OK);
    w->config.device = device;
    world_open_gated(w);
    client *a = attached(w, 0, "arm-0");
    client *b = attached(w, 1, "arm-1");
    client_send_seq(a, 1);
    world_until(w, is_running_one);
    client_send_seq(a, 2);
    client_send_seq(b, 1);
    world_until(w, two_wait);
    for (int i = 0; i < TD_SCHED_STRATEGY_COUNT; i++) {
        settings.policy.strategy = (td_sched_strategy)i;
        assert_int_equal(td_server_device_use(device, &settings), TD_OK);
        assert_int_equal(world_counts(w).outcomes[TD_SERVER_WAITING], 2);
    }
    settings.policy.tiers = TD_SCHED_MAX_TIERS;
    assert_int_equal(td_server_device_use(device, &settings), TD_ERR_INVALID);
    gate_finish(&w->gate, TD_OK);
    world_until(w, is_running_one);
    assert_int_equal(gate_batch_size(&w->gate), 2);
    gate_finish(&w->gate, TD_OK);
    (void)client_hear(b);
    world_close(w);
    td_server_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(batches_each_of_a_failed_one_runs_once_more_alone),
        WORLD_TEST(a_member_that_fails_by_itself_costs_no_second_run),
        WORLD_TEST(engines_when_one_dies_all_are_told_and_status_says_so),
        WORLD_TEST(engines_one_that_is_broken_degrades_its_server),
        WORLD_TEST(engines_one_that_dies_idle_is_noticed),
        WORLD_TEST(devices_one_run_at_a_time_whichever_model),
        WORLD_TEST(one_server_of_a_device_closes_and_the_other_goes_on),
        WORLD_TEST(a_batch_that_waits_for_more_starts_by_itself),
        WORLD_TEST(strategies_change_and_nothing_waiting_is_lost),
    };
    return cmocka_run_group_tests_name("server/server_device", tests, NULL,
                                       NULL);
}
