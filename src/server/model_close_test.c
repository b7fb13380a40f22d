// SPDX-License-Identifier: Apache-2.0
// Closing at every bad moment. The transport asserts that nothing declared is
// left when the server's session closes, the sanitizers look for the rest.
#include "server/model_fixture.h"

#include "base/sync/thread.h"
#include "wire/msgpack/text.h"

#include <stdatomic.h>

static void opening_and_closing_leaves_nothing_behind(void **state)
{
    world *w = *state;
    client *c = client_open(w, 0, "arm-0", 1);
    for (int i = 0; i < 50; i++) {
        world_open(w);
        if (i % 2) assert_true(client_attach(c, "gpu-1"));
        world_close(w);
        assert_false(client_matched(c));
    }
}

// The engine's thread has just answered, and has still to look for more.
static void closing_races_with_the_end_of_a_batch(void **state)
{
    world *w = *state;
    client *c = client_open(w, 0, "arm-0", 1);
    for (int i = 0; i < 300; i++) {
        world_open(w);
        assert_true(client_attach(c, "gpu-1"));
        client_send_seq(c, 1);
        (void)client_hear(c);
        world_close(w);
    }
}

static void closing_with_requests_that_run_and_wait_is_safe(void **state)
{
    static const char *const ids[] = {"arm-0", "arm-1", "arm-2", "arm-3"};
    world *w = *state;
    w->settings.max_batch = 1;
    w->settings.latency =
        (td_engine_latency){.kind = TD_ENGINE_LATENCY_FIXED, .ms = 2};
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        (void)client_open(w, i, ids[i], 1);
    for (int round = 0; round < 30; round++) {
        world_open(w);
        for (size_t i = 0; i < MAX_CLIENTS; i++)
            assert_true(client_attach(&w->clients[i], "gpu-1"));
        for (uint64_t seq = 1; seq <= 5; seq++)
            for (size_t i = 0; i < MAX_CLIENTS; i++)
                client_send_seq(&w->clients[i], seq);
        if (round % 2) (void)client_hear(&w->clients[0]);
        world_close(w);
    }
}

static bool runs_and_waits(world *w)
{
    return w->report.counts.outcomes[TD_SERVER_RUNNING] == 1 &&
           w->report.counts.outcomes[TD_SERVER_WAITING] == 1;
}

static _Atomic bool is_closed;

static void close_server(void *user)
{
    td_server_model_close(user);
    atomic_store(&is_closed, true);
}

static bool is_without_status(world *w)
{
    client_query(&w->clients[0], NULL, 0);
    return w->reply_count == 0;
}

static void closing_waits_for_what_runs_and_starts_nothing_more(void **state)
{
    world *w = *state;
    const td_thread_config config = {.name = "td-close", .cpu = -1};
    td_thread *thread = NULL;
    client *c = client_running_one(w);
    client_send_seq(c, 2);
    world_until(w, runs_and_waits);
    td_server_model *server = TD_TAKE(w->server);
    assert_int_equal(
        td_thread_start(&config, close_server, server, &thread, NULL), TD_OK);
    world_until(w, is_without_status);
    assert_false(atomic_load(&is_closed));
    gate_finish(&w->gate, TD_OK);
    td_thread_join(thread);
    assert_false(is_running_one(w));
    assert_int_equal(client_hear(c)->ident.seq, 1);
    assert_false(client_matched(c));
}

static bool is_drained(world *w)
{
    return td_server_model_drained(w->server);
}

static void draining_answers_what_waits_and_takes_nothing_more(void **state)
{
    world *w = *state;
    client *c = client_running_one(w);
    client_send_seq(c, 2);
    world_until(w, runs_and_waits);
    td_server_model_drain(w->server);
    assert_false(td_server_model_drained(w->server));
    client *late = client_open(w, 1, "arm-1", 1);
    assert_false(client_attach(late, "gpu-1"));
    assert_int_equal(w->status.state, TD_WIRE_DRAINING);
    assert_true(
        td_wire_text_is(w->status.attach_reason, "server gpu-1 is draining"));
    client_send_seq(c, 3);
    const td_wire_action *refused = client_hear(c);
    assert_int_equal(refused->ident.seq, 3);
    assert_true(
        td_wire_text_is(refused->error_text, "server gpu-1 is draining"));
    gate_finish(&w->gate, TD_OK);
    assert_int_equal(client_hear(c)->ident.seq, 1);
    world_until(w, is_running_one);
    gate_finish(&w->gate, TD_OK);
    assert_int_equal(client_hear(c)->ident.seq, 2);
    world_until(w, is_drained);
    td_server_counts counts = world_counts(w);
    assert_int_equal(counts.outcomes[TD_SERVER_ANSWERED], 2);
    assert_int_equal(counts.outcomes[TD_SERVER_UNREADY], 1);
}

static void closing_with_queries_under_way_ends_them(void **state)
{
    world *w = *state;
    client *c = client_open(w, 0, "arm-0", 1);
    for (int i = 0; i < 50; i++) {
        td_thread *thread = NULL;
        const td_thread_config config = {.name = "td-close", .cpu = -1};
        world_open(w);
        td_server_model *server = TD_TAKE(w->server);
        assert_int_equal(
            td_thread_start(&config, close_server, server, &thread, NULL),
            TD_OK);
        client_query(c, NULL, 0);
        assert_true(w->reply_count <= 1);
        td_thread_join(thread);
    }
}

static void closing_while_clients_come_and_go_is_safe(void **state)
{
    world *w = *state;
    for (int i = 0; i < 50; i++) {
        world_open(w);
        client *c = client_open(w, 0, "arm-0", 1);
        assert_true(client_attach(c, "gpu-1"));
        client_send_seq(c, 1);
        client_close(c);
        if (i % 2) world_until(w, is_without_clients);
        world_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(opening_and_closing_leaves_nothing_behind),
        WORLD_TEST(closing_races_with_the_end_of_a_batch),
        WORLD_TEST(closing_with_requests_that_run_and_wait_is_safe),
        WORLD_TEST(closing_waits_for_what_runs_and_starts_nothing_more),
        WORLD_TEST(draining_answers_what_waits_and_takes_nothing_more),
        WORLD_TEST(closing_with_queries_under_way_ends_them),
        WORLD_TEST(closing_while_clients_come_and_go_is_safe),
    };
    return cmocka_run_group_tests_name("server/server_close", tests, NULL,
                                       NULL);
}
