// SPDX-License-Identifier: Apache-2.0
#include "edge/edge_fixture.h"

#include <stdio.h>

// Each command is the row of the step after the last, or of a later one where
// the driver was too slow for one.
static void assert_commands_follow_the_chunks(world *w)
{
    size_t count;
    const float *commands = world_commands(w, &count);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        const float *at = commands + i * CHANNELS;
        assert_true(at[0] >= 0 && at[0] == (float)(int64_t)at[0]);
        assert_true(at[1] == -at[0]);
        assert_true(at[0] < (float)w->fake_servers[0].promised);
        if (i > 0) assert_true(at[0] > at[-CHANNELS]);
    }
}

static bool is_even(const td_edge_report *report)
{
    uint64_t sum = 0;
    for (int i = 0; i < TD_EDGE_OUTCOME_COUNT; i++)
        sum += report->counts.outcomes[i];
    return sum == report->counts.sent;
}

static void the_robot_plays_the_chunks(void **state)
{
    world *w = *state;
    const fake_server *p = fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    assert_string_equal(w->report.server, "gpu-1");
    world_until(w, has_merged_twenty);
    world_stop(w);
    assert_int_equal(w->result, TD_OK);
    assert_int_equal(p->attached, 1);
    td_edge_report_get(w->edge, &w->report);
    assert_int_equal(w->report.state, TD_EDGE_STOPPED);
    assert_true(is_even(&w->report));
    td_edge_times times = td_edge_times_get(w->edge);
    assert_true(td_hist_count(times.transport_ns) >= 20);
    assert_true(td_hist_count(times.installed_ns) >= 20);
    assert_true(td_hist_count(times.lateness_ns) >= 20);
    world_close(w);
    assert_commands_follow_the_chunks(w);
}

static bool was_asked(world *w)
{
    return w->fake_servers[0].observations > 0;
}

static void only_what_the_server_wants_is_sent(void **state)
{
    world *w = *state;
    const fake_server *p = fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, was_asked);
    assert_int_equal(w->config.profile.camera_count, 2);
    assert_int_equal(p->images, 1);
    assert_string_equal(p->task, "wave");
}

static void other_version(td_wire_status *status)
{
    status->model_version = td_wire_text_of("v2");
}

static void other_period(td_wire_status *status)
{
    status->step_period_us = 20000;
}

static void other_order(td_wire_status *status)
{
    status->actions[0] = status->actions[1];
}

static void a_server_that_does_not_fit_ends_the_start(void **state)
{
    static const struct {
        const char *name;
        void (*edit)(td_wire_status *status);
        const char *field, *own, *theirs;
    } cases[] = {
        {"version", other_version, "model_version", "v1", "v2"},
        {"period", other_period, "step_period_us", "2000", "20000"},
        {"order", other_order, "action_names[0]", "lift", "turn"},
    };
    world *w = *state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        fake_server *p = fake_server_open(w, 0, "gpu-1");
        p->edit_status = cases[i].edit;
        world_open(w);
        world_run(w);
        world_until(w, has_returned);
        world_stop(w);
        print_message("%s: %s\n", cases[i].name, w->why.text);
        assert_int_equal(w->result, TD_ERR_MISMATCH);
        assert_non_null(strstr(w->why.text, cases[i].field));
        assert_non_null(strstr(w->why.text, cases[i].own));
        assert_non_null(strstr(w->why.text, cases[i].theirs));
        assert_int_equal(p->attached, 0);
        world_close(w);
        fake_server_close(p);
    }
}

static void a_server_of_a_newer_schema_ends_the_start(void **state)
{
    world *w = *state;
    fake_server_open(w, 0, "gpu-1")->newer_schema = true;
    world_open(w);
    world_run(w);
    world_until(w, has_returned);
    assert_int_equal(w->result, TD_ERR_VERSION);
    assert_non_null(strstr(w->why.text, "schema 2 is newer"));
}

static void a_stranger_who_answers_first_keeps_nobody_out(void **state)
{
    static const struct {
        const char *name;
        bool newer, sends_garbage;
        size_t place; // of the stranger: fake servers answer in their order
        td_edge_reply reply;
    } cases[] = {
        {"newer, first", true, false, 0, TD_EDGE_REPLY_NEWER},
        {"newer, last", true, false, 1, TD_EDGE_REPLY_NEWER},
        {"unreadable, first", false, true, 0, TD_EDGE_REPLY_UNREADABLE},
        {"unreadable, last", false, true, 1, TD_EDGE_REPLY_UNREADABLE},
    };
    world *w = *state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].name);
        fake_server *stranger = fake_server_open(w, cases[i].place, "stranger");
        stranger->newer_schema = cases[i].newer;
        stranger->sends_garbage = cases[i].sends_garbage;
        fake_server *good = fake_server_open(w, 1 - cases[i].place, "good");
        world_stream(w);
        assert_string_equal(w->report.server, "good");
        // To the question who is there, and to the attach.
        assert_int_equal(w->report.replies[cases[i].reply], 2);
        world_stop(w);
        world_close(w);
        fake_server_close(stranger);
        fake_server_close(good);
    }
}

static bool has_asked_twice_unanswered(world *w)
{
    return w->report.replies[TD_EDGE_REPLY_NOT_READY] >= 2 &&
           w->report.replies[TD_EDGE_REPLY_NEWER] >= 2;
}

// Whoever answers first.
static void a_server_that_warms_up_is_worth_waiting_for(void **state)
{
    world *w = *state;
    fake_server_open(w, 0, "newer")->newer_schema = true;
    fake_server *warming = fake_server_open(w, 1, "warming");
    warming->state = TD_WIRE_WARMING;
    world_open(w);
    world_run(w);
    world_until(w, has_asked_twice_unanswered);
    assert_int_equal(w->report.state, TD_EDGE_CONNECTING);
    warming->state = TD_WIRE_READY;
    world_until(w, is_streaming);
    assert_string_equal(w->report.server, "warming");
}

static bool found_nobody(world *w)
{
    return w->report.replies[TD_EDGE_REPLY_NOBODY] > 0;
}

static void a_question_that_nobody_answers_is_counted(void **state)
{
    world *w = *state;
    world_open(w);
    world_run(w);
    world_until(w, found_nobody);
}

static void a_robot_that_is_refused_gives_up_and_says_why(void **state)
{
    world *w = *state;
    fake_server_open(w, 0, "gpu-1")->denies = "arm-0 is not in the manifest";
    w->config.refused_for_ns = 1;
    world_open(w);
    world_run(w);
    world_until(w, has_returned);
    assert_int_equal(w->result, TD_ERR_DENIED);
    assert_string_equal(w->why.text, "arm-0 is not in the manifest");
    assert_int_equal(w->report.replies[TD_EDGE_REPLY_REFUSED], 1);
}

static bool has_asked_to_attach(world *w)
{
    return w->fake_servers[0].queries >= 2;
}

static void a_robot_that_is_refused_for_less_keeps_asking(void **state)
{
    world *w = *state;
    fake_server *p = fake_server_open(w, 0, "gpu-1");
    p->denies = "the old start is still there";
    world_open(w);
    world_run(w);
    world_until(w, has_asked_to_attach);
    assert_int_equal(w->report.state, TD_EDGE_CONNECTING);
    p->denies = NULL;
    world_until(w, is_streaming);
}

static void a_robot_waits_for_a_server_that_is_ready(void **state)
{
    world *w = *state;
    fake_server_open(w, 0, "warming")->state = TD_WIRE_WARMING;
    world_open(w);
    world_run(w);
    world_until(w, has_asked);
    assert_int_equal(w->report.state, TD_EDGE_CONNECTING);
    fake_server_open(w, 1, "ready");
    world_until(w, is_streaming);
    assert_string_equal(w->report.server, "ready");
}

static void a_robot_may_start_before_its_server(void **state)
{
    world *w = *state;
    world_open(w);
    world_run(w);
    (void)fake_server_open(w, 0, "gpu-1");
    world_until(w, is_streaming);
}

static bool is_starving(world *w)
{
    return w->report.counts.starved >= 20;
}

static uint64_t held_at; // step

// No new row for thirty ticks.
static bool holds(world *w)
{
    static uint64_t since;
    const td_edge_counts *counts = &w->report.counts;
    if (counts->fresh != held_at) {
        held_at = counts->fresh;
        since = counts->ticks;
    }
    return counts->ticks >= since + 30;
}

static bool plays_again(world *w)
{
    return is_streaming(w) && w->report.counts.fresh > held_at + ROWS;
}

static void a_robot_holds_until_a_server_is_back(void **state)
{
    world *w = *state;
    fake_server *p = fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_merged_twenty);
    fake_server_close(p);
    world_until(w, is_reconnecting);
    world_until(w, holds);
    fake_server_reopen(p);
    world_until(w, plays_again);
    assert_true(w->report.entered[TD_EDGE_RECONNECTING] >= 1);
    world_stop(w);
    td_edge_report_get(w->edge, &w->report);
    world_close(w);
    assert_commands_follow_the_chunks(w);
}

static void the_least_loaded_server_is_chosen(void **state)
{
    world *w = *state;
    fake_server_open(w, 0, "busy")->load = 0.9f;
    fake_server_open(w, 1, "idle")->load = 0.1f;
    world_stream(w);
    world_until(w, has_merged_twenty);
    assert_string_equal(w->report.server, "idle");
    assert_int_equal(w->fake_servers[0].attached, 0);
    assert_int_equal(w->fake_servers[0].observations, 0);
}

static void a_degraded_server_is_the_last_resort(void **state)
{
    world *w = *state;
    fake_server *broken = fake_server_open(w, 0, "broken");
    broken->state = TD_WIRE_DEGRADED;
    fake_server_open(w, 1, "busy")->load = 0.9f;
    world_stream(w);
    world_until(w, has_merged_twenty);
    assert_string_equal(w->report.server, "busy");
    assert_int_equal(broken->attached, 0);
}

static void refuse(td_wire_action *action)
{
    action->actions = (td_wire_tensor){0};
    action->error_code = td_wire_text_of("MISMATCH");
    action->error_text = td_wire_text_of("state: is 2, the model wants 3");
}

static bool was_refused_often(world *w)
{
    return world_outcome(w, TD_EDGE_REFUSED) >= 5;
}

static void a_refused_observation_is_counted_and_asked_again(void **state)
{
    world *w = *state;
    fake_server_open(w, 0, "gpu-1")->edit_answer = refuse;
    world_stream(w);
    world_until(w, was_refused_often);
    assert_int_equal(world_outcome(w, TD_EDGE_MERGED), 0);
    world_stop(w);
    world_close(w);
    size_t count;
    (void)world_commands(w, &count);
    assert_int_equal(count, 0);
}

// Asks once, is answered once, and then holds.
static void open_and_hold(world *w)
{
    w->config.core.ask.resend_min_ns = 60 * TD_NS_PER_S;
    w->config.core.ask.resend_max_ns = 60 * TD_NS_PER_S;
    fake_server_open(w, 0, "gpu-1")->answers_left = 1;
    world_stream(w);
    world_until(w, is_starving);
}

static uint64_t strays(const world *w)
{
    uint64_t sum = 0;
    for (int i = 0; i < TD_EDGE_STRAY_COUNT; i++)
        sum += w->report.counts.strays[i];
    return sum;
}

static bool has_one_more_stray(world *w)
{
    static uint64_t seen;
    if (strays(w) == seen) return false;
    seen = strays(w);
    return true;
}

static void a_strangers_answer_is_counted_and_changes_nothing(void **state)
{
    static const struct {
        const char *name;
        td_edge_stray stray;
        const char *server;
        td_wire_ident ident;
    } cases[] = {
        {"server", TD_EDGE_STRAY_SERVER, "gpu-2", {7, 0, 1, 2}},
        {"older boot", TD_EDGE_STRAY_BOOT, "gpu-1", {6, 0, 1, 2}},
        {"newer boot", TD_EDGE_STRAY_BOOT, "gpu-1", {8, 0, 1, 2}},
        {"route", TD_EDGE_STRAY_ROUTE, "gpu-1", {7, 1, 1, 2}},
        {"episode", TD_EDGE_STRAY_EPISODE, "gpu-1", {7, 0, 2, 2}},
        {"answered before", TD_EDGE_STRAY_SEQ, "gpu-1", {7, 0, 1, 1}},
        {"never sent", TD_EDGE_STRAY_SEQ, "gpu-1", {7, 0, 1, 99}},
        {"not a message", TD_EDGE_STRAY_MALFORMED, NULL, {0}},
    };
    static const float rows[ROWS * CHANNELS] = {99};
    world *w = *state;
    open_and_hold(w);
    td_edge_counts before = w->report.counts;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_wire_action action = world_stray(rows);
        uint64_t count = w->report.counts.strays[cases[i].stray];
        print_message("%s\n", cases[i].name);
        action.ident = cases[i].ident;
        action.server = td_wire_text_of(cases[i].server ? cases[i].server : "");
        if (cases[i].server)
            world_inject(w, &action);
        else
            world_inject_bytes(w, "\xc1", 1);
        world_until(w, has_one_more_stray);
        assert_int_equal(w->report.counts.strays[cases[i].stray], count + 1);
    }
    assert_int_equal(world_outcome(w, TD_EDGE_MERGED), 1);
    assert_int_equal(w->report.counts.fresh, before.fresh);
    world_stop(w);
    world_close(w);
    assert_commands_follow_the_chunks(w);
}

typedef struct board {
    pthread_mutex_t lock; // guards everything below
    uint64_t count, asked;
    char source[16], state[16]; // of the newest
} board;

// Transport's thread.
static void on_metrics(void *user, const td_net_sample *sample)
{
    board *b = user;
    td_wire_decoder *decoder = NULL;
    td_wire_metrics metrics;
    if (td_wire_decoder_new(&decoder) != TD_OK) return;
    pthread_mutex_lock(&b->lock);
    if (td_wire_metrics_decode(decoder, sample->head.data, sample->head.size,
                               &metrics, NULL) == TD_OK) {
        b->count++;
        (void)snprintf(b->source, sizeof b->source, "%.*s",
                       (int)metrics.source.size, metrics.source.data);
        (void)snprintf(b->state, sizeof b->state, "%.*s",
                       (int)metrics.state.size, metrics.state.data);
        for (uint32_t i = 0; i < metrics.counter_count; i++)
            if (td_wire_text_is(metrics.counters[i].name, "asked"))
                b->asked = metrics.counters[i].value;
    }
    pthread_mutex_unlock(&b->lock);
    td_wire_decoder_free(decoder);
}

static board telemetry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool says(const char *word)
{
    pthread_mutex_lock(&telemetry.lock);
    bool same = strcmp(telemetry.state, word) == 0;
    pthread_mutex_unlock(&telemetry.lock);
    return same;
}

static bool says_streaming(world *w)
{
    (void)w;
    return says("STREAMING");
}

static bool says_stopped(world *w)
{
    (void)w;
    return says("STOPPED");
}

static void telemetry_tells_each_state_and_the_last_word(void **state)
{
    world *w = *state;
    td_net_decl *decl = NULL;
    w->config.metrics_period_ns = 10 * TD_NS_PER_MS;
    assert_int_equal(td_net_subscribe(w->stranger,
                                      "lab/trial/act/v1/demo/arm-0/metrics",
                                      on_metrics, &telemetry, &decl, NULL),
                     TD_OK);
    (void)fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_merged_twenty);
    world_until(w, says_streaming);
    world_stop(w);
    world_until(w, says_stopped);
    (void)td_net_undeclare(decl);
    assert_string_equal(telemetry.source, "arm-0");
    assert_true(telemetry.asked > 0);
    assert_int_equal(w->report.metrics_failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(the_robot_plays_the_chunks),
        WORLD_TEST(only_what_the_server_wants_is_sent),
        WORLD_TEST(a_server_that_does_not_fit_ends_the_start),
        WORLD_TEST(a_server_of_a_newer_schema_ends_the_start),
        WORLD_TEST(a_stranger_who_answers_first_keeps_nobody_out),
        WORLD_TEST(a_server_that_warms_up_is_worth_waiting_for),
        WORLD_TEST(a_question_that_nobody_answers_is_counted),
        WORLD_TEST(a_robot_that_is_refused_gives_up_and_says_why),
        WORLD_TEST(a_robot_that_is_refused_for_less_keeps_asking),
        WORLD_TEST(a_robot_waits_for_a_server_that_is_ready),
        WORLD_TEST(a_robot_may_start_before_its_server),
        WORLD_TEST(a_robot_holds_until_a_server_is_back),
        WORLD_TEST(the_least_loaded_server_is_chosen),
        WORLD_TEST(a_degraded_server_is_the_last_resort),
        WORLD_TEST(a_refused_observation_is_counted_and_asked_again),
        WORLD_TEST(a_strangers_answer_is_counted_and_changes_nothing),
        WORLD_TEST(telemetry_tells_each_state_and_the_last_word),
    };
    return cmocka_run_group_tests_name("edge/edge", tests, NULL, NULL);
}
