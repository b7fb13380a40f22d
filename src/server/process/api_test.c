// SPDX-License-Identifier: Apache-2.0
// The C API of a server, over a network in this process, with clients that the
// test moves.
#include "server/process/api.h"

#include "base/log.h"
#include "server/model_fixture.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

// Fits the fixture's clients.
static const char manifest_text[] =
    "cluster_uuid: lab\n"
    "experiment_tag: trial\n"
    "models:\n"
    "- server_id: gpu-1\n"
    "  model_id: act\n"
    "  model_version: v1\n"
    "  application_tag: demo\n"
    "  endpoint: tcp/127.0.0.1:7447\n"
    "  accept_unknown: true\n"
    "  capacity: 4\n"
    "  batch: {wait: none}\n"
    "  engine:\n"
    "    kind: callback\n"
    "    actions: {lift: {}, turn: {kind: angle}, grip: {kind: hold}}\n"
    "    states: {lift: {}, turn: {kind: angle}}\n"
    "    cameras: {top: {height: 48, width: 64}}\n"
    "    chunk: 10\n";

// A model that adds the cursor to the first state, and stops at the test's
// wish.
typedef struct policy {
    _Atomic bool shut, inside; // it waits at `go`; it does
    td_event *wake;            // the test's
    td_event go;
    _Atomic uint32_t calls;
    uint64_t order[16]; // cursors in the order in which they ran
} policy;

static policy mine;
static td_server *host;

static td_err infer(void *user, td_infer_request *const *requests,
                    uint32_t count, td_errinfo *info)
{
    policy *self = user;
    if (atomic_load(&self->shut)) {
        atomic_store(&self->inside, true);
        td_event_signal(self->wake);
        (void)td_event_wait_until(&self->go, INT64_MAX);
        atomic_store(&self->inside, false);
    }
    for (uint32_t i = 0; i < count; i++) {
        td_infer_request *request = requests[i];
        uint32_t number = atomic_fetch_add(&self->calls, 1);
        self->order[number % TD_COUNT_OF(self->order)] = request->cursor;
        for (uint32_t j = 0; j < request->chunk_rows * ACTIONS; j++)
            request->actions[j] = request->state[0] + (float)request->cursor;
        if (request->urgency > 0.99F)
            return td_fail(info, TD_ERR_IO, "it is too urgent");
    }
    return TD_OK;
}

static td_config_manifest *parsed(const char *text)
{
    td_config_manifest *manifest = NULL;
    td_errinfo info = {.text = ""};
    if (td_config_manifest_parse("m.yaml", text, strlen(text), &manifest,
                                 &info) != TD_OK)
        fail_msg("%s", info.text);
    return manifest;
}

static int setup(void **state)
{
    (void)world_setup(state);
    world *w = *state;
    mine = (policy){.wake = &w->wake};
    td_event_init(&mine.go);
    assert_int_equal(td_log_route(NULL, NULL, TD_LOG_ERROR), TD_OK);
    assert_int_equal(
        td_server_open_on(w->net, parsed(manifest_text), &host, NULL), TD_OK);
    return 0;
}

static int teardown(void **state)
{
    atomic_store(&mine.shut, false);
    td_event_signal(&mine.go);
    if (host) td_server_close(TD_TAKE(host));
    return world_teardown(state);
}

static void start(void)
{
    td_errinfo info = {.text = ""};
    td_err err = td_server_use_model(host, "act", infer, &mine, &info);
    if (err == TD_OK) err = td_server_start(host, &info);
    if (err != TD_OK) fail_msg("%s", info.text);
    atomic_store(&mine.calls, 0); // those that warmed it up
}

static client *attached(world *w, size_t index, const char *id)
{
    client *c = client_open(w, index, id, 5);
    assert_true(client_attach(c, "gpu-1"));
    return c;
}

static double latest(const char *name)
{
    double value = -1;
    td_errinfo info = {.text = ""};
    if (td_server_get_latest(host, name, NULL, &value, &info) != TD_OK)
        fail_msg("%s", info.text);
    return value;
}

static void a_function_of_the_program_answers(void **state)
{
    client *c;
    start();
    c = attached(*state, 0, "arm-0");
    client_send_seq(c, 3);
    const td_wire_action *action = client_hear(c);
    assert_int_equal(action->error_code.size, 0);
    float first;
    memcpy(&first, action->actions.data, sizeof first);
    assert_true(first == 21.5F);
    assert_int_equal(action->actions.shape[0], 10);
}

static void a_function_that_fails_says_why_to_its_robot(void **state)
{
    start();
    client *c = attached(*state, 0, "arm-0");
    td_wire_obs obs = client_obs(c, 1);
    obs.urgency = 1;
    client_send(c, &obs);
    const td_wire_action *action = client_hear(c);
    assert_true(td_wire_text_is(action->error_code, "IO"));
    assert_true(td_wire_text_is(action->error_text, "it is too urgent"));
    client_send_seq(c, 2);
    assert_int_equal(client_hear(c)->error_code.size, 0);
}

static void a_model_needs_its_function_and_a_function_its_model(void **state)
{
    (void)state;
    td_errinfo info = {.text = ""};
    assert_int_equal(td_server_use_model(host, "act2", infer, NULL, &info),
                     TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, "model act2: the manifest has no such"));
    assert_int_equal(td_server_use_model(host, "act", NULL, NULL, &info),
                     TD_ERR_INVALID);
    assert_int_equal(td_server_start(host, &info), TD_ERR_INVALID);
    assert_non_null(strstr(info.text, "server gpu-1: engine.kind: callback"));
    assert_non_null(strstr(info.text, "there is none for model act"));
    assert_string_equal(td_server_state(host, NULL), "stopped");
}

static void what_is_given_before_the_start_is_not_taken_after(void **state)
{
    (void)state;
    start();
    assert_int_equal(td_server_use_model(host, "act", infer, NULL, NULL),
                     TD_ERR_BUSY);
    assert_int_equal(td_server_start(host, NULL), TD_ERR_EXISTS);
    assert_string_equal(td_server_state(host, "act"), "ready");
    assert_string_equal(td_server_state(host, "other"), "stopped");
}

static void a_model_has_one_function(void **state)
{
    (void)state;
    assert_int_equal(td_server_use_model(host, "act", infer, &mine, NULL),
                     TD_OK);
    assert_int_equal(td_server_use_model(host, "act", infer, &mine, NULL),
                     TD_ERR_EXISTS);
}

static void stopping_ends_a_wait_and_a_start(void **state)
{
    (void)state;
    assert_false(td_server_wait(host, 0));
    assert_int_equal(td_server_drain(host, -1, NULL), TD_ERR_EMPTY);
    assert_int_equal(td_server_use_model(host, "act", infer, &mine, NULL),
                     TD_OK);
    td_server_stop(host);
    assert_true(td_server_wait(host, -1));
    assert_int_equal(td_server_start(host, NULL), TD_ERR_CANCELLED);
}

static bool is_inside(world *w)
{
    (void)w;
    return atomic_load(&mine.inside);
}

static void draining_answers_what_runs_and_ends_at_its_limit(void **state)
{
    world *w = *state;
    start();
    client *c = attached(w, 0, "arm-0");
    atomic_store(&mine.shut, true);
    client_send_seq(c, 1);
    world_until(w, is_inside);
    td_errinfo info = {.text = ""};
    assert_int_equal(td_server_drain(host, 1, &info), TD_ERR_TIMEOUT);
    assert_string_equal(td_server_state(host, NULL), "draining");
    atomic_store(&mine.shut, false);
    td_event_signal(&mine.go);
    assert_int_equal(td_server_drain(host, -1, &info), TD_OK);
    assert_int_equal(client_hear(c)->error_code.size, 0);
}

// The clients by their index; higher goes first.
static double by_urgency(void *user, const td_score_request *request)
{
    *(_Atomic uint32_t *)user += 1;
    return request->urgency;
}

static double least_urgent(void *user, const td_score_request *request)
{
    (void)user;
    return -request->urgency;
}

static double no_number(void *user, const td_score_request *request)
{
    (void)user;
    return request->urgency > 0.25 ? (double)NAN : 1;
}

static bool are_three_waiting(world *w)
{
    (void)w;
    return latest("waiting") == 3;
}

// Three wait behind one that runs: the first is the least urgent.
static void let_three_wait(world *w)
{
    static const char *const ids[] = {"arm-0", "arm-1", "arm-2", "arm-3"};
    for (size_t i = 0; i < TD_COUNT_OF(ids); i++)
        (void)attached(w, i, ids[i]);
    atomic_store(&mine.shut, true);
    client_send_seq(&w->clients[3], 9);
    world_until(w, is_inside);
    for (size_t i = 0; i < 3; i++) {
        td_wire_obs obs = client_obs(&w->clients[i], 1 + i);
        obs.urgency = 0.2F * (float)(i + 1);
        client_send(&w->clients[i], &obs);
    }
    world_until(w, are_three_waiting);
}

// In which order the three have run, as the digits of a number.
static unsigned let_them_run(world *w)
{
    atomic_store(&mine.shut, false);
    td_event_signal(&mine.go);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(client_hear(&w->clients[i])->error_code.size, 0);
    assert_int_equal(td_server_drain(host, -1, NULL), TD_OK); // and is counted
    unsigned order = 0;
    for (size_t i = 1; i < 4; i++)
        order = 10 * order + (unsigned)(mine.order[i] / 7);
    return order;
}

static void a_score_function_decides_who_goes_first(void **state)
{
    _Atomic uint32_t asked = 0;
    start();
    assert_int_equal(
        td_server_use_scheduling(host, NULL, by_urgency, &asked, NULL), TD_OK);
    let_three_wait(*state);
    assert_int_equal(let_them_run(*state), 321);
    assert_true(asked >= 3);
    assert_true(latest("score_calls") == asked);
    assert_true(latest("score_not_finite") == 0);
    td_server_spread spread = {.size = sizeof spread};
    assert_int_equal(
        td_server_get_stats(host, "score_ms", NULL, 60, &spread, NULL), TD_OK);
    assert_true(spread.count >= 3);
}

static void scheduling_changes_and_nothing_that_waits_is_lost(void **state)
{
    _Atomic uint32_t asked = 0;
    start();
    let_three_wait(*state);
    static const char *const ways[] = {
        "strategy: round_robin",
        "strategy: batch_optimized\nflush: {max_size: 1}",
        "strategy: priority_tiered",
        "strategy: tiered_deadline\nweights: {urgency: 100}",
        "score: urgency * 2",
    };
    for (size_t i = 0; i < TD_COUNT_OF(ways); i++) {
        td_errinfo info = {.text = ""};
        if (td_server_use_scheduling(host, ways[i], NULL, NULL, &info) != TD_OK)
            fail_msg("%s", info.text);
    }
    assert_int_equal(
        td_server_use_scheduling(host, NULL, by_urgency, &asked, NULL), TD_OK);
    assert_int_equal(td_server_use_scheduling(host, "strategy: deadline_aware",
                                              least_urgent, NULL, NULL),
                     TD_OK);
    uint32_t before = asked;
    assert_int_equal(let_them_run(*state), 123);
    assert_int_equal(asked, before); // nobody asks the one before any more
    assert_true(latest("answered") == 4);
}

static void a_score_that_is_no_number_goes_last_and_is_counted(void **state)
{
    start();
    assert_int_equal(
        td_server_use_scheduling(host, NULL, no_number, NULL, NULL), TD_OK);
    let_three_wait(*state);
    assert_int_equal(let_them_run(*state) / 100, 1);
    assert_true(latest("score_not_finite") >= 2);
}

static void bad_scheduling_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *name, *yaml;
        td_server_score_fn score;
        td_err err;
        const char *says;
    } cases[] = {
        {"no strategy", "strategy: best", NULL, TD_ERR_INVALID, "strategy"},
        {"no YAML", "{", NULL, TD_ERR_FORMAT, "(scheduling):"},
        {"tiers", "tiers: 2", NULL, TD_ERR_INVALID, "tiers: cannot change"},
        {"expression", "score: no_field", NULL, TD_ERR_FORMAT, "score"},
        {"plug-in", "plugin: no.so", NULL, TD_ERR_IO, "plugin"},
        {"two scores", "score: urgency", by_urgency, TD_ERR_INVALID,
         "a score function is given too"},
        {"no scores", "strategy: round_robin", by_urgency, TD_ERR_INVALID,
         "round_robin does not"},
    };
    start();
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_errinfo info = {.text = ""};
        td_err err = td_server_use_scheduling(host, cases[i].yaml,
                                              cases[i].score, NULL, &info);
        if (err != cases[i].err || !strstr(info.text, cases[i].says))
            fail_msg("%s: %s: %s", cases[i].name, td_err_name(err), info.text);
    }
    assert_int_equal(host->process->policy.scheduling.strategy,
                     TD_CONFIG_MODEL_DEADLINE);
}

static void numbers_are_told_by_name_label_and_window(void **state)
{
    world *w = *state;
    start();
    for (size_t i = 0; i < 2; i++) {
        client *c = attached(w, i, i ? "arm-1" : "arm-0");
        for (uint64_t seq = 1; seq <= 3 - i; seq++) {
            client_send_seq(c, seq);
            (void)client_hear(c);
        }
    }
    assert_true(latest("active_clients") == 2);
    assert_int_equal(td_server_drain(host, -1, NULL), TD_OK);
    static const struct {
        const char *name;
        td_server_labels labels;
        uint64_t count;
    } cases[] = {
        {"e2e_latency_ms", {0}, 5},
        {"e2e_latency_ms", {.model = "act"}, 5},
        {"e2e_latency_ms", {.model = "act", .client = "arm-0"}, 3},
        {"e2e_latency_ms", {.client = "arm-1", .server = "gpu-1"}, 2},
        {"e2e_latency_ms", {.client = "arm-2"}, 0},
        {"e2e_latency_ms", {.model = "other"}, 0},
        {"batch_size", {0}, 5},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_server_spread spread = {.size = sizeof spread};
        td_server_labels labels = cases[i].labels;
        labels.size = sizeof labels;
        assert_int_equal(td_server_get_stats(host, cases[i].name, &labels, 60,
                                             &spread, NULL),
                         TD_OK);
        if (spread.count != cases[i].count)
            fail_msg("%zu: %llu", i, (unsigned long long)spread.count);
        assert_true(spread.min <= spread.p50 && spread.p50 <= spread.p95 &&
                    spread.p95 <= spread.p99 && spread.p99 <= spread.max);
        assert_true(spread.min <= spread.mean && spread.mean <= spread.max);
    }
    assert_true(latest("batch_size") == 1);
    assert_true(latest("received") == 5);
    assert_true(latest("batches") == 5);
}

static void a_number_that_is_not_there_is_refused_by_name(void **state)
{
    (void)state;
    td_server_spread spread = {.size = sizeof spread};
    td_server_labels one = {.size = sizeof one, .client = "arm-0"};
    td_server_labels error = {.size = sizeof error, .error = "IO"};
    td_errinfo info = {.text = ""};
    double value = 0;
    assert_int_equal(
        td_server_get_stats(host, "speed", NULL, 60, &spread, &info),
        TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, "no number is called \"speed\""));
    assert_int_equal(
        td_server_get_stats(host, "batches", NULL, 60, &spread, NULL),
        TD_ERR_UNSUPPORTED);
    assert_int_equal(
        td_server_get_stats(host, "batch_size", &one, 60, &spread, NULL),
        TD_ERR_UNSUPPORTED);
    assert_int_equal(
        td_server_get_latest(host, "batches", &error, &value, NULL),
        TD_ERR_UNSUPPORTED);
    assert_int_equal(
        td_server_get_stats(host, "batch_size", NULL, 0, &spread, NULL),
        TD_ERR_INVALID);
    assert_int_equal(td_server_get_stats(host, "batch_size", NULL, (double)NAN,
                                         &spread, NULL),
                     TD_ERR_INVALID);
    assert_int_equal(
        td_server_get_latest(host, "batch_size", NULL, &value, NULL),
        TD_ERR_EMPTY);
    assert_int_equal(
        td_server_get_stats(host, "batch_size", NULL, 60, &spread, NULL),
        TD_OK);
    assert_int_equal(spread.count, 0);
}

// Somebody who listens, and may be slow.
static struct listener {
    _Atomic uint32_t batches, latencies, gauges, attached, others;
    _Atomic bool blocks, blocked;
    td_event *wake, go;
    _Atomic bool wrong;
} listener;

static void on_metric(void *user, const char *name, double value,
                      const td_server_labels *labels)
{
    struct listener *self = user;
    if (atomic_load(&self->blocks)) {
        atomic_store(&self->blocked, true);
        td_event_signal(self->wake);
        (void)td_event_wait_until(&self->go, INT64_MAX);
    }
    if (strcmp(labels->server, "gpu-1") != 0 ||
        strcmp(labels->model, "act") != 0)
        self->wrong = true;
    if (strcmp(name, "batch_size") == 0) {
        if (value != 1 || labels->client) self->wrong = true;
        self->batches++;
    } else if (strcmp(name, "inference_latency_ms") == 0) {
        if (!labels->client || strcmp(labels->client, "arm-0") != 0)
            self->wrong = true;
        self->latencies++;
    } else if (strcmp(name, "active_clients") == 0) {
        self->gauges++;
    }
    td_event_signal(self->wake);
}

static void on_event(void *user, const td_server_event *event)
{
    struct listener *self = user;
    if (strcmp(event->kind, "attached") == 0 &&
        strcmp(event->client, "arm-0") == 0)
        self->attached++;
    td_event_signal(self->wake);
}

static void start_listening(world *w)
{
    listener = (struct listener){.wake = &w->wake};
    td_event_init(&listener.go);
    assert_int_equal(td_server_on_metric(host, on_metric, &listener), TD_OK);
    assert_int_equal(td_server_on_event(host, on_event, &listener), TD_OK);
    start();
}

static bool have_heard_all(world *w)
{
    (void)w;
    return listener.batches == 2 && listener.latencies == 2 &&
           listener.attached == 1 && listener.gauges > 0;
}

static void whoever_listens_is_told_of_each_number_and_event(void **state)
{
    world *w = *state;
    start_listening(w);
    client *c = attached(w, 0, "arm-0");
    for (uint64_t seq = 1; seq <= 2; seq++) {
        client_send_seq(c, seq);
        (void)client_hear(c);
    }
    world_until(w, have_heard_all);
    assert_false(listener.wrong);
    assert_int_equal(td_server_dropped(host), 0);
}

static void who_comes_later_is_told_from_then_on(void **state)
{
    world *w = *state;
    listener = (struct listener){.wake = &w->wake};
    td_event_init(&listener.go);
    start();
    assert_int_equal(td_server_on_metric(host, on_metric, &listener), TD_OK);
    assert_int_equal(td_server_on_event(host, on_event, &listener), TD_OK);
    client *c = attached(w, 0, "arm-0");
    for (uint64_t seq = 1; seq <= 2; seq++) {
        client_send_seq(c, seq);
        (void)client_hear(c);
    }
    world_until(w, have_heard_all);
    assert_int_equal(td_server_on_metric(host, NULL, NULL), TD_OK);
    assert_int_equal(td_server_on_event(host, NULL, NULL), TD_OK);
    client_send_seq(c, 3);
    (void)client_hear(c);
    assert_int_equal(listener.batches, 2); // nobody is told any more
}

static bool is_blocked(world *w)
{
    (void)w;
    return listener.blocked;
}

static void a_listener_that_stands_still_delays_nobody(void **state)
{
    world *w = *state;
    start_listening(w);
    listener.blocks = true;
    client *c = attached(w, 0, "arm-0");
    client_send_seq(c, 1);
    (void)client_hear(c);
    world_until(w, is_blocked);
    uint64_t seq = 1;
    while (td_server_dropped(host) == 0 && seq < 8192) {
        client_send_seq(c, ++seq);
        (void)client_hear(c);
    }
    assert_true(td_server_dropped(host) > 0);
    listener.blocks = false;
    td_event_signal(&listener.go);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_function_of_the_program_answers),
        TEST(a_function_that_fails_says_why_to_its_robot),
        TEST(a_model_needs_its_function_and_a_function_its_model),
        TEST(what_is_given_before_the_start_is_not_taken_after),
        TEST(a_model_has_one_function),
        TEST(stopping_ends_a_wait_and_a_start),
        TEST(draining_answers_what_runs_and_ends_at_its_limit),
        TEST(a_score_function_decides_who_goes_first),
        TEST(scheduling_changes_and_nothing_that_waits_is_lost),
        TEST(a_score_that_is_no_number_goes_last_and_is_counted),
        TEST(bad_scheduling_is_refused_and_changes_nothing),
        TEST(numbers_are_told_by_name_label_and_window),
        TEST(a_number_that_is_not_there_is_refused_by_name),
        TEST(whoever_listens_is_told_of_each_number_and_event),
        TEST(who_comes_later_is_told_from_then_on),
        TEST(a_listener_that_stands_still_delays_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
