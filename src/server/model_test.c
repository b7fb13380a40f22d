// SPDX-License-Identifier: Apache-2.0
#include "server/model_fixture.h"

static void a_status_query_is_answered(void **state)
{
    world *w = *state;
    world_open(w);
    client *c = client_open(w, 0, "arm-0", 1);
    client_query(c, NULL, 0);
    assert_int_equal(w->reply_count, 1);
    assert_true(td_wire_text_is(w->status.server, "gpu-1"));
    assert_true(td_wire_text_is(w->status.model_id, "act"));
    assert_true(td_wire_text_is(w->status.model_version, "v1"));
    assert_int_equal(w->status.server_boot, 3);
    assert_int_equal(w->status.state, TD_WIRE_READY);
    assert_int_equal(w->status.max_actions_per_chunk, ROWS);
    assert_int_equal(w->status.capacity, MAX_CLIENTS);
    assert_int_equal(w->status.clients, 0);
    assert_false(w->status.has_attach);
}

static void assert_is_the_models_answer(client *c, const td_wire_obs *obs)
{
    float expected[ROWS * ACTIONS];
    const td_wire_action *answer = client_hear(c);
    td_engine_synthetic_model_answer(c->world->model, c->state, obs->cursor,
                                     expected);
    assert_int_equal(answer->error_code.size, 0);
    assert_memory_equal(&answer->ident, &obs->ident, sizeof obs->ident);
    assert_true(td_wire_text_is(answer->server, "gpu-1"));
    assert_int_equal(answer->actions.rank, 2);
    assert_int_equal(answer->actions.shape[0], ROWS);
    assert_int_equal(answer->actions.shape[1], ACTIONS);
    assert_int_equal(answer->actions.size, sizeof expected);
    assert_memory_equal(answer->actions.data, expected, sizeof expected);
}

static void an_attached_client_gets_the_models_answer(void **state)
{
    world *w = *state;
    world_open(w);
    client *c = client_open(w, 0, "arm-0", 1);
    assert_false(client_matched(c));
    assert_true(client_attach(c, "gpu-1"));
    assert_true(client_matched(c));
    uint64_t chunk_id = 0;
    for (uint64_t seq = 1; seq <= 20; seq++) {
        c->state[0] = (float)seq / 16;
        const td_wire_obs obs = client_obs(c, seq);
        client_send(c, &obs);
        assert_is_the_models_answer(c, &obs);
        assert_true(c->answer.chunk_id > chunk_id);
        chunk_id = c->answer.chunk_id;
    }
    world_until(w, is_idle);
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_ANSWERED], 20);
    assert_int_equal(w->report.clients, 1);
}

static void an_answer_arrives_where_others_are_lost(void **state)
{
    static const td_net_faults lossy = {.loss = 1};
    world *w = *state;
    world_open(w);
    client *c = client_attached(w);
    assert_int_equal(td_net_hub_faults(w->hub, NULL, NULL, &lossy), TD_OK);
    const td_wire_obs obs = client_obs(c, 1);
    client_send(c, &obs);
    assert_is_the_models_answer(c, &obs);
}

static void a_stranger_is_refused_by_reason(void **state)
{
    static const td_server_allowance listed[] = {{.id = "arm-0"}};
    world *w = *state;
    w->config.settings.accept_unknown = false;
    w->config.settings.clients = listed;
    w->config.settings.client_count = TD_COUNT_OF(listed);
    world_open(w);
    client *stranger = client_open(w, 0, "arm-9", 1);
    assert_false(client_attach(stranger, "gpu-1"));
    assert_non_null(strstr(w->status.attach_reason.data, "arm-9 is not in the "
                                                         "manifest"));
    assert_false(client_matched(stranger));
    assert_true(client_attach(client_open(w, 1, "arm-0", 1), "gpu-1"));
    assert_int_equal(world_counts(w).refused_attach, 1);
}

static void a_full_server_refuses_by_reason(void **state)
{
    world *w = *state;
    w->config.settings.capacity = 1;
    world_open(w);
    assert_true(client_attach(client_open(w, 0, "arm-0", 1), "gpu-1"));
    client *late = client_open(w, 1, "arm-1", 1);
    assert_false(client_attach(late, "gpu-1"));
    assert_non_null(strstr(w->status.attach_reason.data, "takes no more"));
    assert_false(client_matched(late));
}

static void attaching_twice_is_attaching_once(void **state)
{
    world *w = *state;
    world_open(w);
    client *c = client_attached(w);
    assert_true(client_attach(c, "gpu-1"));
    assert_int_equal(world_counts(w).attached, 1);
    client_send_seq(c, 1);
    (void)client_hear(c);
    world_until(w, is_idle);
    assert_int_equal(world_counts(w).received, 1);
}

static bool has_received_ten(world *w)
{
    return w->report.counts.received == 10;
}

static void the_newest_observation_wins(void **state)
{
    world *w = *state;
    client *c = client_running_one(w);
    for (uint64_t seq = 2; seq <= 10; seq++)
        client_send_seq(c, seq);
    world_until(w, has_received_ten);
    td_server_counts counts = world_counts(w);
    assert_int_equal(counts.outcomes[TD_SERVER_RUNNING], 1);
    assert_int_equal(counts.outcomes[TD_SERVER_WAITING], 1);
    assert_int_equal(counts.outcomes[TD_SERVER_SUPERSEDED], 8);

    gate_finish(&w->gate, TD_OK);
    const td_wire_action *first = client_hear(c);
    assert_int_equal(first->ident.seq, 1);
    assert_int_equal(first->superseded_count, 8);
    uint64_t named = 0; // a bit for each, in any order
    for (uint32_t i = 0; i < first->superseded_count; i++)
        named |= UINT64_C(1) << first->superseded[i];
    assert_int_equal(named, 0x3fc);

    world_until(w, is_running_one);
    gate_finish(&w->gate, TD_OK);
    const td_wire_action *second = client_hear(c);
    assert_int_equal(second->ident.seq, 10);
    assert_int_equal(second->superseded_count, 0);
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_ANSWERED], 2);
}

static void what_the_engine_fails_is_told(void **state)
{
    world *w = *state;
    client *c = client_running_one(w);
    gate_finish(&w->gate, TD_ERR_IO);
    assert_true(td_wire_text_is(client_hear(c)->error_code, "IO"));
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_FAILED], 1);
}

static void what_fails_is_paid_for(void **state)
{
    world *w = *state;
    client *c = client_running_one(w);
    gate_finish(&w->gate, TD_ERR_IO);
    (void)client_hear(c);
    td_server_view view = {0};
    assert_int_equal(td_server_model_view(w->server, 0, 0, "", &view), TD_OK);
    assert_int_equal(view.numbers.counters[TD_SERVER_COUNT_DEVICE_US], 1000);
    td_server_view_done(&view);
}

static void what_the_engine_does_not_take_is_told(void **state)
{
    world *w = *state;
    atomic_store(&w->gate.refuses, true);
    world_open_gated(w);
    client *a = client_open(w, 0, "arm-0", 1);
    client *b = client_open(w, 1, "arm-1", 1);
    assert_true(client_attach(a, "gpu-1"));
    assert_true(client_attach(b, "gpu-1"));
    client_send_seq(a, 1);
    client_send_seq(b, 1);
    assert_true(client_hear(a)->error_code.size > 0);
    assert_true(client_hear(b)->error_code.size > 0);
    world_until(w, is_idle);
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_FAILED], 2);
    atomic_store(&w->gate.refuses, false);
    client_send_seq(a, 2);
    world_until(w, is_running_one);
    gate_finish(&w->gate, TD_OK);
    assert_int_equal(client_hear(a)->error_code.size, 0);
}

static bool is_unmatched(world *w)
{
    return !client_matched(&w->clients[1]);
}

// The second session watches the key of the first, which goes.
static void a_client_whose_token_goes_leaves(void **state)
{
    world *w = *state;
    world_open(w);
    client *c = client_open(w, 0, "arm-0", 1);
    client *witness = client_open(w, 1, "arm-0", 2);
    assert_true(client_attach(c, "gpu-1"));
    assert_true(client_matched(witness));
    client_close(c);
    world_until(w, is_without_clients);
    world_until(w, is_unmatched);
    assert_int_equal(world_counts(w).departed, 1);
}

static void a_client_that_runs_leaves_when_it_is_answered(void **state)
{
    world *w = *state;
    world_open_gated(w);
    client *c = client_open(w, 0, "arm-0", 1);
    client *other = client_open(w, 1, "arm-1", 1);
    assert_true(client_attach(c, "gpu-1"));
    client_send_seq(c, 1);
    world_until(w, is_running_one);
    client_close(c);
    assert_true(client_attach(other, "gpu-1")); // the token's end came before
    assert_int_equal(world_counts(w).departed, 0);
    gate_finish(&w->gate, TD_OK);
    client_close(other);
    world_until(w, is_without_clients);
    td_server_counts counts = world_counts(w);
    assert_int_equal(counts.departed, 2);
    assert_int_equal(counts.outcomes[TD_SERVER_ANSWERED], 1);
}

static void a_client_that_leaves_may_come_back(void **state)
{
    world *w = *state;
    world_open(w);
    client *c = client_attached(w);
    assert_true(client_leave(c, "gpu-1"));
    world_until(w, is_without_clients);
    assert_true(client_leave(c, "gpu-1"));
    assert_true(client_attach(c, "gpu-1"));
    client_send_seq(c, 1);
    (void)client_hear(c);
    td_server_counts counts = world_counts(w);
    assert_int_equal(counts.departed, 1);
    assert_int_equal(counts.refused_attach, 0);
}

static void an_older_start_takes_no_newer_one_away(void **state)
{
    world *w = *state;
    world_open(w);
    client *newer = client_open(w, 0, "arm-0", 2);
    assert_true(client_attach(newer, "gpu-1"));
    client *older = client_open(w, 1, "arm-0", 1);
    assert_true(client_leave(older, "gpu-1"));
    client_query(newer, NULL, 0); // the loop has looked after its peers since
    assert_int_equal(w->status.clients, 1);
    client_send_seq(newer, 1);
    (void)client_hear(newer);
}

static void a_second_start_waits_for_the_first_to_go(void **state)
{
    world *w = *state;
    world_open(w);
    client *first = client_open(w, 0, "arm-0", 1);
    client *second = client_open(w, 1, "arm-0", 2);
    assert_true(client_attach(first, "gpu-1"));
    assert_false(client_attach(second, "gpu-1"));
    assert_non_null(strstr(w->status.attach_reason.data, "already running"));
    client_close(first);
    world_until(w, is_without_clients);
    assert_true(client_attach(second, "gpu-1"));
    client_send_seq(second, 1);
    assert_int_equal(client_hear(second)->ident.boot, 2);
}

// Nobody attached with the newer number, and no token carries it.
static void a_client_that_sends_a_newer_boot_still_leaves(void **state)
{
    world *w = *state;
    world_open_gated(w);
    client *c = client_attached(w);
    td_wire_obs obs = client_obs(c, 1);
    obs.ident.boot = 2;
    client_send(c, &obs);
    world_until(w, is_running_one);
    client_close(c);
    client *other = client_open(w, 1, "arm-1", 1);
    assert_true(client_attach(other, "gpu-1")); // the token's end came before
    gate_finish(&w->gate, TD_OK);
    client_close(other);
    world_until(w, is_without_clients);
    assert_int_equal(world_counts(w).departed, 2);
}

static void only_the_server_that_was_named_subscribes(void **state)
{
    world *w = *state;
    td_net *net = NULL;
    td_server_model *other = NULL;
    td_engine *engine = NULL;
    td_server_model_report report;
    const td_engine_config config = {.model_id = "act",
                                     .model_version = "v1",
                                     .step_period_us = 33333,
                                     .settings = &w->settings};
    world_open(w);
    td_server_model_config second = w->config;
    second.settings.server_id = "gpu-2";
    assert_int_equal(td_net_inproc_open(w->hub, "server-2", &net, NULL), TD_OK);
    assert_int_equal(td_engine_open("synthetic", &config, &engine, NULL),
                     TD_OK);
    assert_int_equal(td_server_model_open(net, engine, &second, &other, NULL),
                     TD_OK);

    client *c = client_open(w, 0, "arm-0", 1);
    client_query(c, NULL, 0);
    assert_int_equal(w->reply_count, 2);
    assert_true(client_attach(c, "gpu-2"));
    assert_int_equal(world_counts(w).attached, 0);
    client_send_seq(c, 1);
    assert_true(td_wire_text_is(client_hear(c)->server, "gpu-2"));
    td_server_model_report_get(other, &report);
    assert_int_equal(report.counts.received, 1);
    td_server_model_close(other);
    assert_false(client_matched(c));
    assert_int_equal(world_counts(w).received, 0);
    td_net_close(net);
    td_engine_close(engine);
}

static void the_answers_of_many_clients_do_not_mix(void **state)
{
    world *w = *state;
    world_open(w);
    static const char *const ids[] = {"arm-0", "arm-1", "arm-2", "arm-3"};
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        client *c = client_open(w, i, ids[i], 1);
        c->state[0] = (float)i;
        assert_true(client_attach(c, "gpu-1"));
    }
    for (uint64_t seq = 1; seq <= 20; seq++) {
        for (size_t i = 0; i < MAX_CLIENTS; i++)
            client_send_seq(&w->clients[i], seq);
        for (size_t i = 0; i < MAX_CLIENTS; i++) {
            const td_wire_obs obs = client_obs(&w->clients[i], seq);
            assert_is_the_models_answer(&w->clients[i], &obs);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_status_query_is_answered),
        WORLD_TEST(an_attached_client_gets_the_models_answer),
        WORLD_TEST(an_answer_arrives_where_others_are_lost),
        WORLD_TEST(a_stranger_is_refused_by_reason),
        WORLD_TEST(a_full_server_refuses_by_reason),
        WORLD_TEST(attaching_twice_is_attaching_once),
        WORLD_TEST(the_newest_observation_wins),
        WORLD_TEST(what_the_engine_fails_is_told),
        WORLD_TEST(what_fails_is_paid_for),
        WORLD_TEST(what_the_engine_does_not_take_is_told),
        WORLD_TEST(a_client_whose_token_goes_leaves),
        WORLD_TEST(a_client_that_runs_leaves_when_it_is_answered),
        WORLD_TEST(a_client_that_leaves_may_come_back),
        WORLD_TEST(an_older_start_takes_no_newer_one_away),
        WORLD_TEST(a_second_start_waits_for_the_first_to_go),
        WORLD_TEST(a_client_that_sends_a_newer_boot_still_leaves),
        WORLD_TEST(only_the_server_that_was_named_subscribes),
        WORLD_TEST(the_answers_of_many_clients_do_not_mix),
    };
    return cmocka_run_group_tests_name("server/server", tests, NULL, NULL);
}
