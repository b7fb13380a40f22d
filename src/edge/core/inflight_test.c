// SPDX-License-Identifier: Apache-2.0
#include "edge/core/inflight.h"

#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void send(td_edge_inflight *inflight, uint64_t seq)
{
    td_edge_sent sent = {
        .seq = seq,
        .cursor = 10 * seq,
        .captured_ns = (int64_t)(100 * seq),
        .put_ns = (int64_t)(100 * seq + 7),
    };
    td_edge_inflight_send(inflight, &sent);
}

static uint64_t sum(const td_edge_inflight *inflight)
{
    uint64_t total = 0;
    for (int i = 0; i < TD_EDGE_OUTCOME_COUNT; i++)
        total += inflight->outcomes[i];
    return total;
}

static void what_was_sent_is_found_in_any_order(void **state)
{
    (void)state;
    td_edge_inflight inflight = {0};
    for (uint64_t seq = 1; seq <= 3; seq++)
        send(&inflight, seq);
    static const uint64_t order[] = {3, 1, 2};
    for (int i = 0; i < 3; i++) {
        td_edge_sent sent;
        assert_true(td_edge_inflight_find(&inflight, order[i], &sent));
        assert_int_equal(sent.seq, order[i]);
        assert_int_equal(sent.cursor, 10 * order[i]);
        assert_int_equal(sent.captured_ns, 100 * order[i]);
        assert_int_equal(sent.put_ns, 100 * order[i] + 7);
        td_edge_inflight_end(&inflight, order[i], TD_EDGE_MERGED);
    }
    assert_int_equal(inflight.outcomes[TD_EDGE_MERGED], 3);
    assert_int_equal(inflight.outcomes[TD_EDGE_PENDING], 0);
}

static void what_ended_is_gone(void **state)
{
    (void)state;
    td_edge_inflight inflight = {0};
    td_edge_sent sent = {.seq = 77};
    send(&inflight, 1);
    td_edge_inflight_end(&inflight, 1, TD_EDGE_EXPIRED);
    td_edge_inflight_end(&inflight, 1, TD_EDGE_MERGED);
    assert_false(td_edge_inflight_find(&inflight, 1, &sent));
    assert_int_equal(sent.seq, 77);
    assert_int_equal(inflight.outcomes[TD_EDGE_EXPIRED], 1);
    assert_int_equal(inflight.outcomes[TD_EDGE_MERGED], 0);
}

static void what_was_never_sent_is_not_found(void **state)
{
    (void)state;
    td_edge_inflight inflight = {0};
    td_edge_sent sent;
    assert_false(td_edge_inflight_find(&inflight, 0, &sent));
    send(&inflight, 1);
    assert_false(td_edge_inflight_find(&inflight, 0, &sent));
    assert_false(td_edge_inflight_find(&inflight, 2, &sent));
    assert_false(
        td_edge_inflight_find(&inflight, 1 + TD_EDGE_INFLIGHT_MAX, &sent));
    td_edge_inflight_end(&inflight, 1 + TD_EDGE_INFLIGHT_MAX, TD_EDGE_MERGED);
    assert_int_equal(inflight.outcomes[TD_EDGE_MERGED], 0);
    assert_int_equal(inflight.outcomes[TD_EDGE_PENDING], 1);
}

static void what_falls_out_of_the_ring_is_unanswered(void **state)
{
    (void)state;
    td_edge_inflight inflight = {0};
    for (uint64_t seq = 1; seq <= TD_EDGE_INFLIGHT_MAX; seq++)
        send(&inflight, seq);
    assert_int_equal(inflight.outcomes[TD_EDGE_UNANSWERED], 0);
    td_edge_inflight_end(&inflight, 2, TD_EDGE_MERGED);
    send(&inflight, TD_EDGE_INFLIGHT_MAX + 1); // the place of 1
    send(&inflight, TD_EDGE_INFLIGHT_MAX + 2); // the place that 2 left
    td_edge_sent sent;
    assert_false(td_edge_inflight_find(&inflight, 1, &sent));
    assert_int_equal(inflight.outcomes[TD_EDGE_UNANSWERED], 1);
    assert_int_equal(inflight.outcomes[TD_EDGE_PENDING], TD_EDGE_INFLIGHT_MAX);
    assert_int_equal(sum(&inflight), TD_EDGE_INFLIGHT_MAX + 2);
}

static void every_sent_one_has_exactly_one_outcome(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 3);
    td_edge_inflight inflight = {0};
    uint64_t seq = 0;
    for (int i = 0; i < 20000; i++) {
        if (td_rand_unit(&rand) < 0.5) {
            seq += 1 + td_rand_u64(&rand) % 3; // some are never sent
            send(&inflight, seq);
        } else {
            uint64_t back = td_rand_u64(&rand) % (2UL * TD_EDGE_INFLIGHT_MAX);
            td_edge_outcome outcome =
                TD_EDGE_MERGED +
                td_rand_u64(&rand) % (TD_EDGE_UNANSWERED - TD_EDGE_MERGED);
            td_edge_inflight_end(&inflight, seq - back, outcome);
        }
        assert_int_equal(sum(&inflight), inflight.sent);
        assert_true(inflight.outcomes[TD_EDGE_PENDING] <= TD_EDGE_INFLIGHT_MAX);
    }
    assert_true(inflight.outcomes[TD_EDGE_UNANSWERED] > 0);
}

static void outcomes_have_names(void **state)
{
    (void)state;
    assert_string_equal(td_edge_outcome_name(TD_EDGE_PENDING), "pending");
    assert_string_equal(td_edge_outcome_name(TD_EDGE_OVERTAKEN), "overtaken");
    assert_string_equal(td_edge_outcome_name(TD_EDGE_UNANSWERED), "unanswered");
}

static void send_again(td_edge_inflight *inflight, uint64_t seq, uint64_t again)
{
    td_edge_inflight_send(inflight,
                          &(td_edge_sent){.seq = seq, .again = again});
}

static bool is_repeated(const td_edge_inflight *inflight, uint64_t seq)
{
    td_edge_sent sent = {0};
    assert_true(td_edge_inflight_find(inflight, seq, &sent));
    return sent.repeated;
}

static void what_is_asked_for_again_is_repeated_and_nothing_else(void **state)
{
    (void)state;
    td_edge_inflight inflight = {0};
    send(&inflight, 1);
    send(&inflight, 2);
    send_again(&inflight, 3, 1);
    assert_true(is_repeated(&inflight, 1));
    assert_false(is_repeated(&inflight, 2));
    assert_false(is_repeated(&inflight, 3));
    send(&inflight, 2 + TD_EDGE_INFLIGHT_MAX); // where 2 was
    send_again(&inflight, 3 + TD_EDGE_INFLIGHT_MAX, 2);
    assert_false(is_repeated(&inflight, 2 + TD_EDGE_INFLIGHT_MAX));
}

static void the_end_of_all_is_the_end_of_each(void **state)
{
    (void)state;
    td_edge_inflight inflight = {0};
    for (uint64_t seq = 1; seq <= TD_EDGE_INFLIGHT_MAX; seq++)
        send(&inflight, seq);
    td_edge_inflight_end_all(&inflight, TD_EDGE_RESET);
    assert_int_equal(inflight.outcomes[TD_EDGE_RESET], TD_EDGE_INFLIGHT_MAX);
    assert_int_equal(inflight.outcomes[TD_EDGE_PENDING], 0);
}

// 256 and 511 have the first and the last place of the ring.
static void the_oldest_is_looked_for_between_two_seqs(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t after, upto;
        int64_t oldest_ns;
    } cases[] = {
        {"all of them", 0, 999, 100},
        {"without the one before", 256, 258, 200},
        {"with the last", 257, 258, 300},
        {"without the one after", 255, 257, 200},
        {"the first place", 255, 256, 400},
        {"the last place", 258, 511, 100},
        {"none", 258, 510, 900},
    };
    td_edge_inflight inflight = {0};
    static const td_edge_sent sent[] = {{.seq = 256, .captured_ns = 400},
                                        {.seq = 257, .captured_ns = 200},
                                        {.seq = 258, .captured_ns = 300},
                                        {.seq = 511, .captured_ns = 100}};
    for (size_t i = 0; i < TD_COUNT_OF(sent); i++)
        td_edge_inflight_send(&inflight, &sent[i]);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        if (td_edge_inflight_oldest(&inflight, cases[i].after, cases[i].upto,
                                    900) != cases[i].oldest_ns)
            fail_msg("%s", cases[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_is_found_in_any_order),
        cmocka_unit_test(what_ended_is_gone),
        cmocka_unit_test(what_was_never_sent_is_not_found),
        cmocka_unit_test(what_falls_out_of_the_ring_is_unanswered),
        cmocka_unit_test(every_sent_one_has_exactly_one_outcome),
        cmocka_unit_test(outcomes_have_names),
        cmocka_unit_test(what_is_asked_for_again_is_repeated_and_nothing_else),
        cmocka_unit_test(the_end_of_all_is_the_end_of_each),
        cmocka_unit_test(the_oldest_is_looked_for_between_two_seqs),
    };
    return cmocka_run_group_tests_name("edge/inflight", tests, NULL, NULL);
}
