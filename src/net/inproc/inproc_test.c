// SPDX-License-Identifier: Apache-2.0
#include "net/inproc/inproc.h"

#include "base/sync/thread.h"
#include "net/conformance/world.h"

#include <string.h>

#define MS TD_NS_PER_MS
#define START_NS (1000 * TD_NS_PER_S)

typedef struct hub_state {
    td_clock_virtual clock;
    td_net_hub *hub;
} hub_state;

static td_err open_both(td_net_hub *hub, td_net **ret_a, td_net **ret_b)
{
    TD_AUTO(td_net) *a = NULL;
    TD_TRY(td_net_inproc_open(hub, "a", &a, NULL));
    TD_TRY(td_net_inproc_open(hub, "b", ret_b, NULL));
    *ret_a = TD_TAKE(a);
    return TD_OK;
}

static td_err open_virtual(void *user, td_net **ret_a, td_net **ret_b)
{
    hub_state *state = user;
    td_clock_virtual_init(&state->clock, START_NS);
    TD_TRY(td_net_hub_new(&state->clock, 1, &state->hub));
    return open_both(state->hub, ret_a, ret_b);
}

static td_err open_rough(void *user, td_net **ret_a, td_net **ret_b)
{
    static const td_net_faults rough = {.delay_ns = MS,
                                        .jitter_ns = 3 * MS,
                                        .loss = 0.5,
                                        .duplicate = 0.5,
                                        .reorder = 0.5};
    hub_state *state = user;
    TD_TRY(open_virtual(state, ret_a, ret_b));
    return td_net_hub_faults(state->hub, NULL, NULL, &rough);
}

static td_err open_threaded(void *user, td_net **ret_a, td_net **ret_b)
{
    hub_state *state = user;
    TD_TRY(td_net_hub_new_threaded(1, &state->hub));
    return open_both(state->hub, ret_a, ret_b);
}

static void close_hub(void *user)
{
    hub_state *state = user;
    td_net_hub_free(TD_TAKE(state->hub));
}

// From delivery to delivery, or a millisecond on where there is none.
static bool step_until(void *user, bool (*predicate)(void *user),
                       void *predicate_user)
{
    hub_state *state = user;
    for (int steps = 0; steps < 10000; steps++) {
        if (predicate(predicate_user)) return true;
        int64_t at_ns = td_clock_now_ns(&state->clock.clock) + MS;
        (void)td_net_hub_next_due(state->hub, &at_ns);
        td_net_hub_run_until(state->hub, at_ns);
    }
    return false;
}

static bool lends(const td_net *net)
{
    (void)net;
    return true;
}

static hub_state state_virtual;
static const td_net_fixture virtual_hub = {
    .name = "inproc, virtual",
    .state = &state_virtual,
    .open_pair = open_virtual,
    .close_pair = close_hub,
    .until = step_until,
    .lends = lends,
};
static hub_state state_rough;
static const td_net_fixture rough_hub = {
    .name = "inproc, virtual, rough",
    .state = &state_rough,
    .open_pair = open_rough,
    .close_pair = close_hub,
    .until = step_until,
    .lends = lends,
};
static hub_state state_threaded;
static const td_net_fixture threaded_hub = {
    .name = "inproc, threaded",
    .state = &state_threaded,
    .open_pair = open_threaded,
    .close_pair = close_hub,
    .until = td_net_conformance_poll,
    .lends = lends,
};

static td_net_hub *hub_of(const td_conf_world *world)
{
    return ((const hub_state *)world->fixture->state)->hub;
}

static void run_for(const td_conf_world *world, int64_t ns)
{
    hub_state *state = world->fixture->state;
    td_net_hub_run_until(state->hub, td_clock_now_ns(&state->clock.clock) + ns);
}

static void cut(const td_conf_world *world, bool is_cut)
{
    assert_int_equal(td_net_hub_partition(hub_of(world), "a", "b", is_cut),
                     TD_OK);
    run_for(world, TD_NS_PER_S);
}

static void assert_last_notice(td_conf_recorder *rec, size_t count,
                               const char *key, bool up)
{
    assert_int_equal(td_conf_count(rec), count);
    assert_string_equal(td_conf_at(rec, count - 1).key, key);
    assert_int_equal(td_conf_at(rec, count - 1).up, up);
}

static void partition_takes_tokens_and_links_along(void **state)
{
    td_conf_world *world = *state;
    td_conf_recorder tokens;
    td_conf_recorder links;
    td_conf_recorder_init(&tokens);
    td_conf_recorder_init(&links);
    TD_AUTO(td_net_decl) *token = NULL;
    TD_AUTO(td_net_decl) *watch = NULL;
    TD_AUTO(td_net_decl) *link = NULL;
    assert_int_equal(td_net_token(world->b, "t/b", &token, NULL), TD_OK);
    assert_int_equal(
        td_net_watch(world->a, "t/*", td_conf_on_alive, &tokens, &watch, NULL),
        TD_OK);
    assert_int_equal(
        td_net_links(world->a, td_conf_on_link, &links, &link, NULL), TD_OK);
    run_for(world, MS);
    assert_last_notice(&tokens, 1, "t/b", true);
    assert_last_notice(&links, 1, "b", true);
    cut(world, true);
    assert_last_notice(&tokens, 2, "t/b", false);
    assert_last_notice(&links, 2, "b", false);
    cut(world, true);
    assert_int_equal(td_conf_count(&tokens), 2);
    cut(world, false);
    assert_last_notice(&tokens, 3, "t/b", true);
    assert_last_notice(&links, 3, "b", true);
}

static void token_that_ends_behind_a_partition_stays_gone(void **state)
{
    td_conf_world *world = *state;
    td_conf_recorder tokens;
    td_conf_recorder_init(&tokens);
    TD_AUTO(td_net_decl) *watch = NULL;
    td_net_decl *token = NULL;
    assert_int_equal(
        td_net_watch(world->a, "t/*", td_conf_on_alive, &tokens, &watch, NULL),
        TD_OK);
    assert_int_equal(td_net_token(world->b, "t/b", &token, NULL), TD_OK);
    run_for(world, MS);
    cut(world, true);
    assert_int_equal(td_net_undeclare(token), TD_OK);
    cut(world, false);
    assert_last_notice(&tokens, 2, "t/b", false);
}

static td_net_decl *serve(td_net *net, td_conf_recorder *requests)
{
    td_net_decl *decl = NULL;
    assert_int_equal(
        td_net_serve(net, "q", td_conf_on_request, requests, &decl, NULL),
        TD_OK);
    return decl;
}

static void ask(td_net *net, td_conf_recorder *replies)
{
    assert_int_equal(td_net_query(net, "q", (td_slice){0}, 60 * TD_NS_PER_S,
                                  td_conf_on_sample, td_conf_on_done, replies,
                                  NULL),
                     TD_OK);
}

static void end_by_partition(td_conf_world *world, td_net_decl **decl)
{
    (void)decl;
    cut(world, true);
}

static void end_by_undeclaring(td_conf_world *world, td_net_decl **decl)
{
    assert_int_equal(td_net_undeclare(TD_TAKE(*decl)), TD_OK);
    run_for(world, MS);
}

static void end_by_server_closing(td_conf_world *world, td_net_decl **decl)
{
    assert_int_equal(td_net_undeclare(TD_TAKE(*decl)), TD_OK);
    td_net_close(TD_TAKE(world->b));
    run_for(world, MS);
}

static void end_by_asker_closing(td_conf_world *world, td_net_decl **decl)
{
    (void)decl;
    td_net_close(TD_TAKE(world->a));
}

static const struct {
    const char *name;
    void (*end)(td_conf_world *world, td_net_decl **decl);
    bool before_arrival;
} endings[] = {
    {"partition, request held", end_by_partition, false},
    {"partition, request on its way", end_by_partition, true},
    {"server undeclared, request on its way", end_by_undeclaring, true},
    {"server closes, request held", end_by_server_closing, false},
    {"server closes, request on its way", end_by_server_closing, true},
    {"asker closes, request held", end_by_asker_closing, false},
    {"asker closes, request on its way", end_by_asker_closing, true},
};

static void end_query(td_conf_world *world, size_t row)
{
    td_conf_recorder requests;
    td_conf_recorder replies;
    td_conf_recorder_init(&requests);
    td_conf_recorder_init(&replies);
    td_net_decl *decl = serve(world->b, &requests);
    ask(world->a, &replies);
    if (!endings[row].before_arrival) run_for(world, MS);
    assert_int_equal(td_conf_done(&replies), 0);
    endings[row].end(world, &decl);
    if (td_conf_done(&replies) != 1)
        fail_msg("%s: on_done %zu times", endings[row].name,
                 td_conf_done(&replies));

    run_for(world, 120 * TD_NS_PER_S);
    td_net_request *held;
    while ((held = td_conf_take_request(&requests)))
        td_net_request_free(held);
    run_for(world, MS);
    assert_int_equal(td_conf_done(&replies), 1);
    if (decl) assert_int_equal(td_net_undeclare(decl), TD_OK);
    td_conf_recorder_done(&requests);
    td_conf_recorder_done(&replies);
}

static void query_ends_once_whoever_goes(void **state)
{
    for (size_t i = 0; i < TD_COUNT_OF(endings); i++) {
        end_query(*state, i);
        td_conf_world_close(*state);
        assert_int_equal(td_conf_world_open(*state), TD_OK);
    }
}

// The reply is still on its way when its server is gone.
static void last_reply_of_a_closed_server_arrives(void **state)
{
    td_conf_world *world = *state;
    td_conf_recorder requests;
    td_conf_recorder replies;
    td_conf_recorder_init(&requests);
    td_conf_recorder_init(&replies);
    td_net_faults slow = {.delay_ns = 10 * MS};
    assert_int_equal(td_net_hub_faults(hub_of(world), "b", "a", &slow), TD_OK);
    td_net_decl *decl = serve(world->b, &requests);
    ask(world->a, &replies);
    run_for(world, MS);
    td_net_request *request = td_conf_take_request(&requests);
    assert_non_null(request);
    assert_int_equal(td_net_reply(request, "q", &(td_slice){"r", 1}, 1), TD_OK);
    td_net_request_free(request);
    assert_int_equal(td_net_undeclare(decl), TD_OK);
    td_net_close(TD_TAKE(world->b));
    run_for(world, TD_NS_PER_S);
    assert_int_equal(td_conf_count(&replies), 1);
    assert_int_equal(td_conf_done(&replies), 1);
    int64_t due_ns = 0;
    assert_false(td_net_hub_next_due(hub_of(world), &due_ns));
}

static void name_is_taken_until_its_session_closes(void **state)
{
    td_conf_world *world = *state;
    td_errinfo info = {""};
    td_net *again = NULL;
    assert_int_equal(td_net_inproc_open(hub_of(world), "b", &again, &info),
                     TD_ERR_EXISTS);
    assert_non_null(strstr(info.text, "'b'"));
    assert_int_equal(td_net_inproc_open(hub_of(world), "", &again, &info),
                     TD_ERR_INVALID);
    td_net_close(world->b);
    assert_int_equal(td_net_inproc_open(hub_of(world), "b", &world->b, NULL),
                     TD_OK);
}

// Two threads put as fast as they can while the test's own comes and goes.
struct load {
    td_net_pub *pub;
    td_thread *thread;
    _Atomic bool stop;
};

static void put_until_stopped(void *user)
{
    struct load *load = user;
    td_slice part = {"x", 1};
    while (!load->stop)
        if (td_net_put(load->pub, &part, 1, NULL, NULL) != TD_OK) return;
}

static void load_start(struct load *load, td_net *net, const char *key)
{
    load->pub = td_conf_publish(net, key);
    load->stop = false;
    td_thread_config config = {.name = "load", .cpu = -1};
    assert_int_equal(
        td_thread_start(&config, put_until_stopped, load, &load->thread, NULL),
        TD_OK);
}

static void load_stop(struct load *load)
{
    load->stop = true;
    td_thread_join(load->thread);
    td_net_unpublish(load->pub);
}

static void subscribers_come_and_go_under_load(void **state)
{
    td_conf_world *world = *state;
    td_conf_recorder rec;
    td_conf_recorder_init(&rec);
    struct load near;
    struct load far;
    load_start(&near, world->b, "load/1");
    load_start(&far, world->a, "load/2");
    for (int i = 0; i < 50; i++) {
        td_net_decl *sub = td_conf_subscribe(world->b, "load/*", &rec);
        td_conf_until_count(world, &rec, td_conf_count(&rec) + 1);
        assert_int_equal(td_net_undeclare(sub), TD_OK);
        assert_int_equal(rec.entered, rec.left); // nobody else is in there
    }
    load_stop(&far);
    load_stop(&near);
    td_net_hub_stats stats;
    td_net_hub_stats_get(hub_of(world), &stats);
    assert_int_equal(stats.put, stats.delivered + stats.cut);
    assert_int_equal(stats.delivered, rec.count);
    td_conf_recorder_done(&rec);
}

#define TEST(test) TD_CONF_TEST(#test, test)

static int run_virtual_only(void)
{
    const struct CMUnitTest tests[] = {
        TEST(partition_takes_tokens_and_links_along),
        TEST(token_that_ends_behind_a_partition_stays_gone),
        TEST(query_ends_once_whoever_goes),
        TEST(last_reply_of_a_closed_server_arrives),
        TEST(name_is_taken_until_its_session_closes),
    };
    td_conf_use(&virtual_hub);
    return cmocka_run_group_tests_name("inproc, virtual only", tests, NULL,
                                       NULL);
}

static int run_threaded_only(void)
{
    const struct CMUnitTest tests[] = {
        TEST(subscribers_come_and_go_under_load),
    };
    td_conf_use(&threaded_hub);
    return cmocka_run_group_tests_name("inproc, threaded only", tests, NULL,
                                       NULL);
}

int main(void)
{
    return td_net_conformance(&virtual_hub) + td_net_conformance(&rough_hub) +
           td_net_conformance(&threaded_hub) + run_virtual_only() +
           run_threaded_only();
}
