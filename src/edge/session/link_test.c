// SPDX-License-Identifier: Apache-2.0
// The link: who the server is, and what is on its way to it.
#include "edge/session/link.h"

#include "base/sync/thread.h"
#include "edge/core/core_fixture.h"

#include <sched.h>

#define ROWS 8
#define ROUNDS 2000

static td_edge_core *core;
static td_edge_link *link;

static int setup(void **state)
{
    (void)state;
    const td_edge_core_settings settings = robot_settings();
    const td_edge_server server = {.id = SERVER, .wanted = {{48, 64}, {0, 0}}};
    core = robot_new(&settings);
    assert_int_equal(td_edge_link_new(core, &link), TD_OK);
    td_edge_link_name_server(link, &server);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    td_edge_link_free(link);
    td_edge_core_free(core);
    return 0;
}

static td_edge_sent observation(uint64_t seq, uint64_t episode)
{
    return (td_edge_sent){.seq = seq, .episode = episode};
}

static td_edge_answer answered(uint64_t seq)
{
    robot_answer answer;
    td_edge_answer result;
    answer_fill(&answer, seq, ROWS, 1);
    assert_int_equal(td_edge_link_answer(link, 0, &answer.action, &result),
                     TD_OK);
    return result;
}

static void each_connection_has_its_own_number(void **state)
{
    (void)state;
    assert_int_equal(td_edge_link_connection(link), 0);
    td_edge_link_connect(link);
    uint64_t first = td_edge_link_connection(link);
    assert_int_not_equal(first, 0);
    td_edge_link_disconnect(link);
    assert_int_equal(td_edge_link_connection(link), 0);
    td_edge_link_connect(link);
    assert_int_not_equal(td_edge_link_connection(link), 0);
    assert_int_not_equal(td_edge_link_connection(link), first);
}

static void the_server_is_known_by_name_and_features(void **state)
{
    (void)state;
    char id[TD_WIRE_MAX_NAME + 1];
    td_edge_link_sizes wanted = {0};
    td_edge_link_server(link, id);
    td_edge_link_wanted(link, &wanted);
    assert_string_equal(id, SERVER);
    assert_int_equal(wanted.sizes[0].height, 48);
    assert_int_equal(wanted.sizes[0].width, 64);
    assert_int_equal(wanted.sizes[1].height, 0);
}

static void the_same_server_may_want_another_size(void **state)
{
    (void)state;
    td_edge_link_sizes wanted = {0};
    td_edge_link_wanted(link, &wanted);
    td_edge_server again = {.id = SERVER, .wanted = {{24, 32}}};
    td_edge_link_name_server(link, &again);
    td_edge_link_wanted(link, &wanted);
    assert_int_equal(wanted.sizes[0].height, 24);
}

static void only_the_named_server_is_heard(void **state)
{
    (void)state;
    const td_edge_server other = {.id = "gpu-2"};
    td_edge_sent sent = observation(1, 5);
    assert_true(td_edge_link_sent(link, &sent));
    td_edge_link_name_server(link, &other);
    td_edge_answer foreign = answered(1);
    assert_true(foreign.stray);
    assert_int_equal(foreign.why_stray, TD_EDGE_STRAY_SERVER);

    const td_edge_server own = {.id = SERVER};
    td_edge_link_name_server(link, &own);
    td_edge_answer merged = answered(1);
    assert_false(merged.stray);
    assert_int_equal(merged.outcome, TD_EDGE_MERGED);
}

static void what_is_sent_after_a_reset_is_of_another_episode(void **state)
{
    (void)state;
    td_edge_counts counts;
    td_edge_sent early = observation(1, 5), late = observation(2, 5);
    assert_true(td_edge_link_sent(link, &early));
    assert_int_equal(td_edge_link_reset(link), TD_OK);
    assert_false(td_edge_link_sent(link, &late));
    td_edge_link_counts(link, &counts);
    assert_int_equal(counts.outcomes[TD_EDGE_RESET], 2);
}

static void what_is_not_sent_is_counted_by_why(void **state)
{
    (void)state;
    td_edge_counts counts;
    td_edge_sent sent = observation(3, 5);
    assert_int_equal(td_edge_link_skipped(link, 1, TD_EDGE_SKIP_STALE), 1);
    assert_int_equal(td_edge_link_skipped(link, 2, TD_EDGE_SKIP_STALE), 2);
    assert_true(td_edge_link_sent(link, &sent));
    td_edge_link_unsent(link, 3);
    td_edge_link_malformed(link);
    td_edge_link_counts(link, &counts);
    assert_int_equal(counts.skipped[TD_EDGE_SKIP_STALE], 2);
    assert_int_equal(counts.outcomes[TD_EDGE_UNSENT], 1);
    assert_int_equal(counts.strays[TD_EDGE_STRAY_MALFORMED], 1);
}

// The publisher's part: sends what the merge thread answers.
static void send_all(void *user)
{
    _Atomic uint64_t *newest = user;
    for (uint64_t seq = 1; seq <= ROUNDS; seq++) {
        td_edge_sent sent = observation(seq, 5);
        sent.cursor = td_edge_core_cursor(core);
        if (!td_edge_link_sent(link, &sent)) return;
        atomic_store(newest, seq);
        while (td_edge_link_merged_ns(link) < (int64_t)seq)
            sched_yield();
    }
}

static void every_answer_is_merged_while_others_send_and_look(void **state)
{
    (void)state;
    const td_thread_config config = {.name = "sender", .cpu = -1};
    _Atomic uint64_t newest = 0;
    td_thread *sender = NULL;
    td_edge_counts counts;
    assert_int_equal(td_thread_start(&config, send_all, &newest, &sender, NULL),
                     TD_OK);
    for (uint64_t seq = 1; seq <= ROUNDS; seq++) {
        while (atomic_load(&newest) < seq) {
            td_edge_link_connect(link);
            sched_yield();
        }
        assert_int_equal(answered(seq).outcome, TD_EDGE_MERGED);
        td_edge_link_note_merged(link, (int64_t)seq);
    }
    td_thread_join(sender);
    td_edge_link_counts(link, &counts);
    assert_int_equal(counts.sent, ROUNDS);
    assert_int_equal(counts.outcomes[TD_EDGE_MERGED], ROUNDS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_connection_has_its_own_number),
        TEST(the_server_is_known_by_name_and_features),
        TEST(the_same_server_may_want_another_size),
        TEST(only_the_named_server_is_heard),
        TEST(what_is_sent_after_a_reset_is_of_another_episode),
        TEST(what_is_not_sent_is_counted_by_why),
        TEST(every_answer_is_merged_while_others_send_and_look),
    };
    return cmocka_run_group_tests_name("edge/link", tests, NULL, NULL);
}
