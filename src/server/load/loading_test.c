// SPDX-License-Identifier: Apache-2.0
#include "server/load/loading.h"

#include "server/load/duplicate.h"
#include "server/model_fixture.h"
#include "wire/msgpack/text.h"

static td_server_loading_counts counts;

static td_server_loading *open_loading(world *w)
{
    counts = (td_server_loading_counts){0};
    const td_server_loading_config config = {
        .route = w->config.route,
        .server_id = "gpu-1",
        .boot = 3,
        .capacity = 4,
        .counts = &counts,
    };
    td_server_loading *loading = NULL;
    td_errinfo info = {.text = ""};
    if (td_server_loading_open(w->net, &config, &loading, &info) != TD_OK)
        fail_msg("%s", info.text);
    return loading;
}

static void a_status_says_that_the_model_is_loading(void **state)
{
    world *w = *state;
    TD_AUTO(td_server_loading) *loading = open_loading(w);
    client *c = client_open(w, 0, "arm-0", 1);
    assert_non_null(loading);
    client_query(c, NULL, 0);
    assert_int_equal(w->reply_count, 1);
    assert_int_equal(w->status.state, TD_WIRE_WARMING);
    assert_true(td_wire_text_is(w->status.model_id, "act"));
    assert_true(td_wire_text_is(w->status.server, "gpu-1"));
    assert_int_equal(w->status.server_boot, 3);
}

static void whoever_wants_to_attach_is_refused_by_that_word(void **state)
{
    world *w = *state;
    TD_AUTO(td_server_loading) *loading = open_loading(w);
    client *c = client_open(w, 0, "arm-0", 1);
    assert_non_null(loading);
    assert_false(client_attach(c, "gpu-1"));
    assert_true(
        td_wire_text_is(w->status.attach_reason, "server gpu-1 is warming"));
}

static void who_asks_another_server_or_nonsense_is_not_answered(void **state)
{
    world *w = *state;
    TD_AUTO(td_server_loading) *loading = open_loading(w);
    client *c = client_open(w, 0, "arm-0", 1);
    assert_non_null(loading);
    client_query(c, "nonsense", 8);
    assert_int_equal(w->reply_count, 0);
    assert_int_equal(counts.bad_queries, 1);
    const td_wire_attach attach = {.client = td_wire_text_of("arm-0"),
                                   .server = td_wire_text_of("gpu-2"),
                                   .boot = 1};
    size_t count;
    assert_int_equal(td_wire_attach_encode(w->encoder, &attach, NULL), TD_OK);
    const td_slice *parts = td_wire_encoder_parts(w->encoder, &count);
    client_query(c, parts[0].data, parts[0].size);
    assert_int_equal(w->reply_count, 0);
    assert_int_equal(counts.bad_queries, 1);
}

static void what_it_could_not_answer_the_server_counts_on_from(void **state)
{
    world *w = *state;
    w->config.bad_queries = 3;
    w->config.events_dropped = 2;
    world_open(w);
    const td_server_stats *stats = td_server_model_stats(w->server);
    assert_int_equal(
        td_server_stats_counter(stats, TD_SERVER_COUNT_BAD_QUERIES), 3);
    assert_int_equal(
        td_server_stats_counter(stats, TD_SERVER_COUNT_EVENTS_DROPPED), 2);
}

static void a_second_start_meanwhile_is_refused(void **state)
{
    world *w = *state;
    TD_AUTO(td_server_loading) *loading = open_loading(w);
    TD_AUTO(td_net) *other = NULL;
    assert_non_null(loading);
    assert_int_equal(td_net_inproc_open(w->hub, "other", &other, NULL), TD_OK);
    assert_int_equal(
        td_server_duplicate_refuse(other, &w->config.route, "gpu-1", 0, NULL),
        TD_ERR_EXISTS);
}

static void the_server_follows_and_takes_robots(void **state)
{
    world *w = *state;
    client *c = client_open(w, 0, "arm-0", 1);
    for (int i = 0; i < 20; i++) {
        td_server_loading *loading = open_loading(w);
        assert_false(client_attach(c, "gpu-1"));
        td_server_loading_close(loading);
        world_open(w);
        assert_true(client_attach(c, "gpu-1"));
        world_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_status_says_that_the_model_is_loading),
        WORLD_TEST(whoever_wants_to_attach_is_refused_by_that_word),
        WORLD_TEST(who_asks_another_server_or_nonsense_is_not_answered),
        WORLD_TEST(what_it_could_not_answer_the_server_counts_on_from),
        WORLD_TEST(a_second_start_meanwhile_is_refused),
        WORLD_TEST(the_server_follows_and_takes_robots),
    };
    return cmocka_run_group_tests_name("server/loading", tests, NULL, NULL);
}
