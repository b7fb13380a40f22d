// SPDX-License-Identifier: Apache-2.0
// What becomes of the observations that clients send.
#include "server/core/core_fixture.h"

static void old_observations_are_counted_and_not_taken(void **state)
{
    fixture *h = *state;
    static const struct {
        const char *name;
        uint64_t boot, episode, seq;
        td_server_outcome outcome;
    } cases[] = {
        {"old_boot", 4, 9, 99, TD_SERVER_OLD_BOOT},
        {"old_episode", 5, 2, 99, TD_SERVER_OLD_EPISODE},
        {"old_seq", 5, 3, 10, TD_SERVER_OLD_SEQ}, // the same again
        {"old_seq", 5, 3, 9, TD_SERVER_OLD_SEQ},
        {"old_seq", 5, 4, 9, TD_SERVER_OLD_SEQ}, // they grow all boot long
    };
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    fixture_taken(h, client, 5, 3, 10);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        uint64_t before = fixture_count(h, cases[i].outcome);
        td_server_core_dropped dropped;
        td_server_outcome outcome = fixture_observe(
            h, client, cases[i].boot, cases[i].episode, cases[i].seq, &dropped);
        if (outcome != cases[i].outcome || dropped.count > 0 ||
            strcmp(td_server_outcome_name(outcome), cases[i].name) != 0 ||
            fixture_count(h, cases[i].outcome) != before + 1)
            fail_msg("%s, row %zu", cases[i].name, i);
    }
    assert_int_equal(fixture_run_next(h), 10);
}

static void a_newer_observation_takes_the_place(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    assert_int_equal(fixture_taken(h, client, 5, 0, 1), 0);
    assert_int_equal(fixture_taken(h, client, 5, 0, 4), 1);
    assert_int_equal(fixture_count(h, TD_SERVER_SUPERSEDED), 1);
    assert_int_equal(fixture_run_next(h), 4);
    assert_int_equal(fixture_count(h, TD_SERVER_RUNNING), 1);
    fixture_done(h, TD_SERVER_ANSWERED);
    assert_int_equal(fixture_count(h, TD_SERVER_ANSWERED), 1);
    assert_int_equal(fixture_run_next(h), 0);
}

static void a_higher_episode_or_boot_starts_anew(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    fixture_taken(h, client, 5, 1, 10);
    assert_int_equal(fixture_taken(h, client, 5, 2, 11), 10);
    assert_int_equal(fixture_count(h, TD_SERVER_DEPARTED), 1);
    assert_int_equal(fixture_taken(h, client, 6, 0, 1), 11);
    assert_int_equal(fixture_count(h, TD_SERVER_DEPARTED), 2);
    assert_int_equal(fixture_count(h, TD_SERVER_SUPERSEDED), 0);
    assert_int_equal(fixture_run_next(h), 1);
}

static void what_is_present_follows_the_client(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    fixture_taken(h, client, 5, 3, 10);
    td_wire_ident present = td_server_core_present(client);
    assert_int_equal(present.boot, 5);
    assert_int_equal(present.episode, 3);
    assert_int_equal(present.seq, 10);
    fixture_taken(h, client, 6, 1, 1);
    present = td_server_core_present(client);
    assert_int_equal(present.boot, 6);
    assert_int_equal(present.episode, 1);
}

static void a_reset_drops_what_waited(void **state)
{
    fixture *h = *state;
    static const struct {
        const char *name;
        uint64_t boot, episode;
        bool taken;
    } cases[] = {
        {"old boot", 4, 9, false},
        {"boot that never attached", 6, 9, false},
        {"present episode", 5, 3, false},
        {"old episode", 5, 2, false},
        {"next episode", 5, 4, true},
    };
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    fixture_taken(h, client, 5, 3, 1);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_wire_reset reset = {.boot = cases[i].boot,
                                     .episode = cases[i].episode};
        td_server_core_dropped dropped;
        td_server_core_reset(h->core, client, &reset, &dropped);
        if (dropped.count != cases[i].taken ||
            (dropped.requests[0] == &h->requests[1]) != cases[i].taken)
            fail_msg("%s", cases[i].name);
    }
    assert_int_equal(fixture_count(h, TD_SERVER_DEPARTED), 1);
    assert_int_equal(fixture_run_next(h), 0);
    td_server_core_dropped dropped;
    assert_int_equal(fixture_observe(h, client, 5, 3, 2, &dropped),
                     TD_SERVER_OLD_EPISODE);
    assert_int_equal(fixture_taken(h, client, 5, 4, 3), 0);
}

static void assert_told(td_server_client *client, td_wire_ident ident,
                        const uint64_t *seqs, uint32_t count)
{
    td_wire_action answer = {.ident = ident};
    td_server_core_add_superseded(client, &answer);
    assert_int_equal(answer.superseded_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(answer.superseded[i], seqs[i]);
}

static td_wire_ident of(uint64_t boot, uint64_t episode)
{
    return (td_wire_ident){.boot = boot, .episode = episode};
}

static void superseded_seqs_are_told_once_with_the_next_answer(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    td_server_client *other = fixture_attached(h, "arm-1", 1);
    fixture_taken(h, client, 5, 0, 1);
    td_server_core_ended(h->core, client, TD_SERVER_SUPERSEDED, 2);
    td_server_core_ended(h->core, client, TD_SERVER_MALFORMED, 3);
    td_server_core_ended(h->core, client, TD_SERVER_REFUSED, 4);
    fixture_taken(h, client, 5, 0, 5);
    fixture_taken(h, other, 1, 0, 1);
    assert_int_equal(fixture_start(h), 2);
    assert_told(other, of(1, 0), NULL, 0);
    assert_told(client, of(5, 0), (uint64_t[]){2, 1}, 2);
    assert_told(client, of(5, 0), NULL, 0);
    assert_int_equal(fixture_count(h, TD_SERVER_SUPERSEDED), 2);
    assert_int_equal(fixture_count(h, TD_SERVER_MALFORMED), 1);
    assert_int_equal(fixture_count(h, TD_SERVER_REFUSED), 1);
}

static void the_newest_superseded_seqs_are_told_when_they_are_many(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    const uint64_t last = TD_WIRE_MAX_SUPERSEDED + 11;
    for (uint64_t seq = 1; seq <= last; seq++)
        fixture_taken(h, client, 5, 0, seq);
    assert_int_equal(fixture_run_next(h), last);
    uint64_t newest[TD_WIRE_MAX_SUPERSEDED];
    for (uint64_t i = 0; i < TD_WIRE_MAX_SUPERSEDED; i++)
        newest[i] = last - TD_WIRE_MAX_SUPERSEDED + i;
    assert_told(client, of(5, 0), newest, TD_WIRE_MAX_SUPERSEDED);
    assert_int_equal(fixture_count(h, TD_SERVER_SUPERSEDED), last - 1);
}

// Its seq will never be answered, and the robot is still the same start.
static void what_a_new_episode_drops_is_told_too(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    fixture_taken(h, client, 5, 1, 1);
    fixture_taken(h, client, 5, 2, 2);
    assert_int_equal(fixture_run_next(h), 2);
    assert_told(client, of(5, 2), (uint64_t[]){1}, 1);
}

// The robot drops an answer to what it sent before, so that one tells nothing.
static void news_waits_for_an_answer_that_is_read(void **state)
{
    fixture *h = *state;
    td_server_client *client = fixture_attached(h, "arm-0", 5);
    fixture_taken(h, client, 5, 1, 1);
    assert_int_equal(fixture_run_next(h), 1);
    fixture_taken(h, client, 5, 2, 2);
    fixture_taken(h, client, 5, 2, 3);
    assert_told(client, of(5, 1), NULL, 0);
    fixture_done(h, TD_SERVER_ANSWERED);
    assert_int_equal(fixture_run_next(h), 3);
    fixture_taken(h, client, 6, 2, 1);
    fixture_taken(h, client, 6, 2, 2);
    assert_told(client, of(5, 2), NULL, 0);
    fixture_done(h, TD_SERVER_ANSWERED);
    assert_int_equal(fixture_run_next(h), 2);
    assert_told(client, of(6, 2), (uint64_t[]){1}, 1);
}

static void those_that_wait_share_a_batch(void **state)
{
    fixture *h = *state;
    td_server_client *first = fixture_attached(h, "arm-0", 1);
    td_server_client *second = fixture_attached(h, "arm-1", 1);
    fixture_taken(h, first, 1, 0, 1);
    fixture_taken(h, second, 1, 0, 2);
    assert_int_equal(fixture_start(h), 2);
    assert_int_equal(h->batch.picks[0].request.seq, 1);
    assert_int_equal(h->batch.picks[1].request.seq, 2);
    assert_int_equal(fixture_count(h, TD_SERVER_RUNNING), 2);
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(old_observations_are_counted_and_not_taken),
        TEST(a_newer_observation_takes_the_place),
        TEST(a_higher_episode_or_boot_starts_anew),
        TEST(what_is_present_follows_the_client),
        TEST(a_reset_drops_what_waited),
        TEST(superseded_seqs_are_told_once_with_the_next_answer),
        TEST(the_newest_superseded_seqs_are_told_when_they_are_many),
        TEST(what_a_new_episode_drops_is_told_too),
        TEST(news_waits_for_an_answer_that_is_read),
        TEST(those_that_wait_share_a_batch),
    };
    return cmocka_run_group_tests_name("server/core", tests, NULL, NULL);
}
