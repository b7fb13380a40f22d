// SPDX-License-Identifier: Apache-2.0
// The rules about slots, deadlines and batches, as the core puts them to the
// scheduler; what the scheduler makes of them is tested beside it.
#include "server/core/core_fixture.h"

#include "sched/strategy/heap.h"

#define MS INT64_C(1000000)

// An observation that must be taken; returns what it displaced.
static uint64_t send(fixture *h, td_server_client *client,
                     const td_wire_obs *obs)
{
    td_server_core_dropped dropped;
    assert_int_equal(td_server_core_observe(h->core, h->now_ns,
                                            fixture_request(h, client, obs),
                                            &dropped),
                     TD_SERVER_WAITING);
    return dropped.count > 0 ? dropped.requests[0]->obs.ident.seq : 0;
}

static td_wire_obs of_seq(uint64_t seq)
{
    return (td_wire_obs){.ident = {.boot = 1, .seq = seq}, .priority = 1};
}

// Batches of one, so that they show the order; it takes 10 ms.
static void one_by_one(fixture *h)
{
    td_server_model_settings how = td_server_model_defaults;
    how.batch = (td_sched_batch_rule){TD_SCHED_WAIT_NONE, 1, 0};
    assert_int_equal(td_server_dispatch_set(h->dispatch, 0, &h->spec, &how),
                     TD_OK);
    td_sched_measured(td_server_dispatch_sched(h->dispatch), h->now_ns, 0, 1,
                      10 * MS);
}

static void assert_next(fixture *h, uint64_t seq)
{
    assert_int_equal(fixture_run_next(h), seq);
    fixture_done(h, TD_SERVER_ANSWERED);
}

// Anybody, four at a time.
static void welcome_four(fixture *h)
{
    h->settings.capacity = 4;
    h->settings.accept_unknown = true;
    h->settings.unknown = td_server_allowance_defaults;
    td_server_core_free(h->core);
    h->core = server_new(&h->settings, &h->spec, h->dispatch);
}

static void slots_one_waits_and_one_runs_for_each_client(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    fixture_taken(h, client, 1, 0, 1);
    assert_int_equal(fixture_run_next(h), 1);
    fixture_taken(h, client, 1, 0, 2);
    assert_int_equal(fixture_taken(h, client, 1, 0, 3), 2);
    assert_int_equal(fixture_count(h, TD_SERVER_RUNNING), 1);
    assert_int_equal(fixture_count(h, TD_SERVER_WAITING), 1);
    fixture_done(h, TD_SERVER_ANSWERED);
    assert_next(h, 3);
}

static void slots_a_newer_one_inherits_the_time_waited(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    int64_t began_ns = h->now_ns;
    fixture_taken(h, client, 1, 0, 1);
    h->now_ns += 7 * MS;
    fixture_taken(h, client, 1, 0, 2);
    assert_int_equal(fixture_run_next(h), 2);
    const td_sched_request *request = &h->batch.picks[0].request;
    assert_int_equal(request->waiting_since_ns, began_ns);
    assert_int_equal(request->arrived_ns, began_ns + 7 * MS);
}

static void deadlines_a_request_is_due_when_its_buffer_runs_dry(void **state)
{
    static const struct {
        const char *name;
        bool has_budget;
        int64_t budget_us, due_ns; // since it came
    } cases[] = {
        {"sent", true, 120000, 120 * MS},
        {"dry already", true, 0, 0},
        {"dry for long", true, -5, 0},
        {"not sent", false, 120000, TD_SCHED_NEVER_NS},
        {"further away than makes sense", true, INT64_MAX, TD_SCHED_NEVER_NS},
    };
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_wire_obs obs = of_seq(i + 1);
        obs.has_budget = cases[i].has_budget;
        obs.budget_us = cases[i].budget_us;
        send(h, client, &obs);
        assert_int_equal(fixture_run_next(h), i + 1);
        int64_t due_ns = h->batch.picks[0].due_ns;
        if (due_ns != TD_SCHED_NEVER_NS) due_ns -= h->now_ns;
        if (due_ns != cases[i].due_ns) fail_msg("%s", cases[i].name);
        fixture_done(h, TD_SERVER_ANSWERED);
    }
}

static void deadlines_what_can_be_met_goes_first_then_as_it_came(void **state)
{
    fixture *h = *state;
    welcome_four(h);
    one_by_one(h);
    static const struct {
        const char *client;
        int64_t budget_us;
    } sent[] = {{"a", 2000}, {"b", 90000}, {"c", 5000}, {"d", 40000}};
    for (uint64_t i = 0; i < TD_COUNT_OF(sent); i++) {
        td_wire_obs obs = of_seq(i + 1);
        obs.has_budget = true;
        obs.budget_us = sent[i].budget_us;
        send(h, fixture_attached(h, sent[i].client, 1), &obs);
    }
    // The engine takes 10 ms: a and c cannot be met.
    assert_next(h, 4);
    assert_next(h, 2);
    assert_next(h, 1); // nothing is dropped for being late
    assert_next(h, 3);
}

// One that is more urgent comes 20 ms later. At first the older one's age is
// worth more; when both are as old as counts it is not.
static void deadlines_scores_are_taken_when_a_batch_is_formed(void **state)
{
    static const struct {
        const char *older, *urgent;
        int64_t later_ns;
        bool urgent_first;
    } cases[] = {{"a", "b", 0, false}, {"c", "d", 100 * MS, true}};
    fixture *h = *state;
    welcome_four(h);
    one_by_one(h);
    for (uint64_t i = 0; i < TD_COUNT_OF(cases); i++) {
        uint64_t seq = 1 + 2 * i;
        td_wire_obs obs = of_seq(seq);
        send(h, fixture_attached(h, cases[i].older, 1), &obs);
        h->now_ns += 20 * MS;
        obs = of_seq(seq + 1);
        obs.urgency = 0.2F;
        send(h, fixture_attached(h, cases[i].urgent, 1), &obs);
        h->now_ns += cases[i].later_ns;
        assert_next(h, seq + cases[i].urgent_first);
        assert_next(h, seq + !cases[i].urgent_first);
    }
}

static void a_client_does_not_take_over_by_shouting(void **state)
{
    static const td_server_allowance allowed[] = {
        {"arm-0", 50 * MS, 1, 0.5F},
        {"arm-1", 50 * MS, 0, 1},
    };
    fixture *h = *state;
    h->settings.clients = allowed;
    h->settings.client_count = TD_COUNT_OF(allowed);
    td_server_core_use(h->core, &h->settings, &td_server_model_defaults);
    one_by_one(h);
    td_server_client *loud = fixture_attached(h, "arm-0", 1);
    td_server_client *entitled = fixture_attached(h, "arm-1", 1);
    td_wire_obs obs = of_seq(1);
    obs.priority = 0;
    obs.urgency = 1;
    send(h, loud, &obs);
    obs = of_seq(2);
    obs.priority = 1;
    obs.urgency = 0.6F;
    send(h, entitled, &obs);
    assert_next(h, 2);
    assert_next(h, 1);
}

static void what_a_client_is_allowed_can_be_changed(void **state)
{
    static const td_server_allowance allowed[] = {{"arm-0", 50 * MS, 0, 0},
                                                  {"arm-1", 50 * MS, 0, 1}};
    fixture *h = *state;
    one_by_one(h);
    td_server_client *loud = fixture_attached(h, "arm-0", 1);
    td_server_client *quiet = fixture_attached(h, "arm-1", 1);
    h->settings.clients = allowed;
    h->settings.client_count = TD_COUNT_OF(allowed);
    td_server_core_use(h->core, &h->settings, &td_server_model_defaults);
    assert_true(td_server_core_allows(h->core, loud));
    td_wire_obs obs = of_seq(1);
    obs.urgency = 1;
    send(h, loud, &obs);
    obs = of_seq(2);
    obs.urgency = 0.1F;
    send(h, quiet, &obs);
    assert_next(h, 2);
    h->settings.client_count = 1;
    td_server_core_use(h->core, &h->settings, &td_server_model_defaults);
    assert_false(td_server_core_allows(h->core, quiet));
}

static void batches_what_may_not_mix_runs_apart(void **state)
{
    fixture *h = *state;
    td_server_client *first = fixture_attached(h, "arm-0", 1);
    td_server_client *second = fixture_attached(h, "arm-1", 1);
    td_wire_obs plain = of_seq(1);
    td_wire_obs other = of_seq(2);
    other.has_rtc = true;
    other.rtc_prefix.shape[0] = 4;
    send(h, first, &plain);
    send(h, second, &other);
    assert_int_equal(fixture_start(h), 1);
    fixture_done(h, TD_SERVER_ANSWERED);
    assert_int_equal(fixture_start(h), 1);
    fixture_done(h, TD_SERVER_ANSWERED);
    plain = of_seq(3);
    other = of_seq(4);
    send(h, first, &plain);
    send(h, second, &other);
    assert_int_equal(fixture_start(h), 2);
}

static void a_failed_one_is_tried_again_where_that_is_set(void **state)
{
    fixture *h = *state;
    td_server_device_settings settings = td_server_device_defaults;
    td_server_model_settings how = td_server_model_defaults;
    uint32_t model;
    settings.queue.retries = 1;
    fixture_teardown(state);
    assert_int_equal(td_server_dispatch_new(&settings, &h->dispatch, NULL),
                     TD_OK);
    assert_int_equal(
        td_server_dispatch_add(h->dispatch, &h->spec, &how, &model), TD_OK);
    td_server_dispatch_open(h->dispatch, model, true);
    h->core = server_new(&h->settings, &h->spec, h->dispatch);
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    fixture_taken(h, client, 1, 0, 1);
    assert_int_equal(fixture_run_next(h), 1);
    assert_int_equal(td_server_core_done(h->core, h->now_ns, client->running,
                                         TD_SERVER_FAILED),
                     TD_SERVER_WAITING);
    td_server_dispatch_end(h->dispatch, h->now_ns, 0, h->batch.run, 1, 0);
    assert_int_equal(fixture_run_next(h), 0);
    h->now_ns = td_server_dispatch_wake_ns(h->dispatch);
    assert_int_equal(fixture_run_next(h), 1);

    // Its episode ends while it runs: it is not tried again.
    fixture_taken(h, client, 1, 1, 2);
    assert_int_equal(fixture_count(h, TD_SERVER_WAITING), 1);
    fixture_done(h, TD_SERVER_FAILED);
    assert_next(h, 2);
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(slots_one_waits_and_one_runs_for_each_client),
        TEST(slots_a_newer_one_inherits_the_time_waited),
        TEST(deadlines_a_request_is_due_when_its_buffer_runs_dry),
        TEST(deadlines_what_can_be_met_goes_first_then_as_it_came),
        TEST(deadlines_scores_are_taken_when_a_batch_is_formed),
        TEST(a_client_does_not_take_over_by_shouting),
        TEST(what_a_client_is_allowed_can_be_changed),
        TEST(batches_what_may_not_mix_runs_apart),
        TEST(a_failed_one_is_tried_again_where_that_is_set),
    };
    return cmocka_run_group_tests_name("server/core_rules", tests, NULL, NULL);
}
