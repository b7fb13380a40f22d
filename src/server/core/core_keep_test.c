// SPDX-License-Identifier: Apache-2.0
// Clients that fall silent, and what is kept for one that missed an answer.
#include "server/core/core_fixture.h"

#include "sched/strategy/heap.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

static void a_client_that_is_silent_for_ten_seconds_is_gone(void **state)
{
    fixture *h = *state;
    td_sched_cadence_event event;
    td_server_client *silent = fixture_attached(h, "arm-0", 1);
    td_server_client *other = fixture_attached(h, "arm-1", 1);
    int64_t began_ns = h->now_ns;
    h->now_ns += 6 * SECOND;
    fixture_taken(h, other, 1, 0, 1);
    assert_int_equal(fixture_run_next(h), 1);
    fixture_done(h, TD_SERVER_ANSWERED);
    assert_int_equal(td_server_core_wake_ns(h->core), began_ns + 10 * SECOND);
    h->now_ns = began_ns + 10 * SECOND - 1;
    assert_false(td_server_core_cadence(h->core, h->now_ns, &event));
    h->now_ns++;
    assert_true(td_server_core_cadence(h->core, h->now_ns, &event));
    assert_int_equal(event.kind, TD_SCHED_CADENCE_GONE);
    assert_ptr_equal(td_server_core_at(h->core, event.client), silent);
    assert_int_equal(server_counts(h->core).gone, 1);
    assert_false(td_server_core_cadence(h->core, h->now_ns, &event));
    assert_int_equal(td_server_core_wake_ns(h->core), began_ns + 16 * SECOND);
}

static void one_that_waits_or_runs_is_not_silent(void **state)
{
    fixture *h = *state;
    td_sched_cadence_event event;
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    fixture_taken(h, client, 1, 0, 1);
    h->now_ns += 11 * SECOND;
    assert_false(td_server_core_cadence(h->core, h->now_ns, &event));
    assert_int_equal(fixture_run_next(h), 1);
    h->now_ns += 11 * SECOND;
    assert_false(td_server_core_cadence(h->core, h->now_ns, &event));
    fixture_done(h, TD_SERVER_ANSWERED);
    h->now_ns += 9 * SECOND;
    assert_false(td_server_core_cadence(h->core, h->now_ns, &event));
    h->now_ns += 1 * SECOND;
    assert_true(td_server_core_cadence(h->core, h->now_ns, &event));
}

static void one_whose_observations_are_refused_is_not_silent(void **state)
{
    fixture *h = *state;
    td_sched_cadence_event event;
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    h->now_ns += 9 * SECOND;
    td_server_core_ended(h->core, client, TD_SERVER_UNREADY, 1);
    h->now_ns += 2 * SECOND;
    assert_false(td_server_core_cadence(h->core, h->now_ns, &event));
    h->now_ns += 10 * SECOND;
    assert_true(td_server_core_cadence(h->core, h->now_ns, &event));
    assert_int_equal(event.kind, TD_SCHED_CADENCE_GONE);
}

// What attaching began is no interval: the first is between the observations.
static void the_next_is_expected_by_the_cadence_of_those_before(void **state)
{
    fixture *h = *state;
    td_sched_cadence_event event;
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    h->now_ns += 3 * SECOND;
    for (uint64_t seq = 1; seq <= 6; seq++) {
        fixture_taken(h, client, 1, 0, seq);
        h->now_ns += 100 * MS;
    }
    int64_t wake_ns = td_server_core_wake_ns(h->core);
    assert_in_range(h->now_ns - wake_ns, 5 * MS - 10, 5 * MS + 10);
    assert_true(td_server_core_cadence(h->core, h->now_ns, &event));
    assert_int_equal(event.kind, TD_SCHED_CADENCE_WAKE);
    assert_int_equal(server_counts(h->core).expected, 1);
    assert_int_equal(fixture_run_next(h), 6); // and nothing that is not there
}

typedef struct asked {
    td_server_again again;
    td_server_core_dropped dropped;
} asked;

static asked ask_with(fixture *h, td_server_client *client,
                      const td_wire_obs *obs)
{
    asked a;
    a.again = td_server_core_again(h->core, h->now_ns,
                                   fixture_request(h, client, obs), &a.dropped);
    (void)server_counts(h->core);
    return a;
}

static asked ask(fixture *h, td_server_client *client, uint64_t episode,
                 uint64_t seq, uint64_t missed, bool rtc)
{
    const td_wire_obs obs = {
        .ident = {.boot = 1, .episode = episode, .seq = seq},
        .has_again = true,
        .again = missed,
        .has_rtc = rtc,
    };
    return ask_with(h, client, &obs);
}

static asked ask_anew(fixture *h, td_server_client *client, uint64_t seq,
                      uint64_t missed)
{
    const td_wire_obs obs = {
        .ident = {.boot = 1, .seq = seq},
        .has_again = true,
        .again = missed,
        .anew = true,
    };
    return ask_with(h, client, &obs);
}

// Runs the observation and keeps its answer; returns what was kept before.
static uint64_t run_and_keep(fixture *h, td_server_client *client, uint64_t seq)
{
    td_server_core_dropped dropped;
    fixture_taken(h, client, 1, 0, seq);
    assert_int_equal(fixture_run_next(h), seq);
    td_server_core_keep(client->running, &dropped);
    fixture_done(h, TD_SERVER_ANSWERED);
    return dropped.count > 0 ? dropped.requests[0]->obs.ident.seq : 0;
}

static void the_last_chunk_is_kept_and_given_again(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    assert_int_equal(run_and_keep(h, client, 1), 0);
    assert_int_equal(run_and_keep(h, client, 2), 1);
    for (uint64_t seq = 3; seq <= 4; seq++) {
        asked a = ask(h, client, 0, seq, 2, false);
        assert_int_equal(a.again.found, TD_SERVER_FOUND_CHUNK);
        assert_int_equal(a.again.outcome, TD_SERVER_ANSWERED);
        assert_ptr_equal(a.again.chunk, &h->requests[2]);
        td_server_core_keep(a.again.chunk, &a.dropped);
        assert_int_equal(a.dropped.count, 0);
    }
    td_wire_action answer = {.ident = {.boot = 1}};
    td_server_core_add_superseded(client, &answer);
    assert_int_equal(answer.superseded_count, 2);
    assert_int_equal(answer.superseded[0], 3); // who asked is not answered
    assert_int_equal(answer.superseded[1], 4);
    asked old = ask(h, client, 0, 5, 1, false);
    assert_int_equal(old.again.found, TD_SERVER_FOUND_NOTHING);
    assert_int_equal(old.again.outcome, TD_SERVER_REFUSED);
    td_server_counts counts = server_counts(h->core);
    assert_int_equal(counts.kept_chunk_hits, 2);
    assert_int_equal(counts.again_misses, 1);
}

static void a_chunk_is_not_kept_across_an_episode(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    run_and_keep(h, client, 1);
    asked a = ask(h, client, 1, 2, 1, false); // already of the next episode
    assert_int_equal(a.again.outcome, TD_SERVER_REFUSED);
    assert_int_equal(a.dropped.count, 1);
    assert_ptr_equal(a.dropped.requests[0], &h->requests[1]);

    td_server_core_dropped dropped;
    td_server_core_keep(&h->requests[1], &dropped);
    assert_int_equal(dropped.count, 1);
}

static void an_older_chunk_does_not_replace_a_newer_one(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    run_and_keep(h, client, 2);
    const td_wire_obs older = {.ident = {.boot = 1, .seq = 1}};
    td_server_core_dropped dropped;
    td_server_core_keep(fixture_request(h, client, &older), &dropped);
    assert_int_equal(dropped.count, 1);
    assert_int_equal(dropped.requests[0]->obs.ident.seq, 1);
    assert_int_equal(ask(h, client, 0, 3, 2, false).again.found,
                     TD_SERVER_FOUND_CHUNK);
}

static void what_is_on_its_way_is_not_made_twice(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    fixture_taken(h, client, 1, 0, 1);
    assert_int_equal(ask(h, client, 0, 2, 1, false).again.found,
                     TD_SERVER_FOUND_COMING);
    assert_int_equal(fixture_run_next(h), 1);
    asked a = ask(h, client, 0, 3, 1, false);
    assert_int_equal(a.again.found, TD_SERVER_FOUND_COMING);
    assert_int_equal(a.again.outcome, TD_SERVER_SUPERSEDED);
    fixture_done(h, TD_SERVER_ANSWERED);
    assert_int_equal(fixture_run_next(h), 0);
}

static void only_when_asked(fixture *h)
{
    td_server_model_settings how = td_server_model_defaults;
    how.precompute = false;
    td_server_core_use(h->core, &h->settings, &how);
}

static void without_computing_ahead_nothing_runs_until_asked(void **state)
{
    fixture *h = *state;
    only_when_asked(h);
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    fixture_taken(h, client, 1, 0, 1);
    assert_int_equal(fixture_taken(h, client, 1, 0, 2), 1); // the newest alone
    assert_int_equal(fixture_run_next(h), 0);
    assert_int_equal(fixture_count(h, TD_SERVER_WAITING), 1);
    assert_int_equal(ask(h, client, 0, 3, 1, false).again.outcome,
                     TD_SERVER_REFUSED);
    asked a = ask(h, client, 0, 4, 2, false);
    assert_int_equal(a.again.found, TD_SERVER_FOUND_OBS);
    assert_int_equal(a.again.outcome, TD_SERVER_WAITING);
    assert_int_equal(fixture_run_next(h), 2);
    assert_ptr_equal(h->batch.picks[0].request.payload, &h->requests[2]);
    fixture_done(h, TD_SERVER_ANSWERED);
    assert_int_equal(fixture_count(h, TD_SERVER_WAITING), 0);
}

static void take_must_go(fixture *h, td_server_client *client, uint64_t seq)
{
    td_server_core_dropped dropped;
    const td_wire_obs obs = {.ident = {.boot = 1, .seq = seq}, .must_go = true};
    assert_int_equal(td_server_core_observe(h->core, h->now_ns,
                                            fixture_request(h, client, &obs),
                                            &dropped),
                     TD_SERVER_WAITING);
    assert_int_equal(dropped.count, 1);
}

static void a_robot_with_nothing_left_is_asking(void **state)
{
    fixture *h = *state;
    only_when_asked(h);
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    fixture_taken(h, client, 1, 0, 1);
    take_must_go(h, client, 2);
    assert_int_equal(fixture_count(h, TD_SERVER_SUPERSEDED), 1);
    assert_int_equal(fixture_run_next(h), 2);
    fixture_done(h, TD_SERVER_ANSWERED);
    assert_int_equal(fixture_count(h, TD_SERVER_WAITING), 0);
}

static void computing_ahead_again_leaves_nothing_unasked(void **state)
{
    fixture *h = *state;
    only_when_asked(h);
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    fixture_taken(h, client, 1, 0, 1);
    td_server_core_use(h->core, &h->settings, &td_server_model_defaults);
    assert_int_equal(fixture_taken(h, client, 1, 0, 2), 1);
    assert_int_equal(fixture_run_next(h), 2);
    fixture_done(h, TD_SERVER_ANSWERED);
    assert_int_equal(fixture_count(h, TD_SERVER_WAITING), 0);
}

static void what_was_never_asked_for_goes_with_its_client(void **state)
{
    fixture *h = *state;
    only_when_asked(h);
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    fixture_taken(h, client, 1, 0, 1);
    td_server_core_dropped dropped;
    assert_int_equal(fixture_detach(h, "arm-0", 1, &dropped), TD_OK);
    assert_int_equal(dropped.count, 1);
    assert_int_equal(fixture_count(h, TD_SERVER_DEPARTED), 1);
}

struct td_engine_prefix { // only its place is looked at
    char unused;
};

static td_engine_prefix prefixes[2];

static td_engine_prefix *prefix_of(size_t index)
{
    return &prefixes[index];
}

static fixture *keep_prefixes(fixture *h)
{
    td_server_core_model model = model_of(&h->spec, h->dispatch);
    model.prefix_bytes = 100;
    model.prefix_age_ns = 60 * SECOND;
    td_server_core_free(h->core);
    assert_int_equal(td_server_core_new(&h->settings, &model, &h->core), TD_OK);
    td_server_core_set_state(h->core, TD_WIRE_READY);
    return h;
}

// Runs the observation, keeps its prefix and not its chunk.
static td_engine_prefix *run_and_keep_prefix(fixture *h,
                                             td_server_client *client,
                                             uint64_t seq,
                                             td_engine_prefix *prefix)
{
    fixture_taken(h, client, 1, 0, seq);
    assert_int_equal(fixture_run_next(h), seq);
    td_engine_prefix *ended = td_server_core_keep_prefix(
        h->core, h->now_ns, client->running, prefix, 60);
    fixture_done(h, TD_SERVER_ANSWERED);
    return ended;
}

static void a_new_chunk_is_made_from_the_kept_prefix(void **state)
{
    fixture *h = keep_prefixes(*state);
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    assert_null(run_and_keep_prefix(h, client, 1, prefix_of(0)));
    asked a = ask(h, client, 0, 2, 1, false);
    assert_int_equal(a.again.found, TD_SERVER_FOUND_PREFIX);
    assert_ptr_equal(h->requests[2].prefix, prefix_of(0));
    assert_int_equal(fixture_run_next(h), 1); // under the seq that was missed
    assert_ptr_equal(h->batch.picks[0].request.payload, &h->requests[2]);
    fixture_done(h, TD_SERVER_ANSWERED);
    assert_null(td_server_core_release(h->core, client, h->now_ns));
    assert_int_equal(server_counts(h->core).prefix_hits, 1);
    assert_int_equal(server_counts(h->core).prefixes.present, 1);
}

// What the chunk continues has changed since, so it has to be made again.
static void a_chunk_that_continues_another_is_made_from_the_prefix(void **state)
{
    fixture *h = keep_prefixes(*state);
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    td_server_core_dropped dropped;
    run_and_keep_prefix(h, client, 1, prefix_of(0));
    td_server_core_keep(&h->requests[1], &dropped);
    assert_int_equal(ask(h, client, 0, 2, 1, true).again.found,
                     TD_SERVER_FOUND_PREFIX);
    assert_int_equal(fixture_run_next(h), 1);
}

static void another_chunk_is_made_although_one_is_kept(void **state)
{
    fixture *h = keep_prefixes(*state);
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    td_server_core_dropped dropped;
    run_and_keep_prefix(h, client, 1, prefix_of(0));
    td_server_core_keep(&h->requests[1], &dropped);
    assert_int_equal(ask_anew(h, client, 2, 1).again.found,
                     TD_SERVER_FOUND_PREFIX);
    assert_int_equal(fixture_run_next(h), 1);
    fixture_done(h, TD_SERVER_ANSWERED);
    assert_null(td_server_core_release(h->core, client, h->now_ns));
    assert_int_equal(ask(h, client, 0, 3, 1, false).again.found,
                     TD_SERVER_FOUND_CHUNK);
    assert_int_equal(server_counts(h->core).prefix_hits, 1);
}

static void another_chunk_of_what_no_prefix_is_kept_is_refused(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    run_and_keep(h, client, 1);
    asked a = ask_anew(h, client, 2, 1);
    assert_int_equal(a.again.found, TD_SERVER_FOUND_NOTHING);
    assert_int_equal(a.again.outcome, TD_SERVER_REFUSED);
    assert_int_equal(server_counts(h->core).again_misses, 1);
}

static void a_prefix_ends_with_its_episode_even_in_use(void **state)
{
    fixture *h = keep_prefixes(*state);
    td_server_client *client = fixture_attached(h, "arm-0", 1);
    run_and_keep_prefix(h, client, 1, prefix_of(0));
    const td_wire_reset reset = {.boot = 1, .episode = 1};
    td_server_core_dropped dropped;
    assert_int_equal(ask(h, client, 0, 2, 1, false).again.found,
                     TD_SERVER_FOUND_PREFIX);
    td_server_core_reset(h->core, client, &reset, &dropped);
    assert_int_equal(dropped.count, 1); // the one that asked for it
    assert_null(dropped.prefix);        // which still has it
    assert_ptr_equal(td_server_core_release(h->core, client, h->now_ns),
                     prefix_of(0));
    assert_int_equal(ask(h, client, 1, 3, 1, false).again.outcome,
                     TD_SERVER_REFUSED);
}

static void prefixes_are_bounded_and_each_is_handed_back_once(void **state)
{
    fixture *h = keep_prefixes(*state);
    td_server_client *first = fixture_attached(h, "arm-0", 1);
    td_server_client *second = fixture_attached(h, "arm-1", 1);
    assert_null(run_and_keep_prefix(h, first, 1, prefix_of(0)));
    assert_ptr_equal(run_and_keep_prefix(h, second, 2, prefix_of(1)),
                     prefix_of(1)); // two of 60 bytes do not fit
    assert_ptr_equal(td_server_core_evict(h->core, h->now_ns, 60),
                     prefix_of(0));
    assert_null(td_server_core_evict(h->core, h->now_ns, 60));
    assert_null(run_and_keep_prefix(h, second, 3, prefix_of(1)));
    assert_ptr_equal(td_server_core_forget(h->core), prefix_of(1));
    assert_null(td_server_core_forget(h->core));
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_client_that_is_silent_for_ten_seconds_is_gone),
        TEST(one_that_waits_or_runs_is_not_silent),
        TEST(one_whose_observations_are_refused_is_not_silent),
        TEST(the_next_is_expected_by_the_cadence_of_those_before),
        TEST(the_last_chunk_is_kept_and_given_again),
        TEST(a_chunk_is_not_kept_across_an_episode),
        TEST(an_older_chunk_does_not_replace_a_newer_one),
        TEST(what_is_on_its_way_is_not_made_twice),
        TEST(without_computing_ahead_nothing_runs_until_asked),
        TEST(a_robot_with_nothing_left_is_asking),
        TEST(computing_ahead_again_leaves_nothing_unasked),
        TEST(what_was_never_asked_for_goes_with_its_client),
        TEST(a_new_chunk_is_made_from_the_kept_prefix),
        TEST(a_chunk_that_continues_another_is_made_from_the_prefix),
        TEST(another_chunk_is_made_although_one_is_kept),
        TEST(another_chunk_of_what_no_prefix_is_kept_is_refused),
        TEST(a_prefix_ends_with_its_episode_even_in_use),
        TEST(prefixes_are_bounded_and_each_is_handed_back_once),
    };
    return cmocka_run_group_tests_name("server/core_keep", tests, NULL, NULL);
}
