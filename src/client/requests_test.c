// SPDX-License-Identifier: Apache-2.0
#include "client/requests.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS TD_NS_PER_MS
#define LIMIT (100 * MS)

static td_client_requests requests;
static uint32_t dropped;
static int payload; // what an answer is does not matter

static void drop(void *answer)
{
    assert_ptr_equal(answer, &payload);
    dropped++;
}

static int setup(void **state)
{
    (void)state;
    dropped = 0;
    td_client_requests_init(&requests, false, drop);
    return 0;
}

// All that were asked ended once, or are open.
static int sums_agree(void **state)
{
    (void)state;
    uint64_t sum = requests.open_count;
    for (int i = 0; i <= TD_MODEL_EXPIRED; i++)
        sum += requests.counts.outcomes[i];
    assert_int_equal(sum, requests.counts.observed);
    td_client_requests_done(&requests);
    return 0;
}

static void ask_sent(uint32_t count, int64_t now_ns)
{
    for (uint32_t i = 0; i < count; i++)
        td_client_requests_ask(&requests, now_ns, LIMIT, true);
}

static void assert_next(uint64_t seq, td_model_outcome outcome,
                        td_client_why why)
{
    const td_client_ended *ended = td_client_requests_first(&requests);
    assert_non_null(ended);
    assert_int_equal(ended->seq, seq);
    assert_int_equal(ended->outcome, outcome);
    assert_int_equal(ended->why, why);
    bool answered = outcome == TD_MODEL_ANSWERED || outcome == TD_MODEL_ERROR;
    assert_ptr_equal(ended->answer, answered ? &payload : NULL);
    td_client_requests_take(&requests);
}

static void assert_nothing(void)
{
    assert_null(td_client_requests_first(&requests));
}

static void an_answer_is_its_observations(void **state)
{
    (void)state;
    ask_sent(1, 5 * MS);
    assert_nothing();
    assert_true(
        td_client_requests_answer(&requests, 8 * MS, 1, false, &payload));
    assert_int_equal(td_client_requests_first(&requests)->took_ns, 3 * MS);
    assert_next(1, TD_MODEL_ANSWERED, TD_CLIENT_WHY_NONE);
    assert_nothing();
}

static void a_second_answer_is_late(void **state)
{
    (void)state;
    ask_sent(1, 0);
    assert_true(td_client_requests_answer(&requests, MS, 1, false, &payload));
    assert_false(td_client_requests_answer(&requests, MS, 1, false, &payload));
    assert_false(td_client_requests_answer(&requests, MS, 7, false, &payload));
    assert_int_equal(dropped, 2);
    assert_int_equal(requests.counts.late, 2);
    assert_next(1, TD_MODEL_ANSWERED, TD_CLIENT_WHY_NONE);
    assert_nothing();
}

static void an_answer_says_that_older_ones_are_lost(void **state)
{
    (void)state;
    ask_sent(4, 0);
    td_client_requests_supersede(&requests, 2);
    assert_true(td_client_requests_answer(&requests, MS, 3, false, &payload));
    assert_int_equal(requests.superseded_count, 1);
    assert_int_equal(requests.superseded[0], 2);
    assert_next(1, TD_MODEL_LOST, TD_CLIENT_WHY_OVERTAKEN);
    assert_int_equal(requests.superseded_count, 0);
    assert_next(3, TD_MODEL_ANSWERED, TD_CLIENT_WHY_NONE);
    assert_nothing();
    assert_int_equal(requests.open_count, 1);
}

static void an_error_leaves_older_ones_open(void **state)
{
    (void)state;
    ask_sent(2, 0);
    assert_true(td_client_requests_answer(&requests, MS, 2, true, &payload));
    assert_next(2, TD_MODEL_ERROR, TD_CLIENT_WHY_NONE);
    assert_nothing();
    assert_true(td_client_requests_answer(&requests, MS, 1, false, &payload));
    assert_next(1, TD_MODEL_ANSWERED, TD_CLIENT_WHY_NONE);
}

static void what_was_not_sent_is_replaced_by_a_newer_one(void **state)
{
    (void)state;
    td_client_requests_ask(&requests, 0, LIMIT, false);
    td_client_requests_ask(&requests, MS, LIMIT, false);
    assert_false(td_client_requests_sent(&requests, 1));
    assert_true(td_client_requests_sent(&requests, 2));
    td_client_requests_ask(&requests, 2 * MS, LIMIT, true);
    assert_int_equal(requests.superseded_count, 1);
    assert_int_equal(requests.superseded[0], 1);
    assert_int_equal(requests.open_count, 2);
    assert_nothing();
}

static void a_superseded_one_ends_once(void **state)
{
    (void)state;
    ask_sent(2, 0);
    td_client_requests_supersede(&requests, 1);
    td_client_requests_supersede(&requests, 1);
    td_client_requests_supersede(&requests, 9);
    assert_int_equal(requests.superseded_count, 1);
    assert_int_equal(requests.counts.outcomes[TD_MODEL_SUPERSEDED], 1);
}

static void a_server_that_is_gone_loses_what_it_was_sent(void **state)
{
    (void)state;
    ask_sent(2, 0);
    td_client_requests_ask(&requests, 0, LIMIT, false);
    td_client_requests_lose(&requests, MS, TD_CLIENT_WHY_GONE);
    assert_next(1, TD_MODEL_LOST, TD_CLIENT_WHY_GONE);
    assert_next(2, TD_MODEL_LOST, TD_CLIENT_WHY_GONE);
    assert_nothing();
    assert_int_equal(requests.open_count, 1);
}

static void stopping_loses_everything(void **state)
{
    (void)state;
    ask_sent(1, 0);
    td_client_requests_ask(&requests, 0, LIMIT, false);
    td_client_requests_lose(&requests, MS, TD_CLIENT_WHY_STOPPED);
    assert_next(1, TD_MODEL_LOST, TD_CLIENT_WHY_STOPPED);
    assert_next(2, TD_MODEL_LOST, TD_CLIENT_WHY_STOPPED);
    assert_int_equal(requests.open_count, 0);
}

static void each_expires_at_its_own_limit(void **state)
{
    (void)state;
    assert_int_equal(td_client_requests_due_ns(&requests), INT64_MAX);
    td_client_requests_ask(&requests, 0, 50 * MS, true);
    td_client_requests_ask(&requests, MS, 10 * MS, true);
    td_client_requests_ask(&requests, 2 * MS, INT64_MAX, false);
    assert_int_equal(td_client_requests_due_ns(&requests), 11 * MS);
    assert_int_equal(td_client_requests_expire(&requests, 11 * MS - 1), 0);
    assert_nothing();
    assert_int_equal(td_client_requests_expire(&requests, 11 * MS), 1);
    assert_next(2, TD_MODEL_EXPIRED, TD_CLIENT_WHY_UNANSWERED);
    assert_int_equal(td_client_requests_expire(&requests, 60 * MS), 1);
    assert_next(1, TD_MODEL_EXPIRED, TD_CLIENT_WHY_UNANSWERED);
    assert_int_equal(td_client_requests_due_ns(&requests), INT64_MAX);
    assert_int_equal(requests.open_count, 1);
}

static void what_found_no_server_expires_as_that(void **state)
{
    (void)state;
    td_client_requests_ask(&requests, 0, LIMIT, false);
    assert_int_equal(td_client_requests_expire(&requests, LIMIT), 0);
    assert_next(1, TD_MODEL_EXPIRED, TD_CLIENT_WHY_UNSENT);
}

static void one_that_could_not_be_sent_was_never_asked(void **state)
{
    (void)state;
    ask_sent(2, 0);
    td_client_requests_withdraw(&requests, 2);
    assert_int_equal(requests.counts.observed, 1);
    assert_int_equal(requests.open_count, 1);
    assert_int_equal(requests.next_seq, 3);
    assert_nothing();
}

static void the_oldest_expires_when_too_many_are_open(void **state)
{
    (void)state;
    ask_sent(TD_CLIENT_REQUESTS_OPEN + 2, 0);
    assert_next(1, TD_MODEL_EXPIRED, TD_CLIENT_WHY_CROWDED);
    assert_next(2, TD_MODEL_EXPIRED, TD_CLIENT_WHY_CROWDED);
    assert_nothing();
    assert_int_equal(requests.open_count, TD_CLIENT_REQUESTS_OPEN);
}

static void results_that_nobody_takes_are_dropped_and_counted(void **state)
{
    (void)state;
    for (uint64_t seq = 1; seq <= TD_CLIENT_REQUESTS_UNREAD + 3; seq++) {
        ask_sent(1, 0);
        assert_true(
            td_client_requests_answer(&requests, 0, seq, false, &payload));
    }
    assert_int_equal(requests.counts.unread, 3);
    assert_int_equal(dropped, 3);
    for (uint64_t seq = 4; seq <= TD_CLIENT_REQUESTS_UNREAD + 3; seq++)
        assert_next(seq, TD_MODEL_ANSWERED, TD_CLIENT_WHY_NONE);
    assert_nothing();
}

static void superseded_ones_that_nobody_hears_of_are_counted(void **state)
{
    (void)state;
    for (uint64_t seq = 1; seq <= TD_CLIENT_REQUESTS_OPEN + 5; seq++) {
        ask_sent(1, 0);
        td_client_requests_supersede(&requests, seq);
    }
    assert_int_equal(requests.counts.unnamed, 5);
    assert_int_equal(requests.superseded_count, TD_CLIENT_REQUESTS_OPEN);
    assert_int_equal(requests.superseded[0], 6);
}

// Whatever comes, in any order, the sums agree.
static void random_events_end_each_once(void **state)
{
    (void)state;
    uint32_t seed = 12345;
    int64_t now_ns = 0;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t pick = (seed >> 8) % 100;
        uint64_t seq = requests.next_seq - (seed >> 16) % 8 % requests.next_seq;
        now_ns += (seed >> 12) % 5 * MS;
        if (pick < 40)
            td_client_requests_ask(&requests, now_ns, LIMIT, pick < 30);
        else if (pick < 60)
            (void)td_client_requests_answer(&requests, now_ns, seq, pick < 45,
                                            &payload);
        else if (pick < 70)
            td_client_requests_supersede(&requests, seq);
        else if (pick < 75)
            (void)td_client_requests_sent(&requests, seq);
        else if (pick < 80)
            (void)td_client_requests_expire(&requests, now_ns);
        else if (pick < 82)
            td_client_requests_lose(&requests, now_ns, TD_CLIENT_WHY_GONE);
        else if (td_client_requests_first(&requests)) {
            if (td_client_requests_first(&requests)->answer) dropped++;
            td_client_requests_take(&requests);
        }
    }
    td_client_requests_done(&requests);
    assert_int_equal(dropped, requests.counts.outcomes[TD_MODEL_ANSWERED] +
                                  requests.counts.outcomes[TD_MODEL_ERROR] +
                                  requests.counts.late);
}

#define LEDGER_TEST(test)                                                      \
    cmocka_unit_test_setup_teardown(test, setup, sums_agree)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(an_answer_is_its_observations),
        LEDGER_TEST(a_second_answer_is_late),
        LEDGER_TEST(an_answer_says_that_older_ones_are_lost),
        LEDGER_TEST(an_error_leaves_older_ones_open),
        LEDGER_TEST(what_was_not_sent_is_replaced_by_a_newer_one),
        LEDGER_TEST(a_superseded_one_ends_once),
        LEDGER_TEST(a_server_that_is_gone_loses_what_it_was_sent),
        LEDGER_TEST(stopping_loses_everything),
        LEDGER_TEST(each_expires_at_its_own_limit),
        LEDGER_TEST(what_found_no_server_expires_as_that),
        LEDGER_TEST(one_that_could_not_be_sent_was_never_asked),
        LEDGER_TEST(the_oldest_expires_when_too_many_are_open),
        LEDGER_TEST(results_that_nobody_takes_are_dropped_and_counted),
        LEDGER_TEST(superseded_ones_that_nobody_hears_of_are_counted),
        LEDGER_TEST(random_events_end_each_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
